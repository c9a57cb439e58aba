//! The workload of a reconcile and the count of finished reconciles.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::Widget;

/// The workload and the pending waiter.
#[derive(Debug, Default)]
pub struct Work {
    /// The turn to write into every widget's status; 0 to leave the status unchanged.
    turn: AtomicI64,
    left: AtomicUsize,
    done: Mutex<Option<oneshot::Sender<Instant>>>,
}

impl Work {
    /// No status writes and no waiter.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes every reconcile write `turn` into the widget's status.
    pub fn patch_status(&self, turn: i64) {
        self.turn.store(turn, Ordering::Release);
    }

    /// Resolves after `reconciles` more reconciles. While statuses are patched, only reconciles with a patch
    /// count.
    pub fn expect(&self, reconciles: usize) -> oneshot::Receiver<Instant> {
        let (done, receiver) = oneshot::channel();
        *self.done.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
        self.left.store(reconciles, Ordering::Release);
        receiver
    }

    /// The merge patch that a widget needs, if any. Call [`Work::did`] after sending it, or [`Work::looked`]
    /// if there is none.
    pub fn patch_for(&self, widget: &Widget) -> Option<Value> {
        let turn = self.turn.load(Ordering::Acquire);
        let said = widget.status.as_ref().map_or(0, |status| status.turn);
        (turn != 0 && said != turn).then(|| json!({"status": {"turn": turn, "ready": true}}))
    }

    /// Counts a reconcile without changes.
    pub fn looked(&self) {
        if self.turn.load(Ordering::Acquire) == 0 {
            self.did();
        }
    }

    /// Counts a finished reconcile.
    pub fn did(&self) {
        let left = self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1));
        if left == Ok(1)
            && let Some(done) = self.done.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            // The receiver may have been dropped.
            let _ = done.send(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{WidgetStatus, widget};

    #[test]
    fn the_last_expected_reconcile_notifies_the_waiter() {
        let work = Work::new();
        let mut done = work.expect(2);
        work.looked();
        assert!(done.try_recv().is_err());
        work.looked();
        assert!(done.try_recv().is_ok());
        work.looked();
    }

    #[test]
    fn a_status_is_patched_once_per_turn() {
        let work = Work::new();
        let mut widget = widget("a", 0);
        assert_eq!(work.patch_for(&widget), None);
        work.patch_status(3);
        assert!(work.patch_for(&widget).is_some());
        widget.status = Some(WidgetStatus { turn: 3, ready: true });
        assert_eq!(work.patch_for(&widget), None);
    }

    #[test]
    fn while_statuses_are_patched_only_patches_count() {
        let work = Work::new();
        work.patch_status(1);
        let mut done = work.expect(1);
        work.looked();
        assert!(done.try_recv().is_err());
        work.did();
        assert!(done.try_recv().is_ok());
    }
}
