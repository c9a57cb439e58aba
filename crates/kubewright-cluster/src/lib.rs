//! The controllers of a cluster, on kubewright's runtime: a Deployment becomes Pods that run, on nodes that are simulated.
//!
//! Nothing is executed. The kubelet here writes what a real one would report, when it would report it; what a pod is to
//! do otherwise is said by annotations ([`kubelet::annotation`]). Everything else is what upstream's controllers do, and
//! goes through the API server as theirs does, so that an operator cannot tell the difference.
//!
//! # A tour
//!
//! One file is one controller, each with a `register` of its own, and each a plain example of a reconciler:
//!
//! - [`deployment`] makes ReplicaSets, [`replicaset`] makes Pods, [`scheduler`] gives them nodes;
//! - [`node`] and [`kubelet`] simulate the machines;
//! - `claim` finds out whose a pod is, `pod` says how one is.
//!
//! What a controller decides is a pure function of what is there; the reconciler around it reads and writes.
//!
//! # Time
//!
//! Durations are tokio's, and the time of day is the manager's clock: on a paused clock a week passes at once.

mod claim;
pub mod deployment;
mod hash;
pub mod kubelet;
pub mod node;
mod pod;
pub mod replicaset;
pub mod scheduler;

use kubewright_runtime::{Manager, RegisterError};

pub use self::node::Nodes;

/// What a cluster consists of.
///
/// ```
/// use kubewright_cluster::{Nodes, Options};
///
/// let options = Options { nodes: Nodes::count(3), ..Options::default() };
/// assert_eq!(options.nodes.names[2], "node-3");
/// ```
#[derive(Debug, Clone)]
pub struct Options {
    /// The machines.
    pub nodes: Nodes,
    /// Whether Deployments and ReplicaSets become Pods.
    pub workloads: bool,
    /// Whether Pods are given nodes.
    pub scheduler: bool,
}

impl Default for Options {
    /// One node, and all controllers.
    fn default() -> Self {
        Self { nodes: Nodes::default(), workloads: true, scheduler: true }
    }
}

/// Gives the manager the controllers of a cluster.
pub fn register(manager: &Manager, options: &Options) -> Result<(), RegisterError> {
    node::register(manager, &options.nodes)?;
    kubelet::register(manager)?;
    if options.scheduler {
        scheduler::register(manager)?;
    }
    if options.workloads {
        replicaset::register(manager)?;
        deployment::register(manager)?;
    }
    Ok(())
}
