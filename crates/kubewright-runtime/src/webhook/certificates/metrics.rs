//! Metrics of the certificate rotation.

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfStep {
    step: &'static str,
}

/// Counts the steps of a [`Rotator`](super::Rotator) and its failures. Clones share the values.
#[derive(Debug, Clone, Default)]
pub struct RotatorMetrics {
    steps: Family<OfStep, Counter>,
    errors: Counter,
    expires: Gauge,
}

impl RotatorMetrics {
    /// Creates the metrics and registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let made = Self::default();
        registry.register(
            "kubewright_webhook_certificate_steps",
            "Total number of steps of the webhook certificate rotation",
            made.steps.clone(),
        );
        registry.register(
            "kubewright_webhook_certificate_errors",
            "Total number of failed attempts to create, load or inject webhook certificates",
            made.errors.clone(),
        );
        registry.register(
            "kubewright_webhook_certificate_expiration_timestamp_seconds",
            "Expiration of the served webhook certificate in seconds since the epoch",
            made.expires.clone(),
        );
        made
    }

    pub(super) fn stepped(&self, step: &'static str) {
        self.steps.get_or_create(&OfStep { step }).inc();
    }

    pub(super) fn failed(&self) {
        self.errors.inc();
    }

    pub(super) fn serves_until(&self, until: Timestamp) {
        self.expires.set(until.as_second());
    }
}
