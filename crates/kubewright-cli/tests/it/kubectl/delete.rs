//! `kubectl delete`: the state after the command returns.

use super::cluster::Cluster;
use super::objects::{NODE, PODS, SETTINGS_AND_WEB, owned};

const TEAM: &str = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n";

/// A Deployment that owns a ConfigMap, which owns another.
fn with_dependents() -> Cluster {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    let uid = cluster.kubectl("get deployment web -o jsonpath={.metadata.uid}").result();
    cluster.create(&owned("child", "apps/v1", "Deployment", "web", &uid));
    let uid = cluster.kubectl("get configmap child -o jsonpath={.metadata.uid}").result();
    cluster.create(&owned("grandchild", "v1", "ConfigMap", "child", &uid));
    cluster
}

#[test]
fn delete_supports_names_selectors_files_and_all() {
    let cluster = Cluster::with(&[PODS, SETTINGS_AND_WEB].join("---\n"));
    insta::assert_snapshot!(cluster.session("
        delete pod a
        delete pod a
        delete pod a --ignore-not-found
        delete pods -l tier=back
    "), @r#"
    $ kubectl delete pod a
    pod "a" deleted
    $ kubectl delete pod a
    --- stderr
    Error from server (NotFound): pods "a" not found
    --- exit status 1
    $ kubectl delete pod a --ignore-not-found
    $ kubectl delete pods -l tier=back
    pod "b" deleted
    "#);
    insta::assert_snapshot!(cluster.feed("delete -f -", SETTINGS_AND_WEB), @r#"
    configmap "settings" deleted
    deployment.apps "web" deleted
    "#);
    insta::assert_snapshot!(cluster.feed("delete -f -", SETTINGS_AND_WEB), @r#"
    --- stderr
    Error from server (NotFound): error when deleting "STDIN": configmaps "settings" not found
    Error from server (NotFound): error when deleting "STDIN": deployments.apps "web" not found
    --- exit status 1
    "#);
    cluster.create(SETTINGS_AND_WEB);
    insta::assert_snapshot!(cluster.session("
        delete deployments,configmaps --all
        delete configmaps --all
        get all,configmaps
    "), @r#"
    $ kubectl delete deployments,configmaps --all
    deployment.apps "web" deleted
    configmap "settings" deleted
    $ kubectl delete configmaps --all
    No resources found
    $ kubectl get all,configmaps
    NAME    READY   STATUS    RESTARTS   AGE
    pod/c   0/1     Pending   0          <AGE>

    NAME                 TYPE        CLUSTER-IP   EXTERNAL-IP   PORT(S)   AGE
    service/kubernetes   ClusterIP   10.0.0.1     <none>        443/TCP   <AGE>
    "#);
}

#[test]
fn background_deletion_deletes_dependents() {
    let cluster = with_dependents();
    insta::assert_snapshot!(cluster.session("
        delete deployment web --cascade=background --wait=false
        get deployments,configmaps -o name
    "), @r#"
    $ kubectl delete deployment web --cascade=background --wait=false
    deployment.apps "web" deleted
    $ kubectl get deployments,configmaps -o name
    configmap/settings
    "#);
}

#[test]
fn foreground_deletion_deletes_dependents() {
    let cluster = with_dependents();
    insta::assert_snapshot!(cluster.session("
        delete deployment web --cascade=foreground --wait=false
        get deployments,configmaps -o name
    "), @r#"
    $ kubectl delete deployment web --cascade=foreground --wait=false
    deployment.apps "web" deleted
    $ kubectl get deployments,configmaps -o name
    configmap/settings
    "#);
}

#[test]
fn foreground_deletion_waits_for_finalizers_of_dependents() {
    let cluster = with_dependents();
    insta::assert_snapshot!(cluster.session(r#"
        patch configmap child --type=merge -p '{"metadata":{"finalizers":["example.com/hold"]}}'
        delete deployment web --cascade=foreground --wait=false
        get deployment web -o jsonpath={.metadata.finalizers}
        get configmap child -o jsonpath={.metadata.deletionTimestamp}
        patch configmap child --type=merge -p '{"metadata":{"finalizers":null}}'
        get deployments,configmaps -o name
    "#), @r#"
    $ kubectl patch configmap child --type=merge -p '{"metadata":{"finalizers":["example.com/hold"]}}'
    configmap/child patched
    $ kubectl delete deployment web --cascade=foreground --wait=false
    deployment.apps "web" deleted
    $ kubectl get deployment web -o jsonpath={.metadata.finalizers}
    ["foregroundDeletion"]
    $ kubectl get configmap child -o jsonpath={.metadata.deletionTimestamp}
    <TIME>
    $ kubectl patch configmap child --type=merge -p '{"metadata":{"finalizers":null}}'
    configmap/child patched
    $ kubectl get deployments,configmaps -o name
    configmap/settings
    "#);
}

#[test]
fn orphans_lose_their_owner_reference() {
    let cluster = with_dependents();
    insta::assert_snapshot!(cluster.session("
        delete deployment web --cascade=orphan
        get deployments,configmaps -o name
        get configmap child -o jsonpath={.metadata.ownerReferences}
        get configmap grandchild -o jsonpath={.metadata.ownerReferences[*].name}
    "), @r#"
    $ kubectl delete deployment web --cascade=orphan
    deployment.apps "web" deleted
    $ kubectl get deployments,configmaps -o name
    configmap/child
    configmap/grandchild
    configmap/settings
    $ kubectl get configmap child -o jsonpath={.metadata.ownerReferences}
    $ kubectl get configmap grandchild -o jsonpath={.metadata.ownerReferences[*].name}
    child
    "#);
}

#[test]
fn delete_waits_for_the_last_finalizer() {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    cluster
        .kubectl(
            r#"patch configmap settings --type=merge -p {"metadata":{"finalizers":["example.com/hold"]}}"#,
        )
        .result();
    let mut delete = cluster.background("delete configmap settings -v=6");
    delete.line_with("watch=true");
    insta::assert_snapshot!(cluster.kubectl("get configmap settings -o jsonpath={.metadata.deletionTimestamp}"), @"<TIME>");
    cluster
        .kubectl(r#"patch configmap settings --type=json -p [{"op":"remove","path":"/metadata/finalizers"}]"#)
        .result();
    delete.end().log();
    insta::assert_snapshot!(cluster.kubectl("get configmaps"), @"
    --- stderr
    No resources found in default namespace.
    ");
}

#[test]
fn deleting_a_namespace_deletes_its_content() {
    let cluster = Cluster::start();
    cluster.create(TEAM);
    let create = "create -n team -f -";
    cluster.feed(create, SETTINGS_AND_WEB).result();
    cluster
        .feed(create, "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n")
        .result();
    insta::assert_snapshot!(cluster.session("
        delete namespace team --wait=false
        get namespace team
        get all,configmaps -n team
    "), @r#"
    $ kubectl delete namespace team --wait=false
    namespace "team" deleted
    $ kubectl get namespace team
    --- stderr
    Error from server (NotFound): namespaces "team" not found
    --- exit status 1
    $ kubectl get all,configmaps -n team
    --- stderr
    No resources found in team namespace.
    "#);
    insta::assert_snapshot!(cluster.feed(create, SETTINGS_AND_WEB), @r#"
    --- stderr
    Error from server (NotFound): error when creating "STDIN": namespaces "team" not found
    Error from server (NotFound): error when creating "STDIN": namespaces "team" not found
    --- exit status 1
    "#);
}

#[test]
fn a_namespace_waits_until_the_node_has_stopped_its_pods() {
    let cluster = Cluster::with(NODE);
    cluster.create(TEAM);
    cluster.feed("create -n team -f -", PODS).result();
    insta::assert_snapshot!(cluster.session("
        delete namespace team --wait=false
        get namespace team
        get pods -n team
        delete pod c -n team --grace-period=0 --force
        get namespace team
    "), @r#"
    $ kubectl delete namespace team --wait=false
    namespace "team" deleted
    $ kubectl get namespace team
    NAME   STATUS        AGE
    team   Terminating   <AGE>
    $ kubectl get pods -n team
    NAME   READY   STATUS        RESTARTS   AGE
    c      0/1     Terminating   0          <AGE>
    $ kubectl delete pod c -n team --grace-period=0 --force
    pod "c" force deleted
    --- stderr
    Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to run on the cluster indefinitely.
    $ kubectl get namespace team
    --- stderr
    Error from server (NotFound): namespaces "team" not found
    --- exit status 1
    "#);
}

#[test]
fn system_namespaces_cannot_be_deleted() {
    let cluster = Cluster::start();
    insta::assert_snapshot!(cluster.session("
        delete namespace default
        delete namespace kube-system
    "), @r#"
    $ kubectl delete namespace default
    --- stderr
    Error from server (Forbidden): namespaces "default" is forbidden: this namespace may not be deleted
    --- exit status 1
    $ kubectl delete namespace kube-system
    --- stderr
    Error from server (Forbidden): namespaces "kube-system" is forbidden: this namespace may not be deleted
    --- exit status 1
    "#);
}
