//! Admission webhooks over TLS and as in-process handlers.

mod calls;
mod conversion;
mod failures;
pub(crate) mod hook;
mod matching;
mod tls;

use kubewright_apiserver::ApiServer;
use serde_json::{Value, json};

/// Sends one in-process request; `APPLY` is a server-side apply. Returns status, warnings and body.
pub(crate) async fn send(
    server: &ApiServer,
    method: &str,
    path: &str,
    body: &Value,
) -> (u16, Vec<String>, Value) {
    use http_body_util::BodyExt as _;
    let (method, content) = match method {
        "PATCH" => ("PATCH", "application/merge-patch+json"),
        "APPLY" => ("PATCH", "application/apply-patch+yaml"),
        _ => (method, "application/json"),
    };
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content)
        .header("user-agent", "test/1.0")
        .body(http_body_util::Full::new(bytes::Bytes::from(serde_json::to_vec(body).unwrap())))
        .unwrap();
    let (parts, body) = server.handle(request).await.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    let warnings = parts.headers.get_all("warning").iter();
    let warnings = warnings.map(|value| value.to_str().unwrap().to_owned()).collect();
    (parts.status.as_u16(), warnings, serde_json::from_slice(&bytes).unwrap())
}

pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

pub(crate) async fn create_config_map(server: &ApiServer, name: &str) -> (u16, Vec<String>, Value) {
    send(server, "POST", CONFIG_MAPS, &json!({"metadata": {"name": name}, "data": {"key": "1"}})).await
}

/// Creates a configuration with one webhook for ConfigMaps; `more` adds or replaces fields.
pub(crate) async fn configure(server: &ApiServer, kind: &str, name: &str, client: Value, more: Value) {
    let mut webhook = json!({
        "name": format!("{name}.example.com"),
        "clientConfig": client,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
    });
    for (field, value) in more.as_object().unwrap() {
        webhook[field] = value.clone();
    }
    let plural = format!("{}webhookconfigurations", kind.to_lowercase());
    let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
    let object = json!({"metadata": {"name": name}, "webhooks": [webhook]});
    let (status, _, body) = send(server, "POST", &path, &object).await;
    assert_eq!(status, 201, "{body}");
}
