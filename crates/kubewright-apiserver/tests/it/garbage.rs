//! Foreground deletion along owner references, including cycles.

use kubewright_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::exchange::send;
use crate::world::server;

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
    let path = format!("{MAPS}/{name}?propagationPolicy=Foreground");
    let deleted = send(server, "DELETE", &path, &Value::Null).await;
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
