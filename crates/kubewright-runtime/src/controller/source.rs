//! Where the keys of a controller come from: kinds under watch, and channels.
//!
//! A source is typed where its author writes it and `dyn` from there on.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::cause::{Cause, Looked};
use super::event::Event;
use super::predicate::Predicate;
use crate::cache::{Cache, Change, Informer, Occasion, Selection};
use crate::queue::{DEFAULT_PRIORITY, LOW_PRIORITY, SharedQueue};
use crate::{Key, Kind, Object, Scope};

pub(crate) type Requests = SharedQueue<Key, Cause>;

/// What of a type is watched.
pub struct Watch<K> {
    pub(crate) predicates: Vec<Predicate<K>>,
    pub(crate) labels: String,
    pub(crate) fields: String,
    pub(crate) priority: i32,
    pub(crate) every_owner: bool,
}

impl<K: Object> Default for Watch<K> {
    fn default() -> Self {
        Self {
            predicates: Vec::new(),
            labels: String::new(),
            fields: String::new(),
            priority: DEFAULT_PRIORITY,
            every_owner: false,
        }
    }
}

impl<K: Object> Watch<K> {
    /// Everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only changes that pass; of several predicates, all of them.
    #[must_use]
    pub fn filter(mut self, predicate: Predicate<K>) -> Self {
        self.predicates.push(predicate);
        self
    }

    /// Only objects whose labels are selected. Watches that select the same share one informer.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = selector.into();
        self
    }

    /// Only objects whose fields are selected, such as `spec.nodeName=node-1`.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = selector.into();
        self
    }

    /// Keys from here run before those with a lower number. 0 otherwise.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Of owned objects: every owner of the kind is reconciled, not the controlling one only.
    #[must_use]
    pub fn every_owner(mut self) -> Self {
        self.every_owner = true;
        self
    }
}

/// From a change to keys.
type Handle = Arc<dyn Fn(&Change, &Informer, &Cache, &mut dyn FnMut(Key)) + Send + Sync>;

/// What a kind under watch is to a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// What is reconciled.
    Reconciled,
    /// Owned by that.
    Owned,
    /// Something else that concerns it.
    Watched,
}

/// A kind under watch for one controller.
pub(crate) struct KindSource {
    pub(crate) kind: Kind,
    pub(crate) role: Role,
    metadata_only: bool,
    labels: String,
    fields: String,
    priority: i32,
    handle: Handle,
}

impl KindSource {
    fn new<K: Object>(
        role: Role,
        watch: Watch<K>,
        map: impl Fn(&Change, &Informer, &Cache, &mut dyn FnMut(Key)) + Send + Sync + 'static,
    ) -> Self {
        let predicates = watch.predicates;
        let handle: Handle = Arc::new(move |change, informer, cache, add| {
            let event = Event::<K>::new(change, informer);
            if predicates.iter().all(|predicate| predicate.passes(&event)) {
                map(change, informer, cache, add);
            }
        });
        Self {
            kind: Kind::of::<K>(),
            role,
            metadata_only: K::metadata_api(),
            labels: watch.labels,
            fields: watch.fields,
            priority: watch.priority,
            handle,
        }
    }

    /// The object itself is reconciled.
    pub(crate) fn object<K: Object>(watch: Watch<K>) -> Self {
        Self::new(Role::Reconciled, watch, |change, _, _, add| add(change.latest().key().clone()))
    }

    /// The owner of the object is reconciled, if it is of a kind.
    pub(crate) fn owner<K: Object>(watch: Watch<K>, owner: Kind) -> Self {
        let every = watch.every_owner;
        Self::new(Role::Owned, watch, move |change, _, _, add| {
            // Both: an object may change hands.
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

    /// What a function says is reconciled.
    pub(crate) fn mapped<K: Object>(
        watch: Watch<K>,
        map: impl Fn(&K, &Cache) -> Vec<Key> + Send + Sync + 'static,
    ) -> Self {
        Self::new(Role::Watched, watch, move |change, informer, cache, add| {
            // Both: what the object no longer points at has changed as well.
            for entry in change.old.iter().chain(&change.new) {
                match informer.decode::<K>(entry) {
                    Ok(object) => map(&object, cache).into_iter().for_each(&mut *add),
                    Err(error) => {
                        tracing::warn!(error = %crate::error::Chain(&error), "cannot tell what it concerns");
                    }
                }
            }
        })
    }

    /// The informer, which is started if nobody else did.
    pub(crate) fn informer(&self, cache: &Cache) -> Arc<Informer> {
        if self.labels.is_empty() && self.fields.is_empty() {
            return cache.informer_of(&self.kind, self.metadata_only);
        }
        let selection = Selection {
            labels: self.labels.clone(),
            fields: self.fields.clone(),
            metadata_only: self.metadata_only,
        };
        cache.select(&self.kind, selection)
    }

    /// Queues what a change concerns.
    pub(crate) fn handle(
        &self,
        change: &Change,
        informer: &Arc<Informer>,
        cache: &Cache,
        queue: &Requests,
        looked: Looked,
    ) {
        let priority = match change.occasion {
            Occasion::Initial | Occasion::Resync if change.new.is_some() => LOW_PRIORITY,
            _ => self.priority,
        };
        (self.handle)(change, informer, cache, &mut |key| {
            queue.add(key, priority, Cause::of(change, informer, looked));
        });
    }
}

/// Keys that something else than a watch asks for.
pub(crate) type ChannelSource = mpsc::Receiver<Key>;
