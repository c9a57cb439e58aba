//! `kubectl wait`.

use super::cluster::Cluster;
use super::objects::{PODS, ROLLED_OUT, SETTINGS, SETTINGS_AND_WEB};

#[test]
fn wait_for_a_condition() {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    let mut wait = cluster.background("wait --for=condition=Available deployment/web --timeout=30s -v=6");
    wait.line_with("watch=true");
    cluster.kubectl(&format!("patch deployment web --subresource=status -p '{ROLLED_OUT}'")).result();
    wait.line_with("deployment.apps/web condition met");
    wait.end().log();
    insta::assert_snapshot!(cluster.session("
        wait --for=condition=Available deployment/web --timeout=30s
        wait --for=condition=Available=True deployments --all --timeout=30s
    "), @"
    $ kubectl wait --for=condition=Available deployment/web --timeout=30s
    deployment.apps/web condition met
    $ kubectl wait --for=condition=Available=True deployments --all --timeout=30s
    deployment.apps/web condition met
    ");
}

#[test]
fn wait_for_a_jsonpath() {
    let cluster = Cluster::with(SETTINGS);
    let mut wait =
        cluster.background("wait --for=jsonpath={.data.colour}=red configmap/settings --timeout=30s -v=6");
    wait.line_with("watch=true");
    cluster.kubectl(r#"patch configmap settings -p {"data":{"colour":"green"}}"#).result();
    cluster.kubectl(r#"patch configmap settings -p {"data":{"colour":"red"}}"#).result();
    wait.line_with("configmap/settings condition met");
    wait.end().log();
    insta::assert_snapshot!(cluster.session("
        wait --for=jsonpath={.data.colour}=red configmap/settings --timeout=30s
        wait --for=jsonpath={.data.size} configmap/settings --timeout=30s
    "), @"
    $ kubectl wait --for=jsonpath={.data.colour}=red configmap/settings --timeout=30s
    configmap/settings condition met
    $ kubectl wait --for=jsonpath={.data.size} configmap/settings --timeout=30s
    configmap/settings condition met
    ");
}

#[test]
fn wait_for_deletion() {
    let cluster = Cluster::with(PODS);
    let mut wait = cluster.background("wait --for=delete pods -l app=web --timeout=30s -v=6");
    wait.line_with("watch=true");
    cluster.kubectl("delete pods -l app=web --wait=false").result();
    let log = wait.end().log();
    assert!(!log.contains("timed out"), "{log}");
    insta::assert_snapshot!(cluster.session("
        get pods -o name
        wait --for=delete pod/a --timeout=30s
    "), @"
    $ kubectl get pods -o name
    pod/c
    $ kubectl wait --for=delete pod/a --timeout=30s
    ");
}

#[test]
fn wait_for_creation() {
    let cluster = Cluster::start();
    let mut wait = cluster.background("wait --for=create configmap/settings --timeout=30s -v=6");
    wait.line_with("404");
    cluster.create(SETTINGS);
    wait.line_with("configmap/settings condition met");
    wait.end().log();
}

#[test]
fn wait_times_out() {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    let condition = cluster.kubectl("wait --for=condition=Available deployment/web --timeout=1s");
    insta::assert_snapshot!(condition.failure(), @"error: timed out waiting for the condition on deployments/web");
    let deletion = cluster.kubectl("wait --for=delete configmap/settings --timeout=1s");
    insta::assert_snapshot!(deletion.failure(), @"error: timed out waiting for the condition on configmaps/settings");
}
