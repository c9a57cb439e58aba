//! Leader election metrics, with the names of client-go.

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
    /// Registers the metrics in `registry`.
    ///
    /// ```
    /// use kubewright_runtime::internal::ElectionMetrics;
    /// use prometheus_client::registry::Registry;
    ///
    /// let mut registry = Registry::default();
    /// let metrics = ElectionMetrics::register(&mut registry);
    /// ```
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "leader_election_master_status",
            "Gauge of whether this replica holds the lease: 1 for the leader, 0 for a standby. 'name' identifies the lease",
            metrics.master_status.clone(),
        );
        registry.register(
            "leader_election_slowpath",
            "Total number of slow path exercised in renewing leader leases. 'name' identifies the lease",
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
    /// Renewals that had to read the Lease first.
    pub(super) slowpath: Counter,
}
