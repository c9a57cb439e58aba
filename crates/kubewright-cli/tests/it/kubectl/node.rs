//! `kubectl cordon`, `drain` and `taint`.

use super::cluster::Cluster;
use super::objects::{NODE, PODS};

#[test]
fn cordon_and_uncordon_change_schedulability() {
    let cluster = Cluster::with(NODE);
    insta::assert_snapshot!(cluster.session("
        cordon worker
        cordon worker
        get nodes
        get nodes --field-selector spec.unschedulable=true -o name
        uncordon worker
        get nodes
        cordon nope
    "), @r#"
    $ kubectl cordon worker
    node/worker cordoned
    $ kubectl cordon worker
    node/worker already cordoned
    $ kubectl get nodes
    NAME     STATUS                       ROLES    AGE   VERSION
    worker   Unknown,SchedulingDisabled   worker   <AGE>
    $ kubectl get nodes --field-selector spec.unschedulable=true -o name
    node/worker
    $ kubectl uncordon worker
    node/worker uncordoned
    $ kubectl get nodes
    NAME     STATUS    ROLES    AGE   VERSION
    worker   Unknown   worker   <AGE>
    $ kubectl cordon nope
    --- stderr
    Error from server (NotFound): nodes "nope" not found
    --- exit status 1
    "#);
}

#[test]
fn taint_adds_and_changes_and_removes() {
    let cluster = Cluster::with(NODE);
    insta::assert_snapshot!(cluster.session("
        taint node worker node.kubernetes.io/not-ready-
        taint node worker dedicated=db:NoSchedule
        taint node worker dedicated=web:NoSchedule
        taint node worker dedicated=web:NoSchedule --overwrite
        get node worker -o jsonpath={.spec.taints}
        taint node worker dedicated-
        get node worker -o jsonpath={.spec.taints}
    "), @r#"
    $ kubectl taint node worker node.kubernetes.io/not-ready-
    node/worker untainted
    $ kubectl taint node worker dedicated=db:NoSchedule
    node/worker tainted
    $ kubectl taint node worker dedicated=web:NoSchedule
    --- stderr
    error: node worker already has dedicated taint(s) with same effect(s) and --overwrite is false
    --- exit status 1
    $ kubectl taint node worker dedicated=web:NoSchedule --overwrite
    node/worker modified
    $ kubectl get node worker -o jsonpath={.spec.taints}
    [{"effect":"NoSchedule","key":"dedicated","value":"web"}]
    $ kubectl taint node worker dedicated-
    node/worker untainted
    $ kubectl get node worker -o jsonpath={.spec.taints}
    "#);
}

#[test]
fn drain_evicts_and_waits_for_pod_termination() {
    let cluster = Cluster::with(&[NODE, PODS].join("---\n"));
    insta::assert_snapshot!(cluster.kubectl("drain worker"), @r#"
    node/worker cordoned
    --- stderr
    error: unable to drain node "worker" due to error: cannot delete cannot delete Pods that declare no controller (use --force to override): default/c, continuing command...
    There are pending nodes to be drained:
     worker
    cannot delete cannot delete Pods that declare no controller (use --force to override): default/c
    --- exit status 1
    "#);
    let mut drain = cluster.background("drain worker --force");
    drain.line_with("evicting pod default/c");
    let mut watch = cluster.background("get pod c -w");
    watch.line_with("Terminating");
    // The test acts as the kubelet.
    cluster.kubectl("delete --raw /api/v1/namespaces/default/pods/c?gracePeriodSeconds=0").result();
    insta::assert_snapshot!(drain.end(), @"
    node/worker already cordoned
    evicting pod default/c
    pod/c evicted
    node/worker drained
    --- stderr
    Warning: deleting Pods that declare no controller: default/c
    ");
    insta::assert_snapshot!(cluster.kubectl("get pods -o name"), @"
    pod/a
    pod/b
    ");
}

#[test]
fn drain_without_eviction_deletes() {
    let cluster = Cluster::with(&[NODE, PODS].join("---\n"));
    insta::assert_snapshot!(cluster.kubectl("drain worker --force --disable-eviction --grace-period=0"), @"
    node/worker cordoned
    pod/c deleted
    node/worker drained
    --- stderr
    Warning: deleting Pods that declare no controller: default/c
    ");
    insta::assert_snapshot!(cluster.kubectl("get pods -o name"), @"
    pod/a
    pod/b
    ");
}

#[test]
fn evictions_respect_disruption_budgets() {
    let cluster = Cluster::with(&[PODS, BUDGET].join("---\n"));
    // Pods that are not running are not protected.
    let running = r#"{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}"#;
    cluster.kubectl(&format!("patch pod a --subresource=status -p {running}")).result();
    let evict = "create --raw /api/v1/namespaces/default/pods/a/eviction -f -";
    let eviction =
        r#"{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"a","namespace":"default"}}"#;
    insta::assert_snapshot!(cluster.feed(evict, eviction), @"
    --- stderr
    Error from server (TooManyRequests): Cannot evict pod as it would violate the pod's disruption budget.
    --- exit status 1
    ");
    let status = r#"{"status":{"observedGeneration":1,"currentHealthy":1,"desiredHealthy":1,"expectedPods":1,"disruptionsAllowed":ALLOWED}}"#;
    let allow = |allowed| {
        let patch = status.replace("ALLOWED", allowed);
        cluster
            .kubectl(&format!("patch poddisruptionbudget web --subresource=status --type=merge -p {patch}"))
            .result();
    };
    allow("0");
    insta::assert_snapshot!(cluster.feed(evict, eviction), @"
    --- stderr
    Error from server (TooManyRequests): Cannot evict pod as it would violate the pod's disruption budget.
    --- exit status 1
    ");
    allow("1");
    insta::assert_snapshot!(cluster.feed(evict, eviction), @r#"{"apiVersion":"v1","code":201,"kind":"Status","metadata":{},"status":"Success"}"#);
    insta::assert_snapshot!(cluster.session("
        get pods -o name
        get poddisruptionbudgets
    "), @"
    $ kubectl get pods -o name
    pod/b
    pod/c
    $ kubectl get poddisruptionbudgets
    NAME   MIN AVAILABLE   MAX UNAVAILABLE   ALLOWED DISRUPTIONS   AGE
    web    1               N/A               0                     <AGE>
    ");
}

const BUDGET: &str = "\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {tier: front}}}
";
