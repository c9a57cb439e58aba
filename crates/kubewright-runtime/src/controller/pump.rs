//! From sources to the queue.
//!
//! Owns the tasks that follow one source each. Invariant: a source that fails for one object goes on for the others.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use tokio::sync::watch;
use tracing::error;

use super::cause::{Cause, Looked, What};
use super::runner::{each_is_logged, said};
use super::source::{ChannelSource, KindSource, Requests};
use crate::cache::{Cache, Change, Informer};
use crate::journal::Journal;
use crate::queue::DEFAULT_PRIORITY;

/// How many keys of a channel are queued at once, at most.
const AT_ONCE: usize = 64;

/// Hands changes to the queue, as long as there are any.
pub(super) struct Pump {
    pub(super) source: KindSource,
    pub(super) informer: Arc<Informer>,
    pub(super) cache: Cache,
    pub(super) queue: Requests,
    pub(super) journal: Option<Journal>,
}

impl Pump {
    /// Says when it has told what was there at the start.
    pub(super) async fn run(self, told: watch::Sender<bool>) {
        let inbox = self.informer.follow();
        let mut synced = false;
        while let Some(batch) = inbox.take(synced).await {
            let journalled = self.journal.as_ref().is_some_and(Journal::is_heard);
            let looked = if journalled || each_is_logged() { Looked::At } else { Looked::Over };
            for change in &batch.changes {
                self.handle(change, looked);
            }
            if batch.synced && !synced {
                synced = true;
                told.send_replace(true);
            }
        }
    }

    /// A panic of a predicate or of a mapping is about one object: the others must not go unheard for it.
    fn handle(&self, change: &Change, looked: Looked) {
        let Self { source, informer, cache, queue, .. } = self;
        let handled = AssertUnwindSafe(|| source.handle(change, informer, cache, queue, looked));
        if let Err(panic) = std::panic::catch_unwind(handled) {
            error!(
                kind = informer.kind().name(),
                object = %change.latest().key(),
                panic = said(&*panic),
                "a predicate or a mapping panicked; whom this concerns is not reconciled",
            );
        }
    }
}

/// Hands the keys of a channel to the queue.
pub(super) async fn pump_channel(mut channel: ChannelSource, queue: Requests) {
    let mut keys = Vec::with_capacity(AT_ONCE);
    while channel.recv_many(&mut keys, AT_ONCE).await > 0 {
        let asked = keys.drain(..).map(|key| {
            let cause = Cause::new(What::Asked, None, key.clone());
            (key, cause)
        });
        queue.add_all(asked, DEFAULT_PRIORITY);
    }
    // A channel that nobody can send to any more is no reason to stop.
    std::future::pending::<()>().await;
}
