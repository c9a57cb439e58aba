//! `kubectl edit`, with scripts as editors.

use super::cluster::Cluster;
use super::objects::{SETTINGS, SETTINGS_AND_WEB};

/// A portable `sed` replacement in the file.
pub(crate) fn sed(from: &str, to: &str) -> String {
    format!("sed 's/{from}/{to}/' \"$1\" > \"$1.new\" && mv \"$1.new\" \"$1\"\n")
}

#[test]
fn edit_applies_changes() {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    insta::assert_snapshot!(cluster.edit("edit configmap settings", &sed("colour: blue", "colour: red")), @"configmap/settings edited");
    insta::assert_snapshot!(cluster.edit("edit deployment web", &sed("replicas: 2", "replicas: 4")), @"deployment.apps/web edited");
    insta::assert_snapshot!(cluster.session("
        get configmap settings -o jsonpath={.data}
        get deployment web
    "), @r#"
    $ kubectl get configmap settings -o jsonpath={.data}
    {"colour":"red","size":"large"}
    $ kubectl get deployment web
    NAME   READY   UP-TO-DATE   AVAILABLE   AGE
    web    0/4     0            0           <AGE>
    "#);
}

#[test]
fn edit_without_a_change_sends_nothing() {
    let cluster = Cluster::with(SETTINGS);
    insta::assert_snapshot!(cluster.edit("edit configmap settings", "true\n"), @"
    --- stderr
    Edit cancelled, no changes made.
    ");
}

#[test]
fn edit_reopens_rejected_objects() {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    // Opened twice: the second time the file has the error, and the editor changes nothing.
    let script = format!(
        "if grep -q Invalid \"$1\"; then grep '^# .*Invalid' \"$1\"; else\n{}fi\n",
        sed("replicas: 2", "replicas: -2")
    );
    insta::assert_snapshot!(refused(&cluster.edit("edit deployment web", &script).to_string()), @r#"
    # * spec.replicas: Invalid value: -2: must be greater than or equal to 0
    --- stderr
    error: deployments.apps "web" is invalid
    error: Edit cancelled, no valid changes were saved.
    --- exit status 1
    "#);
    insta::assert_snapshot!(cluster.kubectl("get deployment web -o jsonpath={.spec.replicas}"), @"2");
}

/// Removes the line with the file name.
pub(crate) fn refused(shown: &str) -> String {
    shown
        .lines()
        .filter(|line| !line.contains("A copy of your changes"))
        .flat_map(|line| [line, "\n"])
        .collect()
}

#[test]
fn edit_can_change_the_status() {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    let script = sed("^status: {}", "status: {replicas: 2, readyReplicas: 1}");
    insta::assert_snapshot!(cluster.edit("edit deployment web --subresource=status", &script), @"deployment.apps/web edited");
    insta::assert_snapshot!(cluster.kubectl("get deployment web"), @"
    NAME   READY   UP-TO-DATE   AVAILABLE   AGE
    web    1/2     0            0           <AGE>
    ");
}
