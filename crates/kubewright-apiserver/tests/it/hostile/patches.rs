//! Growing patches: too many operations, copies of copies, and depth beyond that of a single body.

use http::{Method, StatusCode};
use kubewright_apiserver::ApiServer;
use serde_json::json;

use super::{MAPS, expect_well, request, send};
use crate::world::server;

const JSON_PATCH: &str = "application/json-patch+json";
/// An object whose `data` may be any JSON.
const VICTIM: &str = "/apis/apps/v1/namespaces/default/controllerrevisions/victim";

fn with_victim() -> ApiServer {
    let server = server();
    let path = "/apis/apps/v1/namespaces/default/controllerrevisions";
    let body = json!({"metadata": {"name": "victim"}, "revision": 1, "data": {"a": {}}}).to_string();
    let answer = send(&server, "the victim", request(Method::POST, path, "application/json", body));
    assert_eq!(answer.status, StatusCode::CREATED);
    let body = json!({"metadata": {"name": "victim"}, "data": {"k": "0"}}).to_string();
    let answer = send(&server, "the victim", request(Method::POST, MAPS, "application/json", body));
    assert_eq!(answer.status, StatusCode::CREATED);
    server
}

#[test]
fn a_patch_is_limited_to_ten_thousand_operations() {
    let server = with_victim();
    let path = "/api/v1/namespaces/default/configmaps/victim";
    let operation = json!({"op": "replace", "path": "/data/k", "value": "1"});
    let most = json!(vec![&operation; 10_000]).to_string();
    let answer = send(&server, "10,000 operations", request(Method::PATCH, path, JSON_PATCH, most));
    assert_eq!(answer.status, StatusCode::OK);
    let more = json!(vec![&operation; 10_001]).to_string();
    let answer = send(&server, "10,001 operations", request(Method::PATCH, path, JSON_PATCH, more));
    assert_eq!(answer.expect_refusal("10,001 operations")["reason"], "RequestEntityTooLarge");
    expect_well(&server);
}

#[test]
fn copies_of_copies_are_rejected_before_they_exhaust_memory() {
    let server = with_victim();
    let double = json!([{"op": "add", "path": "/data/a", "value": "x".repeat(1_000)}]);
    let mut operations = double.as_array().cloned().unwrap_or_default();
    for round in 0..60 {
        operations.push(json!({"op": "copy", "from": "/data", "path": format!("/data/c{round}")}));
    }
    let body = json!(operations).to_string();
    send(&server, "doubling", request(Method::PATCH, VICTIM, JSON_PATCH, body)).expect_refusal("doubling");

    // Many small copies.
    let mut operations = vec![json!({"op": "add", "path": "/data", "value": {"a": "x".repeat(100_000)}})];
    for round in 0..9_000 {
        operations.push(json!({"op": "copy", "from": "/data/a", "path": format!("/data/c{round}")}));
    }
    let body = json!(operations).to_string();
    send(&server, "many copies", request(Method::PATCH, VICTIM, JSON_PATCH, body))
        .expect_refusal("many copies");
    expect_well(&server);
}

/// Paths of many short segments: their parsed form could need far more memory.
#[test]
fn long_paths_to_missing_fields_are_rejected() {
    let server = with_victim();
    let operations: Vec<_> =
        (0..8_000).map(|at| json!({"op": "remove", "path": format!("/{at}{}", "/a".repeat(150))})).collect();
    let body = json!(operations).to_string();
    send(&server, "long paths", request(Method::PATCH, VICTIM, JSON_PATCH, body))
        .expect_refusal("long paths");
    let body = json!([{"op": "add", "path": "/a".repeat(1_500_000), "value": 1}]).to_string();
    send(&server, "a long path", request(Method::PATCH, VICTIM, JSON_PATCH, body))
        .expect_refusal("a long path");
    expect_well(&server);
}

/// Each operation adds a tree below the leaf of the previous one.
#[test]
fn a_patch_cannot_exceed_the_depth_of_a_body() {
    let server = with_victim();
    let branch = 300;
    let value = format!("{}{{}}{}", "{\"a\":".repeat(branch), "}".repeat(branch));
    for rounds in [2, 10, 80] {
        let mut operations = Vec::new();
        for round in 0..rounds {
            let path = "/a".repeat(1 + round * branch);
            operations.push(format!("{{\"op\":\"add\",\"path\":\"/data{path}\",\"value\":{value}}}"));
        }
        let body = format!("[{}]", operations.join(","));
        let what = format!("{} levels by {rounds} operations", rounds * branch);
        send(&server, &what, request(Method::PATCH, VICTIM, JSON_PATCH, body)).expect_refusal(&what);
    }

    // Copies double the depth as well as the size.
    let mut depth = 1;
    let mut operations = Vec::new();
    while depth < 200_000 {
        operations
            .push(json!({"op": "copy", "from": "/data", "path": format!("/data{}/a", "/a".repeat(depth))}));
        depth = depth * 2 + 1;
    }
    let body = json!(operations).to_string();
    send(&server, "doubling depth", request(Method::PATCH, VICTIM, JSON_PATCH, body))
        .expect_refusal("doubling depth");

    // The object is unchanged, and can still be read and deleted.
    let answer = send(&server, "the victim", request(Method::GET, VICTIM, "", ""));
    assert_eq!(answer.json()["data"], json!({"a": {}}));
    expect_well(&server);
}

/// Several patches, each within all limits.
#[test]
fn depth_does_not_grow_from_patch_to_patch() {
    let server = with_victim();
    let branch = 150;
    let value = format!("{}{{}}{}", "{\"a\":".repeat(branch), "}".repeat(branch));
    let mut refused = false;
    for round in 0..20 {
        let path = "/a".repeat(1 + round * branch);
        let body = format!("[{{\"op\":\"add\",\"path\":\"/data{path}\",\"value\":{value}}}]");
        let answer = send(&server, "a deeper patch", request(Method::PATCH, VICTIM, JSON_PATCH, body));
        if !answer.status.is_success() {
            answer.expect_refusal("a deeper patch");
            refused = true;
        }
    }
    assert!(refused, "3,000 levels are more than any body may have");
    let answer = send(&server, "the victim", request(Method::GET, VICTIM, "", ""));
    assert_eq!(answer.status, StatusCode::OK);
    let answer = send(&server, "its end", request(Method::DELETE, VICTIM, "", ""));
    assert_eq!(answer.status, StatusCode::OK);
    expect_well(&server);
}

#[test]
fn invalid_directives_are_rejected_or_harmless() {
    let server = server();
    let pods = "/api/v1/namespaces/default/pods";
    let pod =
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}).to_string();
    assert_eq!(
        send(&server, "a pod", request(Method::POST, pods, "application/json", pod)).status,
        StatusCode::CREATED
    );
    let patches = [
        json!({"$patch": "bogus"}),
        json!({"$patch": 1}),
        json!({"$patch": "delete"}),
        json!({"$patch": "replace"}),
        json!({"spec": {"$patch": "replace"}}),
        json!({"spec": {"$retainKeys": "x"}}),
        json!({"spec": {"$retainKeys": [1, {}]}}),
        json!({"spec": {"$setElementOrder/containers": 1}}),
        json!({"spec": {"$setElementOrder/containers": [{"name": "c"}, {"name": "c"}]}}),
        json!({"spec": {"$setElementOrder/containers": [{}]}}),
        json!({"spec": {"$setElementOrder/bogus": [{"name": "c"}]}}),
        json!({"spec": {"$setElementOrder/containers": [{"name": "other"}], "containers": [{"name": "c"}]}}),
        json!({"spec": {"containers": [{"$patch": "replace"}]}}),
        json!({"spec": {"containers": [{"$patch": "delete"}]}}),
        json!({"spec": {"containers": [{"name": 1, "$patch": "delete"}]}}),
        json!({"spec": {"containers": [{"image": "x"}]}}),
        json!({"spec": {"containers": [null]}}),
        json!({"spec": {"containers": [[], 1]}}),
        json!({"spec": {"containers": {}}}),
        json!({"spec": {"containers": "x"}}),
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [{}]}}),
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": 1}}),
        json!({"metadata": {"$deleteFromPrimitiveList/labels": ["x"]}}),
        json!({"metadata": {"finalizers": [{}]}}),
        json!({"metadata": {"labels": {"$patch": "replace", "a": {"b": 1}}}}),
        json!({"metadata": null}),
        json!({"apiVersion": null, "kind": null}),
    ];
    for patch in patches {
        let what = patch.to_string();
        let asked = request(
            Method::PATCH,
            "/api/v1/namespaces/default/pods/p",
            "application/strategic-merge-patch+json",
            what.clone(),
        );
        let answer = send(&server, &what, asked);
        // As upstream, some of these return 500 without a reason.
        let no_status =
            answer.status == StatusCode::INTERNAL_SERVER_ERROR && answer.json().get("reason").is_none();
        if !answer.status.is_success() && !no_status {
            answer.expect_refusal(&what);
        }
    }
    expect_well(&server);
}
