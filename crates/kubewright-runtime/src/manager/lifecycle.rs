//! The lifecycle of controllers and tasks: started with the manager or while it runs, and removed.
//!
//! Invariants: a part runs at most once; its name is released when it ends, also after a panic; a part that needs
//! leadership does not start before this replica leads.

use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::group::{Group, Groups};
use super::{Inner, ManagerError};

/// Removes a controller or a task from its manager. Dropping it has no effect.
#[derive(Clone)]
pub struct Handle {
    name: Arc<str>,
    manager: Weak<Inner>,
    cancel: CancellationToken,
    ended: CancellationToken,
}

impl Handle {
    /// The name of the controller or task.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Stops the controller or task and waits until it has stopped. Running reconciles finish first.
    ///
    /// Do not await this in a reconcile of the same controller: it would deadlock.
    pub async fn remove(&self) {
        self.cancel.cancel();
        if let Some(manager) = self.manager.upgrade() {
            manager.drop_removed();
        }
        self.ended.cancelled().await;
    }

    /// Whether the controller or task has stopped.
    pub fn is_ended(&self) -> bool {
        self.ended.is_cancelled()
    }
}

/// The lifetime of one part. Dropping it marks the part as ended.
pub(super) struct Life {
    manager: Weak<Inner>,
    /// The name to release; tasks do not reserve theirs.
    reserved: Option<Arc<str>>,
    cancel: CancellationToken,
    _ended: DropGuard,
}

impl Life {
    /// Creates the lifetime of a part that has not started, and the handle that removes it.
    pub(super) fn new(manager: &Arc<Inner>, name: &str, is_reserved: bool) -> (Self, Handle) {
        let name: Arc<str> = name.into();
        let (cancel, ended) = (CancellationToken::new(), CancellationToken::new());
        let manager = Arc::downgrade(manager);
        let life = Self {
            manager: manager.clone(),
            reserved: is_reserved.then(|| name.clone()),
            cancel: cancel.clone(),
            _ended: ended.clone().drop_guard(),
        };
        (life, Handle { name, manager, cancel, ended })
    }

    pub(super) fn is_removed(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// The token that stops the part. The same is passed to [`Part::run`].
    pub(super) fn stopped(&self) -> CancellationToken {
        self.cancel.clone()
    }
}

impl Drop for Life {
    // Runs before `_ended` is dropped: when `remove` returns, the name is free.
    fn drop(&mut self) {
        if let (Some(name), Some(manager)) = (&self.reserved, self.manager.upgrade()) {
            manager.state().names.remove(&**name);
        }
    }
}

/// Creates the future of a part. It resolves soon after the token is cancelled.
type Run = Box<dyn FnOnce(CancellationToken) -> BoxFuture<'static, Result<(), ManagerError>> + Send>;

/// A controller, a task or the cache of another cluster, ready to start.
pub(super) struct Part {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) life: Life,
    pub(super) run: Run,
}

/// When and where a part runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// With the cache, which starts first and stops after all its readers.
    Cache,
    /// On every replica.
    Always,
    /// On every replica, but stopped with the leader's parts: it waits for leadership itself.
    Warming,
    /// On the leader only.
    Leading,
}

impl Part {
    fn start(self, group: &mut Group) {
        let Self { name, life, run, .. } = self;
        if life.is_removed() {
            return;
        }
        let (stop, cancel) = (group.stop.clone(), life.cancel.clone());
        let mut run = run(cancel.clone());
        group.spawn(&name, async move {
            let _life = life;
            tokio::select! {
                biased;
                ended = &mut run => return ended,
                () = stop.cancelled() => cancel.cancel(),
            }
            run.await
        });
    }
}

/// A command to a running manager.
pub(super) enum Command {
    /// Start a part, now or once this replica leads.
    Start(Part),
    /// Drop the parts that wait for leadership and were removed.
    DropRemoved,
}

/// The parts of a running manager.
pub(super) struct Parts {
    commands: mpsc::UnboundedReceiver<Command>,
    /// The parts that start once this replica leads; `None` once it leads.
    waiting: Option<Vec<Part>>,
}

impl Parts {
    pub(super) fn new() -> (mpsc::UnboundedSender<Command>, Self) {
        let (sender, commands) = mpsc::unbounded_channel();
        (sender, Self { commands, waiting: Some(Vec::new()) })
    }

    /// Whether this replica does not lead yet.
    pub(super) fn wait_for_leadership(&self) -> bool {
        self.waiting.is_some()
    }

    /// The next command. Pending once every manager is dropped.
    pub(super) async fn command(&mut self) -> Command {
        match self.commands.recv().await {
            Some(command) => command,
            None => std::future::pending().await,
        }
    }

    pub(super) fn obey(&mut self, command: Command, groups: &mut Groups) {
        match command {
            Command::Start(part) => self.start(part, groups),
            Command::DropRemoved => {
                if let Some(waiting) = &mut self.waiting {
                    waiting.retain(|part| !part.life.is_removed());
                }
            }
        }
    }

    pub(super) fn start(&mut self, part: Part, groups: &mut Groups) {
        match (part.place, &mut self.waiting) {
            (Place::Cache, _) => part.start(&mut groups.cache),
            (Place::Always, _) => part.start(&mut groups.always),
            (Place::Leading, Some(waiting)) => waiting.push(part),
            (Place::Warming, _) | (Place::Leading, None) => part.start(&mut groups.leading),
        }
    }

    /// Starts the parts that waited for leadership.
    pub(super) fn lead(&mut self, groups: &mut Groups) {
        for part in self.waiting.take().into_iter().flatten() {
            part.start(&mut groups.leading);
        }
    }
}
