//! `kubectl delete`: what is gone, and what goes with it, when the command returns.

use super::cluster::Cluster;
use super::objects::{NODE, PODS, SETTINGS_AND_WEB, owned};

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
fn delete_takes_a_name_a_selector_a_file_or_all() {
    let cluster = Cluster::with(&[PODS, SETTINGS_AND_WEB].join("---\n"));
    insta::assert_snapshot!(cluster.session("
        delete pod a
        delete pod a
        delete pod a --ignore-not-found
        delete pods -l tier=back
    "), @"");
    insta::assert_snapshot!(cluster.feed("delete -f -", SETTINGS_AND_WEB), @"");
    insta::assert_snapshot!(cluster.feed("delete -f -", SETTINGS_AND_WEB), @"");
    cluster.create(SETTINGS_AND_WEB);
    insta::assert_snapshot!(cluster.session("
        delete deployments,configmaps --all
        delete configmaps --all
        get all,configmaps
    "), @"");
}

#[test]
fn dependents_are_gone_when_a_deletion_in_the_background_returns() {
    let cluster = with_dependents();
    insta::assert_snapshot!(cluster.session("
        delete deployment web --cascade=background --wait=false
        get deployments,configmaps -o name
    "), @"");
}

#[test]
fn dependents_are_gone_when_a_deletion_in_the_foreground_returns() {
    let cluster = with_dependents();
    insta::assert_snapshot!(cluster.session("
        delete deployment web --cascade=foreground --wait=false
        get deployments,configmaps -o name
    "), @"");
}

#[test]
fn an_owner_deleted_in_the_foreground_waits_for_a_dependent_with_a_finalizer() {
    let cluster = with_dependents();
    insta::assert_snapshot!(cluster.session(r#"
        patch configmap child --type=merge -p '{"metadata":{"finalizers":["example.com/hold"]}}'
        delete deployment web --cascade=foreground --wait=false
        get deployment web -o jsonpath={.metadata.finalizers}
        get configmap child -o jsonpath={.metadata.deletionTimestamp}
        patch configmap child --type=merge -p '{"metadata":{"finalizers":null}}'
        get deployments,configmaps -o name
    "#), @"");
}

#[test]
fn orphans_stay_and_lose_their_owner() {
    let cluster = with_dependents();
    insta::assert_snapshot!(cluster.session("
        delete deployment web --cascade=orphan
        get deployments,configmaps -o name
        get configmap child -o jsonpath={.metadata.ownerReferences}
        get configmap grandchild -o jsonpath={.metadata.ownerReferences[*].name}
    "), @"");
}

#[test]
fn delete_waits_for_the_last_finalizer() {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    cluster.kubectl(r#"patch configmap settings --type=merge -p {"metadata":{"finalizers":["example.com/hold"]}}"#).result();
    let mut delete = cluster.background("delete configmap settings -v=6");
    delete.line_with("watch=true");
    let log = cluster.kubectl("get configmap settings -o jsonpath={.metadata.deletionTimestamp}");
    insta::assert_snapshot!(log, @"");
    cluster.kubectl(r#"patch configmap settings --type=json -p [{"op":"remove","path":"/metadata/finalizers"}]"#).result();
    delete.end().log();
    insta::assert_snapshot!(cluster.kubectl("get configmaps"), @"");
}

#[test]
fn a_namespace_is_gone_with_its_content_when_the_command_returns() {
    let cluster = Cluster::start();
    cluster.create("{apiVersion: v1, kind: Namespace, metadata: {name: team}}");
    let create = "create --validate=false -n team -f -";
    cluster.feed(create, SETTINGS_AND_WEB).result();
    cluster.feed(create, "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}").result();
    insta::assert_snapshot!(cluster.session("
        delete namespace team --wait=false
        get namespace team
        get all,configmaps -n team
    "), @"");
    insta::assert_snapshot!(cluster.feed(create, SETTINGS_AND_WEB), @"");
}

#[test]
fn a_namespace_waits_for_a_pod_on_a_node_until_the_node_has_ended_it() {
    let cluster = Cluster::with(NODE);
    cluster.create("{apiVersion: v1, kind: Namespace, metadata: {name: team}}");
    cluster.feed("create --validate=false -n team -f -", PODS).result();
    insta::assert_snapshot!(cluster.session("
        delete namespace team --wait=false
        get namespace team
        get pods -n team
        delete pod c -n team --grace-period=0 --force
        get namespace team
    "), @"");
}

#[test]
fn the_namespaces_of_the_system_cannot_be_deleted() {
    let cluster = Cluster::start();
    insta::assert_snapshot!(cluster.session("
        delete namespace default
        delete namespace kube-system
    "), @"");
}
