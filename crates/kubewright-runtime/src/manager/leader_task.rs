//! Runs leader election for the manager. Dropping it leaves the Lease to expire.

use kubewright_sync::ordered_watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::election::{Election, ElectionEnd, Leadership};

/// A change of leadership.
pub(super) enum Standing {
    Leads,
    Lost,
}

/// The leader election of this replica, if enabled.
pub(super) enum LeaderTask {
    /// Leader election is disabled: this replica always leads.
    Alone,
    Running {
        leadership: ordered_watch::Receiver<Leadership>,
        /// One task, aborted on drop.
        running: JoinSet<ElectionEnd>,
    },
}

impl LeaderTask {
    pub(super) fn begin(election: Option<Election>, stop: CancellationToken) -> Self {
        let Some(election) = election else { return Self::Alone };
        let leadership = election.leadership();
        let mut running = JoinSet::new();
        running.spawn(async move { election.run(stop.cancelled()).await });
        Self::Running { leadership, running }
    }

    /// Waits until this replica leads, or, if it already leads, until it loses leadership.
    pub(super) async fn next(&mut self, waiting: bool) -> Standing {
        match self {
            Self::Alone if waiting => Standing::Leads,
            Self::Alone => std::future::pending().await,
            Self::Running { leadership, .. } => {
                let settled = leadership
                    .wait_for(|now| match now {
                        Leadership::Standby { .. } => false,
                        Leadership::Leading { .. } => waiting,
                        Leadership::Lost => true,
                    })
                    .await
                    .is_ok_and(|now| matches!(now, Leadership::Leading { .. }));
                if settled { Standing::Leads } else { Standing::Lost }
            }
        }
    }

    /// Waits until the Lease is released.
    pub(super) async fn end(self) {
        if let Self::Running { mut running, .. } = self {
            match running.join_next().await {
                Some(Ok(end)) => debug!(?end, "Stopped leader election"),
                Some(Err(error)) => warn!(%error, "Leader election panicked"),
                None => {}
            }
        }
    }
}
