//! `kubectl patch`, `label`, `annotate` and `scale`.

use super::cluster::Cluster;
use super::objects::{SETTINGS, SETTINGS_AND_WEB};

#[test]
fn a_strategic_patch_merges_lists_and_supports_directives() {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    insta::assert_snapshot!(cluster.session(r#"
        patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"log","image":"busybox"}]}}}}'
        patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"nginx:1.28"}]}}}}'
        get deployment web -o 'jsonpath={range .spec.template.spec.containers[*]}{.name}={.image} {end}'
        patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"log","$patch":"delete"}]}}}}'
        patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"log","$patch":"delete"}]}}}}'
        get deployment web -o 'jsonpath={range .spec.template.spec.containers[*]}{.name}={.image} {end}'
    "#), @r#"
    $ kubectl patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"log","image":"busybox"}]}}}}'
    deployment.apps/web patched
    $ kubectl patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"nginx:1.28"}]}}}}'
    deployment.apps/web patched
    $ kubectl get deployment web -o 'jsonpath={range .spec.template.spec.containers[*]}{.name}={.image} {end}'
    log=busybox web=nginx:1.28
    $ kubectl patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"log","$patch":"delete"}]}}}}'
    deployment.apps/web patched
    $ kubectl patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"log","$patch":"delete"}]}}}}'
    deployment.apps/web patched (no change)
    $ kubectl get deployment web -o 'jsonpath={range .spec.template.spec.containers[*]}{.name}={.image} {end}'
    web=nginx:1.28
    "#);
}

#[test]
fn a_merge_patch_replaces_lists_and_removes_with_null() {
    let cluster = Cluster::with(SETTINGS);
    insta::assert_snapshot!(cluster.session(r#"
        patch configmap settings --type=merge -p '{"data":{"colour":"red","size":null}}'
        patch configmap settings --type=merge -p '{"data":{"colour":"red"}}'
        get configmap settings -o jsonpath={.data}
    "#), @r#"
    $ kubectl patch configmap settings --type=merge -p '{"data":{"colour":"red","size":null}}'
    configmap/settings patched
    $ kubectl patch configmap settings --type=merge -p '{"data":{"colour":"red"}}'
    configmap/settings patched (no change)
    $ kubectl get configmap settings -o jsonpath={.data}
    {"colour":"red"}
    "#);
}

#[test]
fn a_json_patch_tests_and_changes_by_path() {
    let cluster = Cluster::with(SETTINGS);
    insta::assert_snapshot!(cluster.session(r#"
        patch configmap settings --type=json -p '[{"op":"test","path":"/data/colour","value":"blue"},{"op":"replace","path":"/data/colour","value":"red"}]'
        patch configmap settings --type=json -p '[{"op":"add","path":"/metadata/labels/example.com~1tier","value":"front"},{"op":"remove","path":"/data/size"}]'
        get configmap settings -o jsonpath={.data},{.metadata.labels}
        patch configmap settings --type=json -p '[{"op":"test","path":"/data/colour","value":"blue"}]'
        patch configmap settings --type=json -p '[{"op":"remove","path":"/data/nope"}]'
    "#), @r#"
    $ kubectl patch configmap settings --type=json -p '[{"op":"test","path":"/data/colour","value":"blue"},{"op":"replace","path":"/data/colour","value":"red"}]'
    configmap/settings patched
    $ kubectl patch configmap settings --type=json -p '[{"op":"add","path":"/metadata/labels/example.com~1tier","value":"front"},{"op":"remove","path":"/data/size"}]'
    configmap/settings patched
    $ kubectl get configmap settings -o jsonpath={.data},{.metadata.labels}
    {"colour":"red"},{"app":"web","example.com/tier":"front"}
    $ kubectl patch configmap settings --type=json -p '[{"op":"test","path":"/data/colour","value":"blue"}]'
    --- stderr
    The request is invalid: the server rejected our request due to an error in our request
    --- exit status 1
    $ kubectl patch configmap settings --type=json -p '[{"op":"remove","path":"/data/nope"}]'
    --- stderr
    The request is invalid: the server rejected our request due to an error in our request
    --- exit status 1
    "#);
}

#[test]
fn a_patch_of_the_status_leaves_the_spec_alone() {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    insta::assert_snapshot!(cluster.session(r#"
        patch deployment web --subresource=status --type=merge -p '{"spec":{"replicas":7},"status":{"replicas":2,"readyReplicas":1}}'
        get deployment web
        get deployment web --subresource=status -o jsonpath={.status}
        get deployment web -o jsonpath={.metadata.generation}
        patch deployment web --subresource=scale --type=merge -p '{"spec":{"replicas":3}}'
        get deployment web --subresource=scale
    "#), @r#"
    $ kubectl patch deployment web --subresource=status --type=merge -p '{"spec":{"replicas":7},"status":{"replicas":2,"readyReplicas":1}}'
    deployment.apps/web patched
    $ kubectl get deployment web
    NAME   READY   UP-TO-DATE   AVAILABLE   AGE
    web    1/2     0            0           <AGE>
    $ kubectl get deployment web --subresource=status -o jsonpath={.status}
    {"readyReplicas":1,"replicas":2}
    $ kubectl get deployment web -o jsonpath={.metadata.generation}
    1
    $ kubectl patch deployment web --subresource=scale --type=merge -p '{"spec":{"replicas":3}}'
    scale.autoscaling/web patched
    $ kubectl get deployment web --subresource=scale
    NAME   DESIRED   AVAILABLE   AGE
    web    3         2           <AGE>
    "#);
}

#[test]
fn label_adds_and_changes_and_removes() {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    insta::assert_snapshot!(cluster.session("
        label configmap settings tier=front
        label configmap settings tier=front
        label configmap settings tier=back
        label configmap settings tier=back --overwrite
        label configmap/settings deployment/web team=blue
        label configmaps --all checked=yes
        label configmaps -l checked=yes checked-
        get configmap settings --show-labels
        label configmap settings 'tier=not valid!' --overwrite
        label configmap settings tier- nope-
    "), @r#"
    $ kubectl label configmap settings tier=front
    configmap/settings labeled
    $ kubectl label configmap settings tier=front
    configmap/settings not labeled
    $ kubectl label configmap settings tier=back
    --- stderr
    error: 'tier' already has a value (front), and --overwrite is false
    --- exit status 1
    $ kubectl label configmap settings tier=back --overwrite
    configmap/settings labeled
    $ kubectl label configmap/settings deployment/web team=blue
    configmap/settings labeled
    deployment.apps/web labeled
    $ kubectl label configmaps --all checked=yes
    configmap/settings labeled
    $ kubectl label configmaps -l checked=yes checked-
    configmap/settings unlabeled
    $ kubectl get configmap settings --show-labels
    NAME       DATA   AGE   LABELS
    settings   2      <AGE> app=web,team=blue,tier=back
    $ kubectl label configmap settings 'tier=not valid!' --overwrite
    --- stderr
    error: invalid label value: "tier=not valid!": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
    --- exit status 1
    $ kubectl label configmap settings tier- nope-
    label "nope" not found.
    configmap/settings unlabeled
    "#);
}

#[test]
fn annotate_adds_and_changes_and_removes() {
    let cluster = Cluster::with(SETTINGS);
    insta::assert_snapshot!(cluster.session("
        annotate configmap settings note='of blue and size'
        annotate configmap settings note=other
        annotate configmap settings note=other --overwrite
        annotate configmap settings note=other --overwrite --resource-version=1
        get configmap settings -o jsonpath={.metadata.annotations}
        annotate configmap settings note-
        get configmap settings -o jsonpath={.metadata.annotations}
    "), @r#"
    $ kubectl annotate configmap settings note='of blue and size'
    configmap/settings annotated
    $ kubectl annotate configmap settings note=other
    --- stderr
    error: --overwrite is false but found the following declared annotation(s): 'note' already has a value (of blue and size)
    --- exit status 1
    $ kubectl annotate configmap settings note=other --overwrite
    configmap/settings annotated
    $ kubectl annotate configmap settings note=other --overwrite --resource-version=1
    --- stderr
    Error from server (Conflict): Operation cannot be fulfilled on configmaps "settings": the object has been modified; please apply your changes to the latest version and try again
    --- exit status 1
    $ kubectl get configmap settings -o jsonpath={.metadata.annotations}
    {"note":"other"}
    $ kubectl annotate configmap settings note-
    configmap/settings annotated
    $ kubectl get configmap settings -o jsonpath={.metadata.annotations}
    "#);
}

#[test]
fn scale_changes_the_replicas_of_every_workload() {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    cluster.create(WORKLOADS);
    insta::assert_snapshot!(cluster.session("
        scale deployment web --replicas=5
        scale deployment web --replicas=4 --current-replicas=5
        scale deployment web --replicas=3 --current-replicas=5
        scale replicaset/set replicationcontroller/old statefulset/db --replicas=2
        get deployment,replicaset,replicationcontroller,statefulset
        scale configmap settings --replicas=2
    "), @"
    $ kubectl scale deployment web --replicas=5
    deployment.apps/web scaled
    $ kubectl scale deployment web --replicas=4 --current-replicas=5
    deployment.apps/web scaled
    $ kubectl scale deployment web --replicas=3 --current-replicas=5
    --- stderr
    error: Expected replicas to be 5, was 4
    --- exit status 1
    $ kubectl scale replicaset/set replicationcontroller/old statefulset/db --replicas=2
    replicaset.apps/set scaled
    replicationcontroller/old scaled
    statefulset.apps/db scaled
    $ kubectl get deployment,replicaset,replicationcontroller,statefulset
    NAME                  READY   UP-TO-DATE   AVAILABLE   AGE
    deployment.apps/web   0/4     0            0           <AGE>

    NAME                  DESIRED   CURRENT   READY   AGE
    replicaset.apps/set   2         0         0       <AGE>

    NAME                        DESIRED   CURRENT   READY   AGE
    replicationcontroller/old   2         0         0       <AGE>

    NAME                  READY   AGE
    statefulset.apps/db   0/2     <AGE>
    $ kubectl scale configmap settings --replicas=2
    --- stderr
    Error from server (NotFound): the server could not find the requested resource
    --- exit status 1
    ");
}

const WORKLOADS: &str = "\
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: set}
spec:
  selector: {matchLabels: {app: set}}
  template: {metadata: {labels: {app: set}}, spec: {containers: [{name: a, image: a}]}}
---
apiVersion: v1
kind: ReplicationController
metadata: {name: old}
spec:
  template: {metadata: {labels: {app: old}}, spec: {containers: [{name: a, image: a}]}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: a, image: a}]}}
";
