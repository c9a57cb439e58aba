//! HTTP server for health and metrics on a free port.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tracing::info;

/// Metrics of the operator.
#[derive(Clone)]
pub(crate) struct Metrics {
    reconciles: Counter,
    failures: Counter,
    seconds: Histogram,
}

impl Metrics {
    fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            reconciles: Counter::default(),
            failures: Counter::default(),
            seconds: Histogram::new(exponential_buckets(0.001, 2.0, 16)),
        };
        registry.register("reconciles", "Reconciles", metrics.reconciles.clone());
        registry.register("reconcile_failures", "Number of failed reconciles", metrics.failures.clone());
        registry.register("reconcile_seconds", "Duration of reconciles", metrics.seconds.clone());
        metrics
    }

    pub(crate) fn reconciled(&self, took: Duration, failed: bool) {
        self.reconciles.inc();
        self.seconds.observe(took.as_secs_f64());
        if failed {
            self.failures.inc();
        }
    }
}

/// Serves health and metrics until the task is aborted.
pub(crate) async fn serve() -> Result<(Metrics, JoinHandle<std::io::Result<()>>)> {
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    let registry = Arc::new(registry);
    let page = move || {
        let registry = registry.clone();
        async move { metrics_page(&registry) }
    };
    let router = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(|| async { "ok" }))
        .route("/metrics", get(page));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    info!(address = %listener.local_addr()?, "serving health and metrics");
    Ok((metrics, tokio::spawn(async move { axum::serve(listener, router).await })))
}

fn metrics_page(registry: &Registry) -> impl IntoResponse + use<> {
    let mut page = String::new();
    match text::encode(&mut page, registry) {
        Ok(()) => {
            let media = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            (StatusCode::OK, [(header::CONTENT_TYPE, media)], page)
        }
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, [(header::CONTENT_TYPE, "text/plain")], page),
    }
}
