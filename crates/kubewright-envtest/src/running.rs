//! A manager that runs in the background of a test.

use std::sync::Arc;

use kubewright_runtime::{Manager, ManagerError};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;
use crate::operator::Operator;

/// A manager that runs in the background. It stops when this value is dropped, or with [`Running::stop`].
///
/// If the operator lacked permissions in its generated role, dropping this value panics and names the `#[rbac]`
/// attributes to add. Tests that expect this take them with
/// [`Environment::forbidden_permissions`](crate::Environment::forbidden_permissions).
pub struct Running {
    task: Option<JoinHandle<Result<(), ManagerError>>>,
    stop: CancellationToken,
    metrics: kubewright_runtime::metrics::Metrics,
    operator: Option<Arc<Operator>>,
    manager: Manager,
}

impl Running {
    pub(crate) fn start(manager: Manager, operator: Option<Arc<Operator>>) -> Self {
        let (stop, metrics) = (CancellationToken::new(), manager.metrics().clone());
        let task = tokio::spawn(manager.clone().run_until(stop.clone().cancelled_owned()));
        Self { task: Some(task), stop, metrics, operator, manager }
    }

    /// Waits until the operator is ready: its role is bound, its webhooks are installed and its caches have synced.
    /// Earlier writes may bypass its webhooks. If the manager stopped, returns its error.
    pub async fn ready(&mut self) -> Result<(), ManagerError> {
        let manager = self.manager.clone();
        let working = async {
            manager.addresses().await;
            // If the cache fails, the manager stops.
            let _ = manager.cache().synced().await;
        };
        tokio::select! {
            biased;
            ended = self.ended() => ended.and(Err(ManagerError::Stopped)),
            () = working => Ok(()),
        }
    }

    /// A snapshot of the manager's metrics.
    pub fn metrics(&self) -> Metrics {
        Metrics::read(&self.metrics)
    }

    /// Stops the manager gracefully and returns its result.
    pub async fn stop(mut self) -> Result<(), ManagerError> {
        self.stop.cancel();
        self.ended().await
    }

    /// Waits until the manager returns.
    pub async fn ended(&mut self) -> Result<(), ManagerError> {
        let Some(task) = &mut self.task else { return Ok(()) };
        let ended = task.await;
        self.task = None;
        match ended {
            Ok(result) => result,
            Err(source) if source.is_panic() => std::panic::resume_unwind(source.into_panic()),
            Err(_) => Ok(()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
        if let Some(operator) = &self.operator {
            operator.check();
        }
    }
}
