//! Forwards events of sources to the work queue, with one task per source.
//!
//! Invariant: a failure for one object does not affect the others.

use std::sync::Arc;

use kube::api::DynamicObject;
use kubewright_sync::ordered_watch;
use tracing::error;

use super::cause::{Cause, RecordChanges, Trigger};
use super::requests::Requests;
use super::runner::each_is_logged;
use super::source::{ChannelSource, KindSource};
use super::{Event, Predicate};
use crate::cache::{Cache, Change, Informer};
use crate::journal::Journal;
use crate::panics::{self, Panic};

/// The maximum number of channel keys that are queued in one batch.
const AT_ONCE: usize = 64;

/// Forwards the events of one source to the queue.
pub(super) struct EventForwarder {
    controller: Arc<str>,
    source: KindSource,
    informer: Arc<Informer>,
    cache: Cache,
    required: Arc<[Arc<Informer>]>,
    requests: Requests,
    filters: Arc<[Predicate<DynamicObject>]>,
    journal: Option<Journal>,
}

/// Why a forwarder ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ForwarderEnd {
    /// The cache of its source has stopped.
    Cache,
    /// Its source was removed from the controller.
    Removed,
}

impl EventForwarder {
    /// Creates a forwarder for one source. Map functions get `cache`, which is the manager's. `required` are the
    /// informers of the controller that are listed before it delivers an event.
    pub(super) fn new(
        controller: Arc<str>,
        source: KindSource,
        cache: &Cache,
        required: Arc<[Arc<Informer>]>,
        requests: &Requests,
        filters: Arc<[Predicate<DynamicObject>]>,
        journal: Option<&Journal>,
    ) -> Self {
        Self {
            controller,
            informer: source.informer(cache),
            source,
            cache: cache.clone(),
            required,
            requests: requests.clone(),
            filters,
            journal: journal.cloned(),
        }
    }

    /// Forwards events until the cache stops. Sets `queued` when all objects of the first list are queued.
    pub(super) async fn run(self, queued: ordered_watch::Sender<bool>) -> ForwarderEnd {
        let inbox = self.informer.follow();
        // Predicates and map functions read the cache. Before all kinds are listed, they could miss objects, and the
        // event would not be delivered again. A controller that is registered while the manager runs has kinds that
        // were not registered when the cache started.
        let other = self.source.other_cache().map(Cache::initial);
        let initial = other.into_iter().flatten().chain(self.cache.initial());
        for informer in initial.chain(self.required.iter().cloned()) {
            // If the informer has stopped, the controller reports it and ends.
            let _ = informer.synced().await;
        }
        let mut synced = false;
        while let Some(batch) = inbox.take(synced).await {
            let journalled = self.journal.as_ref().is_some_and(Journal::is_heard);
            let record = if journalled || each_is_logged() { RecordChanges::Yes } else { RecordChanges::No };
            for change in &batch.changes {
                self.handle(change, record);
            }
            if batch.relisted {
                self.requests.relisted();
            }
            if batch.synced && !synced {
                synced = true;
                queued.send_replace(true);
            }
        }
        ForwarderEnd::Cache
    }

    /// Handles one event. A panic of a predicate or map function drops only this event.
    fn handle(&self, change: &Change, record: RecordChanges) {
        let Self { controller, source, informer, cache, requests, filters, .. } = self;
        let handled = panics::contain(|| {
            let event = Event::<DynamicObject>::new(change, informer, controller);
            if filters.iter().all(|filter| filter.passes(&event)) {
                source.handle(controller, change, informer, cache, requests, record);
            }
        });
        if let Err(Panic { message, at, times }) = handled {
            error!(
                controller = &**controller,
                kind = %informer.kind().gvk(),
                object = %change.latest().key(),
                panic = message,
                at,
                times,
                "Predicate or map function panicked; event dropped",
            );
        }
    }
}

/// Forwards the keys of a channel to the queue.
pub(super) async fn forward_channel(mut channel: ChannelSource, requests: Requests) -> ForwarderEnd {
    let mut keys = Vec::with_capacity(AT_ONCE);
    while channel.recv_many(&mut keys, AT_ONCE).await > 0 {
        let asked = keys.drain(..).map(|key| {
            let cause = Cause::new(Trigger::Channel, None, key.clone());
            (key, cause)
        });
        requests.ask(asked);
    }
    // A channel without senders does not end the controller.
    std::future::pending().await
}
