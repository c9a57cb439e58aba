//! Requests to webhooks and the handling of their responses.

use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use kubewright_apiserver::WebhookAddress;
use serde_json::{Value, json};

use super::hook::{Hook, patch, review};
use super::tls::{Ca, dns};
use super::{CONFIG_MAPS, configure, create_config_map, send};
use crate::world::server;

#[tokio::test]
async fn a_mutating_webhook_changes_the_stored_object() {
    let hook = Hook::start(|_, request| {
        Some(review(request, patch(&json!([{"op": "add", "path": "/data/added", "value": "yes"}]))))
    })
    .await;
    let server = server();
    configure(&server, "Mutating", "m", hook.client("/mutate"), json!({})).await;
    let (status, _, created) = create_config_map(&server, "a").await;
    assert_eq!((status, &created["data"]), (201, &json!({"key": "1", "added": "yes"})));
    let reviews = hook.take();
    assert_eq!(reviews.len(), 1);
    let request = &reviews[0]["request"];
    assert_eq!(request["operation"], "CREATE");
    assert_eq!(request["object"]["metadata"]["name"], "a");
    assert_eq!(request["oldObject"], Value::Null);
    assert_eq!(request["userInfo"]["username"], "admin");
    let options = json!({"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"});
    assert_eq!(request["options"], options);
    // These calls reuse the connection.
    create_config_map(&server, "b").await;
    create_config_map(&server, "c").await;
    assert_eq!(hook.connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_webhook_is_reinvoked_after_a_later_change() {
    let hook = Hook::start(|path, request| {
        let operation = json!([{"op": "add", "path": format!("/data{path}"), "value": "1"}]);
        Some(review(request, patch(&operation)))
    })
    .await;
    let server = server();
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    configure(&server, "Mutating", "a", hook.client("/one"), again).await;
    configure(&server, "Mutating", "b", hook.client("/two"), json!({})).await;
    let (status, _, created) = create_config_map(&server, "x").await;
    assert_eq!((status, &created["data"]), (201, &json!({"key": "1", "one": "1", "two": "1"})));
    let seen: Vec<Value> =
        hook.take().iter().map(|review| review["request"]["object"]["data"].clone()).collect();
    assert_eq!(
        seen,
        [json!({"key": "1"}), json!({"key": "1", "one": "1"}), json!({"key": "1", "one": "1", "two": "1"})]
    );
}

#[tokio::test]
async fn a_validating_webhook_denies_with_its_own_status_and_warns() {
    let hook = Hook::start(|path, request| {
        let response = match path {
            "/deny" => json!({"allowed": false, "warnings": ["careful"],
                "status": {"code": 418, "reason": "Teapot", "message": "no tea"}}),
            _ => json!({"allowed": true, "warnings": ["mind this"]}),
        };
        Some(review(request, response))
    })
    .await;
    let server = server();
    configure(&server, "Validating", "warns", hook.client("/warn"), json!({})).await;
    let (status, warnings, _) = create_config_map(&server, "a").await;
    assert_eq!((status, warnings), (201, vec!["299 - \"mind this\"".to_owned()]));
    configure(&server, "Validating", "denies", hook.client("/deny"), json!({})).await;
    let (status, warnings, body) = create_config_map(&server, "b").await;
    assert_eq!(status, 418);
    assert_eq!(warnings, ["299 - \"careful\"", "299 - \"mind this\""]);
    assert_eq!(body["message"], "admission webhook \"denies.example.com\" denied the request: no tea");
    assert_eq!(body["reason"], "Teapot");
}

#[tokio::test]
async fn deletions_send_the_old_object_and_collections_call_once_per_object() {
    let hook = Hook::start(|_, request| Some(review(request, json!({"allowed": true})))).await;
    let server = server();
    for name in ["a", "b", "c"] {
        create_config_map(&server, name).await;
    }
    configure(&server, "Validating", "v", hook.client("/"), json!({})).await;
    send(&server, "DELETE", &format!("{CONFIG_MAPS}/a"), &json!({})).await;
    send(&server, "DELETE", CONFIG_MAPS, &json!({})).await;
    let seen: Vec<(String, String)> = hook
        .take()
        .iter()
        .map(|review| {
            let request = &review["request"];
            assert_eq!((&request["operation"], &request["object"]), (&json!("DELETE"), &Value::Null));
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            (text(&request["name"]), text(&request["oldObject"]["metadata"]["name"]))
        })
        .collect();
    let pair = |name: &str, old: &str| (name.to_owned(), old.to_owned());
    assert_eq!(seen, [pair("a", "a"), pair("", "b"), pair("", "c")]);
}

#[tokio::test]
async fn matching_uses_selectors_conditions_and_equivalent_versions() {
    let hook = Hook::start(|_, request| Some(review(request, json!({"allowed": false})))).await;
    let server = server();
    let matching = json!({
        "objectSelector": {"matchLabels": {"guard": "yes"}},
        "matchConditions": [
            {"name": "not-free", "expression": "!('free' in object.metadata.?annotations.orValue({}))"},
            {"name": "may", "expression": "authorizer.requestResource.check('create').allowed()"},
        ],
    });
    configure(&server, "Validating", "v", hook.client("/"), matching).await;
    let object = |name: &str, annotations: Value| json!({"metadata": {"name": name, "labels": {"guard": "yes"}, "annotations": annotations}});
    let status = |name: &'static str, annotations: Value| {
        let (server, object) = (server.clone(), object(name, annotations));
        async move { send(&server, "POST", CONFIG_MAPS, &object).await.0 }
    };
    assert_eq!(create_config_map(&server, "unlabelled").await.0, 201);
    assert_eq!(status("guarded", json!({})).await, 400);
    assert_eq!(status("free", json!({"free": "1"})).await, 201);

    // The rule names the old version of autoscalers, and matches requests for the new one.
    let rules = json!({"rules": [{
        "apiGroups": ["autoscaling"], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["horizontalpodautoscalers"],
    }]});
    configure(&server, "Validating", "hpa", hook.client("/"), rules).await;
    hook.take();
    let autoscaler = json!({"metadata": {"name": "h"}, "spec": {
        "maxReplicas": 2, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        "metrics": [{"type": "Resource", "resource": {"name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": 7}}}],
    }});
    let path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
    assert_eq!(send(&server, "POST", path, &autoscaler).await.0, 400);
    let request = hook.take()[0]["request"].take();
    assert_eq!(request["kind"]["version"], "v1");
    assert_eq!(request["requestKind"]["version"], "v2");
    assert_eq!(request["object"]["spec"]["targetCPUUtilizationPercentage"], 7);
}

#[tokio::test]
async fn a_service_resolves_to_its_endpoints() {
    let hook = Hook::start(|_, request| Some(review(request, json!({"allowed": true})))).await;
    let server = server();
    configure(&server, "Validating", "v", hook.service("hook", "/x"), json!({})).await;
    let failure =
        |body: &Value| body["message"].as_str().unwrap().rsplit("timeout=10s\": ").next().unwrap().to_owned();
    let (status, _, body) = create_config_map(&server, "a").await;
    assert_eq!((status, failure(&body)), (500, "service \"hook\" not found".to_owned()));
    let ports = json!([{"port": 443, "targetPort": hook.address.port()}]);
    let service =
        json!({"metadata": {"name": "hook"}, "spec": {"selector": {"app": "hook"}, "ports": ports}});
    assert_eq!(send(&server, "POST", "/api/v1/namespaces/default/services", &service).await.0, 201);
    let (_, _, body) = create_config_map(&server, "a").await;
    assert_eq!(failure(&body), "no endpoints available for service \"hook\"");
    // An EndpointSlice cannot have a loopback address; a Pod can.
    let pod = json!({"metadata": {"name": "hook", "labels": {"app": "hook"}},
        "spec": {"containers": [{"name": "main", "image": "hook"}]}});
    let pods = "/api/v1/namespaces/default/pods";
    assert_eq!(send(&server, "POST", pods, &pod).await.0, 201);
    let ready = json!({"status": {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}],
        "conditions": [{"type": "Ready", "status": "True"}]}});
    let (status, _, body) = send(&server, "PATCH", &format!("{pods}/hook/status"), &ready).await;
    assert_eq!(status, 200, "{body}");
    // The certificate is for 127.0.0.1, but the Service's name is verified.
    let (_, _, body) = create_config_map(&server, "a").await;
    let message = body["message"].as_str().unwrap();
    assert!(
        message.contains("tls: failed to verify certificate: x509: certificate is valid for localhost, "),
        "{message}"
    );
    assert!(message.ends_with("not hook.default.svc"), "{message}");
}

#[tokio::test]
async fn a_service_resolves_to_loopback_addresses_only() {
    let server = server();
    let ca = Ca::new();
    let (cert, key) =
        ca.issue(|params| params.subject_alt_names = vec![dns("hook.default.svc"), dns("other.default.svc")]);
    let allow = |_: &str, request: &Value| Some(review(request, json!({"allowed": true})));
    let hook = Hook::serve(cert, key, &ca.pem, allow).await;
    configure(&server, "Validating", "v", hook.service("hook", "/x"), json!({})).await;
    let service = json!({"metadata": {"name": "hook"}, "spec": {
        "selector": {"app": "hook"}, "ports": [{"port": 443, "targetPort": hook.address.port()}]}});
    assert_eq!(send(&server, "POST", "/api/v1/namespaces/default/services", &service).await.0, 201);
    let slice = json!({
        "metadata": {"name": "hook", "labels": {"kubernetes.io/service-name": "hook"}},
        "addressType": "IPv4", "ports": [{"name": "", "port": hook.address.port()}],
        "endpoints": [{"addresses": ["10.128.0.9"], "conditions": {"ready": true}}],
    });
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    assert_eq!(send(&server, "POST", slices, &slice).await.0, 201);
    let (status, _, body) = create_config_map(&server, "a").await;
    assert_eq!(status, 500, "{body}");
    let message = body["message"].as_str().unwrap();
    assert!(message.ends_with("no endpoints available for service \"hook\""), "{message}");

    let pod = json!({"metadata": {"name": "hook", "labels": {"app": "hook"}},
        "spec": {"containers": [{"name": "main", "image": "hook"}]}});
    let pods = "/api/v1/namespaces/default/pods";
    assert_eq!(send(&server, "POST", pods, &pod).await.0, 201);
    let ready = json!({"status": {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}],
        "conditions": [{"type": "Ready", "status": "True"}]}});
    assert_eq!(send(&server, "PATCH", &format!("{pods}/hook/status"), &ready).await.0, 200);
    let (status, _, body) = create_config_map(&server, "a").await;
    assert_eq!(status, 201, "{body}");
    assert_eq!(hook.take().len(), 1);
}

/// An in-process handler that allows everything.
#[derive(Clone)]
struct InProcess;

impl tower_service::Service<http::Request<Full<Bytes>>> for InProcess {
    type Response = http::Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Full<Bytes>>) -> Self::Future {
        Box::pin(async move {
            let body = request.into_body().collect().await?.to_bytes();
            let asked: Value = serde_json::from_slice(&body).unwrap();
            let response = patch(&json!([{"op": "add", "path": "/data/handled", "value": "in-process"}]));
            let answer = review(&asked["request"], response).to_string();
            Ok(http::Response::new(Full::new(Bytes::from(answer))))
        })
    }
}

#[tokio::test]
async fn an_in_process_handler_is_called_without_a_socket() {
    let server = server();
    let address = WebhookAddress::Service { namespace: "default".to_owned(), name: "hook".to_owned() };
    server.add_webhook_handler(address, InProcess);
    let client = json!({"service": {"namespace": "default", "name": "hook", "path": "/m"}});
    configure(&server, "Mutating", "m", client, json!({})).await;
    for server in [&server, &server.fork()] {
        let (status, _, created) = create_config_map(server, "a").await;
        assert_eq!((status, &created["data"]["handled"]), (201, &json!("in-process")));
    }
}

#[tokio::test]
async fn a_connection_to_a_pod_calls_webhooks_for_connect() {
    let hook = Hook::start(|_, request| Some(review(request, json!({"allowed": false})))).await;
    let server = server();
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    assert_eq!(send(&server, "POST", "/api/v1/namespaces/default/pods", &pod).await.0, 201);
    let rules = json!({"rules": [{
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"], "resources": ["pods/exec"],
    }]});
    configure(&server, "Validating", "connect", hook.client("/"), rules).await;
    let path = "/api/v1/namespaces/default/pods/p";
    let (status, _, body) = send(
        &server,
        "POST",
        &format!("{path}/exec?container=c&command=ls&command=-l&stdout=1"),
        &Value::Null,
    )
    .await;
    assert_eq!(status, 400, "{body}");
    let message = body["message"].as_str().unwrap();
    assert!(message.starts_with("admission webhook \"connect.example.com\" denied the request"), "{message}");
    let reviews = hook.take();
    assert_eq!(reviews.len(), 1);
    let request = &reviews[0]["request"];
    assert_eq!(
        (&request["operation"], &request["subResource"], &request["name"]),
        (&json!("CONNECT"), &json!("exec"), &json!("p"))
    );
    let options = &request["object"];
    assert_eq!(
        (&options["kind"], &options["command"], &options["container"], &options["stdout"]),
        (&json!("PodExecOptions"), &json!(["ls", "-l"]), &json!("c"), &json!(true))
    );
    assert_eq!(request["oldObject"], Value::Null);
    // Another subresource does not match.
    send(&server, "POST", &format!("{path}/attach"), &Value::Null).await;
    assert!(hook.take().is_empty());
}
