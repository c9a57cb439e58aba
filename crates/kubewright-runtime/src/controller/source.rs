//! Sources of a controller: watched kinds and channels.
//!
//! A source is generic in the API and type-erased internally.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::cause::{Cause, RecordChanges};
use super::event::Event;
use super::predicate::Predicate;
use super::requests::Requests;
use crate::cache::{Cache, Change, Declaration, Informer, Occasion};
use crate::client::Writable;
use crate::queue::{DEFAULT_PRIORITY, LOW_PRIORITY};
use crate::{Key, Kind, Object, Scope};

/// Selects the objects and events of a watched type.
pub struct Watch<K> {
    pub(crate) predicates: Vec<Predicate<K>>,
    pub(crate) labels: String,
    pub(crate) fields: String,
    pub(crate) priority: i32,
    pub(crate) every_owner: bool,
    pub(crate) optional: bool,
}

impl<K: Writable> Default for Watch<K> {
    fn default() -> Self {
        Self {
            predicates: Vec::new(),
            labels: String::new(),
            fields: String::new(),
            priority: DEFAULT_PRIORITY,
            every_owner: false,
            optional: false,
        }
    }
}

impl<K: Writable> Watch<K> {
    /// Selects everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Selects events that pass a predicate. With several predicates, an event must pass all.
    #[must_use]
    pub fn filter(mut self, predicate: Predicate<K>) -> Self {
        self.predicates.push(predicate);
        self
    }

    /// Selects objects that match a label selector, in addition to
    /// [`KindOptions::labels`](crate::KindOptions::labels). Watches with the same selectors share one informer.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = selector.into();
        self
    }

    /// Selects objects that match a field selector, such as `spec.nodeName=node-1`, in addition to
    /// [`KindOptions::fields`](crate::KindOptions::fields).
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = selector.into();
        self
    }

    /// The priority of the keys of this watch. Higher priorities run first. 0 by default.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Marks the kind as optional: its CRD may not be installed. The controller starts without it, and reconciles its
    /// objects when the kind is served.
    ///
    /// Until then, reads of the kind from the cache fail with
    /// [`CacheNotSynced`](crate::client::Error::CacheNotSynced); reads with the client go to the server. The CRD may be
    /// uninstalled and installed again while the manager runs.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// For owned objects: reconciles every owner of the kind, not only the controlling one.
    #[must_use]
    pub fn every_owner(mut self) -> Self {
        self.every_owner = true;
        self
    }
}

/// Maps a change to keys. The first argument is the name of the controller.
type Handle = Arc<dyn Fn(&str, &Change, &Informer, &Cache, &mut dyn FnMut(Key)) + Send + Sync>;

/// The role of a watched kind in a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The reconciled kind.
    Reconciled,
    /// Owned by the reconciled kind.
    Owned,
    /// Mapped to keys by a function.
    Watched,
    /// Only cached for reads.
    Read,
}

/// A watched kind of one controller.
pub(crate) struct KindSource {
    pub(crate) kind: Kind,
    pub(crate) role: Role,
    metadata_only: bool,
    /// The cache of the other cluster, for a source of another cluster.
    cache: Option<Cache>,
    labels: String,
    fields: String,
    priority: i32,
    /// Set from the registration of the controller, if the manager has not started.
    declaration: Option<Declaration>,
    /// Whether the controller starts without the first list.
    pub(crate) optional: bool,
    handle: Handle,
}

impl KindSource {
    fn new<K: Writable>(
        kind: Kind,
        metadata_only: bool,
        role: Role,
        watch: Watch<K>,
        map: impl Fn(&str, &Change, &Informer, &Cache, &mut dyn FnMut(Key)) + Send + Sync + 'static,
    ) -> Self {
        let predicates = watch.predicates;
        let handle: Handle = Arc::new(move |controller, change, informer, cache, add| {
            let event = Event::<K>::new(change, informer, controller);
            if predicates.iter().all(|predicate| predicate.passes(&event)) {
                map(controller, change, informer, cache, add);
            }
        });
        Self {
            kind,
            role,
            metadata_only,
            cache: None,
            declaration: None,
            labels: watch.labels,
            fields: watch.fields,
            priority: watch.priority,
            optional: watch.optional,
            handle,
        }
    }

    /// Reconciles the object itself.
    pub(crate) fn object<K: Writable>(kind: Kind, metadata_only: bool, watch: Watch<K>) -> Self {
        Self::new(kind, metadata_only, Role::Reconciled, watch, |_, change, _, _, add| {
            add(change.latest().key().clone());
        })
    }

    /// Reconciles the owners of the object that are of a kind.
    pub(crate) fn owner<K: Writable>(kind: Kind, metadata_only: bool, watch: Watch<K>, owner: Kind) -> Self {
        let every = watch.every_owner;
        Self::new(kind, metadata_only, Role::Owned, watch, move |_, change, _, _, add| {
            // Both: the owner may have changed.
            for entry in change.old.iter().chain(&change.new) {
                for reference in entry.owners() {
                    let group = reference.api_version.split_once('/').map_or("", |(group, _)| group);
                    let fits = reference.kind == owner.gvk().kind && group == owner.gvk().group;
                    if fits && (every || reference.controller == Some(true)) {
                        let namespace =
                            entry.key().namespace().filter(|_| owner.scope() == Scope::Namespaced);
                        add(Key::new(namespace, &reference.name));
                    }
                }
            }
        })
    }

    /// Reconciles the keys that a map function returns.
    pub(crate) fn mapped<K: Writable>(
        kind: Kind,
        metadata_only: bool,
        watch: Watch<K>,
        map: impl Fn(&K, &Cache) -> Vec<Key> + Send + Sync + 'static,
    ) -> Self {
        Self::new(
            kind,
            metadata_only,
            Role::Watched,
            watch,
            move |controller, change, informer, cache, add| {
                // Both: keys that the object no longer refers to must be reconciled, too.
                for entry in change.old.iter().chain(&change.new) {
                    match informer.object::<K>(entry) {
                        Ok(object) => map(&object, cache).into_iter().for_each(&mut *add),
                        Err(error) => tracing::warn!(
                            controller,
                            kind = %informer.kind().gvk(),
                            object = %entry.key(),
                            error = %crate::error::Chain(&error),
                            "Failed to decode object in map function",
                        ),
                    }
                }
            },
        )
    }

    /// Caches the kind for reads, without reconciles.
    pub(crate) fn read<K: Object>() -> Self {
        Self::new(Kind::of::<K>(), K::metadata_api(), Role::Read, Watch::<K>::new(), |_, _, _, _, _| {})
    }

    /// The same source in another cluster.
    pub(crate) fn in_cache(self, cache: Cache) -> Self {
        Self { cache: Some(cache), ..self }
    }

    /// The cache of the other cluster, if the source is in one.
    pub(crate) fn other_cache(&self) -> Option<&Cache> {
        self.cache.as_ref()
    }

    /// Declares the kind in its cache: reads of it fail until the cache starts. `cache` is the manager's.
    pub(crate) fn declare(&mut self, cache: &Cache) {
        let cache = self.cache.as_ref().unwrap_or(cache);
        self.declaration = Some(cache.declare(&self.kind, &self.labels, &self.fields, self.metadata_only));
    }

    /// The informer of the source, created if needed. `cache` is the manager's.
    pub(crate) fn informer(&self, cache: &Cache) -> Arc<Informer> {
        let cache = self.cache.as_ref().unwrap_or(cache);
        let informer = cache.select(&self.kind, &self.labels, &self.fields, self.metadata_only);
        if !self.optional {
            informer.set_optional(false);
        }
        informer
    }

    /// Queues the keys of a change.
    pub(crate) fn handle(
        &self,
        controller: &str,
        change: &Change,
        informer: &Arc<Informer>,
        cache: &Cache,
        requests: &Requests,
        record: RecordChanges,
    ) {
        let priority = match change.occasion {
            Occasion::Initial | Occasion::Resync if change.new.is_some() => LOW_PRIORITY,
            _ => self.priority,
        };
        let of_itself = self.role == Role::Reconciled;
        let selected = !informer.settings().is_all();
        (self.handle)(controller, change, informer, cache, &mut |key| {
            if of_itself && selected {
                requests.note_removal(&key, change.removal);
            }
            requests.event(key, priority, Cause::of(change, informer, record), change, of_itself);
        });
    }
}

/// A channel of keys.
pub(crate) type ChannelSource = mpsc::Receiver<Key>;
