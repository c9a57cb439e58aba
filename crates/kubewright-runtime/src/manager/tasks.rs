//! Tasks: functions that run beside the controllers, on the leader or on every replica.

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::lifecycle::{Handle, Life, Part, Place};
use super::{Manager, ManagerError, RegisterError};
use crate::client::Client;
use crate::reconcile;

/// A task that has not started.
pub(super) struct Task {
    name: String,
    needs_leader: bool,
    start: Box<dyn FnOnce(TaskContext) -> BoxFuture<'static, Result<(), reconcile::Error>> + Send>,
}

/// The context of a task.
#[derive(Clone)]
pub struct TaskContext {
    client: Client,
    stop: CancellationToken,
}

impl TaskContext {
    /// The client. For a task that runs on the leader only, it sends writes only while this replica leads.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Resolves when the task must stop.
    pub fn stopped(&self) -> impl Future<Output = ()> + '_ {
        self.stop.cancelled()
    }

    /// Whether the task must stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }
}

impl Manager {
    /// Runs a task on the leader only. If it fails, the manager stops. If the manager runs, the task starts
    /// immediately.
    pub fn task<F>(
        &self,
        name: &str,
        task: impl FnOnce(TaskContext) -> F + Send + 'static,
    ) -> Result<Handle, RegisterError>
    where
        F: Future<Output = Result<(), reconcile::Error>> + Send + 'static,
    {
        self.add_task(name, true, task)
    }

    /// Runs a task on every replica. If it fails, the manager stops. If the manager runs, the task starts immediately.
    pub fn task_without_leader<F>(
        &self,
        name: &str,
        task: impl FnOnce(TaskContext) -> F + Send + 'static,
    ) -> Result<Handle, RegisterError>
    where
        F: Future<Output = Result<(), reconcile::Error>> + Send + 'static,
    {
        self.add_task(name, false, task)
    }

    fn add_task<F>(
        &self,
        name: &str,
        needs_leader: bool,
        task: impl FnOnce(TaskContext) -> F + Send + 'static,
    ) -> Result<Handle, RegisterError>
    where
        F: Future<Output = Result<(), reconcile::Error>> + Send + 'static,
    {
        let start = Box::new(|cx| -> BoxFuture<'static, _> { Box::pin(task(cx)) });
        let task = Task { name: name.to_owned(), needs_leader, start };
        let (life, handle) = Life::new(&self.inner, name, false);
        let mut state = self.state();
        match state.running.clone() {
            None => state.tasks.push((task, life)),
            Some(running) => {
                drop(state);
                running.start(self.task_part(task, life))?;
            }
        }
        Ok(handle)
    }

    pub(super) fn task_part(&self, task: Task, life: Life) -> Part {
        let client = self.client_for(task.needs_leader);
        let Task { name, needs_leader, start } = task;
        Part {
            name: name.clone(),
            place: if needs_leader { Place::Leading } else { Place::Always },
            life,
            run: Box::new(move |stop| {
                // Call `start` inside the task, because the call itself may panic.
                Box::pin(async move {
                    let cx = TaskContext { client, stop };
                    start(cx).await.map_err(|failure| ManagerError::Task { name, failure })
                })
            }),
        }
    }
}
