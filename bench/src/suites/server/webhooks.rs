//! Webhooks of the server: writes through them and past them, writes beside one that hangs, and lists with conversion.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_apiserver::{ApiServer, Options, WebhookAddress};
use kubewright_bench_work::widget;
use kubewright_runtime::internal::certs::Certificates;
use kubewright_runtime::internal::serve::{BindAddress, Handler, Server};
use kubewright_runtime::webhook::certificates::Material;
use kubewright_runtime::webhook::{
    AdmissionHandler, AdmissionRequest, AdmissionResponse, Rejection, Validation, Validator, Webhooks,
};
use kubewright_runtime::{Clock as _, SystemClock};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::endpoint::Endpoint;
use super::objects::{self, Kind};
use super::traffic::{self, Verb};
use super::{OBJECTS, REPEATS};
use crate::row::{Rows, Unit};
use crate::samples::Samples;
use crate::suites::webhooks::conversion;

/// The sizes of the measurements.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// Writes of a measurement.
    writes: usize,
    /// Writes that wait for a webhook while others are measured.
    hanging: usize,
    /// Objects of a list.
    objects: usize,
}

pub(super) const SIZES: Sizes = Sizes { writes: 2_000, hanging: 100, objects: OBJECTS };

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const WIDGETS: &str = "namespaces/default/widgets";

/// Accepts every ConfigMap with data.
struct HasData;

impl Validator for HasData {
    type Object = ConfigMap;

    async fn validate_create(&self, map: &ConfigMap, v: &mut Validation<'_>) -> Result<(), Rejection> {
        if map.data.as_ref().is_none_or(std::collections::BTreeMap::is_empty) {
            v.required("data", "an empty ConfigMap has no use");
        }
        Ok(())
    }
}

/// Never responds.
struct Hangs(Arc<AtomicUsize>);

impl AdmissionHandler for Hangs {
    async fn handle(&self, _: &AdmissionRequest) -> AdmissionResponse {
        self.0.fetch_add(1, Ordering::Relaxed);
        pending().await
    }
}

pub(super) fn measure(runtime: &Runtime, threads: &Runtime, sizes: Sizes, rows: &mut Rows) -> Result<()> {
    runtime.block_on(in_process(sizes, rows))?;
    over_tls(runtime, threads, sizes, rows)?;
    threads.block_on(beside_a_hanging_webhook(sizes, rows))?;
    runtime.block_on(with_conversion(sizes, rows))?;
    runtime.block_on(in_protobuf(sizes, rows))
}

async fn in_process(sizes: Sizes, rows: &mut Rows) -> Result<()> {
    let none = creates(&Endpoint::InProcess(ApiServer::new(Options::default())), sizes).await?;
    let endpoint = Endpoint::InProcess(ApiServer::new(Options::default()));
    for number in 0..10 {
        let other = json!({"service": {"namespace": "default", "name": "none"}});
        configure(&endpoint, &format!("other-{number}"), &other, "secrets").await?;
    }
    let past = creates(&endpoint, sizes).await?;
    let name = "create past 10 configurations that do not match, in-process";
    let row = rows.sample_beside(name, Unit::Micros, past, ("no configurations", none));
    // At most 10 % more.
    row.target = row.theirs().map(|none| none * 1.1);

    let server = ApiServer::new(Options::default());
    let address = WebhookAddress::Service { namespace: "default".to_owned(), name: "hook".to_owned() };
    server.add_webhook_handler(address, webhooks()?);
    let endpoint = Endpoint::InProcess(server);
    let hook = json!({"service": {"namespace": "default", "name": "hook", "path": "/"}});
    configure(&endpoint, "hook", &hook, "configmaps").await?;
    rows.sample("create through one webhook, in-process", Unit::Micros, creates(&endpoint, sizes).await?);
    Ok(())
}

fn webhooks() -> Result<Webhooks> {
    let webhooks = Webhooks::new();
    webhooks.validator("/", HasData)?;
    Ok(webhooks)
}

/// The webhook runs on other threads, as another process would. Wall time, because the write waits for it.
fn over_tls(runtime: &Runtime, threads: &Runtime, sizes: Sizes, rows: &mut Rows) -> Result<()> {
    let webhooks = webhooks()?;
    let client = threads.block_on(serve(webhooks))?;
    runtime.block_on(async {
        let endpoint = Endpoint::InProcess(ApiServer::new(Options::default()));
        configure(&endpoint, "hook", &client, "configmaps").await?;
        let calls = traffic::calls(&endpoint, Kind::ConfigMap, Verb::Create, sizes.writes);
        let started = Instant::now();
        for call in calls {
            endpoint.call(call).await?;
        }
        let seconds = started.elapsed().as_secs_f64() / count(sizes.writes);
        rows.sample("create through one webhook, TLS", Unit::Micros, seconds);
        Ok(())
    })
}

/// Serves webhooks on this machine. Returns a `clientConfig`.
async fn serve(webhooks: Webhooks) -> Result<Value> {
    let material = Material::create(&["127.0.0.1".to_owned()], SystemClock.now())?;
    let leaf = &material.leaf;
    let certificates = Certificates::from_pem(leaf.certificate.as_bytes(), leaf.key.as_bytes())?;
    let address: BindAddress = "127.0.0.1:0".parse()?;
    let server = Server::bind(&address, "address").await?.context("the webhook server is disabled")?;
    let server = server.with_tls(certificates);
    let url = format!("https://{}/", server.address());
    let handler = Handler::new(move |request| {
        let webhooks = webhooks.clone();
        async move { webhooks.handle(request).await }
    });
    // Ends with the runtime.
    tokio::spawn(server.run(handler, pending()));
    Ok(json!({"url": url, "caBundle": STANDARD.encode(material.bundle())}))
}

async fn beside_a_hanging_webhook(sizes: Sizes, rows: &mut Rows) -> Result<()> {
    let server = ApiServer::new(Options::default());
    let endpoint = Endpoint::InProcess(server.clone());
    let calm = latencies(&endpoint, "calm", sizes).await?;
    let waiting = Arc::<AtomicUsize>::default();
    let webhooks = Webhooks::new();
    webhooks.admission("/", Hangs(waiting.clone()))?;
    configure(&endpoint, "hangs", &serve(webhooks).await?, "secrets").await?;
    let mut hanging = tokio::task::JoinSet::new();
    for number in 0..sizes.hanging {
        let endpoint = endpoint.clone();
        let secret = json!({"metadata": {"name": format!("secret-{number}")}});
        let call = objects::post("/api/v1/namespaces/default/secrets", &secret);
        hanging.spawn(async move { endpoint.call(call).await });
    }
    while waiting.load(Ordering::Relaxed) < sizes.hanging {
        tokio::task::yield_now().await;
    }
    let beside = latencies(&endpoint, "beside", sizes).await?;
    ensure!(hanging.try_join_next().is_none(), "a write did not wait for the hanging webhook");
    let [beside, calm] = [beside, calm].map(|samples| samples.quantile(0.99));
    let name = "create beside 100 writes that wait for a webhook, p99";
    rows.sample_beside(name, Unit::Micros, beside, ("no webhook", calm));
    Ok(())
}

/// Wall times of single creates.
async fn latencies(endpoint: &Endpoint, prefix: &str, sizes: Sizes) -> Result<Samples> {
    let mut samples = Samples::default();
    for number in 0..sizes.writes {
        let call = objects::create(endpoint.base(), Kind::ConfigMap, &format!("{prefix}-{number}"));
        let started = Instant::now();
        endpoint.call(call).await?;
        samples.push(started.elapsed().as_secs_f64());
    }
    Ok(samples)
}

async fn with_conversion(sizes: Sizes, rows: &mut Rows) -> Result<()> {
    let server = ApiServer::new(Options::default());
    let webhooks = Webhooks::new();
    webhooks.conversion(conversion::of_widgets())?;
    let address = WebhookAddress::Service { namespace: "default".to_owned(), name: "hook".to_owned() };
    server.add_webhook_handler(address, webhooks);
    let endpoint = Endpoint::InProcess(server);
    let version = |name: &str| {
        json!({"name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema":
            {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    let crd = json!({
        "metadata": {"name": "widgets.bench.kubewright.dev"},
        "spec": {
            "group": "bench.kubewright.dev", "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [version("v1"), version("v2")],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"service": {"namespace": "default", "name": "hook", "path": "/convert"}},
            }},
        },
    });
    endpoint.call(objects::post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd)).await?;
    let collection = |version: &str| format!("/apis/bench.kubewright.dev/{version}/{WIDGETS}");
    for number in 0..sizes.objects {
        let object = serde_json::to_value(widget(&objects::name(number), 0))?;
        endpoint.call(objects::post(&collection("v1"), &object)).await?;
    }
    let names = [
        ("list of 10,000 widgets in the stored version, in-process", "v1"),
        ("list of 10,000 widgets with conversion, first, in-process", "v2"),
        ("list of 10,000 widgets with conversion, again, in-process", "v2"),
    ];
    for (name, version) in names {
        let call = objects::read(&collection(version), "application/json");
        let stopwatch = endpoint.stopwatch();
        endpoint.call(call).await?;
        rows.sample(name, Unit::Millis, stopwatch.elapsed().as_secs_f64());
    }
    Ok(())
}

async fn in_protobuf(sizes: Sizes, rows: &mut Rows) -> Result<()> {
    let endpoint = Endpoint::InProcess(ApiServer::new(Options::default()));
    traffic::run(&endpoint, Kind::ConfigMap, Verb::Create, sizes.objects, 1).await?;
    let list = async |media: &str| -> Result<(f64, f64)> {
        let call = objects::read(Kind::ConfigMap.collection(), media);
        let stopwatch = endpoint.stopwatch();
        let bytes = endpoint.call(call).await?;
        Ok((stopwatch.elapsed().as_secs_f64(), count(bytes)))
    };
    for (turn, name) in
        [(0, "first"), (1, "again")].into_iter().chain((2..REPEATS).map(|turn| (turn, "again")))
    {
        let protobuf = list("application/vnd.kubernetes.protobuf").await?;
        let json = list("application/json").await?;
        let row = format!("list of 10,000 ConfigMaps in protobuf, {name}, in-process");
        rows.sample_beside(&row, Unit::Millis, protobuf.0, ("JSON", json.0));
        if turn == 0 {
            let row = "size of a list of 10,000 ConfigMaps in protobuf";
            rows.sample_beside(row, Unit::Megabytes, protobuf.1, ("JSON", json.1));
        }
    }
    Ok(())
}

/// CPU time of one create in seconds.
async fn creates(endpoint: &Endpoint, sizes: Sizes) -> Result<f64> {
    let took = traffic::run(endpoint, Kind::ConfigMap, Verb::Create, sizes.writes, 1).await?;
    Ok(took.as_secs_f64() / count(sizes.writes))
}

async fn configure(endpoint: &Endpoint, name: &str, client: &Value, resource: &str) -> Result<()> {
    let configuration = json!({
        "metadata": {"name": name},
        "webhooks": [{
            "name": format!("{name}.example.com"), "clientConfig": client, "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "timeoutSeconds": 30,
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": [resource]}],
        }],
    });
    endpoint.call(objects::post(CONFIGURATIONS, &configuration)).await.map(drop)
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn every_row_is_measured() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let threads = Builder::new_multi_thread().enable_all().build().unwrap();
        let mut rows = Rows::default();
        measure(&runtime, &threads, Sizes { writes: 5, hanging: 3, objects: 10 }, &mut rows).unwrap();
        let rows = rows.into_vec();
        assert_eq!(rows.len(), 10);
        assert!(rows[0].target.is_some_and(|target| Some(target) > rows[0].theirs()));
    }
}
