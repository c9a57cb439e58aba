//! Rotations of the CA under load, in a simulation on the paused clock: three managers that share the certificates, slow
//! requests, API servers that see changes late, and a manager that is killed at the steps that it persists.
//!
//! The API server is the embedded one. Its webhook is called through a TLS handshake in memory, with the bundle that an
//! API server sees and the certificate that a ready manager serves. A refused handshake denies the write, and a denied
//! write fails the test.
//!
//! `KUBEWRIGHT_ROTATIONS` is the number of rotations, and `cargo xtask soak --rotations 10000` the long run.

mod handshake;
mod manager;
mod trace;
mod wire;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, PostParams};
use kubewright_apiserver::{ApiServer, Options, WebhookAddress};
use kubewright_runtime::webhook::certificates::Lifetimes;
use kubewright_runtime::{Client, Clock, Key, TokioClock};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use crate::seeds;
use handshake::Handshakes;
use manager::Manager;
use trace::Trace;

const START: &str = "2026-01-01T00:00:00Z";
const MANAGERS: usize = 3;
/// The targets of the CA: both webhook configurations, a CRD with a conversion webhook, and an APIService.
const TARGETS: [&str; 4] = [
    "mutatingwebhookconfigurations/m",
    "validatingwebhookconfigurations/v",
    "customresourcedefinitions/orders.example.com",
    "apiservices/v1.prices.example.com",
];
/// How late an API server sees a change at most. The rotation allows for 60 s.
const MAX_LAG: SignedDuration = SignedDuration::from_secs(55);
/// Short lifetimes, so that a rotation takes 80 minutes of simulated time: the managers read the targets every 5 minutes,
/// and idle reads prove nothing. The previous CA is retired before the next one is announced, and the leaf is renewed in
/// between, as with the default lifetimes.
const LIFETIMES: Lifetimes =
    Lifetimes { ca: SignedDuration::from_mins(150), leaf: SignedDuration::from_mins(60) };
/// Longer than every delay of a rotation.
const LIMIT: SignedDuration = SignedDuration::from_hours(24);

/// What all tasks of the simulation share.
struct Shared {
    clock: Arc<TokioClock>,
    state: Mutex<State>,
    /// Managers to kill.
    kills: mpsc::UnboundedSender<usize>,
    /// A step was persisted.
    stepped: Notify,
}

struct State {
    rng: fastrand::Rng,
    trace: Trace,
    /// The bundles of each target, with the time of the write.
    bundles: BTreeMap<&'static str, Vec<(Timestamp, String)>>,
    managers: Vec<Option<manager::Served>>,
    /// The number of kills, by step and by whether the step was persisted.
    kills: BTreeMap<(&'static str, bool), u64>,
    steps: BTreeMap<&'static str, u64>,
    handshakes: Handshakes,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic")
    }
}

impl State {
    fn ready(&self) -> Vec<usize> {
        let is_ready = |&index: &usize| self.managers[index].as_ref().is_some_and(manager::Served::is_ready);
        (0..MANAGERS).filter(is_ready).collect()
    }

    /// The bundle of a target as an API server sees it with this lag.
    fn bundle(&self, target: &str, at: Timestamp) -> String {
        let written = self.bundles.get(target).into_iter().flatten();
        written.rev().find(|(since, _)| *since <= at).map(|(_, bundle)| bundle.clone()).unwrap_or_default()
    }

    /// Whether this bundle and this manager's certificate did not shake hands recently.
    fn is_due(&self, manager: usize, target: &str, now: Timestamp, lag: SignedDuration) -> bool {
        let bundle = self.bundle(target, now.saturating_sub(lag).expect("a time"));
        let served = self.managers[manager].as_ref();
        served.is_some_and(|served| self.handshakes.is_due(&bundle, &served.certificates(), now))
    }

    /// Performs a TLS handshake with a manager, with the bundle of an API server that is behind.
    fn connect(
        &mut self,
        manager: usize,
        target: &str,
        now: Timestamp,
        lag: SignedDuration,
    ) -> Result<(), String> {
        let bundle = self.bundle(target, now.saturating_sub(lag).expect("a time"));
        let Some(served) = &self.managers[manager] else { return Err("the manager does not run".to_owned()) };
        let result = self.handshakes.connect(&bundle, &served.certificates(), now);
        result.map_err(|error| format!("manager {manager}, {target}, lag {lag:#}: {error}"))
    }
}

/// The result of a run.
struct Report {
    trace: Trace,
    kills: BTreeMap<(&'static str, bool), u64>,
    steps: BTreeMap<&'static str, u64>,
    handshakes: u64,
    writes: u64,
}

/// Runs until the CA was replaced this often.
async fn simulate(seed: u64, rotations: u64) -> Report {
    let start: Timestamp = START.parse().expect("a time");
    let clock = Arc::new(TokioClock::starting_at(start));
    let (kills, mut to_kill) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared {
        clock: clock.clone(),
        state: Mutex::new(State {
            rng: fastrand::Rng::with_seed(seed),
            trace: Trace::default(),
            bundles: BTreeMap::new(),
            managers: (0..MANAGERS).map(|_| None).collect(),
            kills: BTreeMap::new(),
            steps: BTreeMap::new(),
            handshakes: Handshakes::default(),
        }),
        kills,
        stepped: Notify::new(),
    });
    let server = ApiServer::new(Options {
        clock: Arc::new(kubewright_apiserver::clock::TokioClock::starting_at(start.as_microsecond())),
        seed: Some(seed),
        ..Options::default()
    });
    let client = Client::new(kube::Client::new(server.clone(), "default"));
    install(&client).await;
    install_orders(&server).await;
    install_prices(&client).await;
    let address =
        WebhookAddress::Service { namespace: "system".to_owned(), name: "webhook-service".to_owned() };
    server.add_webhook_handler(address, Webhook(shared.clone()));

    let mut managers: Vec<Option<Manager>> =
        (0..MANAGERS).map(|index| Some(Manager::start(index, &server, &shared))).collect();
    let mut restarts: Vec<Option<Instant>> = vec![None; MANAGERS];
    let mut writes = 0;
    let created = client.get::<ConfigMap>(&Key::namespaced("default", "load")).await.expect("created");
    let mut map = (*created).clone();
    let orders = orders(&server);
    // When every API server has seen the first bundle. Before that, the webhooks fail closed.
    let load_from = Instant::now() + Duration::from_mins(5);
    let mut next_write = load_from;
    let mut quiet_from = Instant::now();
    let mut last_rotation = (0, clock.now());
    loop {
        let restart = restarts.iter().flatten().min().copied();
        tokio::select! {
            biased;
            Some(index) = to_kill.recv() => {
                managers[index] = None;
                let mut state = shared.state();
                state.managers[index] = None;
                let pause = Duration::from_millis(state.rng.u64(100..90_000));
                restarts[index] = Some(Instant::now() + pause);
            }
            () = shared.stepped.notified(), if Instant::now() >= load_from => {
                let mut state = shared.state();
                all_connect(&mut state, clock.now());
                // Dense load around a step.
                let pause = Duration::from_millis(state.rng.u64(0..5_000));
                next_write = next_write.min(Instant::now() + pause);
                quiet_from = Instant::now() + Duration::from_mins(2);
            }
            () = tokio::time::sleep_until(restart.unwrap_or(next_write)), if restart.is_some_and(|at| at <= next_write) => {
                for (index, at) in restarts.iter_mut().enumerate() {
                    if at.is_some_and(|at| at <= Instant::now()) {
                        *at = None;
                        managers[index] = Some(Manager::start(index, &server, &shared));
                    }
                }
            }
            () = tokio::time::sleep_until(next_write) => {
                let mut new = map.clone();
                writes += 1;
                new.data.get_or_insert_default().insert("writes".to_owned(), writes.to_string());
                map = client.update(&new).await.unwrap_or_else(|error| {
                    panic!("seed {seed}: write {writes} was lost: {error}\n{}", shared.state().trace)
                });
                // The Order is stored as v1, so this read is converted.
                orders.get("load").await.unwrap_or_else(|error| {
                    panic!("seed {seed}: read {writes} was not converted: {error}\n{}", shared.state().trace)
                });
                let mut state = shared.state();
                all_connect(&mut state, clock.now());
                let pause = if Instant::now() < quiet_from {
                    Duration::from_millis(state.rng.u64(200..20_000))
                } else {
                    Duration::from_secs(state.rng.u64(60..1200))
                };
                next_write = Instant::now() + pause;
            }
        }
        let (done, now) = (shared.state().steps.get("switch").copied().unwrap_or_default(), clock.now());
        if done >= rotations {
            break;
        }
        if done > last_rotation.0 {
            last_rotation = (done, now);
        }
        let stuck = now.duration_since(last_rotation.1) > LIMIT;
        assert!(!stuck, "seed {seed}: no rotation for {LIMIT:#}\n{}", shared.state().trace);
    }
    drop(managers);
    let stored = client.get::<ConfigMap>(&Key::namespaced("default", "load")).await.expect("it exists");
    let stored = stored.data.as_ref().and_then(|data| data.get("writes").cloned());
    assert_eq!(stored, (writes > 0).then(|| writes.to_string()), "seed {seed}");
    let mut state = shared.state();
    Report {
        trace: std::mem::take(&mut state.trace),
        kills: std::mem::take(&mut state.kills),
        steps: std::mem::take(&mut state.steps),
        handshakes: state.handshakes.count,
        writes,
    }
}

/// Every ready manager is trusted by every target, whatever the lag.
fn all_connect(state: &mut State, now: Timestamp) {
    for manager in state.ready() {
        for (target, lag) in
            TARGETS.iter().flat_map(|target| [(target, SignedDuration::ZERO), (target, MAX_LAG)])
        {
            if state.is_due(manager, target, now, lag) {
                let result = state.connect(manager, target, now, lag);
                assert!(result.is_ok(), "{now}: {}\n{}", result.unwrap_err(), state.trace);
            }
        }
    }
}

/// The Orders of a server, in the version that is not stored.
fn orders(server: &ApiServer) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v2", "Order"));
    Api::namespaced_with(kube::Client::new(server.clone(), "default"), "default", &kind)
}

/// Installs the CRD and an Order. The webhook is not called until an Order is read as v2.
async fn install_orders(server: &ApiServer) {
    let version = |name: &str| {
        json!({
            "name": name, "served": true, "storage": name == "v1",
            "schema": { "openAPIV3Schema": { "type": "object" } },
        })
    };
    let service = json!({ "namespace": "system", "name": "webhook-service", "path": "/convert" });
    let crd: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": { "name": "orders.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "kind": "Order", "plural": "orders" },
            "versions": [version("v1"), version("v2")],
            "conversion": {
                "strategy": "Webhook",
                "webhook": { "clientConfig": { "service": service }, "conversionReviewVersions": ["v1"] },
            },
        },
    }))
    .expect("a CRD");
    let client = kube::Client::new(server.clone(), "default");
    Api::all(client.clone()).create(&PostParams::default(), &crd).await.expect("created");
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Order"));
    let order = DynamicObject::new("load", &kind);
    let stored: Api<DynamicObject> = Api::namespaced_with(client, "default", &kind);
    stored.create(&PostParams::default(), &order).await.expect("created");
}

/// Installs an APIService. The API server does not forward requests, so only [`all_connect`] uses its bundle.
async fn install_prices(client: &Client) {
    let prices: APIService = serde_json::from_value(json!({
        "metadata": { "name": "v1.prices.example.com" },
        "spec": {
            "group": "prices.example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 100,
            "service": { "namespace": "system", "name": "webhook-service" },
        },
    }))
    .expect("an APIService");
    client.create(&prices).await.expect("created");
}

async fn install(client: &Client) {
    let namespace: Namespace =
        serde_json::from_value(json!({ "metadata": { "name": "system" } })).expect("a Namespace");
    client.create(&namespace).await.expect("created");
    // Before the webhooks, which nothing serves yet.
    let map: ConfigMap =
        serde_json::from_value(json!({ "metadata": { "name": "load", "namespace": "default" } }))
            .expect("a ConfigMap");
    client.create(&map).await.expect("created");
    let configuration = |kind: &str, name: &str| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": { "name": name },
            "webhooks": [{
                "name": "a.example.com",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "clientConfig": {
                    "service": { "namespace": "system", "name": "webhook-service", "path": format!("/{name}") },
                },
                "rules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["configmaps"],
                }],
            }],
        })
    };
    let mutating: MutatingWebhookConfiguration =
        serde_json::from_value(configuration("MutatingWebhookConfiguration", "m")).expect("a configuration");
    client.create(&mutating).await.expect("created");
    let validating: ValidatingWebhookConfiguration =
        serde_json::from_value(configuration("ValidatingWebhookConfiguration", "v"))
            .expect("a configuration");
    client.create(&validating).await.expect("created");
}

/// The webhook as the API server calls it: a handshake with a ready manager, then a response.
#[derive(Clone)]
struct Webhook(Arc<Shared>);

impl Webhook {
    fn answer(&self, path: &str, review: &Value) -> Result<Value, String> {
        let now = self.0.clock.now();
        let mut state = self.0.state();
        let ready = state.ready();
        let Some(&manager) = ready.get(state.rng.usize(0..ready.len().max(1))) else {
            return Err("no manager is ready".to_owned());
        };
        let lag = SignedDuration::from_millis(
            state.rng.i64(0..=i64::try_from(MAX_LAG.as_millis()).expect("short")),
        );
        let target = match path {
            "/m" => TARGETS[0],
            "/v" => TARGETS[1],
            _ => TARGETS[2],
        };
        state.connect(manager, target, now, lag)?;
        if path == "/convert" {
            return Ok(converted(review));
        }
        Ok(json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "response": { "uid": review["request"]["uid"], "allowed": true },
        }))
    }
}

/// The response to a ConversionReview: the same objects in the desired version.
fn converted(review: &Value) -> Value {
    let request = &review["request"];
    let mut objects = request["objects"].clone();
    for object in objects.as_array_mut().into_iter().flatten() {
        object["apiVersion"] = request["desiredAPIVersion"].clone();
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "response": { "uid": request["uid"], "convertedObjects": objects, "result": { "status": "Success" } },
    })
}

impl tower_service::Service<http::Request<Full<Bytes>>> for Webhook {
    type Response = http::Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Full<Bytes>>) -> Self::Future {
        let webhook = self.clone();
        Box::pin(async move {
            let path = request.uri().path().to_owned();
            let body = request.into_body().collect().await?.to_bytes();
            let review: Value = serde_json::from_slice(&body).unwrap_or_default();
            Ok(match webhook.answer(&path, &review) {
                Ok(answer) => http::Response::new(Full::new(Bytes::from(answer.to_string()))),
                Err(error) => {
                    let mut response = http::Response::new(Full::new(Bytes::from(error)));
                    *response.status_mut() = http::StatusCode::BAD_GATEWAY;
                    response
                }
            })
        })
    }
}

#[tokio::test(start_paused = true)]
async fn no_handshake_is_refused_and_no_write_is_lost() {
    for seed in seeds::seeds(1) {
        let rotations = seeds::rotations(4);
        let Report { kills, steps, handshakes, writes, .. } = simulate(seed, rotations).await;
        println!("seed {seed}: {steps:?}, kills {kills:?}, {handshakes} handshakes, {writes} writes");
        if rotations >= 25 {
            for step in ["renew", "announce", "inject", "switch", "retire"] {
                for persisted in [false, true] {
                    let count = kills.get(&(step, persisted)).copied().unwrap_or_default();
                    assert!(count > 0, "seed {seed}: no kill at {step}, persisted: {persisted}: {kills:?}");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_trace() {
    for seed in seeds::seeds(1) {
        let (first, second) = (simulate(seed, 1).await, simulate(seed, 1).await);
        first.trace.is_same(&second.trace, seed);
        assert_eq!((first.handshakes, first.writes), (second.handshakes, second.writes), "seed {seed}");
    }
}
