//! Requests and responses in protobuf, as Go's typed clients use it.

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::Request;
use http_body_util::{BodyExt as _, BodyStream, Full};
use kubewright_apis::protobuf::{self, MEDIA_TYPE};
use kubewright_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::exchange::send;
use crate::world::{server, soon};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Status, media type and raw body of a response.
struct Raw {
    status: u16,
    media: String,
    bytes: Bytes,
}

impl Raw {
    /// The decoded object of a protobuf body.
    fn object(&self) -> Value {
        assert!(self.media.starts_with(MEDIA_TYPE), "{} {:?}", self.media, self.bytes);
        protobuf::decode(&self.bytes).expect("the server writes valid protobuf")
    }
}

async fn exchange(
    server: &ApiServer,
    method: &str,
    path: &str,
    accept: &str,
    media: &str,
    body: Bytes,
) -> Raw {
    let request = Request::builder().method(method).uri(path).header("accept", accept);
    let request = request.header("content-type", media).body(Full::new(body)).expect("the request is valid");
    let (parts, body) = server.handle(request).await.into_parts();
    let bytes = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let media = parts.headers.get("content-type").and_then(|media| media.to_str().ok()).unwrap_or_default();
    Raw { status: parts.status.as_u16(), media: media.to_owned(), bytes }
}

async fn get(server: &ApiServer, path: &str, accept: &str) -> Raw {
    exchange(server, "GET", path, accept, "application/json", Bytes::new()).await
}

/// Sends an object in protobuf and requests a response in protobuf.
async fn put(server: &ApiServer, method: &str, path: &str, object: &Value) -> Raw {
    let body = protobuf::encode(object).expect("a built-in kind").into();
    exchange(server, method, path, MEDIA_TYPE, MEDIA_TYPE, body).await
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"l": name}}, "data": {"k": name}})
}

/// Compares JSON and protobuf, ignoring zero values that only protobuf has.
fn same(served: &Value, read: &Value) -> bool {
    match (served, read) {
        (Value::Object(served), Value::Object(read)) => {
            served.iter().all(|(name, value)| same(value, read.get(name).unwrap_or(&Value::Null)))
        }
        (Value::Array(served), Value::Array(read)) => {
            served.len() == read.len() && served.iter().zip(read).all(|(served, read)| same(served, read))
        }
        _ => served == read,
    }
}

#[tokio::test]
async fn an_object_is_created_read_changed_and_deleted_in_protobuf() {
    let server = server();
    let created = put(&server, "POST", MAPS, &map("a")).await;
    assert_eq!((created.status, created.object()["data"].clone()), (201, json!({"k": "a"})));
    let path = format!("{MAPS}/a");
    let read = get(&server, &path, MEDIA_TYPE).await;
    let plain = send(&server, "GET", &path, &Value::Null).await.body;
    assert!(same(&plain, &read.object()), "{plain} and {}", read.object());
    let mut changed = map("a");
    changed["data"]["k"] = "b".into();
    let replaced = put(&server, "PUT", &path, &changed).await;
    assert_eq!((replaced.status, replaced.object()["data"].clone()), (200, json!({"k": "b"})));
    let patch = Bytes::from_static(br#"{"data":{"k":"c"}}"#);
    let patched = exchange(&server, "PATCH", &path, MEDIA_TYPE, "application/merge-patch+json", patch).await;
    assert_eq!((patched.status, patched.object()["data"].clone()), (200, json!({"k": "c"})));
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
    let deleted = put(&server, "DELETE", &path, &options).await;
    let status = deleted.object();
    assert_eq!(
        (deleted.status, &status["kind"], &status["status"]),
        (200, &json!("Status"), &json!("Success"))
    );
    assert_eq!(status["details"]["kind"], "configmaps");
}

#[tokio::test]
async fn a_list_in_protobuf_has_its_items_and_its_continue_token() {
    let server = server();
    for name in ["a", "b", "c"] {
        put(&server, "POST", MAPS, &map(name)).await;
    }
    let list = get(&server, &format!("{MAPS}?limit=2"), MEDIA_TYPE).await.object();
    assert_eq!(list["kind"], "ConfigMapList");
    assert_eq!(list["metadata"]["remainingItemCount"], 1);
    let names: Vec<&Value> =
        list["items"].as_array().expect("items").iter().map(|item| &item["metadata"]["name"]).collect();
    assert_eq!(names, ["a", "b"]);
    let token = list["metadata"]["continue"].as_str().expect("a token");
    let rest = get(&server, &format!("{MAPS}?limit=2&continue={token}"), MEDIA_TYPE).await.object();
    assert_eq!(rest["items"].as_array().map(Vec::len), Some(1));
    let gone = exchange(&server, "DELETE", MAPS, MEDIA_TYPE, MEDIA_TYPE, Bytes::new()).await;
    assert_eq!((gone.status, gone.object()["items"].as_array().map(Vec::len)), (200, Some(3)));
}

#[tokio::test]
async fn every_built_in_list_is_the_same_in_protobuf_as_in_json() {
    let server = server();
    for resource in kubewright_apis::facts::resources() {
        let root =
            if resource.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", resource.group) };
        let path = format!("{root}/{}/{}", resource.version, resource.plural);
        let plain = send(&server, "GET", &path, &Value::Null).await;
        if plain.status != 200 {
            continue;
        }
        let list = get(&server, &path, MEDIA_TYPE).await;
        // Includes the bootstrap objects: namespaces, services, roles with their rules.
        let items = |list: &Value| list["items"].as_array().cloned().unwrap_or_default();
        let (plain, read) = (items(&plain.body), items(&list.object()));
        assert_eq!(plain.len(), read.len(), "{path}");
        for (plain, read) in plain.iter().zip(&read) {
            assert!(same(plain, read), "{path}: {plain} and {read}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_in_protobuf_sends_length_prefixed_frames() {
    let server = server();
    put(&server, "POST", MAPS, &map("a")).await;
    let path = format!("{MAPS}?watch=true&resourceVersion=0&allowWatchBookmarks=true&labelSelector=l");
    let accept = "application/vnd.kubernetes.protobuf;stream=watch";
    let request = Request::get(path)
        .header("accept", accept)
        .body(Full::new(Bytes::new()))
        .expect("the request is valid");
    let response = server.handle(request).await;
    assert_eq!(response.headers()["content-type"], accept);
    let mut frames = BodyStream::new(response.into_body());
    let mut next = async || {
        let frame = soon("a frame", frames.next()).await.expect("the watch continues").expect("never fails");
        let bytes = frame.into_data().expect("data");
        let (length, event) = bytes.split_at(4);
        let length = u32::from_be_bytes(length.try_into().expect("four bytes"));
        assert_eq!(usize::try_from(length), Ok(event.len()));
        // WatchEvent: type 1, object 2 with its raw bytes in 1.
        let at = event.windows(4).position(|window| window == b"k8s\0").expect("an object");
        let object = protobuf::decode(&event[at..]).expect("an object in protobuf");
        let word = String::from_utf8_lossy(&event[2..2 + usize::from(event[1])]).into_owned();
        (word, object["metadata"]["name"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(next().await, ("ADDED".to_owned(), "a".to_owned()));
    put(&server, "POST", MAPS, &map("b")).await;
    assert_eq!(next().await, ("ADDED".to_owned(), "b".to_owned()));
    send(&server, "PATCH", &format!("{MAPS}/b"), &json!({"data": {"x": "y"}})).await;
    assert_eq!(next().await.0, "MODIFIED");
    send(&server, "PATCH", &format!("{MAPS}/b"), &json!({"metadata": {"labels": null}})).await;
    assert_eq!(next().await, ("DELETED".to_owned(), "b".to_owned()));
    assert_eq!(next().await.0, "BOOKMARK");
    send(&server, "DELETE", &format!("{MAPS}/a"), &Value::Null).await;
    assert_eq!(next().await, ("DELETED".to_owned(), "a".to_owned()));
}

#[tokio::test]
async fn metadata_is_served_in_protobuf_for_built_in_and_custom_kinds() {
    let server = server();
    let crd = widgets(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    assert_eq!(put(&server, "POST", CRDS, &crd).await.status, 201);
    let path = "/apis/example.com/v1/namespaces/default/widgets";
    send(
        &server,
        "POST",
        path,
        &json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}),
    )
    .await;
    put(&server, "POST", MAPS, &map("w")).await;
    for path in [path, MAPS] {
        let accept = |kind: &str| format!("{MEDIA_TYPE};as={kind};g=meta.k8s.io;v=v1");
        let one = get(&server, &format!("{path}/w"), &accept("PartialObjectMetadata")).await.object();
        assert_eq!((&one["kind"], &one["metadata"]["name"]), (&json!("PartialObjectMetadata"), &json!("w")));
        let list = get(&server, path, &accept("PartialObjectMetadataList")).await.object();
        assert_eq!(list["items"][0]["metadata"]["name"], "w", "{list}");
    }
}

#[tokio::test]
async fn objects_without_protobuf_encoding_are_rejected_or_sent_in_the_next_accepted_one() {
    let server = server();
    let crd = widgets(&json!({"type": "object"}));
    put(&server, "POST", CRDS, &crd).await;
    let path = "/apis/example.com/v1/namespaces/default/widgets";
    let refused = get(&server, path, MEDIA_TYPE).await;
    let status = refused.object();
    assert_eq!((refused.status, &status["reason"]), (406, &json!("NotAcceptable")), "{status}");
    let fallen_back = get(&server, path, &format!("{MEDIA_TYPE},application/json")).await;
    assert_eq!((fallen_back.status, fallen_back.media.as_str()), (200, "application/json"));
    let table = get(&server, MAPS, &format!("{MEDIA_TYPE};as=Table;g=meta.k8s.io;v=v1")).await;
    assert_eq!((table.status, table.media.as_str()), (406, "application/json"));
    let both =
        format!("{MEDIA_TYPE};as=Table;g=meta.k8s.io;v=v1,application/json;as=Table;g=meta.k8s.io;v=v1");
    assert_eq!(get(&server, MAPS, &both).await.media, "application/json");
}

#[tokio::test]
async fn errors_and_discovery_are_in_protobuf_if_requested() {
    let server = server();
    let missing = get(&server, &format!("{MAPS}/none"), MEDIA_TYPE).await;
    assert_eq!((missing.status, &missing.object()["reason"]), (404, &json!("NotFound")));
    let version = get(&server, "/version", MEDIA_TYPE).await;
    assert_eq!((version.status, &version.object()["code"]), (406, &json!(406)));
    for (path, kind) in [
        ("/api", "APIVersions"),
        ("/apis", "APIGroupList"),
        ("/apis/apps", "APIGroup"),
        ("/apis/apps/v1", "APIResourceList"),
        ("/api/v1", "APIResourceList"),
    ] {
        let read = get(&server, path, MEDIA_TYPE).await.object();
        assert_eq!(read["kind"], kind, "{path}");
        let plain = send(&server, "GET", path, &Value::Null).await.body;
        assert!(same(&plain, &read), "{path}: {plain} and {read}");
    }
    let aggregated = format!("{MEDIA_TYPE};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    let list = get(&server, "/apis", &aggregated).await;
    assert_eq!((list.status, list.media), (200, aggregated));
    assert!(list.bytes.starts_with(b"k8s\0"));
}

#[tokio::test]
async fn a_crd_sent_in_protobuf_validates_items_and_additional_properties() {
    let server = server();
    let schema = json!({
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {
            "names": {"type": "array", "items": {"type": "string", "maxLength": 3}},
            "limits": {"type": "object", "additionalProperties": {"type": "integer"}},
            "mode": {"type": "string", "enum": ["A", "B"], "default": "A"},
        }}},
    });
    let created = put(&server, "POST", CRDS, &widgets(&schema)).await;
    assert_eq!(created.status, 201, "{:?}", created.bytes);
    let stored = send(&server, "GET", &format!("{CRDS}/widgets.example.com"), &Value::Null).await.body;
    assert_eq!(stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"], schema);
    let path = "/apis/example.com/v1/namespaces/default/widgets";
    let widget = |spec: Value| json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec});
    let refused =
        send(&server, "POST", path, &widget(json!({"names": ["long"], "limits": {"a": "b"}}))).await;
    assert_eq!(refused.status, 422, "{}", refused.text);
    let created = send(&server, "POST", path, &widget(json!({"names": ["a"], "limits": {"a": 1}}))).await;
    assert_eq!((created.status, &created.body["spec"]["mode"]), (201, &json!("A")));
}

#[tokio::test]
async fn a_scale_is_read_and_written_in_protobuf() {
    let server = server();
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "a"}},
            "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
            "template": {
                "metadata": {"labels": {"app": "a"}},
                "spec": {"containers": [{
                    "name": "c", "image": "i",
                    "resources": {"limits": {"cpu": "500m", "memory": "64Mi"}},
                    "readinessProbe": {"httpGet": {"path": "/", "port": "http"}},
                    "ports": [{"name": "http", "containerPort": 80}],
                }]},
            },
        },
    });
    let path = "/apis/apps/v1/namespaces/default/deployments";
    assert_eq!(put(&server, "POST", path, &deployment).await.status, 201);
    let plain = send(&server, "GET", &format!("{path}/d"), &Value::Null).await.body;
    assert_eq!(plain["spec"]["strategy"]["rollingUpdate"], json!({"maxSurge": "25%", "maxUnavailable": 1}));
    let container = &plain["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["resources"]["limits"], json!({"cpu": "500m", "memory": "64Mi"}));
    assert_eq!(container["readinessProbe"]["httpGet"]["port"], "http");
    let scale = format!("{path}/d/scale");
    let mut read = get(&server, &scale, MEDIA_TYPE).await.object();
    assert_eq!((&read["kind"], &read["spec"]["replicas"]), (&json!("Scale"), &json!(2)));
    read["spec"]["replicas"] = 5.into();
    let written = put(&server, "PUT", &scale, &read).await;
    assert_eq!((written.status, &written.object()["spec"]["replicas"]), (200, &json!(5)));
}

#[tokio::test]
async fn every_subresource_answers_in_protobuf() {
    let server = server();
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    assert_eq!(put(&server, "POST", pods, &pod).await.status, 201);
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}});
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    assert_eq!(put(&server, "POST", accounts, &account).await.status, 201);

    let success = |raw: &Raw| {
        let status = raw.object();
        assert_eq!(
            (raw.status, &status["kind"], &status["status"], &status["code"]),
            (201, &json!("Status"), &json!("Success"), &json!(201))
        );
    };
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"},
    });
    success(&put(&server, "POST", &format!("{pods}/p/binding"), &binding).await);
    // A second binding fails, in protobuf too.
    let refused = put(&server, "POST", &format!("{pods}/p/binding"), &binding).await;
    assert_eq!((refused.status, &refused.object()["reason"]), (409, &json!("Conflict")));
    let read = put(&server, "PUT", &format!("{pods}/p/status"), &{
        let mut pod = get(&server, &format!("{pods}/p"), MEDIA_TYPE).await.object();
        pod["status"]["phase"] = "Running".into();
        pod
    })
    .await;
    assert_eq!((read.status, &read.object()["status"]["phase"]), (200, &json!("Running")));
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}});
    let token = put(&server, "POST", &format!("{accounts}/a/token"), &request).await;
    assert_eq!((token.status, &token.object()["kind"]), (201, &json!("TokenRequest")));
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    success(&put(&server, "POST", &format!("{pods}/p/eviction"), &eviction).await);
    let missing = put(&server, "POST", &format!("{pods}/nosuch/eviction"), &{
        let mut eviction = eviction.clone();
        eviction["metadata"]["name"] = "nosuch".into();
        eviction
    })
    .await;
    assert_eq!((missing.status, &missing.object()["reason"]), (404, &json!("NotFound")));
    // The other encoding of the same answer.
    let yaml = exchange(
        &server,
        "POST",
        &format!("{pods}/p/eviction"),
        "application/yaml",
        "application/json",
        eviction.to_string().into(),
    )
    .await;
    assert_eq!((yaml.status, yaml.media.as_str()), (201, "application/yaml"));
}

fn widgets(schema: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}
