//! What the operators of the measurements are asked to do, and who counts it.
//!
//! Ours and the peer are one program on two runtimes: both implement [`Operator`], reconcile the same [`Widget`]s by
//! the same [`Work`], and become a process by the same [`run`]. Nothing here knows either of them.

mod program;
mod widget;
mod work;

use std::sync::Arc;

use anyhow::Result;

pub use self::program::run;
pub use self::widget::{Port, Widget, WidgetSpec, WidgetStatus, widget};
pub use self::work::Work;

/// The namespace of everything that is reconciled.
pub const NAMESPACE: &str = "default";

/// The kind that an operator is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A custom resource of about 1 KB.
    Widgets,
    /// Pods. They are looked at and left alone.
    Pods,
}

/// How an operator runs.
#[derive(Debug, Clone)]
pub struct Setup {
    /// What it is for.
    pub kind: Kind,
    /// How many objects it reconciles at once.
    pub workers: u16,
    /// The Lease that it leads by. One of its own, since nobody gives back that of a process that was killed.
    pub lease: String,
}

/// An operator as people run it: leader election, health probes, metrics, and one controller.
pub trait Operator: Sized + Send {
    /// Sets up the logs of the process, on standard error.
    fn logs() -> Result<()>;

    /// Connects as users of the runtime do, to the cluster of the environment.
    fn connect() -> impl Future<Output = Result<kube::Client>> + Send;

    /// Starts everything.
    fn start(
        client: kube::Client,
        setup: Setup,
        work: Arc<Work>,
    ) -> impl Future<Output = Result<Self>> + Send;

    /// Waits until it leads and knows everything that is there.
    fn ready(&self) -> impl Future<Output = Result<()>> + Send;

    /// Has all objects of these names reconciled once more.
    fn again(&self, names: &[String]) -> impl Future<Output = Result<()>> + Send;

    /// Ends everything.
    fn stop(self) -> impl Future<Output = Result<()>> + Send;
}
