//! Certificates shared by several replicas, on the embedded API server.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::api::events::v1::Event;
use kubewright_apiserver::{ApiServer, Options};
use kubewright_runtime::events::Broadcaster;
use kubewright_runtime::internal::certificates::{
    ExpectedTargets, Material, Readiness, Rotator, RotatorMetrics, RotatorOptions,
};
use kubewright_runtime::internal::certs::Certificates;
use kubewright_runtime::{Client, Clock, Key, ListOptions, Patch, TokioClock, eventually};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::world::{Effect, RecordedRequest, World};

pub(super) const START: &str = "2026-01-01T00:00:00Z";
/// Longer than every delay of a rotation.
pub(super) const LIMIT: Duration = Duration::from_mins(10);

/// A replica of the operator.
pub(super) struct Replica {
    serving: Certificates,
    readiness: Readiness,
    task: JoinHandle<()>,
}

impl Replica {
    pub(super) fn start(client: &Client, clock: &Arc<dyn Clock>) -> Self {
        Self::start_with(client, clock, options())
    }

    pub(super) fn start_with(client: &Client, clock: &Arc<dyn Clock>, options: RotatorOptions) -> Self {
        let serving = Certificates::self_signed(&["localhost"], &**clock).expect("a certificate");
        let rotator = Rotator::new(client, options, serving.clone(), clock.clone());
        let readiness = rotator.readiness();
        Self { serving, readiness, task: tokio::spawn(rotator.run()) }
    }

    pub(super) fn readiness(&self) -> Result<(), String> {
        self.readiness.check()
    }

    pub(super) async fn ready(&self) {
        eventually(LIMIT, async || self.readiness.check()).await.expect("ready");
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The options of an operator with a mutating and a validating webhook.
fn options() -> RotatorOptions {
    let targets = ExpectedTargets {
        mutating: vec!["/x".to_owned()],
        validating: vec!["/x".to_owned()],
        ..ExpectedTargets::default()
    };
    RotatorOptions::new("system", "webhook-service", targets)
}

pub(super) fn cluster() -> (Client, Arc<dyn Clock>) {
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

pub(super) async fn install(client: &Client) {
    let namespace: Namespace =
        serde_json::from_value(json!({ "metadata": { "name": "system" } })).expect("a Namespace");
    client.create(&namespace).await.expect("created");
    install_mutating(client).await;
    install_validating(client).await;
}

async fn install_mutating(client: &Client) {
    let mutating: MutatingWebhookConfiguration =
        serde_json::from_value(configuration("MutatingWebhookConfiguration", "m")).expect("a configuration");
    client.create(&mutating).await.expect("created");
}

async fn install_validating(client: &Client) {
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

pub(super) async fn material(client: &Client) -> Material {
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
    let namespace: Namespace =
        serde_json::from_value(json!({ "metadata": { "name": "system" } })).expect("a Namespace");
    client.create(&namespace).await.expect("created");
    let missing = reason("not found for Service system/webhook-service").await;
    assert!(missing.starts_with("a MutatingWebhookConfiguration with path /x, a Valid"), "{missing}");
    // One of two configurations is not enough.
    install_validating(&client).await;
    let missing = reason("a MutatingWebhookConfiguration with path /x not found").await;
    assert!(!missing.contains("Validating"), "{missing}");
    install_mutating(&client).await;
    replica.ready().await;
}

#[tokio::test(start_paused = true)]
async fn a_ready_replica_stays_ready_when_a_target_is_deleted() {
    let (client, clock) = cluster();
    install(&client).await;
    let replica = Replica::start(&client, &clock);
    replica.ready().await;
    let mutating = client.get::<MutatingWebhookConfiguration>(&Key::cluster("m")).await.expect("it exists");
    client.delete(&*mutating).await.expect("deleted");
    // Several rechecks.
    tokio::time::sleep(LIMIT).await;
    assert_eq!(replica.readiness.check(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_ready_replica_stays_ready_when_it_loses_its_permissions() {
    let world = World::new();
    install(&Client::new(world.direct.clone())).await;
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(START.parse().expect("a time")));
    let replica = Replica::start(&world.client(), &clock);
    replica.ready().await;
    world.faults.forget();
    let is_read = |request: &RecordedRequest| request.path.contains("webhookconfigurations");
    world.faults.every(Effect::Status(403, "Forbidden"), is_read);
    tokio::time::sleep(LIMIT).await;
    assert!(world.faults.count(is_read) > 0, "the targets are read");
    assert_eq!(replica.readiness.check(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_missing_conversion_is_named() {
    let (client, clock) = cluster();
    install(&client).await;
    let mut options = options();
    options.targets.crds.push("orders.example.com".to_owned());
    let replica = Replica::start_with(&client, &clock, options);
    eventually(LIMIT, async || match replica.readiness.check() {
        Err(reason) if reason.contains("the conversion of CustomResourceDefinition orders.example.com") => {
            Ok(())
        }
        other => Err(format!("{other:?}")),
    })
    .await
    .expect("a reason");
}

#[tokio::test(start_paused = true)]
async fn an_added_dns_name_reissues_the_leaf_with_the_same_ca() {
    let (client, clock) = cluster();
    install(&client).await;
    let first = Replica::start(&client, &clock);
    first.ready().await;
    let before = material(&client).await;
    let changed = RotatorOptions {
        extra_names: vec!["hooks.example.com".to_owned()],
        cluster_domain: "corp.local".to_owned(),
        ..options()
    };
    let second = Replica::start_with(&client, &clock, changed);
    second.ready().await;
    let has_names = |names: &[String]| {
        let wanted = ["hooks.example.com", "webhook-service.system.svc.corp.local"];
        wanted.iter().all(|name| names.iter().any(|known| known == name))
    };
    eventually(LIMIT, async || {
        if has_names(&material(&client).await.leaf.names) { Ok(()) } else { Err("the names are missing") }
    })
    .await
    .expect("reissued");
    let after = material(&client).await;
    assert_eq!(after.ca, before.ca);
    // The first replica wants other names. It adopts the leaf, which has them all.
    tokio::time::sleep(LIMIT).await;
    assert_eq!(material(&client).await, after);
    let leaf = Certificates::from_pem(after.leaf.certificate.as_bytes(), after.leaf.key.as_bytes());
    assert_eq!(first.serving.certificate(), leaf.expect("a pair").certificate());
}

/// A certificate of cert-manager's self-signed issuer, valid until this year.
fn foreign(year: i32) -> String {
    let mut params =
        rcgen::CertificateParams::new(vec!["webhook-service.system.svc".to_owned()]).expect("a DNS name");
    params.distinguished_name.push(rcgen::DnType::CommonName, format!("foreign {year}"));
    params.not_before = rcgen::date_time_ymd(2025, 1, 1);
    params.not_after = rcgen::date_time_ymd(year, 1, 1);
    params.self_signed(&rcgen::KeyPair::generate().expect("a key")).expect("a certificate").pem()
}

/// Replaces the bundle of the validating configuration, as the CA injector of cert-manager does.
async fn overwrite(client: &Client, bundle: &str) {
    let configuration =
        client.get::<ValidatingWebhookConfiguration>(&Key::cluster("v")).await.expect("it exists");
    let bundle = serde_json::to_value(ByteString(bundle.as_bytes().to_vec())).expect("bytes");
    let path = "/webhooks/0/clientConfig/caBundle";
    let replace = json!([{ "op": "add", "path": path, "value": bundle }]);
    client.patch(&*configuration, &Patch::json(replace)).await.expect("patched");
}

async fn bundle(client: &Client) -> String {
    let [bundle, _] = bundles(client).await;
    String::from_utf8(bundle.unwrap_or_default().0).expect("PEM")
}

#[tokio::test(start_paused = true)]
async fn a_switch_to_cert_manager_keeps_both_modes_trusted() {
    let (client, clock) = cluster();
    install(&client).await;
    let replica = Replica::start(&client, &clock);
    replica.ready().await;
    let own = material(&client).await.bundle();
    let [valid, expired] = [foreign(2030), foreign(2026)];

    // cert-manager replaces the bundle while replicas of the old mode serve. An injector that does not merge does so
    // again after every injection.
    for _ in 0..5 {
        overwrite(&client, &format!("{valid}{expired}")).await;
        eventually(LIMIT, async || {
            let found = bundle(&client).await;
            if found.contains(&own) { Ok(()) } else { Err("not injected") }
        })
        .await
        .expect("injected");
        let found = bundle(&client).await;
        assert!(found.contains(valid.trim()), "the other mode is no longer trusted");
        assert!(!found.contains(expired.trim()), "an expired certificate is kept");
    }
    // The injector merges, in another order and with other line breaks: nothing to do.
    let merged = format!("{valid}\r\n{own}");
    overwrite(&client, &merged).await;
    tokio::time::sleep(LIMIT).await;
    assert_eq!(bundle(&client).await, merged);
    assert_eq!(replica.readiness.check(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_bundle_keeps_four_foreign_certificates_and_no_leaf() {
    let (client, clock) = cluster();
    install(&client).await;
    let replica = Replica::start(&client, &clock);
    replica.ready().await;
    let known = material(&client).await;
    let many: Vec<String> = (2030..2036).map(foreign).collect();
    // A leaf is signed by another certificate.
    overwrite(&client, &format!("{}{}", many.concat(), known.leaf.certificate)).await;
    eventually(LIMIT, async || {
        if bundle(&client).await.contains(&known.bundle()) { Ok(()) } else { Err("not injected") }
    })
    .await
    .expect("injected");
    let found = bundle(&client).await;
    let kept: Vec<bool> = many.iter().map(|it| found.contains(it.trim())).collect();
    assert_eq!(kept, [false, false, true, true, true, true]);
    assert!(!found.contains(known.leaf.certificate.trim()));
}

#[tokio::test(start_paused = true)]
async fn a_refused_injection_is_a_metric_an_event_and_a_readiness_reason() {
    let world = World::new();
    let direct = Client::new(world.direct.clone());
    install(&direct).await;
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(START.parse().expect("a time")));
    let is_injection = |request: &RecordedRequest| {
        request.method == http::Method::PATCH && request.path.contains("webhookconfigurations")
    };
    world.faults.next(3, Effect::Status(403, "Forbidden"), is_injection);

    let broadcaster = Broadcaster::new("host-1", clock.clone(), fastrand::Rng::with_seed(1));
    let recorder = broadcaster.recorder("guard");
    let recording = tokio::spawn(broadcaster.run(world.direct.clone(), std::future::pending()));
    let mut registry = Registry::default();
    let serving = Certificates::self_signed(&["localhost"], &*clock).expect("a certificate");
    let rotator = Rotator::new(&world.client(), options(), serving, clock)
        .with_metrics(RotatorMetrics::register(&mut registry))
        .with_recorder(recorder);
    let readiness = rotator.readiness();
    let rotating = tokio::spawn(rotator.run());

    eventually(LIMIT, async || match readiness.check() {
        Err(reason) if reason.starts_with("failed to inject the CA into MutatingWebhookConfiguration m") => {
            Ok(())
        }
        other => Err(format!("{other:?}")),
    })
    .await
    .expect("a reason");
    // It is retried, and succeeds in the end.
    eventually(LIMIT, async || readiness.check()).await.expect("ready");
    let mut metrics = String::new();
    prometheus_client::encoding::text::encode(&mut metrics, &registry).expect("text");
    assert!(metrics.contains("kubewright_webhook_certificate_errors_total 3\n"), "{metrics}");
    eventually(LIMIT, async || {
        let events = direct.list::<Event>(&ListOptions::namespace("system")).await.expect("listed");
        let failed = events.iter().find(|event| event.reason.as_deref() == Some("WebhookCertificateFailed"));
        failed.map(|event| event.note.clone().unwrap_or_default()).ok_or("no event")
    })
    .await
    .map(|note| assert!(note.contains("failed to inject the CA"), "{note}"))
    .expect("an event");
    rotating.abort();
    recording.abort();
}
