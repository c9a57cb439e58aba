//! Targets for webhook responses: AdmissionReviews and ConversionReviews.
//!
//! A webhook may respond with anything. The request for which it is called must still get a response.

use std::convert::Infallible;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use kubewright_apiserver::clock::ManualClock;
use kubewright_apiserver::{ApiServer, Options, WebhookAddress};
use serde_json::{Value, json};

use super::targets::answer;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

/// A response to an AdmissionReview. `$uid` is replaced with the request's UID.
pub fn admission_review(data: &[u8]) {
    let server = with_answer(&ADMITTED, data);
    let map = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
    expect_answer(&post(&server, MAPS, &map));
}

/// A response to a ConversionReview. `$uid` is replaced with the request's UID.
pub fn conversion_review(data: &[u8]) {
    let server = with_answer(&CONVERTED, data);
    let other = "/apis/example.com/v2/namespaces/default/widgets";
    for path in [other.to_owned(), format!("{other}/w")] {
        let request = Request::get(path).body(Full::new(Bytes::new())).expect("the request is valid");
        expect_answer(&answer(&server, request));
    }
}

/// The body must be JSON. Only a failed webhook is an internal error.
fn expect_answer((status, body): &(StatusCode, Vec<u8>)) {
    let text = String::from_utf8_lossy(body);
    let object: Value =
        serde_json::from_slice(body).unwrap_or_else(|error| panic!("{error}: {status} {text}"));
    assert!(status.is_success() || object["kind"] == "Status", "{status} {text}");
    assert!(!status.is_server_error() || text.contains("webhook"), "{status} {text}");
}

/// A handler that responds to every review with the same bytes.
#[derive(Clone)]
struct Says(Bytes);

impl tower_service::Service<Request<Full<Bytes>>> for Says {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Full<Bytes>>) -> Self::Future {
        let says = self.0.clone();
        Box::pin(async move {
            let asked = request.into_body().collect().await?.to_bytes();
            let asked: Value = serde_json::from_slice(&asked).unwrap_or_default();
            let uid = asked["request"]["uid"].as_str().unwrap_or_default();
            let says = match std::str::from_utf8(&says) {
                Ok(text) => Bytes::from(text.replace("$uid", uid)),
                Err(_) => says,
            };
            let response = Response::builder().header(header::CONTENT_TYPE, "application/json");
            Ok(response.body(Full::new(says)).unwrap_or_default())
        })
    }
}

fn with_answer(server: &ApiServer, data: &[u8]) -> ApiServer {
    let server = server.fork();
    let address = WebhookAddress::Service { namespace: "default".to_owned(), name: "hook".to_owned() };
    server.add_webhook_handler(address, Says(Bytes::copy_from_slice(data)));
    server
}

fn new_server() -> ApiServer {
    let clock = Arc::new(ManualClock::new(1_767_225_600_000_000));
    ApiServer::new(Options { clock, seed: Some(1), ..Options::default() })
}

fn post(server: &ApiServer, path: &str, object: &Value) -> (StatusCode, Vec<u8>) {
    let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
    answer(server, request.body(Full::new(Bytes::from(object.to_string()))).expect("the request is valid"))
}

fn create(server: &ApiServer, path: &str, object: &Value) {
    let (status, body) = post(server, path, object);
    assert_eq!(status, StatusCode::CREATED, "{path}: {}", String::from_utf8_lossy(&body));
}

fn client_config() -> Value {
    json!({"service": {"namespace": "default", "name": "hook"}})
}

/// Calls a mutating and a validating webhook for every ConfigMap.
static ADMITTED: LazyLock<ApiServer> = LazyLock::new(|| {
    let server = new_server();
    let rules =
        json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}]);
    for kind in ["Mutating", "Validating"] {
        let configuration = json!({
            "metadata": {"name": "hook"},
            "webhooks": [{
                "name": "hook.example.com", "clientConfig": client_config(), "rules": rules,
                "sideEffects": "None", "admissionReviewVersions": ["v1"],
            }],
        });
        let plural = format!("{}webhookconfigurations", kind.to_lowercase());
        create(&server, &format!("/apis/admissionregistration.k8s.io/v1/{plural}"), &configuration);
    }
    server
});

/// Has a widget that is stored as v1 and converted to v2 by a webhook.
static CONVERTED: LazyLock<ApiServer> = LazyLock::new(|| {
    let server = new_server();
    let version = |name: &str, storage: bool| {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema}})
    };
    let crd = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [version("v1", true), version("v2", false)],
            "conversion": {
                "strategy": "Webhook",
                "webhook": {"clientConfig": client_config(), "conversionReviewVersions": ["v1"]},
            },
        },
    });
    create(&server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd);
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"a": 1}});
    create(&server, WIDGETS, &widget);
    server
});
