//! The workload of both benchmark operators.
//!
//! Ours and the peer implement [`Operator`], reconcile the same [`Widget`]s with the same [`Work`], and run
//! as a process with the same [`run`]. This crate depends on neither of them.

mod program;
mod webhook;
mod widget;
mod work;

use std::sync::Arc;

use anyhow::Result;

pub use self::program::run;
pub use self::webhook::{DEFAULT_PROTOCOL, MUTATE, VALIDATE, WebhookServer, problems};
pub use self::widget::{Port, Widget, WidgetSpec, WidgetStatus, widget};
pub use self::work::Work;

/// The namespace of all reconciled objects.
pub const NAMESPACE: &str = "default";

/// The reconciled kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A custom resource of about 1 KB.
    Widgets,
    /// Pods. They are only read.
    Pods,
}

/// Options of an operator.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The reconciled kind.
    pub kind: Kind,
    /// Maximum number of concurrent reconciles.
    pub workers: u16,
    /// The name of the leader election Lease. Must be unique per process, because a killed process does not
    /// release it.
    pub lease: String,
}

/// An operator with leader election, health probes, metrics and one controller.
pub trait Operator: Sized + Send {
    /// Sets up logging to standard error.
    fn logs() -> Result<()>;

    /// Connects to the cluster of the environment with the runtime's usual client.
    fn connect() -> impl Future<Output = Result<kube::Client>> + Send;

    /// Starts the manager and its controller.
    fn start(
        client: kube::Client,
        setup: Setup,
        work: Arc<Work>,
    ) -> impl Future<Output = Result<Self>> + Send;

    /// Waits until the operator is leading and its cache is synced.
    fn ready(&self) -> impl Future<Output = Result<()>> + Send;

    /// Triggers a reconcile of each named object.
    fn again(&self, names: &[String]) -> impl Future<Output = Result<()>> + Send;

    /// Stops the operator.
    fn stop(self) -> impl Future<Output = Result<()>> + Send;
}
