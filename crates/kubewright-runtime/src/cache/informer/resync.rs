//! Periodic resyncs of an informer: followers get every object again, unchanged, without a request to the server.

use futures_util::future::{join_all, pending};
use tokio::time::{MissedTickBehavior, interval};

use super::{Informer, Scoped};
use crate::cache::store::{Change, Occasion};

impl Informer {
    /// Resyncs each scope with its own period. Never resolves.
    pub(super) async fn resync(&self) {
        join_all(self.settings.scopes.iter().map(|scope| self.resync_scope(scope))).await;
    }

    async fn resync_scope(&self, scope: &Scoped) {
        let Some(every) = scope.resync else { return pending().await };
        let mut tick = interval(every);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tick.tick().await;
        loop {
            tick.tick().await;
            let shared = self.read();
            let is_excepted = |namespace: &str| scope.except.iter().any(|it| it == namespace);
            for entry in shared.store.iter(scope.namespace.as_deref()) {
                if entry.key().namespace().is_some_and(is_excepted) {
                    continue;
                }
                let (old, new) = (Some(entry.clone()), Some(entry.clone()));
                let same = Change { old, new, occasion: Occasion::Resync, removal: None };
                shared.notify(same);
            }
        }
    }
}
