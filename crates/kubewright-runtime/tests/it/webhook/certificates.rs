//! Certificates shared by several replicas, on the embedded API server.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Secret;
use kubewright_apiserver::{ApiServer, Options};
use kubewright_runtime::internal::certificates::{Material, Readiness, Rotator, RotatorOptions};
use kubewright_runtime::internal::certs::Certificates;
use kubewright_runtime::{Client, Clock, Key, Patch, TokioClock, eventually};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

const START: &str = "2026-01-01T00:00:00Z";
/// Longer than every delay of a rotation.
const LIMIT: Duration = Duration::from_mins(10);

/// A replica of the operator.
struct Replica {
    serving: Certificates,
    readiness: Readiness,
    task: JoinHandle<()>,
}

impl Replica {
    fn start(client: &Client, clock: &Arc<dyn Clock>) -> Self {
        let serving = Certificates::self_signed(&["localhost"], &**clock).expect("a certificate");
        let options = RotatorOptions::new("system", "webhook-service");
        let rotator = Rotator::new(client, options, serving.clone(), clock.clone());
        let readiness = rotator.readiness();
        Self { serving, readiness, task: tokio::spawn(rotator.run()) }
    }

    async fn ready(&self) {
        eventually(LIMIT, async || self.readiness.check()).await.expect("ready");
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn cluster() -> (Client, Arc<dyn Clock>) {
    let server = ApiServer::new(Options { seed: Some(1), ..Options::default() });
    let clock = TokioClock::starting_at(START.parse().expect("a time"));
    (Client::new(kube::Client::new(server, "system")), Arc::new(clock))
}

fn configuration(kind: &str, name: &str) -> Value {
    let hook = |name: &str, service: &str| {
        json!({
            "name": name,
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": { "service": { "namespace": "system", "name": service, "path": "/x" } },
            "rules": [],
        })
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": { "name": name },
        "webhooks": [hook("a.example.com", "webhook-service"), hook("b.example.com", "other-service")],
    })
}

async fn install(client: &Client) {
    let namespace: k8s_openapi::api::core::v1::Namespace =
        serde_json::from_value(json!({ "metadata": { "name": "system" } })).expect("a Namespace");
    client.create(&namespace).await.expect("created");
    let mutating: MutatingWebhookConfiguration =
        serde_json::from_value(configuration("MutatingWebhookConfiguration", "m")).expect("a configuration");
    client.create(&mutating).await.expect("created");
    let validating: ValidatingWebhookConfiguration =
        serde_json::from_value(configuration("ValidatingWebhookConfiguration", "v"))
            .expect("a configuration");
    client.create(&validating).await.expect("created");
}

/// The bundles of the two webhooks of the validating configuration.
async fn bundles(client: &Client) -> [Option<ByteString>; 2] {
    let configuration =
        client.get::<ValidatingWebhookConfiguration>(&Key::cluster("v")).await.expect("it exists");
    let hooks = configuration.webhooks.clone().unwrap_or_default();
    [hooks[0].client_config.ca_bundle.clone(), hooks[1].client_config.ca_bundle.clone()]
}

async fn material(client: &Client) -> Material {
    let secret =
        client.get::<Secret>(&Key::namespaced("system", "webhook-service-cert")).await.expect("it exists");
    let data = secret.data.iter().flatten().map(|(key, value)| (key.clone(), value.0.clone())).collect();
    Material::from_data(&data).expect("ours").expect("certificates")
}

#[tokio::test(start_paused = true)]
async fn replicas_share_one_ca_and_one_leaf() {
    let (client, clock) = cluster();
    install(&client).await;
    let replicas: Vec<Replica> = (0..3).map(|_| Replica::start(&client, &clock)).collect();
    for replica in &replicas {
        replica.ready().await;
    }
    let served = replicas[0].serving.certificate();
    assert!(replicas.iter().all(|replica| replica.serving.certificate() == served));
    let [ours, other] = bundles(&client).await;
    let expected = ByteString(material(&client).await.bundle().into_bytes());
    assert_eq!(ours.as_ref(), Some(&expected));
    assert_eq!(other, None, "webhooks of other Services are not changed");

    // A replica that starts later adopts the existing certificates.
    let late = Replica::start(&client, &clock);
    late.ready().await;
    assert_eq!(late.serving.certificate(), served);
}

#[tokio::test(start_paused = true)]
async fn a_bundle_that_is_overwritten_is_injected_again() {
    let (client, clock) = cluster();
    install(&client).await;
    let replica = Replica::start(&client, &clock);
    replica.ready().await;
    let [expected, _] = bundles(&client).await;

    let configuration =
        client.get::<ValidatingWebhookConfiguration>(&Key::cluster("v")).await.expect("it exists");
    let remove = json!([{ "op": "remove", "path": "/webhooks/0/clientConfig/caBundle" }]);
    client.patch(&*configuration, &Patch::json(remove)).await.expect("patched");
    eventually(LIMIT, async || {
        let [found, _] = bundles(&client).await;
        if found == expected { Ok(()) } else { Err("not injected") }
    })
    .await
    .expect("injected again");
}

#[tokio::test(start_paused = true)]
async fn a_ca_is_replaced_while_replicas_serve_and_crash() {
    let (client, clock) = cluster();
    install(&client).await;
    let mut replicas: Vec<Replica> = (0..3).map(|_| Replica::start(&client, &clock)).collect();
    for replica in &replicas {
        replica.ready().await;
    }
    let first = material(&client).await;

    // Two thirds of ten years later, and one replica restarts.
    tokio::time::advance(Duration::from_hours(7 * 365 * 24)).await;
    replicas[0] = Replica::start(&client, &clock);
    eventually(LIMIT, async || {
        let now = material(&client).await;
        if now.ca == first.ca { Err("still the first CA") } else { Ok(()) }
    })
    .await
    .expect("a new CA");
    let second = material(&client).await;
    assert_eq!(second.previous.as_ref().map(|previous| &previous.certificate), Some(&first.ca.certificate));
    for replica in &replicas {
        replica.ready().await;
        let leaf = second.leaf.certificate.as_bytes();
        let expected = Certificates::from_pem(leaf, second.leaf.key.as_bytes()).expect("a pair");
        assert_eq!(replica.serving.certificate(), expected.certificate());
    }
    let [bundle, _] = bundles(&client).await;
    let bundle = String::from_utf8(bundle.expect("a bundle").0).expect("PEM");
    assert!(bundle.contains(&first.ca.certificate) && bundle.contains(&second.ca.certificate));
}

#[tokio::test(start_paused = true)]
async fn readiness_names_what_is_missing() {
    let (client, clock) = cluster();
    let replica = Replica::start(&client, &clock);
    let reason = async |part: &str| {
        eventually(LIMIT, async || match replica.readiness.check() {
            Err(reason) if reason.contains(part) => Ok(reason),
            other => Err(format!("{other:?}")),
        })
        .await
        .expect("a reason")
    };
    // The namespace does not exist, so the Secret cannot be created.
    reason("failed to write Secret system/webhook-service-cert").await;
    let namespace: k8s_openapi::api::core::v1::Namespace =
        serde_json::from_value(json!({ "metadata": { "name": "system" } })).expect("a Namespace");
    client.create(&namespace).await.expect("created");
    reason("no webhook configuration or CRD references Service system/webhook-service").await;
    let validating: ValidatingWebhookConfiguration =
        serde_json::from_value(configuration("ValidatingWebhookConfiguration", "v"))
            .expect("a configuration");
    client.create(&validating).await.expect("created");
    replica.ready().await;
}
