//! A state behind one lock, and notifications for its readers.

use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

use crate::model::board::Board;

/// A state that publishes its entries on a board.
pub trait Published {
    /// The board.
    fn board(&self) -> &Board;
}

/// The state with change notifications.
pub struct Shared<S> {
    state: Mutex<S>,
    changed: watch::Sender<u64>,
    /// Identifies this run, since positions of other runs are not comparable.
    epoch: String,
}

impl<S: Published> Shared<S> {
    /// Shares a state. The epoch must differ between runs, and have no dash.
    pub fn new(state: S, epoch: String) -> Self {
        Self { state: Mutex::new(state), changed: watch::channel(0).0, epoch }
    }

    /// Changes the state, and notifies readers if something was published.
    pub fn update<R>(&self, change: impl FnOnce(&mut S) -> R) -> R {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut state);
        let position = state.board().position();
        drop(state);
        self.changed.send_if_modified(|last| std::mem::replace(last, position) != position);
        result
    }

    /// Reads the state.
    pub fn read<R>(&self, look: impl FnOnce(&S) -> R) -> R {
        look(&self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notifications of new entries.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// The ID of this run.
    pub fn epoch(&self) -> &str {
        &self.epoch
    }

    /// The position of a reader by its ID, `EPOCH-POSITION`; `None` if it is of another run.
    pub fn position(&self, id: &str) -> Option<u64> {
        let (epoch, position) = id.split_once('-')?;
        (epoch == self.epoch).then(|| position.parse().ok())?
    }
}
