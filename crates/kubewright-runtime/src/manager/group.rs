//! Groups of tasks that start and stop together.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::task::{Id, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::ManagerError;

/// Tasks that start and stop together. Dropping it aborts them.
#[derive(Default)]
pub(super) struct Group {
    tasks: JoinSet<Result<(), ManagerError>>,
    names: HashMap<Id, String>,
    pub(super) stop: CancellationToken,
}

impl Group {
    pub(super) fn spawn(
        &mut self,
        name: &str,
        task: impl Future<Output = Result<(), ManagerError>> + Send + 'static,
    ) {
        // Boxed, so that tokio's task code is compiled once and not once per future type.
        let handle = self.tasks.spawn(task.boxed());
        self.names.insert(handle.id(), name.to_owned());
    }

    /// The next failure. Pending while there is none.
    pub(super) async fn failure(&mut self) -> ManagerError {
        loop {
            match self.tasks.join_next_with_id().await {
                Some(joined) => {
                    if let Err(error) = self.joined(joined) {
                        return error;
                    }
                }
                None => std::future::pending().await,
            }
        }
    }

    /// Cancels all tasks and waits for them. Tasks that run past the deadline are aborted, and their names returned.
    pub(super) async fn end(&mut self, deadline: Option<Instant>) -> (Option<ManagerError>, Vec<String>) {
        self.stop.cancel();
        let mut first = None;
        while !self.tasks.is_empty() {
            let next = self.tasks.join_next_with_id();
            let joined = match deadline {
                None => next.await,
                Some(deadline) => match tokio::time::timeout_at(deadline, next).await {
                    Ok(joined) => joined,
                    Err(_) => break,
                },
            };
            if let Some(joined) = joined {
                first = first.or(self.joined(joined).err());
            }
        }
        let mut still: Vec<String> = self.names.drain().map(|(_, name)| name).collect();
        still.sort();
        self.tasks.shutdown().await;
        (first, still)
    }

    fn joined(
        &mut self,
        joined: Result<(Id, Result<(), ManagerError>), tokio::task::JoinError>,
    ) -> Result<(), ManagerError> {
        match joined {
            Ok((id, result)) => {
                self.names.remove(&id);
                result
            }
            Err(source) => {
                let name = self.names.remove(&source.id()).unwrap_or_default();
                if source.is_panic() { Err(ManagerError::Panicked { name, source }) } else { Ok(()) }
            }
        }
    }
}

/// The groups of a manager, in start order.
#[derive(Default)]
pub(super) struct Groups {
    pub(super) servers: Group,
    pub(super) events: Group,
    pub(super) cache: Group,
    /// Runs on every replica.
    pub(super) always: Group,
    /// Runs on the leader only.
    pub(super) leading: Group,
}

/// Minimum time for cache, events and servers to stop, even if the controllers used up the timeout. Events are flushed
/// for one second.
const REST: Duration = Duration::from_secs(2);

impl Groups {
    /// The next failure of any group.
    pub(super) async fn failure(&mut self) -> ManagerError {
        tokio::select! {
            biased;
            failure = self.servers.failure() => failure,
            failure = self.events.failure() => failure,
            failure = self.cache.failure() => failure,
            failure = self.always.failure() => failure,
            failure = self.leading.failure() => failure,
        }
    }

    /// Stops controllers and tasks, then the components that they need.
    pub(super) async fn end(mut self, timeout: Option<Duration>) -> Result<(), ManagerError> {
        let until = timeout.map(|timeout| Instant::now() + timeout);
        let (always, leading) = tokio::join!(self.always.end(until), self.leading.end(until));
        let until = until.map(|until| until.max(Instant::now() + REST));
        let (cache, events, servers) =
            (self.cache.end(until).await, self.events.end(until).await, self.servers.end(until).await);
        let mut still = Vec::new();
        for (failure, names) in [always, leading, cache, events, servers] {
            if let Some(failure) = failure {
                return Err(failure);
            }
            still.extend(names);
        }
        match (timeout, still.as_slice()) {
            (Some(after), [_, ..]) => Err(ManagerError::ShutdownTimedOut { after, still }),
            _ => Ok(()),
        }
    }

    /// Aborts everything.
    pub(super) async fn end_now(mut self) {
        let now = Some(Instant::now());
        for group in
            [&mut self.always, &mut self.leading, &mut self.cache, &mut self.events, &mut self.servers]
        {
            group.end(now).await;
        }
    }
}
