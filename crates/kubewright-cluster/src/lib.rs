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
//! - [`deployment`] makes ReplicaSets, [`replicaset`], [`replicationcontroller`], [`statefulset`], [`daemonset`] and
//!   [`job`] make Pods, [`scheduler`] gives them nodes, [`cronjob`] makes Jobs;
//! - [`endpoints`] says where the pods of a Service are, [`endpoints::mirror`] copies Endpoints that others write,
//!   [`namespace`] fills namespaces;
//! - [`disruption`] says how many pods may be evicted, [`quota`] what a namespace uses, [`autoscaler`] scales by metrics;
//! - [`node`] and [`kubelet`] simulate the machines, [`eviction`] takes pods from tainted ones, [`podgc`] those that
//!   nobody else would end, [`protection`] lets go of claims that nobody uses;
//! - `claim` finds out whose a pod is, `pod` says how one is, `scale` how many of them somebody wants, `history` keeps
//!   the templates that a set has had.
//!
//! What a controller decides is a pure function of what is there; the reconciler around it reads and writes.
//!
//! # Time
//!
//! Durations are tokio's, and the time of day is the manager's clock: on a paused clock a week passes at once.

pub mod autoscaler;
mod claim;
pub mod cronjob;
pub mod daemonset;
pub mod deployment;
pub mod disruption;
pub mod endpoints;
pub mod eviction;
mod hash;
mod history;
pub mod job;
pub mod kubelet;
pub mod namespace;
pub mod node;
mod pod;
pub mod podgc;
pub mod protection;
pub mod quota;
pub mod replicaset;
pub mod replicationcontroller;
mod scale;
pub mod scheduler;
pub mod statefulset;

use std::sync::Arc;

use kubewright_runtime::{Clock, Manager, ManagerError, ManagerOptions, RegisterError, SystemClock};

pub use self::node::Nodes;

/// The name that the cluster writes under, and that its events carry.
const NAME: &str = "kube-controller-manager";

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
    /// Whether Deployments, ReplicaSets, ReplicationControllers, StatefulSets, DaemonSets, Jobs and CronJobs become Pods.
    pub workloads: bool,
    /// Whether Pods are given nodes.
    pub scheduler: bool,
    /// Whether Services have EndpointSlices and Endpoints.
    pub services: bool,
    /// Whether each namespace has its ServiceAccount `default` and its ConfigMap `kube-root-ca.crt`.
    pub namespaces: bool,
    /// Whether disruption budgets and resource quotas are counted, and autoscalers scale.
    pub policies: bool,
    /// The certificate authority of the API server, in PEM, for those ConfigMaps. Empty where nobody listens.
    pub root_ca: String,
}

impl Default for Options {
    /// One node, and all controllers.
    fn default() -> Self {
        Self {
            nodes: Nodes::default(),
            workloads: true,
            scheduler: true,
            services: true,
            namespaces: true,
            policies: true,
            root_ca: String::new(),
        }
    }
}

/// Gives the manager the controllers of a cluster.
pub fn register(manager: &Manager, options: &Options) -> Result<(), RegisterError> {
    node::register(manager, &options.nodes)?;
    kubelet::register(manager)?;
    eviction::register(manager)?;
    podgc::register(manager)?;
    protection::register(manager)?;
    if options.scheduler {
        scheduler::register(manager)?;
    }
    if options.workloads {
        replicaset::register(manager)?;
        replicationcontroller::register(manager)?;
        deployment::register(manager)?;
        statefulset::register(manager)?;
        daemonset::register(manager)?;
        job::register(manager)?;
        cronjob::register(manager)?;
    }
    if options.services {
        endpoints::register(manager)?;
        endpoints::mirror::register(manager)?;
    }
    if options.namespaces {
        namespace::register(manager, &options.root_ca)?;
    }
    if options.policies {
        disruption::register(manager)?;
        quota::register(manager)?;
        autoscaler::register(manager)?;
    }
    Ok(())
}

/// Why a cluster did not start, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A controller could not be registered.
    #[error("a controller of the cluster cannot be registered")]
    Register(#[from] RegisterError),
    /// The manager of the controllers failed.
    #[error("the controllers of the cluster ended")]
    Manager(#[from] ManagerError),
}

/// A cluster on an API server, ready to run.
///
/// ```no_run
/// # async fn example(client: kube::Client, stop: impl Future<Output = ()>) -> Result<(), kubewright_cluster::RunError> {
/// use kubewright_cluster::{Cluster, Options};
///
/// Cluster::new(client, &Options::default())?.run_until(stop).await
/// # }
/// ```
pub struct Cluster {
    manager: Manager,
}

impl Cluster {
    /// A cluster on the machine's clock. Must be called within a runtime. Nothing starts before [`Cluster::run_until`].
    pub fn new(kube: kube::Client, options: &Options) -> Result<Self, RunError> {
        Self::on_clock(kube, options, Arc::new(SystemClock), None)
    }

    /// A cluster on a clock, which the same seed makes run the same.
    pub fn on_clock(
        kube: kube::Client,
        options: &Options,
        clock: Arc<dyn Clock>,
        seed: Option<u64>,
    ) -> Result<Self, RunError> {
        let manager = Manager::new(kube, ManagerOptions { clock, seed, ..ManagerOptions::new(NAME) })?;
        register(&manager, options)?;
        Ok(Self { manager })
    }

    /// Runs until `stop` resolves, or until something fails.
    pub async fn run_until(self, stop: impl Future<Output = ()>) -> Result<(), RunError> {
        Ok(self.manager.run_until(stop).await?)
    }

    /// The manager of the controllers, for more of them.
    pub fn manager(&self) -> &Manager {
        &self.manager
    }
}
