//! The connection of a manager to the API server. Requests take time, and a manager can die at a write: before it is
//! sent, or after it is persisted and before the response arrives.

use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use jiff::SignedDuration;
use kube::client::Body;
use kubewright_apiserver::ApiServer;
use kubewright_runtime::Clock as _;
use kubewright_runtime::webhook::certificates::Material;
use serde_json::Value;

use super::{MAX_LAG, Shared, TARGETS};

/// The longest time of a request, each way.
const MAX_LATENCY_MS: u64 = 400;

#[derive(Clone)]
pub(super) struct Wire {
    manager: usize,
    server: ApiServer,
    shared: Arc<Shared>,
}

/// What happens to a manager at a write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Lives,
    DiesBefore,
    DiesAfter,
}

impl Wire {
    pub(super) fn new(manager: usize, server: ApiServer, shared: Arc<Shared>) -> Self {
        Self { manager, server, shared }
    }

    async fn delay(&self) {
        let latency = self.shared.state().rng.u64(0..MAX_LATENCY_MS);
        tokio::time::sleep(Duration::from_millis(latency)).await;
    }

    async fn handle(&self, request: http::Request<Body>) -> http::Response<kubewright_apiserver::Body> {
        self.delay().await;
        if request.method() == Method::GET {
            let response = self.server.handle(request).await;
            self.delay().await;
            return response;
        }
        let (parts, body) = request.into_parts();
        let body = body.collect().await.expect("a body in memory").to_bytes();
        let step = self.step(parts.uri.path(), &body).await;
        let fate = self.fate();
        if fate == Fate::DiesBefore {
            return self.die(step, false).await;
        }
        let path = parts.uri.path().to_owned();
        let response = self.server.handle(http::Request::from_parts(parts, Body::from(body.to_vec()))).await;
        self.written(step, &path, response.status().as_u16()).await;
        if fate == Fate::DiesAfter && response.status().is_success() {
            return self.die(step, true).await;
        }
        self.delay().await;
        response
    }

    /// One manager of three dies at two of three writes, unless no other one is ready.
    fn fate(&self) -> Fate {
        let mut state = self.shared.state();
        let others = state.ready().into_iter().filter(|index| *index != self.manager).count();
        match state.rng.u8(0..3) {
            0 if others > 0 => Fate::DiesBefore,
            1 if others > 0 => Fate::DiesAfter,
            _ => Fate::Lives,
        }
    }

    async fn die<T>(&self, step: &'static str, persisted: bool) -> T {
        {
            let mut state = self.shared.state();
            *state.kills.entry((step, persisted)).or_default() += 1;
            let when = if persisted { "after" } else { "before" };
            let now = self.shared.clock.now();
            state.trace.push(now, &format!("{} dies {when} {step}", self.manager));
            // It serves nothing from now on.
            state.managers[self.manager] = None;
        }
        self.shared.kills.send(self.manager).expect("the simulation runs");
        pending().await
    }

    /// Records a write to which the server responded.
    async fn written(&self, step: &'static str, path: &str, status: u16) {
        let target = TARGETS.into_iter().find(|target| path.ends_with(target));
        let bundle = match target {
            Some(_) => bundle_of(&self.read(path).await),
            None => String::new(),
        };
        let now = self.shared.clock.now();
        let mut state = self.shared.state();
        state.trace.push(now, &format!("{} {step} {status}", self.manager));
        if status >= 300 {
            return;
        }
        *state.steps.entry(step).or_default() += 1;
        if let Some(target) = target {
            let history = state.bundles.entry(target).or_default();
            history.push((now, bundle));
            // Only what an API server may still see, and the last one before that.
            let oldest = now.saturating_sub(MAX_LAG + SignedDuration::from_secs(60)).expect("a time");
            let first = history.iter().rposition(|(at, _)| *at <= oldest).unwrap_or_default();
            history.drain(..first);
        }
        drop(state);
        self.shared.stepped.notify_one();
    }

    /// The step that a write performs.
    async fn step(&self, path: &str, body: &Bytes) -> &'static str {
        if !path.contains("/secrets") {
            return "inject";
        }
        let after = material(&serde_json::from_slice(body).expect("a Secret"));
        let name = "/api/v1/namespaces/system/secrets/webhook-service-cert";
        let Some(before) = material(&self.read(name).await) else { return "create" };
        let Some(after) = after else { return "create" };
        match (&before, &after) {
            (before, after) if before.next.is_none() && after.next.is_some() => "announce",
            (before, after) if before.next.is_some() && after.next.is_none() => "switch",
            (before, after) if before.previous.is_some() && after.previous.is_none() => "retire",
            _ => "renew",
        }
    }

    async fn read(&self, path: &str) -> Value {
        let request = http::Request::get(path).body(Body::empty()).expect("a path is a request");
        let body = self.server.handle(request).await.into_body().collect().await.expect("a body");
        serde_json::from_slice(&body.to_bytes()).expect("JSON")
    }
}

impl tower_service::Service<http::Request<Body>> for Wire {
    type Response = http::Response<kubewright_apiserver::Body>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let wire = self.clone();
        Box::pin(async move { Ok(wire.handle(request).await) })
    }
}

fn decoded(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap_or_default();
    base64::engine::general_purpose::STANDARD.decode(text).expect("base64")
}

fn material(secret: &Value) -> Option<Material> {
    let data = secret["data"].as_object()?;
    let data = data.iter().map(|(key, value)| (key.clone(), decoded(value))).collect();
    Material::from_data(&data).expect("certificates")
}

fn bundle_of(target: &Value) -> String {
    let config = match target["kind"].as_str() {
        Some("APIService") => &target["spec"],
        Some("CustomResourceDefinition") => &target["spec"]["conversion"]["webhook"]["clientConfig"],
        _ => &target["webhooks"][0]["clientConfig"],
    };
    let bundle = decoded(&config["caBundle"]);
    String::from_utf8(bundle).expect("PEM")
}
