//! Counts what triggered the reconciles.

use kubewright::controller::Cause;
use kubewright::metrics::Metrics;
use kubewright::prometheus_client::metrics::counter::Counter;
use kubewright::prometheus_client::metrics::family::Family;
use kubewright::queue::Causes;

/// The number of causes by kind and trigger, and of adds to the queue.
///
/// The queue merges adds of a key that arrive before its reconcile starts, so there are more adds than reconciles. A cause is
/// a distinct kind, object and trigger: two changes of one Pod before a reconcile are one cause.
pub(super) struct Counts {
    causes: Family<[(&'static str, String); 2], Counter>,
    adds: Counter,
}

impl Counts {
    /// Registers the metrics.
    pub(super) fn new(metrics: &Metrics) -> Self {
        let (causes, adds) = (Family::default(), Counter::default());
        metrics.with_registry(|registry| {
            let help = "Causes of reconciles, by kind and trigger";
            registry.register("collector_causes", help, causes.clone());
            registry.register("collector_adds", "Adds of a Deployment to the queue", adds.clone());
        });
        Self { causes, adds }
    }

    /// Counts the causes of one reconcile.
    pub(super) fn add(&self, causes: &Causes<Cause>) {
        self.adds.inc_by(causes.adds().into());
        for cause in causes.iter() {
            let kind = cause.kind.as_ref().map_or("", |kind| kind.name()).to_owned();
            let labels = [("kind", kind), ("trigger", cause.trigger.as_str().to_owned())];
            self.causes.get_or_create(&labels).inc();
        }
    }
}
