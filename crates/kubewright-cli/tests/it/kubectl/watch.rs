//! `kubectl get --watch`.

use super::cluster::Cluster;
use super::objects::{PODS, SETTINGS};

#[test]
fn watch_streams_added_modified_and_deleted_rows() {
    let cluster = Cluster::with(SETTINGS);
    let mut watch = cluster.background("get configmaps -w --output-watch-events");
    watch.line_with("settings");
    cluster.create(&SETTINGS.replace("settings", "other"));
    watch.line_with("other");
    cluster.kubectl(r#"patch configmap settings -p {"data":{"shape":"round"}}"#).result();
    watch.line_with("settings");
    cluster.kubectl("delete configmap other").result();
    watch.line_with("other");
    insta::assert_snapshot!(watch.stop(), @"
    EVENT      NAME       DATA   AGE
    ADDED      settings   2      <AGE>
    ADDED      other      2      <AGE>
    MODIFIED   settings   3      <AGE>
    DELETED    other      2      <AGE>
    ");
}

#[test]
fn watch_with_a_selector_shows_objects_entering_and_leaving() {
    let cluster = Cluster::with(PODS);
    let mut watch = cluster.background("get pods -w -l tier=front --output-watch-events");
    watch.line_with("a ");
    cluster.kubectl("label pod b tier=front --overwrite").result();
    watch.line_with("b ");
    cluster.kubectl("label pod a tier-").result();
    watch.line_with("a ");
    insta::assert_snapshot!(watch.stop(), @"
    EVENT      NAME   READY   STATUS    RESTARTS   AGE
    ADDED      a      0/1     Pending   0          <AGE>
    ADDED      b      0/2     Pending   0          <AGE>
    DELETED    a      0/1     Pending   0          <AGE>
    ");
}

#[test]
fn watch_of_one_object_times_out() {
    let cluster = Cluster::with(PODS);
    insta::assert_snapshot!(cluster.session("
        get pod a --watch --request-timeout=1s
        get pod a --watch-only --request-timeout=1s -o name
    "), @"
    $ kubectl get pod a --watch --request-timeout=1s
    NAME   READY   STATUS    RESTARTS   AGE
    a      0/1     Pending   0          <AGE>
    $ kubectl get pod a --watch-only --request-timeout=1s -o name
    ");
}

#[test]
fn watch_supports_other_output_formats() {
    let cluster = Cluster::with(SETTINGS);
    let mut watch =
        cluster.background("get configmaps -w -o jsonpath={.metadata.name}={.data.colour}{\"\\n\"}");
    watch.line_with("settings");
    cluster.kubectl(r#"patch configmap settings -p {"data":{"colour":"red"}}"#).result();
    watch.line_with("settings");
    insta::assert_snapshot!(watch.stop(), @"
    settings=blue
    settings=red
    ");
}
