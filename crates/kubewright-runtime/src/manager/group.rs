//! Tasks that start and end together.

use std::collections::HashMap;
use std::time::Duration;

use tokio::task::{Id, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::ManagerError;

/// Tasks that start and end together. Dropping it ends them.
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
        let handle = self.tasks.spawn(task);
        self.names.insert(handle.id(), name.to_owned());
    }

    /// The next failure. Waits for ever while there is none.
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

    /// Asks all tasks to end and waits for them. Those that are not done by then are dropped, and named.
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

/// When it must be over.
pub(super) fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    timeout.map(|timeout| Instant::now() + timeout)
}
