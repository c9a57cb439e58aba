//! API groups that a manager serves behind an APIService, with the certificate of its webhooks.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kubewright_apiserver::{ApiServer, Options};
use kubewright_runtime::internal::certificates::Material;
use kubewright_runtime::webhook::{ApiHandler, RegisterError, WebhookOptions, Webhooks};
use kubewright_runtime::{Client, Key, Manager, ManagerOptions, Patch, eventually};
use serde_json::json;
use tokio_util::sync::CancellationToken;

const LIMIT: Duration = Duration::from_secs(20);
const GROUP: &str = "prices.example.com";
const NAME: &str = "v1.prices.example.com";

/// Answers with the method, the path and the names of the headers.
struct Echo;

impl ApiHandler for Echo {
    async fn handle(&self, request: http::Request<Bytes>) -> http::Response<Bytes> {
        assert!(!request.uri().path().ends_with("/panic"), "asked to panic");
        let headers: Vec<&str> = request.headers().keys().map(http::HeaderName::as_str).collect();
        let body = format!("{} {} {}", request.method(), request.uri().path(), headers.join(","));
        http::Response::new(Bytes::from(body))
    }
}

async fn get(webhooks: &Webhooks, path: &str) -> (u16, String) {
    let request = http::Request::get(path).header("accept", "*/*").header("X-Remote-User", "admin");
    let request = request.header("X-Remote-Group", "system:masters");
    let response = webhooks.handle(request.body(Full::new(Bytes::new())).expect("a valid request")).await;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a whole body").to_bytes();
    (status, String::from_utf8_lossy(&body).into_owned())
}

#[tokio::test]
async fn an_api_handler_gets_all_requests_of_its_version_without_the_user() {
    let webhooks = Webhooks::new();
    webhooks.api(GROUP, "v1", Echo).expect("registered");
    assert_eq!(webhooks.paths(), ["/apis/prices.example.com/v1"]);
    for path in ["/apis/prices.example.com/v1", "/apis/prices.example.com/v1/namespaces/a/prices/b"] {
        assert_eq!(get(&webhooks, path).await, (200, format!("GET {path} accept")));
    }
    for path in ["/apis/prices.example.com/v1beta1", "/apis/prices.example.com", "/apis"] {
        assert_eq!(get(&webhooks, path).await.0, 404, "{path}");
    }
    let (status, body) = get(&webhooks, "/apis/prices.example.com/v1/panic").await;
    assert_eq!((status, body.as_str()), (500, "panic: asked to panic [recovered]\n"));
}

#[test]
fn an_api_version_is_registered_once_and_needs_a_group() {
    let webhooks = Webhooks::new();
    webhooks.api(GROUP, "v1", Echo).expect("registered");
    webhooks.api(GROUP, "v2", Echo).expect("registered");
    let twice = webhooks.api(GROUP, "v1", Echo).expect_err("taken");
    assert!(matches!(twice, RegisterError::PathTaken(path) if path == "/apis/prices.example.com/v1"));
    for (group, version) in [("", "v1"), (GROUP, ""), ("a/b", "v1"), (GROUP, "v1.x")] {
        let invalid = webhooks.api(group, version, Echo).expect_err("invalid");
        assert!(matches!(invalid, RegisterError::BadGroupVersion { .. }), "{invalid}");
    }
}

/// An API server with the APIService of the operator, and that of another one.
async fn cluster() -> Client {
    let server = ApiServer::new(Options::default());
    let client = Client::new(kube::Client::new(server, "default"));
    let namespace: Namespace =
        serde_json::from_value(json!({ "metadata": { "name": "system" } })).expect("a Namespace");
    client.create(&namespace).await.expect("created");
    for (group, service) in [(GROUP, "webhook-service"), ("other.example.com", "other-service")] {
        let api_service: APIService = serde_json::from_value(json!({
            "metadata": { "name": format!("v1.{group}") },
            "spec": {
                "group": group, "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 100,
                "service": { "namespace": "system", "name": service },
            },
        }))
        .expect("an APIService");
        client.create(&api_service).await.expect("created");
    }
    client
}

async fn bundle(client: &Client, name: &str) -> Option<ByteString> {
    let api_service = client.get::<APIService>(&Key::cluster(name)).await.expect("it exists");
    api_service.spec.as_ref().and_then(|spec| spec.ca_bundle.clone())
}

/// What the targets must trust.
async fn expected(client: &Client) -> Result<ByteString, String> {
    let secret = client.get::<Secret>(&Key::namespaced("system", "guard-webhook-cert")).await;
    let secret = secret.map_err(|error| error.to_string())?;
    let data = secret.data.iter().flatten().map(|(key, value)| (key.clone(), value.0.clone())).collect();
    let material = Material::from_data(&data).map_err(|error| error.to_string())?;
    Ok(ByteString(material.ok_or("empty")?.bundle().into_bytes()))
}

async fn is_injected(client: &Client) {
    eventually(LIMIT, async || {
        let (expected, found) = (expected(client).await?, bundle(client, NAME).await);
        if found == Some(expected) { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await
    .expect("injected");
}

fn manager(client: &Client) -> Manager {
    let options = ManagerOptions {
        health_probe_bind_address: "127.0.0.1:0".parse().expect("an address"),
        webhooks: WebhookOptions {
            bind_address: "127.0.0.1:0".parse().expect("an address"),
            service_namespace: Some("system".to_owned()),
            ..WebhookOptions::default()
        },
        ..ManagerOptions::new("guard")
    };
    Manager::new(client.kube(), options).expect("a manager")
}

#[tokio::test]
async fn a_manager_injects_its_ca_into_its_api_services_and_is_ready_when_they_answer() {
    let client = cluster().await;
    let manager = manager(&client);
    manager.api_service(GROUP, "v1", Echo).expect("registered");
    let declared = manager.manifest().api_services;
    assert_eq!((declared[0].group.as_str(), declared[0].version.as_str()), (GROUP, "v1"));
    let stop = CancellationToken::new();
    let task = tokio::spawn(manager.clone().run_until(stop.clone().cancelled_owned()));
    let probes = manager.addresses().await.health_probe.expect("probes are served");
    eventually(LIMIT, async || match crate::serve::get(probes, "/readyz/webhook-certificates").await {
        Ok((200, _)) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await
    .expect("ready");
    is_injected(&client).await;
    assert_eq!(bundle(&client, "v1.other.example.com").await, None, "APIServices of others are not changed");

    // Another client overwrites the bundle.
    let api_service = client.get::<APIService>(&Key::cluster(NAME)).await.expect("it exists");
    let remove = json!([{ "op": "remove", "path": "/spec/caBundle" }]);
    client.patch(&*api_service, &Patch::json(remove)).await.expect("patched");
    is_injected(&client).await;
    let api_service = client.get::<APIService>(&Key::cluster(NAME)).await.expect("it exists");
    let fields = api_service.metadata.managed_fields.iter().flatten();
    let owned = fields.filter(|entry| entry.manager.as_deref() == Some("kubewright-webhook-ca"));
    let owned: Vec<_> = owned.map(|entry| entry.fields_v1.as_ref().expect("fields").0.clone()).collect();
    assert_eq!(owned, [json!({ "f:spec": { "f:caBundle": {} } })], "it owns the bundle only");
    stop.cancel();
    task.await.expect("no panic").expect("no failure");
}

#[tokio::test]
async fn a_missing_api_service_is_a_readiness_reason() {
    let client = cluster().await;
    let manager = manager(&client);
    manager.api_service("absent.example.com", "v1", Echo).expect("registered");
    let stop = CancellationToken::new();
    let task = tokio::spawn(manager.clone().run_until(stop.clone().cancelled_owned()));
    let probes = manager.addresses().await.health_probe.expect("probes are served");
    eventually(LIMIT, async || match crate::serve::get(probes, "/readyz/webhook-certificates").await {
        Ok((500, reason)) if reason.contains("APIService v1.absent.example.com not found for Service") => {
            Ok(())
        }
        other => Err(format!("{other:?}")),
    })
    .await
    .expect("a reason");
    stop.cancel();
    task.await.expect("no panic").expect("no failure");
}
