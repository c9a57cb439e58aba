//! `kubectl rollout`; the test acts as the Deployment controller.

use super::cluster::Cluster;
use super::objects::{ROLLED_OUT, SETTINGS_AND_WEB};

#[test]
fn rollout_status_waits_for_availability() {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    let mut status = cluster.background("rollout status deployment web");
    status.line_with("Waiting for deployment spec update to be observed");
    let partly = ROLLED_OUT.replace("\"updatedReplicas\":2", "\"updatedReplicas\":1");
    cluster.kubectl(&format!("patch deployment web --subresource=status -p '{partly}'")).result();
    status.line_with("1 out of 2 new replicas have been updated");
    cluster.kubectl(&format!("patch deployment web --subresource=status -p '{ROLLED_OUT}'")).result();
    insta::assert_snapshot!(status.end(), @r#"
    Waiting for deployment spec update to be observed...
    Waiting for deployment "web" rollout to finish: 1 out of 2 new replicas have been updated...
    deployment "web" successfully rolled out
    "#);
    insta::assert_snapshot!(cluster.session("
        rollout status deployment web
        get deployment web
    "), @r#"
    $ kubectl rollout status deployment web
    deployment "web" successfully rolled out
    $ kubectl get deployment web
    NAME   READY   UP-TO-DATE   AVAILABLE   AGE
    web    2/2     2            2           <AGE>
    "#);
}

#[test]
fn rollout_status_times_out() {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    insta::assert_snapshot!(cluster.kubectl("rollout status deployment web --timeout=1s"), @"
    Waiting for deployment spec update to be observed...
    --- stderr
    error: timed out waiting for the condition
    --- exit status 1
    ");
}

#[test]
fn rollout_history_reads_the_revisions_of_replica_sets() {
    let cluster = with_revisions();
    insta::assert_snapshot!(cluster.session("
        rollout history deployment web
        rollout history deployment web --revision=1 -o jsonpath={.spec.template.spec.containers[0].image}
    "), @"
    $ kubectl rollout history deployment web
    deployment.apps/web
    REVISION  CHANGE-CAUSE
    1         to nginx:1.26
    2         to nginx:1.27

    $ kubectl rollout history deployment web --revision=1 -o jsonpath={.spec.template.spec.containers[0].image}
    nginx:1.26
    ");
}

#[test]
fn rollout_undo_goes_back_to_the_template_of_a_revision() {
    let cluster = with_revisions();
    insta::assert_snapshot!(cluster.session("
        rollout undo deployment web --to-revision=1
        get deployment web -o jsonpath={.spec.template.spec.containers[0].image}
        rollout undo deployment web --to-revision=7
    "), @"
    $ kubectl rollout undo deployment web --to-revision=1
    deployment.apps/web rolled back
    $ kubectl get deployment web -o jsonpath={.spec.template.spec.containers[0].image}
    nginx:1.26
    $ kubectl rollout undo deployment web --to-revision=7
    --- stderr
    error: unable to find specified revision 7 in history
    --- exit status 1
    ");
}

#[test]
fn rollout_restart_changes_the_template() {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    insta::assert_snapshot!(cluster.session("
        rollout restart deployment web
        get deployment web -o jsonpath={.spec.template.metadata.annotations},{.metadata.generation}
    "), @r#"
    $ kubectl rollout restart deployment web
    deployment.apps/web restarted
    $ kubectl get deployment web -o jsonpath={.spec.template.metadata.annotations},{.metadata.generation}
    {"kubectl.kubernetes.io/restartedAt":"<TIME>"},2
    "#);
}

#[test]
fn rollout_pauses_and_resumes() {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    insta::assert_snapshot!(cluster.session("
        rollout pause deployment web
        rollout pause deployment web
        rollout restart deployment web
        rollout resume deployment web
        get deployment web -o jsonpath={.spec.paused}
    "), @r#"
    $ kubectl rollout pause deployment web
    deployment.apps/web paused
    $ kubectl rollout pause deployment web
    --- stderr
    error: deployments.apps "web" is already paused
    --- exit status 1
    $ kubectl rollout restart deployment web
    --- stderr
    error: deployments.apps "web" can't restart paused deployment (run rollout resume first)
    --- exit status 1
    $ kubectl rollout resume deployment web
    deployment.apps/web resumed
    $ kubectl get deployment web -o jsonpath={.spec.paused}
    "#);
}

/// The Deployment with ReplicaSets of two revisions.
fn with_revisions() -> Cluster {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    let uid = cluster.kubectl("get deployment web -o jsonpath={.metadata.uid}").result();
    for (revision, image) in [(1, "nginx:1.26"), (2, "nginx:1.27")] {
        cluster.create(&format!(
            "\
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-{revision}
  labels: {{app: web, pod-template-hash: r{revision}}}
  annotations: {{deployment.kubernetes.io/revision: \"{revision}\", kubernetes.io/change-cause: to {image}}}
  ownerReferences:
  - {{apiVersion: apps/v1, kind: Deployment, name: web, uid: {uid}, controller: true, blockOwnerDeletion: true}}
spec:
  selector: {{matchLabels: {{app: web, pod-template-hash: r{revision}}}}}
  template:
    metadata: {{labels: {{app: web, pod-template-hash: r{revision}}}}}
    spec: {{containers: [{{name: web, image: \"{image}\"}}]}}
"
        ));
    }
    cluster
}
