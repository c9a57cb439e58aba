//! Content negotiation and errors, with kube-apiserver's messages.

use serde_json::{Value, json};

use crate::exchange::{Answer, send, send_with};
use crate::world::server;
use kubewright_apiserver::ApiServer;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const OFFERED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

async fn get(server: &ApiServer, path: &str, accept: &str) -> Answer {
    send_with(server, "GET", path, &[("accept", accept)], "").await
}

async fn with_map() -> ApiServer {
    let server = server();
    send(&server, "POST", MAPS, &json!({"metadata": {"name": "x"}})).await;
    server
}

#[tokio::test]
async fn the_router_and_the_handler_return_different_errors() {
    let server = with_map().await;
    let one = format!("{MAPS}/x");
    let router = format!("406: Not Acceptable\n\nAvailable representations: {OFFERED}");
    let handler = format!("only the following media types are accepted: {OFFERED}");
    for (accept, refusal) in [
        ("text/html", &router),
        ("application/*", &router),
        ("application/json;as=Nosuch;g=meta.k8s.io;v=v1", &handler),
        ("application/json;v=v1", &handler),
        ("application/json;as=Table;g=example.com;v=v1", &handler),
        ("application/yaml;stream=watch", &handler),
    ] {
        let refused = get(&server, &one, accept).await;
        assert_eq!((refused.status, refused.message()), (406, refusal.as_str()), "{accept}");
    }
    for accept in [
        "text/html, */*;q=0.1",
        "application/json;as=Nosuch, application/json",
        "application/json;stream=watch",
    ] {
        assert_eq!(get(&server, &one, accept).await.status, 200, "{accept}");
    }
    let list = get(&server, MAPS, "text/html").await;
    assert!(
        list.message()
            .ends_with("application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch")
    );
}

#[tokio::test]
async fn metadata_of_a_list_is_a_list_and_of_an_object_is_not() {
    let server = with_map().await;
    let as_kind = |kind: &str| format!("application/json;as={kind};g=meta.k8s.io;v=v1");
    let one = format!("{MAPS}/x");
    assert_eq!(
        get(&server, MAPS, &as_kind("PartialObjectMetadataList")).await.body["kind"],
        "PartialObjectMetadataList"
    );
    assert_eq!(
        get(&server, &one, &as_kind("PartialObjectMetadata")).await.body["kind"],
        "PartialObjectMetadata"
    );
    assert_eq!(
        get(&server, MAPS, &as_kind("PartialObjectMetadata")).await.message(),
        "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)"
    );
    assert_eq!(
        get(&server, &one, &as_kind("PartialObjectMetadataList")).await.message(),
        "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)"
    );
    let bogus = get(&server, &format!("{MAPS}?includeObject=Bogus"), &as_kind("Table")).await;
    assert_eq!(
        bogus.message(),
        "Unable to convert to Table as requested: includeObject: Invalid value: \"Bogus\": must be 'Metadata', 'Object', \
         'None', or empty"
    );
}

#[tokio::test]
async fn a_table_of_a_resource_without_one_is_rejected() {
    let server = server();
    let review = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let headers =
        [("accept", "application/json;as=Table;g=meta.k8s.io;v=v1"), ("content-type", "application/json")];
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    assert_eq!(send_with(&server, "POST", path, &headers, review.to_string()).await.status, 406);
    assert_eq!(send(&server, "POST", path, &review).await.status, 201);
}

#[tokio::test]
async fn errors_are_in_yaml_if_requested() {
    let server = server();
    let missing = get(&server, &format!("{MAPS}/none"), "application/yaml").await;
    assert_eq!((missing.status, missing.media()), (404, "application/yaml"));
    assert!(missing.text.contains("configmaps \"none\" not found"), "{}", missing.text);
    let missing = get(&server, &format!("{MAPS}/none"), "application/json, application/yaml").await;
    assert_eq!(missing.media(), "application/json");
}

#[tokio::test]
async fn aggregated_discovery_takes_precedence_at_any_position() {
    let server = server();
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let answer = get(&server, "/apis", &format!("application/json, {aggregated};q=0.1")).await;
    assert_eq!(answer.media(), aggregated);
    assert_eq!(get(&server, "/apis", "application/yaml").await.media(), "application/yaml");
    assert_eq!(get(&server, "/version", "text/html").await.status, 406);
}

#[tokio::test]
async fn a_malformed_patch_of_a_missing_object_is_not_found() {
    let server = with_map().await;
    let patch = |path: String, media: &'static str| {
        let server = server.clone();
        async move { send_with(&server, "PATCH", &path, &[("content-type", media)], "[1").await }
    };
    for media in [
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/json-patch+json",
    ] {
        assert_eq!(patch(format!("{MAPS}/none"), media).await.status, 404, "{media}");
        assert_eq!(patch(format!("{MAPS}/x"), media).await.status, 400, "{media}");
    }
    let strategic = [("content-type", "application/strategic-merge-patch+json")];
    let refused = send_with(&server, "PATCH", &format!("{MAPS}/x"), &strategic, "[]").await;
    assert_eq!(
        refused.message(),
        "json: cannot unmarshal array into Go value of type map[string]interface {}"
    );
}

#[tokio::test]
async fn an_invalid_resource_version_is_an_error_only_when_it_is_compared() {
    let server = with_map().await;
    let map = |name: &str| json!({"metadata": {"name": name, "resourceVersion": "x"}});
    assert_eq!(send(&server, "POST", MAPS, &map("new")).await.status, 201);
    let replaced = send(&server, "PUT", &format!("{MAPS}/x"), &map("x")).await;
    assert_eq!(
        (replaced.status, replaced.message()),
        (500, "strconv.ParseUint: parsing \"x\": invalid syntax")
    );
    let numbered = json!({"metadata": {"name": "other", "resourceVersion": "7"}});
    let refused = send(&server, "POST", MAPS, &numbered).await;
    assert_eq!(refused.message(), "resourceVersion should not be set on objects to be created");
    let dry = send(&server, "POST", &format!("{MAPS}?dryRun=All"), &numbered).await;
    assert_eq!(dry.status, 201, "{}", dry.text);
}

#[tokio::test]
async fn a_create_reports_that_the_existing_object_is_being_deleted() {
    let server = server();
    let map = json!({"metadata": {"name": "x", "finalizers": ["example.com/hold"]}});
    send(&server, "POST", MAPS, &map).await;
    send(&server, "DELETE", &format!("{MAPS}/x"), &Value::Null).await;
    let refused = send(&server, "POST", MAPS, &map).await;
    assert_eq!(refused.message(), "object is being deleted: configmaps \"x\" already exists");
}

#[tokio::test]
async fn a_namespace_can_have_a_generated_name() {
    let server = server();
    let created =
        send(&server, "POST", "/api/v1/namespaces", &json!({"metadata": {"generateName": "ns-"}})).await;
    let name = created.body["metadata"]["name"].as_str().unwrap_or_default();
    assert!(name.starts_with("ns-") && name.len() == 8, "{}", created.text);
    assert_eq!(created.body["metadata"]["labels"]["kubernetes.io/metadata.name"], name);
}

#[tokio::test]
async fn delete_preconditions_can_be_in_the_query() {
    let server = with_map().await;
    let one = format!("{MAPS}/x");
    assert_eq!(send(&server, "DELETE", &format!("{one}?resourceVersion=1"), &Value::Null).await.status, 409);
    let namespace = json!({"preconditions": {"uid": "other"}});
    let refused = send(&server, "DELETE", "/api/v1/namespaces/default", &namespace).await;
    assert!(
        refused.message().starts_with(
            "Operation cannot be fulfilled on namespaces \"default\": Precondition failed: UID in precondition: other,"
        ),
        "{}",
        refused.message()
    );
    let refused = send(&server, "DELETE", "/api/v1/namespaces/default", &Value::Null).await;
    assert_eq!(refused.message(), "namespaces \"default\" is forbidden: this namespace may not be deleted");
}

#[tokio::test]
async fn deprecated_resources_warn_on_every_verb() {
    let server = server();
    let path = "/api/v1/namespaces/default/endpoints";
    let warning = "299 - \"v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice\"";
    for (method, path) in
        [("GET", path.to_owned()), ("GET", format!("{path}/none")), ("DELETE", format!("{path}/none"))]
    {
        assert_eq!(send(&server, method, &path, &Value::Null).await.warnings(), [warning], "{method} {path}");
    }
    assert_eq!(send(&server, "PUT", path, &Value::Null).await.warnings(), [""; 0]);
}

#[tokio::test]
async fn unknown_paths_below_a_custom_resource_group_are_plain_404s() {
    let server = server();
    let schema = json!({"type": "object"});
    let definition = json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    send(&server, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
    assert_eq!(send(&server, "GET", "/apis/example.com/v1/things", &Value::Null).await.status, 200);
    for path in [
        "/apis/example.com/v1/others",
        "/apis/example.com/v2/things",
        "/apis/example.com/v1/namespaces/default/others/x",
    ] {
        let missing = send(&server, "GET", path, &Value::Null).await;
        assert_eq!((missing.status, &*missing.text), (404, "404 page not found\n"), "{path}");
    }
    let known = send(&server, "GET", "/apis/apps/v1/others", &Value::Null).await;
    assert_eq!(known.message(), "the server could not find the requested resource");
}
