//! Metrics of controllers, with controller-runtime's names, so that its dashboards work.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// controller-runtime's buckets.
const SECONDS: [f64; 32] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0,
];
const MORE_SECONDS: [f64; 8] = [10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfController {
    controller: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfResult {
    controller: String,
    result: &'static str,
}

/// The metrics of all controllers of a manager.
#[derive(Clone)]
pub(crate) struct ControllerMetrics {
    reconciles: Family<OfResult, Counter>,
    errors: Family<OfController, Counter>,
    terminal_errors: Family<OfController, Counter>,
    panics: Family<OfController, Counter>,
    timeouts: Family<OfController, Counter>,
    time: Family<OfController, Histogram, fn() -> Histogram>,
    workers: Family<OfController, Gauge>,
    active: Family<OfController, Gauge>,
}

/// The metrics of one controller, looked up once.
pub(crate) struct Counts {
    pub(crate) success: Counter,
    pub(crate) error: Counter,
    pub(crate) requeue: Counter,
    pub(crate) requeue_after: Counter,
    pub(crate) errors: Counter,
    pub(crate) terminal_errors: Counter,
    pub(crate) panics: Counter,
    pub(crate) timeouts: Counter,
    pub(crate) time: Histogram,
    pub(crate) active: Gauge,
}

impl Counts {
    /// Counts a failed reconcile.
    pub(super) fn failed(&self) {
        self.error.inc();
        self.errors.inc();
    }
}

impl ControllerMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let seconds: fn() -> Histogram = || Histogram::new(SECONDS.into_iter().chain(MORE_SECONDS));
        let metrics = Self {
            reconciles: Family::default(),
            errors: Family::default(),
            terminal_errors: Family::default(),
            panics: Family::default(),
            timeouts: Family::default(),
            time: Family::new_with_constructor(seconds),
            workers: Family::default(),
            active: Family::default(),
        };
        let mut counter = |name: &str, help: &str, family: &Family<OfController, Counter<u64, AtomicU64>>| {
            registry.register(name, help, family.clone());
        };
        counter(
            "controller_runtime_reconcile_errors",
            "Total number of reconciliation errors per controller",
            &metrics.errors,
        );
        counter(
            "controller_runtime_terminal_reconcile_errors",
            "Total number of terminal reconciliation errors per controller",
            &metrics.terminal_errors,
        );
        counter(
            "controller_runtime_reconcile_panics",
            "Total number of reconciliation panics per controller",
            &metrics.panics,
        );
        counter(
            "controller_runtime_reconcile_timeouts",
            "Total number of reconciliation timeouts per controller",
            &metrics.timeouts,
        );
        registry.register(
            "controller_runtime_reconcile",
            "Total number of reconciliations per controller",
            metrics.reconciles.clone(),
        );
        registry.register(
            "controller_runtime_reconcile_time_seconds",
            "Length of time per reconciliation per controller",
            metrics.time.clone(),
        );
        registry.register(
            "controller_runtime_max_concurrent_reconciles",
            "Maximum number of concurrent reconciles per controller",
            metrics.workers.clone(),
        );
        registry.register(
            "controller_runtime_active_workers",
            "Number of currently used workers per controller",
            metrics.active.clone(),
        );
        metrics
    }

    pub(crate) fn of(&self, controller: &str, workers: usize) -> Counts {
        let name = OfController { controller: controller.to_owned() };
        let result = |result| {
            let labels = OfResult { controller: controller.to_owned(), result };
            self.reconciles.get_or_create_owned(&labels)
        };
        self.workers.get_or_create_owned(&name).set(i64::try_from(workers).unwrap_or(i64::MAX));
        Counts {
            success: result("success"),
            error: result("error"),
            requeue: result("requeue"),
            requeue_after: result("requeue_after"),
            errors: self.errors.get_or_create_owned(&name),
            terminal_errors: self.terminal_errors.get_or_create_owned(&name),
            panics: self.panics.get_or_create_owned(&name),
            timeouts: self.timeouts.get_or_create_owned(&name),
            time: self.time.get_or_create_owned(&name),
            active: self.active.get_or_create_owned(&name),
        }
    }
}
