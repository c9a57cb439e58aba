//! What an election counts, under the names that client-go gives them.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// `leader_election_master_status` and `leader_election_slowpath_total`, by Lease. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct ElectionMetrics {
    master_status: Family<LeaseName, Gauge>,
    slowpath: Family<LeaseName, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LeaseName {
    name: String,
}

impl ElectionMetrics {
    /// Metrics that `registry` shows.
    ///
    /// ```
    /// use kubewright_runtime::ElectionMetrics;
    /// use prometheus_client::registry::Registry;
    ///
    /// let mut registry = Registry::default();
    /// let metrics = ElectionMetrics::register(&mut registry);
    /// ```
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "leader_election_master_status",
            "Whether this replica leads by the lease that 'name' says: 1, or 0 while it stands by",
            metrics.master_status.clone(),
        );
        registry.register(
            "leader_election_slowpath",
            "How often a lease had to be read before it was renewed",
            metrics.slowpath.clone(),
        );
        metrics
    }

    /// The metrics of one Lease.
    pub(super) fn of(&self, name: &str) -> LeaseMetrics {
        let name = LeaseName { name: name.to_owned() };
        LeaseMetrics {
            master_status: self.master_status.get_or_create_owned(&name),
            slowpath: self.slowpath.get_or_create_owned(&name),
        }
    }
}

/// The metrics of one Lease.
#[derive(Default)]
pub(super) struct LeaseMetrics {
    /// Whether this replica leads.
    pub(super) master_status: Gauge,
    /// Renewals that had to read first.
    pub(super) slowpath: Counter,
}
