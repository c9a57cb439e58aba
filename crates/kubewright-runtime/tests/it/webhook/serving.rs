//! A manager that serves its webhooks over TLS with self-signed certificates. The API server calls it through the
//! Service, as in a cluster, with one Pod on loopback per replica.

use std::net::SocketAddr;
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret, Service};
use k8s_openapi::api::events::v1::Event;
use kubewright_apiserver::{ApiServer, Options};
use kubewright_runtime::webhook::{Rejection, Validation, Validator, WebhookOptions};
use kubewright_runtime::{
    Client, Key, LeaderElectionOptions, ListOptions, Manager, ManagerError, ManagerOptions, Object, Patch,
    RegisterError, eventually,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const LIMIT: Duration = Duration::from_secs(20);
const PATH: &str = "/validate--v1-configmap";

struct NotEmpty;

impl Validator for NotEmpty {
    type Object = ConfigMap;

    async fn validate_create(&self, new: &ConfigMap, v: &mut Validation<'_>) -> Result<(), Rejection> {
        if new.data.is_none() {
            v.required("data", "an empty ConfigMap has no use");
        }
        Ok(())
    }
}

fn object<K: Object>(json: Value) -> K {
    serde_json::from_value(json).expect("an object")
}

fn config_map(name: &str, data: &Value) -> ConfigMap {
    object(json!({ "metadata": { "name": name, "namespace": "default" }, "data": data }))
}

/// An API server with the manifests of an operator that has one webhook.
async fn cluster() -> Client {
    let server = ApiServer::new(Options::default());
    let client = Client::new(kube::Client::new(server, "default"));
    client.create::<Namespace>(&object(json!({ "metadata": { "name": "system" } }))).await.expect("created");
    let service = json!({
        "metadata": { "name": "webhook-service", "namespace": "system" },
        "spec": {
            "ports": [{ "port": 443, "targetPort": "webhook-server" }],
            "selector": { "control-plane": "controller-manager" },
        },
    });
    client.create::<Service>(&object(service)).await.expect("created");
    let configuration = json!({
        "metadata": { "name": "validating" },
        "webhooks": [{
            "name": "vconfigmap-v1.kb.io",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": {
                "service": { "namespace": "system", "name": "webhook-service", "path": PATH },
            },
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"],
            }],
        }],
    });
    client.create::<ValidatingWebhookConfiguration>(&object(configuration)).await.expect("created");
    client
}

/// A ready Pod of the Service.
async fn route(client: &Client, name: &str, address: SocketAddr) {
    let pod = json!({
        "metadata": {
            "name": name,
            "namespace": "system",
            "labels": { "control-plane": "controller-manager" },
        },
        "spec": {
            "containers": [{
                "name": "manager",
                "image": "guard",
                "ports": [{ "name": "webhook-server", "containerPort": address.port() }],
            }],
        },
    });
    let pod = client.create::<Pod>(&object(pod)).await.expect("created");
    let status = json!({
        "status": {
            "podIP": address.ip().to_string(),
            "podIPs": [{ "ip": address.ip().to_string() }],
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    });
    client.status().patch(&pod, &Patch::merge(status)).await.expect("patched");
}

fn manager(client: &Client) -> Manager {
    manager_with(client, None)
}

fn manager_with(client: &Client, leader_election: Option<LeaderElectionOptions>) -> Manager {
    let options = ManagerOptions {
        leader_election,
        webhooks: WebhookOptions {
            bind_address: "127.0.0.1:0".parse().expect("an address"),
            service_namespace: Some("system".to_owned()),
            ..WebhookOptions::default()
        },
        ..ManagerOptions::new("guard")
    };
    let manager = Manager::new(client.kube(), options).expect("a manager");
    manager.validator(NotEmpty).expect("registered");
    manager
}

#[tokio::test]
async fn a_manager_issues_a_certificate_injects_its_ca_and_serves_the_api_server() {
    let client = cluster().await;
    let stop = CancellationToken::new();
    let (first, second) = (manager(&client), manager(&client));
    let mut tasks = Vec::new();
    for (name, manager) in [("one", &first), ("two", &second)] {
        tasks.push(tokio::spawn(manager.clone().run_until(stop.clone().cancelled_owned())));
        route(&client, name, manager.addresses().await.webhook.expect("webhooks are served")).await;
    }
    let full = json!({ "key": "value" });
    // Until the CA is injected, the API server trusts neither replica and rejects the write.
    eventually(LIMIT, async || client.create(&config_map("full", &full)).await.map(|_| ()))
        .await
        .expect("the webhook answers");
    let refused = client.create(&config_map("empty", &Value::Null)).await.unwrap_err().to_string();
    assert!(refused.contains("data: Required value: an empty ConfigMap has no use"), "{refused}");

    let secret = client.get::<Secret>(&Key::namespaced("system", "guard-webhook-cert")).await;
    assert!(secret.expect("the replicas share a Secret").data.is_some());
    stop.cancel();
    for task in tasks {
        task.await.expect("no panic").expect("no failure");
    }
}

#[tokio::test]
async fn a_replica_that_is_not_the_leader_serves() {
    let client = cluster().await;
    let stop = CancellationToken::new();
    let election = || {
        Some(LeaderElectionOptions {
            namespace: Some("system".to_owned()),
            ..LeaderElectionOptions::new("guard")
        })
    };
    let (leader, follower) = (manager_with(&client, election()), manager_with(&client, election()));
    let mut tasks = vec![tokio::spawn(leader.clone().run_until(stop.clone().cancelled_owned()))];
    eventually(LIMIT, async || {
        let lease = client.get::<Lease>(&Key::namespaced("system", "guard")).await;
        lease.map(|_| ()).map_err(|error| error.to_string())
    })
    .await
    .expect("the first manager leads");
    tasks.push(tokio::spawn(follower.clone().run_until(stop.clone().cancelled_owned())));
    // The Service has one endpoint: the follower.
    route(&client, "follower", follower.addresses().await.webhook.expect("webhooks are served")).await;
    let full = json!({ "key": "value" });
    eventually(LIMIT, async || client.create(&config_map("full", &full)).await.map(|_| ()))
        .await
        .expect("the webhook answers");
    let refused = client.create(&config_map("empty", &Value::Null)).await.unwrap_err().to_string();
    assert!(refused.contains("data: Required value: an empty ConfigMap has no use"), "{refused}");
    stop.cancel();
    for task in tasks {
        task.await.expect("no panic").expect("no failure");
    }
}

/// Starts a manager with a probe server, and returns the address of the probes.
async fn probed(
    client: &Client,
    stop: &CancellationToken,
) -> (SocketAddr, tokio::task::JoinHandle<Result<(), ManagerError>>) {
    let options = ManagerOptions {
        health_probe_bind_address: "127.0.0.1:0".parse().expect("an address"),
        webhooks: WebhookOptions {
            bind_address: "127.0.0.1:0".parse().expect("an address"),
            service_namespace: Some("system".to_owned()),
            ..WebhookOptions::default()
        },
        ..ManagerOptions::new("guard")
    };
    let manager = Manager::new(client.kube(), options).expect("a manager");
    manager.validator(NotEmpty).expect("registered");
    let task = tokio::spawn(manager.clone().run_until(stop.clone().cancelled_owned()));
    (manager.addresses().await.health_probe.expect("probes are served"), task)
}

#[tokio::test]
async fn readiness_calls_the_paths_of_the_targets_on_the_own_server() {
    let client = cluster().await;
    // A second webhook of the configuration has a path that nothing serves.
    let configuration =
        client.get::<ValidatingWebhookConfiguration>(&Key::cluster("validating")).await.expect("it exists");
    let mut wrong = serde_json::to_value(&*configuration).expect("JSON")["webhooks"][0].clone();
    wrong["name"] = "wrong.kb.io".into();
    wrong["clientConfig"]["service"]["path"] = "/wrong".into();
    let add = json!([{ "op": "add", "path": "/webhooks/-", "value": wrong }]);
    let configuration = client.patch(&*configuration, &Patch::json(add)).await.expect("patched");

    let stop = CancellationToken::new();
    let (address, task) = probed(&client, &stop).await;
    let readyz =
        async || crate::serve::get(address, "/readyz/webhook-certificates").await.expect("an answer");
    eventually(LIMIT, async || match readyz().await {
        (500, reason) if reason.contains("failed to call path /wrong of this replica") => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await
    .expect("a reason");

    let remove = json!([{ "op": "remove", "path": "/webhooks/1" }]);
    client.patch(&configuration, &Patch::json(remove)).await.expect("patched");
    eventually(LIMIT, async || match readyz().await {
        (200, _) => Ok(()),
        (_, body) => Err(body),
    })
    .await
    .expect("ready");
    stop.cancel();
    task.await.expect("no panic").expect("no failure");
}

#[tokio::test]
async fn a_ready_replica_stays_ready_when_a_new_version_adds_a_webhook() {
    let client = cluster().await;
    let stop = CancellationToken::new();
    let (address, task) = probed(&client, &stop).await;
    let readyz =
        async || crate::serve::get(address, "/readyz/webhook-certificates").await.expect("an answer");
    eventually(LIMIT, async || match readyz().await {
        (200, _) => Ok(()),
        (_, body) => Err(body),
    })
    .await
    .expect("ready");

    let configuration =
        client.get::<ValidatingWebhookConfiguration>(&Key::cluster("validating")).await.expect("it exists");
    let mut added = serde_json::to_value(&*configuration).expect("JSON")["webhooks"][0].clone();
    added["name"] = "added.kb.io".into();
    added["clientConfig"] =
        json!({ "service": { "namespace": "system", "name": "webhook-service", "path": "/added" } });
    let add = json!([{ "op": "add", "path": "/webhooks/-", "value": added }]);
    client.patch(&*configuration, &Patch::json(add)).await.expect("patched");
    // The replica has injected the CA into the new entry and called its path.
    let is_called = async || {
        let found = client.list::<Event>(&ListOptions::namespace("system")).await.expect("listed");
        found
            .iter()
            .any(|event| event.note.as_deref().unwrap_or_default().contains("failed to call path /added"))
    };
    eventually(LIMIT, async || if is_called().await { Ok(()) } else { Err("not called") })
        .await
        .expect("called");
    assert_eq!(readyz().await.0, 200);
    stop.cancel();
    task.await.expect("no panic").expect("no failure");
}

#[tokio::test]
async fn outside_of_a_cluster_self_signed_certificates_need_a_namespace() {
    let client = cluster().await;
    let options = ManagerOptions {
        webhooks: WebhookOptions {
            bind_address: "127.0.0.1:0".parse().expect("an address"),
            ..WebhookOptions::default()
        },
        ..ManagerOptions::new("guard")
    };
    let manager = Manager::new(client.kube(), options).expect("a manager");
    manager.validator(NotEmpty).expect("registered");
    let error = manager.run_until(std::future::pending()).await.unwrap_err();
    assert!(matches!(error, ManagerError::WebhookNamespace(_)), "{error}");
    assert!(error.to_string().contains("kubewright dev"), "{error}");
}

#[tokio::test]
async fn a_webhook_is_registered_once_and_before_the_start() {
    let client = cluster().await;
    let manager = Manager::new(client.kube(), ManagerOptions::new("guard")).expect("a manager");
    manager.validator(NotEmpty).expect("registered");
    let twice = manager.validator(NotEmpty).unwrap_err();
    assert!(matches!(twice, RegisterError::Webhook(_)), "{twice}");
    assert_eq!(manager.manifest().webhooks.len(), 1);

    let stop = CancellationToken::new();
    let task = tokio::spawn(manager.clone().run_until(stop.clone().cancelled_owned()));
    manager.addresses().await;
    let late = manager.defaulter(late::Defaults).unwrap_err();
    assert_eq!(late.to_string(), "cannot register \"mconfigmap-v1.kb.io\": manager already started");
    stop.cancel();
    task.await.expect("no panic").expect("no failure");
}

mod late {
    use super::*;
    use kubewright_runtime::webhook::{AdmissionRequest, Defaulter};

    pub(super) struct Defaults;

    impl Defaulter for Defaults {
        type Object = ConfigMap;

        async fn default(&self, _: &mut ConfigMap, _: &AdmissionRequest) -> Result<(), Rejection> {
            Ok(())
        }
    }
}
