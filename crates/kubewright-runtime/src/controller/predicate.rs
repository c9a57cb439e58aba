//! Which changes are worth a reconcile.
//!
//! The ready predicates look at metadata only, and decode nothing. Creations and deletions always pass them.

use std::sync::Arc;

use super::event::Event;
use crate::cache::Entry;
use crate::client::Writable;

/// Chooses among changes.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use kubewright_runtime::controller::Predicate;
///
/// // Changes of the spec, or of the labels; and only where a replica is wanted.
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
    /// What a function says.
    pub fn new(passes: impl Fn(&Event<'_, K>) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(passes))
    }

    fn updates(differ: impl Fn(&Entry, &Entry) -> bool + Send + Sync + 'static) -> Self {
        Self::new(move |event| match (event.old_entry(), event.new_entry()) {
            (Some(old), Some(new)) => differ(old, new),
            _ => true,
        })
    }

    /// Updates of the spec: those that change `metadata.generation`. Not for kinds without one, such as ConfigMaps.
    pub fn generation_changed() -> Self {
        Self::updates(|old, new| old.generation() != new.generation())
    }

    /// Updates of anything: those that change the resourceVersion. Drops what a resync tells again.
    pub fn resource_version_changed() -> Self {
        Self::updates(|old, new| old.version() != new.version())
    }

    /// Updates of the labels.
    pub fn labels_changed() -> Self {
        Self::updates(|old, new| old.marks().labels != new.marks().labels)
    }

    /// Updates of the annotations.
    pub fn annotations_changed() -> Self {
        Self::updates(|old, new| old.marks().annotations != new.marks().annotations)
    }

    /// Passes what both pass.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::new(move |event| self.passes(event) && other.passes(event))
    }

    /// Passes what either passes.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::new(move |event| self.passes(event) || other.passes(event))
    }

    /// Passes what this one does not.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "it reads as `and` and `or` do")]
    pub fn not(self) -> Self {
        Self::new(move |event| !self.passes(event))
    }

    /// Whether a change passes.
    pub fn passes(&self, event: &Event<'_, K>) -> bool {
        (self.0)(event)
    }
}
