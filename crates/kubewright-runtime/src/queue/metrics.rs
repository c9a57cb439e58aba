//! Prometheus metrics of queues.
//!
//! [`QueueMetrics`] has controller-runtime's names, labels and buckets, so that its dashboards and alerts work
//! unchanged. Durations are observed as they happen; all other values are read from the queues at each scrape, under
//! one lock per queue, so that they are consistent.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::inspect::Counts;
use super::shared::Shared;
use super::{Item, Options, SharedQueue};

/// The metrics of the queues of a process. Clones share them.
///
/// | name | meaning |
/// |---|---|
/// | `workqueue_depth` | number of waiting items, by priority |
/// | `workqueue_adds_total` | number of items that started to wait |
/// | `workqueue_queue_duration_seconds` | how long items waited |
/// | `workqueue_work_duration_seconds` | how long items ran |
/// | `workqueue_unfinished_work_seconds` | how long the running items have been running, in total |
/// | `workqueue_longest_running_processor_seconds` | how long the longest running item has been running |
/// | `workqueue_retries_total` | number of delayed adds |
///
/// All have the labels `name` and `controller`, which are equal, as in controller-runtime. A held item is observed as
/// waiting twice and as running once.
///
/// ```
/// use kubewright_runtime::Key;
/// use kubewright_runtime::queue::{DEFAULT_PRIORITY, Options, QueueMetrics, SharedQueue};
/// use prometheus_client::registry::Registry;
///
/// let mut registry = Registry::default();
/// let metrics = QueueMetrics::register(&mut registry);
/// let queue: SharedQueue<Key> = metrics.queue("view", Options::default());
/// queue.add(Key::cluster("x"), DEFAULT_PRIORITY, ());
///
/// let mut text = String::new();
/// prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
/// assert!(text.contains(r#"workqueue_depth{name="view",controller="view",priority="0"} 1"#));
/// ```
#[derive(Debug, Clone)]
pub struct QueueMetrics {
    queue_duration: Family<Labels, Histogram>,
    work_duration: Family<Labels, Histogram>,
    queues: Arc<Queues>,
}

impl QueueMetrics {
    /// Registers the metrics. Call it once per registry.
    pub fn register(registry: &mut Registry) -> Self {
        let queue_duration = Family::new_with_constructor(histogram as fn() -> Histogram);
        registry.register(
            "workqueue_queue_duration_seconds",
            "How long in seconds an item stays in workqueue before being requested",
            queue_duration.clone(),
        );
        let work_duration = Family::new_with_constructor(histogram as fn() -> Histogram);
        registry.register(
            "workqueue_work_duration_seconds",
            "How long in seconds processing an item from workqueue takes",
            work_duration.clone(),
        );
        let queues = Arc::new(Queues::default());
        registry.register_collector(Box::new(Arc::clone(&queues)));
        Self { queue_duration, work_duration, queues }
    }

    /// Creates a queue that is measured until its last clone is dropped. `controller` is its name; a second queue of
    /// the same name replaces the first in the metrics.
    pub fn queue<T: Item, C: PartialEq + Send + 'static>(
        &self,
        controller: &str,
        options: Options<T>,
    ) -> SharedQueue<T, C> {
        let labels = Labels { name: controller.into(), controller: controller.into() };
        let handles = Handles {
            queue_duration: self.queue_duration.get_or_create_owned(&labels),
            work_duration: self.work_duration.get_or_create_owned(&labels),
        };
        let queue = SharedQueue::measured(options, Some(handles));
        let source: Arc<dyn Source> = queue.shared().clone();
        self.queues.add(labels, Arc::downgrade(&source));
        queue
    }
}

/// The histograms of one queue, looked up once.
pub(super) struct Handles {
    queue_duration: Histogram,
    work_duration: Histogram,
}

impl Handles {
    pub(super) fn taken(&self, waited: Duration) {
        self.queue_duration.observe(waited.as_secs_f64());
    }

    pub(super) fn done(&self, ran: Duration) {
        self.work_duration.observe(ran.as_secs_f64());
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    name: String,
    controller: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DepthLabels {
    name: String,
    controller: String,
    priority: i32,
}

/// controller-runtime's buckets: 10 ns to 1000 s.
fn histogram() -> Histogram {
    Histogram::new(exponential_buckets(10e-9, 10.0, 12))
}

/// A type-erased queue.
trait Source: Send + Sync {
    fn read(&self) -> Reading;
}

/// The values of a queue at one time.
struct Reading {
    depth: Vec<(i32, usize)>,
    counts: Counts,
    unfinished: Duration,
    longest: Duration,
}

impl<T: Item, C: PartialEq + Send + 'static> Source for Shared<T, C> {
    fn read(&self) -> Reading {
        self.inspect(|queue, now| {
            let (unfinished, longest) = queue.unfinished(now);
            Reading { depth: queue.depth().collect(), counts: queue.counts(), unfinished, longest }
        })
    }
}

/// Reads all queues at each scrape.
#[derive(Debug, Default)]
struct Queues(Mutex<Vec<(Labels, Weak<dyn Source>)>>);

impl Queues {
    fn add(&self, labels: Labels, queue: Weak<dyn Source>) {
        let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|(other, queue)| *other != labels && queue.strong_count() > 0);
        queues.push((labels, queue));
    }

    fn read(&self) -> Vec<(Labels, Reading)> {
        let queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let readings = queues.iter().map(|(labels, queue)| Some((labels.clone(), queue.upgrade()?.read())));
        readings.flatten().collect()
    }
}

impl Collector for Queues {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let queues = self.read();
        let mut metric = encoder.encode_descriptor(
            "workqueue_depth",
            "Current depth of workqueue by workqueue and priority.",
            None,
            MetricType::Gauge,
        )?;
        for (Labels { name, controller }, reading) in &queues {
            for &(priority, depth) in &reading.depth {
                let labels = DepthLabels { name: name.clone(), controller: controller.clone(), priority };
                ConstGauge::new(depth as u64).encode(metric.encode_family(&labels)?)?;
            }
        }
        let mut metric = encoder.encode_descriptor(
            "workqueue_adds",
            "Total number of adds handled by workqueue.",
            None,
            MetricType::Counter,
        )?;
        for (labels, reading) in &queues {
            ConstCounter::new(reading.counts.adds).encode(metric.encode_family(labels)?)?;
        }
        let mut metric = encoder.encode_descriptor(
            "workqueue_retries",
            "Total number of retries handled by workqueue.",
            None,
            MetricType::Counter,
        )?;
        for (labels, reading) in &queues {
            ConstCounter::new(reading.counts.retries).encode(metric.encode_family(labels)?)?;
        }
        let mut metric = encoder.encode_descriptor(
            "workqueue_unfinished_work_seconds",
            "How many seconds of work is in progress and was not yet observed by work_duration. Large values \
             indicate stuck workers, and the rate of increase is their number.",
            None,
            MetricType::Gauge,
        )?;
        for (labels, reading) in &queues {
            ConstGauge::new(reading.unfinished.as_secs_f64()).encode(metric.encode_family(labels)?)?;
        }
        let mut metric = encoder.encode_descriptor(
            "workqueue_longest_running_processor_seconds",
            "How many seconds the longest running processor of the workqueue has been running.",
            None,
            MetricType::Gauge,
        )?;
        for (labels, reading) in &queues {
            ConstGauge::new(reading.longest.as_secs_f64()).encode(metric.encode_family(labels)?)?;
        }
        Ok(())
    }
}
