//! The controllers of kube-controller-manager, the scheduler and simulated nodes, on kubewright's runtime.
//!
//! No containers run. The simulated kubelet writes the status that a real one would report; annotations
//! ([`kubelet::annotation`]) change its behaviour. The controllers follow upstream's and use only the
//! Kubernetes API, so operators see the behaviour of a real cluster.
//!
//! # A tour
//!
//! Each controller is one file with a `register` function, and an example of a plain reconciler:
//!
//! - [`deployment`] creates ReplicaSets; [`replicaset`], [`replicationcontroller`], [`statefulset`],
//!   [`daemonset`] and [`job`] create Pods; [`cronjob`] creates Jobs; [`scheduler`] binds Pods to nodes;
//! - [`endpoints`] writes the EndpointSlices and Endpoints of Services, [`endpoints::mirror`] copies Endpoints of
//!   other clients into slices, [`namespace`] writes the default objects of namespaces;
//! - [`disruption`] computes allowed evictions, [`quota`] the used resources of a namespace, [`autoscaler`]
//!   scales by metrics;
//! - [`node`] and [`kubelet`] simulate nodes, [`eviction`] evicts pods from tainted nodes, [`podgc`] deletes
//!   orphaned and finished pods, [`protection`] removes the finalizers of unused volume claims;
//! - `adoption` adopts and releases dependents, `pod` evaluates pod conditions, `scale` reads scale
//!   subresources, `status` writes statuses, `history` manages ControllerRevisions.
//!
//! Decisions are pure functions of the observed state; reconcilers read and write.
//!
//! # Time
//!
//! Durations use tokio's clock, timestamps the manager's. With a paused clock, a week passes immediately.

mod adoption;
pub mod autoscaler;
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
mod status;

use std::sync::Arc;

use kubewright_runtime::{Clock, Manager, ManagerError, ManagerOptions, RegisterError, SystemClock};

pub use self::node::Nodes;

/// Field manager and event source of the controllers.
const NAME: &str = "kube-controller-manager";

/// Options of a cluster.
///
/// ```
/// use kubewright_cluster::{Nodes, Options};
///
/// let options = Options { nodes: Nodes::count(3), ..Options::default() };
/// assert_eq!(options.nodes.names[2], "node-3");
/// ```
#[derive(Debug, Clone)]
pub struct Options {
    /// The simulated nodes.
    pub nodes: Nodes,
    /// Runs the controllers of Deployments, ReplicaSets, ReplicationControllers, StatefulSets, DaemonSets, Jobs and
    /// CronJobs.
    pub workloads: bool,
    /// Runs the scheduler.
    pub scheduler: bool,
    /// Runs the controller of EndpointSlices and Endpoints.
    pub services: bool,
    /// Creates the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt` in each namespace.
    pub namespaces: bool,
    /// Runs the controllers of PodDisruptionBudgets, ResourceQuotas and HorizontalPodAutoscalers.
    pub policies: bool,
    /// The CA certificate of the API server in PEM, for `kube-root-ca.crt`. Empty if the API server does not
    /// listen.
    pub root_ca: String,
}

impl Default for Options {
    /// One node and all controllers.
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

/// Registers the controllers with a manager.
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

/// Why a cluster failed to start or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A controller could not be registered.
    #[error("failed to register a cluster controller")]
    Register(#[from] RegisterError),
    /// The manager of the controllers failed.
    #[error("the controller manager failed")]
    Manager(#[from] ManagerError),
}

/// The controllers of a cluster, connected to an API server.
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
    /// Creates a cluster with the system clock. Must be called in a tokio runtime. Nothing runs before
    /// [`Cluster::run_until`].
    pub fn new(kube: kube::Client, options: &Options) -> Result<Self, RunError> {
        Self::on_clock(kube, options, Arc::new(SystemClock), None)
    }

    /// Creates a cluster with the given clock. The seed makes runs reproducible.
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

    /// Runs until `stop` resolves or a controller fails.
    pub async fn run_until(self, stop: impl Future<Output = ()>) -> Result<(), RunError> {
        Ok(self.manager.run_until(stop).await?)
    }

    /// The manager, to add more controllers.
    pub fn manager(&self) -> &Manager {
        &self.manager
    }
}
