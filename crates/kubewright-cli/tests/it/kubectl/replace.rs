//! `kubectl replace`.

use super::cluster::Cluster;
use super::objects::{SETTINGS, SETTINGS_AND_WEB};

#[test]
fn replace_updates_the_whole_object() {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    let other = SETTINGS_AND_WEB.replace("colour: blue, size: large", "shape: round").replace("1.27", "1.28");
    insta::assert_snapshot!(cluster.feed("replace -f -", &other), @"
    configmap/settings replaced
    deployment.apps/web replaced
    ");
    insta::assert_snapshot!(cluster.session("
        get configmap settings -o jsonpath={.data}
        get deployment web -o wide
    "), @r#"
    $ kubectl get configmap settings -o jsonpath={.data}
    {"shape":"round"}
    $ kubectl get deployment web -o wide
    NAME   READY   UP-TO-DATE   AVAILABLE   AGE   CONTAINERS   IMAGES       SELECTOR
    web    0/2     0            0           <AGE> web          nginx:1.28   app=web
    "#);
}

#[test]
fn replace_of_a_missing_object_fails() {
    let cluster = Cluster::start();
    insta::assert_snapshot!(cluster.feed("replace -f -", SETTINGS), @r#"
    --- stderr
    Error from server (NotFound): error when replacing "STDIN": configmaps "settings" not found
    --- exit status 1
    "#);
}

#[test]
fn replace_with_an_old_resource_version_conflicts() {
    let cluster = Cluster::with(SETTINGS);
    let read = cluster.kubectl("get configmap settings -o json").result();
    cluster.kubectl("label configmap settings tier=front").result();
    insta::assert_snapshot!(cluster.feed("replace -f -", &read), @r#"
    --- stderr
    Error from server (Conflict): error when replacing "STDIN": Operation cannot be fulfilled on configmaps "settings": the object has been modified; please apply your changes to the latest version and try again
    --- exit status 1
    "#);
}

#[test]
fn replace_by_force_deletes_and_creates() {
    let cluster = Cluster::with(SETTINGS);
    let uid = "get configmap settings -o jsonpath={.metadata.uid}";
    let before = cluster.kubectl(uid).result();
    insta::assert_snapshot!(cluster.feed("replace --force -f -", SETTINGS), @r#"
    configmap "settings" deleted
    configmap/settings replaced
    "#);
    assert_ne!(cluster.kubectl(uid).result(), before);
}

#[test]
fn replace_can_update_a_subresource() {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    let read = cluster.kubectl("get deployment web -o json").result();
    let changed =
        read.replace("\"status\": {}", "\"status\": {\"replicas\": 2}").replace("nginx:1.27", "nginx:1.28");
    assert_ne!(read, changed);
    insta::assert_snapshot!(cluster.feed("replace --subresource=status -f -", &changed), @"deployment.apps/web replaced");
    insta::assert_snapshot!(cluster.kubectl("get deployment web -o jsonpath={.status.replicas},{.spec.template.spec.containers[0].image}"), @"2,nginx:1.27");
}
