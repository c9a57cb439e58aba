//! Predicates: filters of events.
//!
//! The built-in predicates read only metadata and decode no objects. They pass all create and delete events.

use std::sync::Arc;

use super::event::Event;
use crate::cache::Entry;
use crate::client::Writable;

/// Filters events.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use kubewright_runtime::controller::Predicate;
///
/// // Changes of the spec or the labels, and only of objects that want replicas.
/// let predicate = Predicate::generation_changed().or(Predicate::labels_changed()).and(Predicate::new(
///     |event| event.object().is_some_and(|it: std::sync::Arc<Deployment>| {
///         it.spec.as_ref().and_then(|spec| spec.replicas) != Some(0)
///     }),
/// ));
/// ```
pub struct Predicate<K>(Arc<Passes<K>>);

type Passes<K> = dyn Fn(&Event<'_, K>) -> bool + Send + Sync;

impl<K> Clone for Predicate<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Writable> Predicate<K> {
    /// Passes the events for which a function returns true.
    pub fn new(passes: impl Fn(&Event<'_, K>) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(passes))
    }

    fn updates(differ: impl Fn(&Entry, &Entry) -> bool + Send + Sync + 'static) -> Self {
        Self::new(move |event| match (event.old_entry(), event.new_entry()) {
            (Some(old), Some(new)) => differ(old, new),
            _ => true,
        })
    }

    /// Passes updates of `metadata.generation`, which changes with the spec. Not for kinds without it, such as
    /// ConfigMaps.
    pub fn generation_changed() -> Self {
        Self::updates(|old, new| old.generation() != new.generation())
    }

    /// Passes updates of the resourceVersion. Drops the updates of a resync.
    pub fn resource_version_changed() -> Self {
        Self::updates(|old, new| old.version() != new.version())
    }

    /// Passes updates of the labels.
    pub fn labels_changed() -> Self {
        Self::updates(|old, new| old.marks().labels != new.marks().labels)
    }

    /// Passes updates of the annotations.
    pub fn annotations_changed() -> Self {
        Self::updates(|old, new| old.marks().annotations != new.marks().annotations)
    }

    /// Passes events that both pass.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::new(move |event| self.passes(event) && other.passes(event))
    }

    /// Passes events that either passes.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::new(move |event| self.passes(event) || other.passes(event))
    }

    /// Passes events that this one drops.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "consistent with `and` and `or`")]
    pub fn not(self) -> Self {
        Self::new(move |event| !self.passes(event))
    }

    /// Whether an event passes.
    pub fn passes(&self, event: &Event<'_, K>) -> bool {
        (self.0)(event)
    }
}
