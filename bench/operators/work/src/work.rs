//! What a reconcile does, and how many are done.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::Widget;

/// What reconciles do, and who waits for them.
#[derive(Debug, Default)]
pub struct Work {
    /// What the status of every widget is to say; 0 to leave it alone.
    turn: AtomicI64,
    left: AtomicUsize,
    done: Mutex<Option<oneshot::Sender<Instant>>>,
}

impl Work {
    /// Nothing is to be done, and nobody waits.
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on every widget is to have this in its status.
    pub fn patch_status(&self, turn: i64) {
        self.turn.store(turn, Ordering::Release);
    }

    /// Tells when so many reconciles from now on are done. While statuses are patched, only those that do it count.
    pub fn expect(&self, reconciles: usize) -> oneshot::Receiver<Instant> {
        let (done, receiver) = oneshot::channel();
        *self.done.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
        self.left.store(reconciles, Ordering::Release);
        receiver
    }

    /// The merge patch that a widget needs, if any. Whoever gets none calls [`Work::looked`], and whoever gets one
    /// sends it and calls [`Work::did`].
    pub fn patch_for(&self, widget: &Widget) -> Option<Value> {
        let turn = self.turn.load(Ordering::Acquire);
        let said = widget.status.as_ref().map_or(0, |status| status.turn);
        (turn != 0 && said != turn).then(|| json!({"status": {"turn": turn, "ready": true}}))
    }

    /// A reconcile that changes nothing is done.
    pub fn looked(&self) {
        if self.turn.load(Ordering::Acquire) == 0 {
            self.did();
        }
    }

    /// A reconcile is done.
    pub fn did(&self) {
        let left = self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1));
        if left == Ok(1)
            && let Some(done) = self.done.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            // Whoever asked may have gone away.
            let _ = done.send(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{WidgetStatus, widget};

    #[test]
    fn the_last_reconcile_is_told() {
        let work = Work::new();
        let mut done = work.expect(2);
        work.looked();
        assert!(done.try_recv().is_err());
        work.looked();
        assert!(done.try_recv().is_ok());
        work.looked();
    }

    #[test]
    fn a_status_is_patched_once_a_turn() {
        let work = Work::new();
        let mut widget = widget("a", 0);
        assert_eq!(work.patch_for(&widget), None);
        work.patch_status(3);
        assert!(work.patch_for(&widget).is_some());
        widget.status = Some(WidgetStatus { turn: 3, ready: true });
        assert_eq!(work.patch_for(&widget), None);
    }

    #[test]
    fn while_statuses_are_patched_a_look_counts_for_nothing() {
        let work = Work::new();
        work.patch_status(1);
        let mut done = work.expect(1);
        work.looked();
        assert!(done.try_recv().is_err());
        work.did();
        assert!(done.try_recv().is_ok());
    }
}
