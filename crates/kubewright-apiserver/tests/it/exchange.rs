//! Single HTTP requests to a server, for what typed clients cannot send or see.

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full};
use kubewright_apiserver::ApiServer;
use serde_json::Value;

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    /// Null if the body is not JSON.
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }

    pub(crate) fn warnings(&self) -> Vec<&str> {
        self.headers.get_all("warning").iter().filter_map(|warning| warning.to_str().ok()).collect()
    }

    pub(crate) fn media(&self) -> &str {
        self.headers.get("content-type").and_then(|media| media.to_str().ok()).unwrap_or_default()
    }
}

/// Sends a request with these headers and a body.
pub(crate) async fn send_with(
    server: &ApiServer,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Answer {
    let mut request = Request::builder().method(method).uri(path).header("user-agent", "test");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(body.into())).expect("the test's own request is well-formed");
    let (parts, body) = server.handle(request).await.into_parts();
    let bytes = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(never) => match never {},
    };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let body = serde_json::from_slice(&bytes).unwrap_or_default();
    Answer { status: parts.status.as_u16(), headers: parts.headers, text, body }
}

/// Sends JSON, with the media type for the method.
pub(crate) async fn send(server: &ApiServer, method: &str, path: &str, body: &Value) -> Answer {
    let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let body = if body.is_null() { String::new() } else { body.to_string() };
    send_with(server, method, path, &[("content-type", media)], body).await
}

/// Server-side applies a configuration.
pub(crate) async fn apply(server: &ApiServer, path: &str, body: &Value) -> Answer {
    let path = format!("{path}?fieldManager=test&force=true");
    send_with(server, "PATCH", &path, &[("content-type", "application/apply-patch+yaml")], body.to_string())
        .await
}
