//! Tracks the writes of one reconcile, so that the next reconcile of the same key can wait until the cache has seen
//! them.
//!
//! A write with a known response is a [`PendingWrite`] of each informer that will report it. A write with a lost
//! response is [`Unknown`]: before the key runs again, its outcome is read from the server.
//!
//! An informer may list instead of watching, after its watch was interrupted. If another client has deleted the written
//! object by then, the informer reports neither its creation nor its deletion. Such a write is missing
//! ([`Pending::missing`]), and its key must run again.
//!
//! Invariant: the informer of a pending write will report it or list without it. Waiting for another informer would block
//! the key forever.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::unknown::Unknown;
use crate::cache::{Cache, Change, Informer};
use crate::{Gvk, Key, Kind, LabelSelector};

/// The result of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WriteResult {
    /// The object now has this version.
    Version(u64),
    /// The object with this uid was deleted and no longer exists.
    Removed(String),
    /// The object with this uid was deleted at this version. It no longer exists, or a finalizer keeps it with a newer
    /// version.
    Deleted(String, u64),
}

/// The writes of one reconcile. Cheap to clone.
#[derive(Clone)]
pub(crate) struct WriteTracker(Arc<Mutex<Writes>>);

struct Writes {
    /// Before the first write.
    started: Instant,
    pending: BTreeMap<Key, Vec<PendingWrite>>,
    unknown: Vec<Unknown>,
    /// All writes with a response. Events that they explain are the reconcile's own.
    done: Vec<(Kind, Key, WriteResult)>,
}

/// A write that the cache may not have seen yet.
pub(crate) enum Pending {
    Write(PendingWrite),
    Unknown(Unknown),
}

impl Pending {
    /// Whether the cache has seen the write.
    pub(crate) fn is_seen(&self) -> bool {
        match self {
            Self::Write(write) => write.is_seen(),
            Self::Unknown(_) => false,
        }
    }

    /// The kind and key of the object, if it was deleted and no informer has reported that.
    pub(crate) fn missing(&self) -> Option<(&Kind, &Key)> {
        match self {
            Self::Write(write) if write.is_missing() => Some((write.informer.kind(), &write.key)),
            Self::Write(_) | Self::Unknown(_) => None,
        }
    }

    /// The writes to wait for. If the outcome is unknown, reads it from the server first.
    pub(crate) async fn pending(self) -> Vec<PendingWrite> {
        match self {
            Self::Write(write) => vec![write],
            Self::Unknown(unknown) => unknown.pending().await,
        }
    }
}

/// The last writes of one object, as one informer will report them.
pub(crate) struct PendingWrite {
    informer: Arc<Informer>,
    key: Key,
    /// Before the write was sent.
    since: Instant,
    /// The last version that was written.
    version: u64,
    /// Set if the object was deleted after that: its uid and its newest version before the deletion. A newer version
    /// proves that the cache has seen the deletion request.
    deleted: Option<(String, u64)>,
}

impl WriteTracker {
    /// A tracker for writes from now on.
    pub(crate) fn new() -> Self {
        let (pending, unknown, done) = Default::default();
        Self(Arc::new(Mutex::new(Writes { started: Instant::now(), pending, unknown, done })))
    }

    /// Tracks a write for every informer that will report it. `labels` are the current labels of the object, if known.
    pub(crate) fn note(
        &self,
        cache: &Cache,
        kind: &Kind,
        key: &Key,
        wrote: &WriteResult,
        labels: Option<&BTreeMap<String, String>>,
    ) {
        let Writes { started, pending, done, .. } = &mut *self.lock();
        done.push((kind.clone(), key.clone(), wrote.clone()));
        for informer in cache.all_of(kind).into_iter().filter(|it| it.covers(key.namespace())) {
            let known = pending.get_mut(key).into_iter().flatten();
            let mut known = known.filter(|write| Arc::ptr_eq(&write.informer, &informer));
            if let Some(write) = known.next() {
                // An informer that has the object also reports its deletion, or that it no longer matches.
                write.add(wrote);
            } else if reports(&informer, key, labels) {
                pending
                    .entry(key.clone())
                    .or_default()
                    .push(PendingWrite::new(informer, key, *started, wrote));
            }
        }
    }

    /// Tracks a write that the server may have processed.
    pub(crate) fn note_unknown(&self, unknown: Unknown) {
        let writes = &mut self.lock().unknown;
        if unknown.is_watched() && !writes.contains(&unknown) {
            writes.push(unknown);
        }
    }

    /// Whether no write got a response.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().done.is_empty()
    }

    /// Whether one of the writes caused a change of an object of this kind.
    pub(crate) fn caused(&self, kind: &Kind, change: &Change) -> bool {
        let latest = change.latest();
        let is_of = |gvk: &Gvk| gvk.group == kind.gvk().group && gvk.kind == kind.gvk().kind;
        self.lock().done.iter().any(|(kind, key, wrote)| {
            key == latest.key()
                && is_of(kind.gvk())
                && match (wrote, &change.new) {
                    (WriteResult::Version(version), Some(new)) => new.version() == *version,
                    (WriteResult::Removed(uid), None) => latest.uid() == *uid,
                    _ => false,
                }
        })
    }

    /// The writes that the caches have not seen yet, or never will see.
    pub(crate) fn unseen(&self) -> Vec<Pending> {
        let mut writes = self.lock();
        let (pending, unknown) = (std::mem::take(&mut writes.pending), std::mem::take(&mut writes.unknown));
        drop(writes);
        let pending = pending.into_values().flatten().map(Pending::Write);
        let pending = pending.filter(|write| !write.is_seen() || write.missing().is_some());
        pending.chain(unknown.into_iter().map(Pending::Unknown)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Writes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an informer will report a write: it has the object, or its selector matches the new labels.
pub(super) fn reports(informer: &Informer, key: &Key, labels: Option<&BTreeMap<String, String>>) -> bool {
    let Some(selection) = informer.selection(key.namespace()) else { return false };
    let all = selection.labels.is_empty() && selection.fields.is_empty();
    let selected = || {
        // Only the server evaluates field selectors. The first write of such an object is not waited for.
        let selector = selection.labels.parse::<LabelSelector>().ok().filter(|_| selection.fields.is_empty());
        selector.zip(labels).is_some_and(|(selector, labels)| selector.matches(labels))
    };
    all || informer.entry(key).is_some() || selected()
}

impl PendingWrite {
    pub(super) fn new(informer: Arc<Informer>, key: &Key, since: Instant, wrote: &WriteResult) -> Self {
        let mut write = Self { informer, key: key.clone(), since, version: 0, deleted: None };
        write.add(wrote);
        write
    }

    /// Records a write. A deletion keeps `version`: the cache may not have seen the creation yet.
    fn add(&mut self, wrote: &WriteResult) {
        match wrote {
            WriteResult::Version(version) => {
                self.version = *version;
                self.deleted = None;
            }
            WriteResult::Removed(uid) => self.deleted = Some((uid.clone(), u64::MAX)),
            WriteResult::Deleted(uid, version) => {
                self.version = self.version.max(*version);
                self.deleted = Some((uid.clone(), *version));
            }
        }
    }

    pub(crate) fn is_seen(&self) -> bool {
        self.seen_by(&self.informer)
    }

    fn seen_by(&self, informer: &Informer) -> bool {
        let is_deleted = |(uid, version): &(String, u64)| {
            let entry = informer.entry(&self.key);
            entry.is_none_or(|entry| entry.uid() != *uid || entry.version() > *version)
        };
        informer.has_seen(self.key.namespace(), self.version) && self.deleted.as_ref().is_none_or(is_deleted)
    }

    /// Whether the informer has listed since the write, and the list did not contain the object. Without a list, the
    /// informer has reported the creation and the deletion.
    fn is_missing(&self) -> bool {
        self.deleted.is_none()
            && self.is_seen()
            && self.informer.has_listed_since(self.key.namespace(), self.since)
            && self.informer.entry(&self.key).is_none()
    }

    /// Waits until the cache has seen the write.
    pub(crate) async fn seen(self) {
        self.informer.wait_until(self.key.namespace(), |informer| self.seen_by(informer)).await;
    }
}
