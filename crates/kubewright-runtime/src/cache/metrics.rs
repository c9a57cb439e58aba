//! Cache metrics: counters, and the age of each watch at scrape time.

use std::fmt;
use std::sync::{Arc, PoisonError, Weak};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::Inner;
use super::informer::{Informer, Part};
use crate::Gvk;
use crate::client::Error;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfFunction {
    group: String,
    version: String,
    kind: String,
    /// `index` or `transform`.
    function: &'static str,
    /// The name of the index; empty for a transform.
    name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfFailure {
    group: String,
    version: String,
    kind: String,
    reason: String,
}

/// The counters of a cache. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct CacheMetrics {
    panics: Family<OfFunction, Counter>,
    failures: Family<OfFailure, Counter>,
}

impl CacheMetrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "kubewright_cache_panics",
            "Panics of index functions and transforms of the cache",
            self.panics.clone(),
        );
        registry.register(
            "kubewright_informer_failures",
            "Lists and watches of an informer that failed, by reason",
            self.failures.clone(),
        );
    }

    /// Counts a failed list or watch.
    pub(super) fn failed(&self, kind: &Gvk, error: &Error) {
        let reason = match error {
            Error::Status(status) if status.reason.is_empty() => status.code.to_string(),
            Error::Status(status) => status.reason.clone(),
            Error::Timeout(_) => "Timeout".to_owned(),
            Error::Send(_) => "Connection".to_owned(),
            _ => "Invalid response".to_owned(),
        };
        let labels = OfFailure {
            group: kind.group.clone(),
            version: kind.version.clone(),
            kind: kind.kind.clone(),
            reason,
        };
        self.failures.get_or_create_owned(&labels).inc();
    }

    /// Counts a panic of the index function `index`, or of the transform if it is `None`.
    pub(super) fn panicked(&self, kind: &Gvk, index: Option<&str>) {
        let labels = OfFunction {
            group: kind.group.clone(),
            version: kind.version.clone(),
            kind: kind.kind.clone(),
            function: if index.is_some() { "index" } else { "transform" },
            name: index.unwrap_or_default().to_owned(),
        };
        self.panics.get_or_create_owned(&labels).inc();
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfWatch {
    group: String,
    version: String,
    kind: String,
    /// Empty for a watch of all namespaces.
    namespace: String,
    /// The label selector, the field selector and `metadata`, if set.
    selection: String,
}

impl OfWatch {
    fn new(informer: &Informer, part: &Part) -> Self {
        let (kind, selection) = (informer.kind().gvk(), &part.scope.selection);
        let metadata = if selection.metadata_only { "metadata" } else { "" };
        let selection = [&*selection.labels, &*selection.fields, metadata];
        let selection: Vec<&str> = selection.into_iter().filter(|it| !it.is_empty()).collect();
        Self {
            group: kind.group.clone(),
            version: kind.version.clone(),
            kind: kind.kind.clone(),
            namespace: part.namespace().unwrap_or_default().to_owned(),
            selection: selection.join(";"),
        }
    }
}

/// Exports the ages of all watches of a cache, computed at each scrape.
pub(super) struct Watches(pub(super) Weak<Inner>);

impl Watches {
    fn gauge(
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        informers: &[Arc<Informer>],
        value: impl Fn(&Part) -> Option<f64>,
    ) -> fmt::Result {
        let mut gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for informer in informers {
            for part in informer.parts() {
                if let Some(value) = value(part) {
                    gauge.encode_family(&OfWatch::new(informer, part))?.encode_gauge(&value)?;
                }
            }
        }
        Ok(())
    }
}

impl Collector for Watches {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(inner) = self.0.upgrade() else { return Ok(()) };
        let informers = inner.informers.lock().unwrap_or_else(PoisonError::into_inner);
        let informers: Vec<Arc<Informer>> = informers.values().map(|it| it.informer.clone()).collect();
        Self::gauge(
            &mut encoder,
            "kubewright_informer_last_event_age_seconds",
            "Time since an informer received its last event, bookmark or complete list",
            &informers,
            |part| part.health.age().map(|age| age.as_secs_f64()),
        )?;
        Self::gauge(
            &mut encoder,
            "kubewright_informer_failing_seconds",
            "Time since the list or watch of an informer has failed; 0 if it works",
            &informers,
            |part| Some(part.health.failure().map_or(0.0, |failure| failure.since.elapsed().as_secs_f64())),
        )
    }
}

impl fmt::Debug for Watches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watches")
    }
}
