//! Cache metrics: counters, and the age of each watch at scrape time.
//!
//! One collector encodes the metrics of several caches, so that each family is described once: a metrics page with two
//! `# TYPE` lines of one name is invalid.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabel as _, EncodeLabelSet, LabelSetEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;

use super::informer::{Informer, Part};
use super::{Cache, Inner};
use crate::Gvk;
use crate::client::Error;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct OfFunction {
    group: String,
    version: String,
    kind: String,
    /// `index` or `transform`.
    function: &'static str,
    /// The name of the index; empty for a transform.
    name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct OfFailure {
    group: String,
    version: String,
    kind: String,
    reason: String,
}

type Counts<L> = Mutex<BTreeMap<L, u64>>;

/// The counters of a cache.
#[derive(Default)]
pub(crate) struct CacheMetrics {
    panics: Counts<OfFunction>,
    failures: Counts<OfFailure>,
}

impl CacheMetrics {
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
        *lock(&self.failures).entry(labels).or_default() += 1;
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
        *lock(&self.panics).entry(labels).or_default() += 1;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug, Clone, PartialEq, Eq, EncodeLabelSet)]
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

/// Labels with the name of the cluster. The manager's own cluster has no name and no label.
struct InCluster<'a, L> {
    cluster: Option<&'a str>,
    labels: &'a L,
}

impl<L: EncodeLabelSet> EncodeLabelSet for InCluster<'_, L> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        if let Some(cluster) = self.cluster {
            ("cluster", cluster).encode(encoder.encode_label())?;
        }
        self.labels.encode(encoder)
    }
}

/// The caches of a manager, by cluster. Clones share the list.
#[derive(Clone, Default)]
pub(crate) struct Caches(Arc<Mutex<Vec<Member>>>);

struct Member {
    /// `None` for the manager's own cluster.
    cluster: Option<String>,
    /// Weak: a detached cluster may be dropped while its metrics are collected.
    cache: Weak<Inner>,
}

impl Caches {
    /// Adds the cache of a cluster. `None` is the manager's own.
    pub(crate) fn add(&self, cluster: Option<&str>, cache: &Cache) {
        let (cluster, cache) = (cluster.map(str::to_owned), Arc::downgrade(&cache.inner));
        lock(&self.0).push(Member { cluster, cache });
    }

    /// Removes a cache. Returns whether it was in the list.
    pub(crate) fn remove(&self, cache: &Cache) -> bool {
        let mut members = lock(&self.0);
        let before = members.len();
        members.retain(|member| !std::ptr::eq(member.cache.as_ptr(), &raw const *cache.inner));
        members.len() < before
    }

    /// The caches with the names of their clusters, in the order in which they were added.
    pub(crate) fn all(&self) -> Vec<(Option<String>, Cache)> {
        let members = lock(&self.0);
        let all = members.iter().filter_map(|Member { cluster, cache }| {
            Some((cluster.clone(), Cache { inner: cache.upgrade()? }))
        });
        all.collect()
    }
}

impl Collector for Caches {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let caches = self.all();
        counter(
            &mut encoder,
            "kubewright_cache_panics",
            "Panics of index functions and transforms of the cache.",
            &caches,
            |metrics| &metrics.panics,
        )?;
        counter(
            &mut encoder,
            "kubewright_informer_failures",
            "Lists and watches of an informer that failed, by reason.",
            &caches,
            |metrics| &metrics.failures,
        )?;
        gauge(
            &mut encoder,
            "kubewright_informer_last_event_age_seconds",
            "Time since an informer received its last event, bookmark or complete list",
            &caches,
            |part| part.health.age().map(|age| age.as_secs_f64()),
        )?;
        gauge(
            &mut encoder,
            "kubewright_informer_failing_seconds",
            "Time since the list or watch of an informer has failed; 0 if it works",
            &caches,
            |part| Some(part.health.failure().map_or(0.0, |failure| failure.since.elapsed().as_secs_f64())),
        )
    }
}

fn counter<L: EncodeLabelSet + Clone>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    caches: &[(Option<String>, Cache)],
    counts: impl Fn(&CacheMetrics) -> &Counts<L>,
) -> fmt::Result {
    // Like a family of a registry, which is not described before its first series.
    if caches.iter().all(|(_, cache)| lock(counts(&cache.inner.common.metrics)).is_empty()) {
        return Ok(());
    }
    let mut counter = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (cluster, cache) in caches {
        for (labels, count) in lock(counts(&cache.inner.common.metrics)).iter() {
            let labels = InCluster { cluster: cluster.as_deref(), labels };
            counter.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(count, None)?;
        }
    }
    Ok(())
}

fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    caches: &[(Option<String>, Cache)],
    value: impl Fn(&Part) -> Option<f64>,
) -> fmt::Result {
    let mut gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (cluster, cache) in caches {
        for informer in cache.all() {
            for part in informer.parts() {
                if let Some(value) = value(part) {
                    let labels = OfWatch::new(&informer, part);
                    let labels = InCluster { cluster: cluster.as_deref(), labels: &labels };
                    gauge.encode_family(&labels)?.encode_gauge(&value)?;
                }
            }
        }
    }
    Ok(())
}

impl fmt::Debug for Caches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Caches")
    }
}
