//! Metrics of the webhook server, under controller-runtime's names.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Prometheus' default buckets. controller-runtime uses powers of ten besides its native histogram.
const SECONDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfWebhook {
    webhook: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCode {
    webhook: String,
    code: u16,
}

/// The metrics of all webhooks of a server. The label `webhook` is the path.
#[derive(Debug, Clone)]
pub(super) struct WebhookMetrics {
    requests: Family<OfCode, Counter>,
    latency: Family<OfWebhook, Histogram, fn() -> Histogram>,
    in_flight: Family<OfWebhook, Gauge>,
    panics: Counter,
    conversion_panics: Counter,
}

impl Default for WebhookMetrics {
    fn default() -> Self {
        let seconds: fn() -> Histogram = || Histogram::new(SECONDS);
        Self {
            requests: Family::default(),
            latency: Family::new_with_constructor(seconds),
            in_flight: Family::default(),
            panics: Counter::default(),
            conversion_panics: Counter::default(),
        }
    }
}

impl WebhookMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "controller_runtime_webhook_requests",
            "Total number of admission requests by HTTP status code.",
            self.requests.clone(),
        );
        registry.register(
            "controller_runtime_webhook_latency_seconds",
            "Histogram of the latency of processing admission requests",
            self.latency.clone(),
        );
        registry.register(
            "controller_runtime_webhook_requests_in_flight",
            "Current number of admission requests being served.",
            self.in_flight.clone(),
        );
        registry.register(
            "controller_runtime_webhook_panics",
            "Total number of webhook panics",
            self.panics.clone(),
        );
        registry.register(
            "controller_runtime_conversion_webhook_panics",
            "Total number of conversion webhook panics",
            self.conversion_panics.clone(),
        );
    }

    /// Creates the series of a path with value 0, so that rates are correct from the first request on. As in
    /// controller-runtime, these are the most likely status codes.
    pub(super) fn registered(&self, webhook: &str) {
        for code in [200, 500] {
            drop(self.requests.get_or_create(&OfCode { webhook: webhook.to_owned(), code }));
        }
        drop(self.in_flight.get_or_create(&OfWebhook { webhook: webhook.to_owned() }));
    }

    pub(super) fn started(&self, webhook: &str) -> InFlight {
        let gauge = self.in_flight.get_or_create(&OfWebhook { webhook: webhook.to_owned() }).clone();
        gauge.inc();
        InFlight(gauge)
    }

    pub(super) fn answered(&self, webhook: &str, code: u16, took: Duration) {
        let webhook = webhook.to_owned();
        self.requests.get_or_create(&OfCode { webhook: webhook.clone(), code }).inc();
        self.latency.get_or_create(&OfWebhook { webhook }).observe(took.as_secs_f64());
    }

    pub(super) fn panicked(&self) {
        self.panics.inc();
    }

    pub(super) fn conversion_panicked(&self) {
        self.conversion_panics.inc();
    }
}

/// A request being served; counted until it is dropped, also if the client disconnects.
pub(super) struct InFlight(Gauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}
