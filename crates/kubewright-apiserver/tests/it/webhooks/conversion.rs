//! Conversion webhooks of CustomResourceDefinitions.

use kubewright_apiserver::ApiServer;
use serde_json::{Value, json};

use super::hook::{Hook, patch, review};
use super::{configure, send};
use crate::world::server;

const V1: &str = "/apis/example.com/v1/namespaces/default/widgets";
const V2: &str = "/apis/example.com/v2/namespaces/default/widgets";

/// Renames `spec.host` (v1) to `spec.hostname` (v2) and back.
#[expect(clippy::unnecessary_wraps, reason = "a hook returns None to never respond")]
fn convert(path: &str, request: &Value) -> Option<Value> {
    let desired = request["desiredAPIVersion"].as_str().unwrap();
    let (from, to) = if desired.ends_with("/v2") { ("host", "hostname") } else { ("hostname", "host") };
    let converted = request["objects"].as_array().unwrap().iter().map(|object| {
        let mut object = object.clone();
        object["apiVersion"] = desired.into();
        if let Some(value) = object["spec"].as_object_mut().and_then(|spec| spec.remove(from)) {
            object["spec"][to] = value;
        }
        object["metadata"]["labels"] = json!({"converted": "yes"});
        if path == "/renames" {
            object["metadata"]["name"] = "other".into();
        }
        object
    });
    let mut converted: Vec<Value> = converted.collect();
    if path == "/drops" {
        converted.pop();
    }
    let result = if path == "/fails" {
        json!({"status": "Failed", "message": "cannot do this"})
    } else {
        json!({"status": "Success"})
    };
    Some(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "response": {"uid": request["uid"], "convertedObjects": converted, "result": result},
    }))
}

async fn define(server: &ApiServer, hook: &Hook, path: &str) {
    let version = |name: &str, field: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage,
            "subresources": {"status": {}, "scale": {
                "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {
                    field: {"type": "string"}, "replicas": {"type": "integer"}}},
                "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
            }}},
        })
    };
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version("v1", "host", true), version("v2", "hostname", false)],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"], "clientConfig": hook.client(path)}},
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (status, _, body) = send(server, "POST", path, &definition).await;
    assert_eq!(status, 201, "{body}");
}

async fn create(server: &ApiServer, path: &str, name: &str, spec: Value) -> (u16, Value) {
    let version = path.split('/').nth(3).unwrap();
    let object = json!({"apiVersion": format!("example.com/{version}"), "kind": "Widget",
        "metadata": {"name": name}, "spec": spec});
    let (status, _, body) = send(server, "POST", path, &object).await;
    (status, body)
}

#[tokio::test]
async fn objects_are_converted_on_every_path() {
    let hook = Hook::start(convert).await;
    let server = server();
    define(&server, &hook, "/convert").await;
    assert_eq!(create(&server, V1, "a", json!({"host": "x", "replicas": 1})).await.0, 201);
    assert!(hook.take().is_empty(), "v1 is the storage version");
    let (status, created) = create(&server, V2, "b", json!({"hostname": "y"})).await;
    assert_eq!((status, &created["spec"]), (201, &json!({"hostname": "y"})));

    let (_, _, read) = send(&server, "GET", &format!("{V1}/b"), &Value::Null).await;
    assert_eq!((&read["apiVersion"], &read["spec"]), (&json!("example.com/v1"), &json!({"host": "y"})));
    hook.take();
    let (_, _, list) = send(&server, "GET", V2, &Value::Null).await;
    let names: Vec<&Value> =
        list["items"].as_array().unwrap().iter().map(|item| &item["spec"]["hostname"]).collect();
    assert_eq!(names, ["x", "y"]);
    // `b` was converted when it was created; conversions are cached.
    let reviews = hook.take();
    assert_eq!(reviews.len(), 1);
    assert_eq!(reviews[0]["request"]["objects"][0]["metadata"]["name"], "a");
    send(&server, "GET", V2, &Value::Null).await;
    assert!(hook.take().is_empty());

    let (status, _, patched) =
        send(&server, "PATCH", &format!("{V2}/a"), &json!({"spec": {"hostname": "z"}})).await;
    assert_eq!((status, &patched["spec"]), (200, &json!({"hostname": "z", "replicas": 1})));
    let status_path = format!("{V2}/a/status");
    let (status, _, _) = send(&server, "PATCH", &status_path, &json!({"status": {"replicas": 4}})).await;
    assert_eq!(status, 200);
    let (status, _, scale) =
        send(&server, "PATCH", &format!("{V2}/a/scale"), &json!({"spec": {"replicas": 3}})).await;
    assert_eq!(
        (status, &scale["spec"]["replicas"], &scale["status"]["replicas"]),
        (200, &json!(3), &json!(4))
    );
    let (_, _, read) = send(&server, "GET", &format!("{V1}/a"), &Value::Null).await;
    assert_eq!(read["spec"], json!({"host": "z", "replicas": 3}));
    assert_eq!(read["metadata"]["generation"], 3);
    assert_eq!(send(&server, "DELETE", &format!("{V2}/a"), &Value::Null).await.0, 200);
    assert_eq!(send(&server, "GET", &format!("{V1}/a"), &Value::Null).await.0, 404);
}

/// One field manager applies an object in both versions. Webhooks decode objects into types that require metadata.
#[tokio::test]
async fn an_object_can_be_applied_in_several_versions() {
    let hook = Hook::start(convert).await;
    let server = server();
    define(&server, &hook, "/convert").await;
    let apply = async |path: &str, version: &str, spec: Value| {
        let object = json!({"apiVersion": format!("example.com/{version}"), "kind": "Widget",
            "metadata": {"name": "a", "labels": {"app": "web"}}, "spec": spec});
        let path = format!("{path}/a?fieldManager=tests&force=true");
        let (status, _, body) = send(&server, "APPLY", &path, &object).await;
        assert!(status < 300, "{body}");
        body
    };
    apply(V1, "v1", json!({"host": "x", "replicas": 1})).await;
    let (_, _, read) = send(&server, "GET", &format!("{V2}/a"), &Value::Null).await;
    assert_eq!(send(&server, "PUT", &format!("{V2}/a?fieldManager=other"), &read).await.0, 200);
    let applied = apply(V2, "v2", json!({"hostname": "x"})).await;
    assert_eq!(applied["spec"], json!({"hostname": "x"}), "the manager does not apply replicas any more");
    apply(V1, "v1", json!({"host": "y"})).await;
    for review in hook.take() {
        for object in review["request"]["objects"].as_array().unwrap() {
            assert_eq!(object["metadata"]["name"], "a", "{review}");
        }
    }
}

#[tokio::test]
async fn a_watch_shows_converted_objects() {
    use http_body_util::BodyExt as _;
    let hook = Hook::start(convert).await;
    let server = server();
    define(&server, &hook, "/convert").await;
    create(&server, V1, "a", json!({"host": "x"})).await;
    let request = http::Request::builder()
        .uri(format!("{V2}?watch=true"))
        .body(http_body_util::Empty::<bytes::Bytes>::new())
        .unwrap();
    let mut body = server.handle(request).await.into_body();
    let mut next = async || {
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        let event: Value = serde_json::from_slice(&frame).unwrap();
        (event["type"].clone(), event["object"]["spec"]["hostname"].clone())
    };
    assert_eq!(next().await, (json!("ADDED"), json!("x")));
    send(&server, "PATCH", &format!("{V1}/a"), &json!({"spec": {"host": "y"}})).await;
    assert_eq!(next().await, (json!("MODIFIED"), json!("y")));
    send(&server, "DELETE", &format!("{V1}/a"), &Value::Null).await;
    assert_eq!(next().await, (json!("DELETED"), json!("y")));
}

/// One review of all objects would exceed the limit of a response body, 8 MiB.
#[tokio::test]
async fn a_long_list_is_converted_with_several_reviews() {
    use http_body_util::BodyExt as _;
    let hook = Hook::start(convert).await;
    let server = server();
    define(&server, &hook, "/convert").await;
    let count = 5_000;
    let host = "x".repeat(2_000);
    for at in 0..count {
        assert_eq!(create(&server, V1, &format!("w{at:04}"), json!({"host": host})).await.0, 201);
    }
    let (status, _, list) = send(&server, "GET", V2, &Value::Null).await;
    assert_eq!(status, 200, "{}", list["message"]);
    let items = list["items"].as_array().unwrap();
    assert_eq!(items.len(), count);
    assert!(items.iter().all(|item| item["spec"]["hostname"] == host.as_str()));
    let sizes: Vec<usize> =
        hook.take().iter().map(|review| review["request"]["objects"].as_array().unwrap().len()).collect();
    assert_eq!(sizes.iter().sum::<usize>(), count);
    assert!(sizes.iter().all(|size| *size <= 500), "{sizes:?}");

    // Another webhook converts the objects again, for a watch.
    let crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";
    let change = json!({"spec": {"conversion": {"webhook": {"clientConfig": hook.client("/again")}}}});
    assert_eq!(send(&server, "PATCH", crd, &change).await.0, 200);
    let request = http::Request::builder()
        .uri(format!("{V2}?watch=true"))
        .body(http_body_util::Empty::<bytes::Bytes>::new())
        .unwrap();
    let mut body = server.handle(request).await.into_body();
    for _ in 0..count {
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        let event: Value = serde_json::from_slice(&frame).unwrap();
        assert_eq!((&event["type"], &event["object"]["spec"]["hostname"]), (&json!("ADDED"), &json!(host)));
    }
    assert!(hook.take().len() >= count / 500);
}

#[tokio::test]
async fn an_invalid_conversion_response_is_rejected() {
    let hook = Hook::start(convert).await;
    let prefix = "conversion webhook for example.com/v1, Kind=Widget";
    for (path, expected) in [
        ("/fails", format!("{prefix} failed: cannot do this")),
        ("/drops", format!("{prefix} returned 0 objects, expected 1")),
        ("/renames", format!("{prefix} returned invalid object: must have the same name: a != other")),
    ] {
        let server = server();
        define(&server, &hook, path).await;
        assert_eq!(create(&server, V1, "a", json!({"host": "x"})).await.0, 201);
        for path in [V2.to_owned(), format!("{V2}/a")] {
            let (status, _, body) = send(&server, "GET", &path, &Value::Null).await;
            assert_eq!((status, body["message"].as_str().unwrap()), (500, expected.as_str()));
        }
        let (status, _) = create(&server, V2, "b", json!({"hostname": "y"})).await;
        assert_eq!(status, 500);
        assert_eq!(send(&server, "GET", &format!("{V1}/b"), &Value::Null).await.0, 404);
    }
}

/// The object is converted to the version of the webhook's rule, and its patch is converted back.
#[tokio::test]
async fn an_equivalent_version_is_converted_for_admission() {
    let (converter, hook) = (
        Hook::start(convert).await,
        Hook::start(|_, request| {
            let operation = json!([{"op": "add", "path": "/spec/host", "value": "patched"}]);
            Some(review(request, patch(&operation)))
        })
        .await,
    );
    let server = server();
    define(&server, &converter, "/convert").await;
    let rules = json!({"matchPolicy": "Equivalent", "rules": [{
        "apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["widgets"],
    }]});
    configure(&server, "Mutating", "m", hook.client("/"), rules).await;
    let (status, created) = create(&server, V2, "a", json!({"hostname": "x"})).await;
    assert_eq!((status, &created["spec"]), (201, &json!({"hostname": "patched"})), "{created}");
    let reviews = hook.take();
    assert_eq!(reviews.len(), 1);
    let request = &reviews[0]["request"];
    assert_eq!(request["object"]["apiVersion"], "example.com/v1");
    assert_eq!(request["object"]["spec"], json!({"host": "x"}));
    assert_eq!(
        (&request["kind"]["version"], &request["requestKind"]["version"]),
        (&json!("v1"), &json!("v2"))
    );
    assert_eq!(
        (&request["resource"]["version"], &request["requestResource"]["version"]),
        (&json!("v1"), &json!("v2"))
    );
}

#[tokio::test]
async fn a_new_storage_version_is_added_to_stored_versions() {
    let hook = Hook::start(convert).await;
    let server = server();
    define(&server, &hook, "/convert").await;
    assert_eq!(create(&server, V1, "a", json!({"host": "x"})).await.0, 201);
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";
    let (_, _, mut crd) = send(&server, "GET", path, &Value::Null).await;
    assert_eq!(crd["status"]["storedVersions"], json!(["v1"]));
    for (at, storage) in [(0, false), (1, true)] {
        crd["spec"]["versions"][at]["storage"] = storage.into();
    }
    let (status, _, crd) = send(&server, "PUT", path, &crd).await;
    assert_eq!((status, &crd["status"]["storedVersions"]), (200, &json!(["v1", "v2"])), "{crd}");

    // The old object is still stored in v1, new ones in v2.
    assert_eq!(create(&server, V1, "b", json!({"host": "y"})).await.0, 201);
    hook.take();
    for (name, expected) in [("a", "x"), ("b", "y")] {
        let (_, _, read) = send(&server, "GET", &format!("{V2}/{name}"), &Value::Null).await;
        assert_eq!(read["spec"]["hostname"], expected, "{read}");
    }
    let converted = hook.take();
    let names: Vec<&Value> =
        converted.iter().map(|review| &review["request"]["objects"][0]["metadata"]["name"]).collect();
    assert_eq!(names, ["a"]);

    // A write migrates the object. Then v1 may be removed from the stored versions.
    let touch = json!({"metadata": {"annotations": {"migrated": "yes"}}});
    assert_eq!(send(&server, "PATCH", &format!("{V2}/a"), &touch).await.0, 200);
    let (status, _, crd) =
        send(&server, "PATCH", &format!("{path}/status"), &json!({"status": {"storedVersions": ["v2"]}}))
            .await;
    assert_eq!((status, &crd["status"]["storedVersions"]), (200, &json!(["v2"])), "{crd}");
    let (_, _, read) = send(&server, "GET", &format!("{V1}/a"), &Value::Null).await;
    assert_eq!(read["spec"]["host"], "x");
}
