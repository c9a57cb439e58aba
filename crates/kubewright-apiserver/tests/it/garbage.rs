//! Deletion along owner references: in the foreground, including cycles, and continued after a restart.

use std::path::Path;

use kubewright_apiserver::{ApiServer, Controllers, Options};
use serde_json::{Value, json};

use crate::exchange::send;
use crate::world::{options, server};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn create(server: &ApiServer, name: &str) -> String {
    let map = send(server, "POST", MAPS, &json!({"metadata": {"name": name}})).await.body;
    map["metadata"]["uid"].as_str().expect("a uid").to_owned()
}

/// Sets blocking owner references to `owners`, by name and UID, on a ConfigMap.
async fn own(server: &ApiServer, name: &str, owners: &[(&str, &str)]) {
    let reference = |(name, uid): &(&str, &str)| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "blockOwnerDeletion": true});
    let owners: Vec<Value> = owners.iter().map(reference).collect();
    let patch = json!({"metadata": {"ownerReferences": owners}});
    assert_eq!(send(server, "PATCH", &format!("{MAPS}/{name}"), &patch).await.status, 200);
}

async fn delete_in_foreground(server: &ApiServer, name: &str) {
    delete(server, &format!("{MAPS}/{name}?propagationPolicy=Foreground")).await;
}

async fn delete(server: &ApiServer, path: &str) {
    let deleted = send(server, "DELETE", path, &Value::Null).await;
    assert_eq!(deleted.status, 200, "{}", deleted.text);
}

async fn left(server: &ApiServer) -> Vec<String> {
    let list = send(server, "GET", MAPS, &Value::Null).await.body;
    let items = list["items"].as_array().expect("items").iter();
    let names = items.map(|item| item["metadata"]["name"].as_str().unwrap_or_default().to_owned());
    names.filter(|name| name != "kube-root-ca.crt").collect()
}

#[tokio::test]
async fn foreground_deletion_of_a_cycle_of_owners_completes() {
    for length in 2..5 {
        let server = server();
        let names: Vec<String> = (0..length).map(|i| format!("m{i}")).collect();
        let mut uids = Vec::new();
        for name in &names {
            uids.push(create(&server, name).await);
        }
        for (i, name) in names.iter().enumerate() {
            let owner = (i + 1) % names.len();
            own(&server, name, &[(&names[owner], &uids[owner])]).await;
        }
        delete_in_foreground(&server, "m0").await;
        assert_eq!(left(&server).await, [""; 0], "a cycle of {length}");
    }
}

#[tokio::test]
async fn foreground_deletion_of_an_object_that_owns_itself_completes() {
    let server = server();
    let uid = create(&server, "a").await;
    own(&server, "a", &[("a", &uid)]).await;
    delete_in_foreground(&server, "a").await;
    assert_eq!(left(&server).await, [""; 0]);
}

#[tokio::test]
async fn a_dependent_with_another_owner_survives_foreground_deletion() {
    let server = server();
    let (a, b) = (create(&server, "a").await, create(&server, "b").await);
    create(&server, "shared").await;
    own(&server, "shared", &[("a", &a), ("b", &b)]).await;
    delete_in_foreground(&server, "a").await;
    assert_eq!(left(&server).await, ["b", "shared"]);
    let shared = send(&server, "GET", &format!("{MAPS}/shared"), &Value::Null).await.body;
    let owners = shared["metadata"]["ownerReferences"].as_array().expect("owners");
    assert_eq!(owners.iter().map(|owner| &owner["name"]).collect::<Vec<_>>(), ["b"]);
}

#[tokio::test]
async fn an_owner_waits_for_a_dependent_with_a_finalizer() {
    let server = server();
    let a = create(&server, "a").await;
    create(&server, "kept").await;
    own(&server, "kept", &[("a", &a)]).await;
    let finalizers = |list: Value| json!({"metadata": {"finalizers": list}});
    let kept = format!("{MAPS}/kept");
    send(&server, "PATCH", &kept, &finalizers(json!(["example.org/f"]))).await;
    delete_in_foreground(&server, "a").await;
    assert_eq!(left(&server).await, ["a", "kept"]);
    send(&server, "PATCH", &kept, &finalizers(Value::Null)).await;
    assert_eq!(left(&server).await, [""; 0]);
}

fn open(dir: &Path, controllers: Controllers) -> ApiServer {
    ApiServer::open(dir, Options { controllers, ..options() }).expect("the directory can be opened").0
}

/// A server that was stopped after it committed a deletion, and before it collected the garbage of it: `b` and `c` are
/// dependents of `a`, `d` is one of `b`, and `c` is owned by `other` too.
async fn stopped_after(dir: &Path, propagation: &str) {
    let server = open(dir, Controllers::None);
    let (a, other) = (create(&server, "a").await, create(&server, "other").await);
    let b = create(&server, "b").await;
    own(&server, "b", &[("a", &a)]).await;
    create(&server, "c").await;
    own(&server, "c", &[("a", &a), ("other", &other)]).await;
    create(&server, "d").await;
    own(&server, "d", &[("b", &b)]).await;
    delete(&server, &format!("{MAPS}/a?propagationPolicy={propagation}")).await;
    server.close().expect("the log is written");
}

async fn owners(server: &ApiServer, name: &str) -> Vec<String> {
    let map = send(server, "GET", &format!("{MAPS}/{name}"), &Value::Null).await.body;
    let owners = map["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    owners.map(|owner| owner["name"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn a_deletion_of_an_owner_is_continued_after_a_restart() {
    for propagation in ["Background", "Foreground"] {
        let dir = tempfile::tempdir().expect("a folder");
        stopped_after(dir.path(), propagation).await;
        let server = open(dir.path(), Controllers::Core);
        assert_eq!(left(&server).await, ["c", "other"], "{propagation}");
        assert_eq!(owners(&server, "c").await, ["other"], "{propagation}");
    }
}

#[tokio::test]
async fn dependents_are_orphaned_after_a_restart() {
    let dir = tempfile::tempdir().expect("a folder");
    stopped_after(dir.path(), "Orphan").await;
    let server = open(dir.path(), Controllers::Core);
    assert_eq!(left(&server).await, ["b", "c", "d", "other"]);
    assert_eq!(owners(&server, "b").await, [""; 0]);
    assert_eq!(owners(&server, "c").await, ["other"]);
    assert_eq!(owners(&server, "d").await, ["b"]);
}

#[tokio::test]
async fn a_terminating_namespace_is_emptied_after_a_restart() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = open(dir.path(), Controllers::None);
    let (namespace, maps) = ("/api/v1/namespaces/n", "/api/v1/namespaces/n/configmaps");
    send(&server, "POST", "/api/v1/namespaces", &json!({"metadata": {"name": "n"}})).await;
    for name in ["x", "y"] {
        assert_eq!(send(&server, "POST", maps, &json!({"metadata": {"name": name}})).await.status, 201);
    }
    delete(&server, namespace).await;
    assert_eq!(send(&server, "GET", namespace, &Value::Null).await.body["status"]["phase"], "Terminating");
    server.close().expect("the log is written");
    drop(server);

    let server = open(dir.path(), Controllers::Core);
    assert_eq!(send(&server, "GET", namespace, &Value::Null).await.status, 404);
    assert_eq!(send(&server, "GET", maps, &Value::Null).await.body["items"], json!([]));
}
