//! Leader election among the replicas of an operator.
//!
//! This module performs the requests of the state machine in [`state`], one at a time, and publishes the
//! result. It makes no decisions. Writes of the leader go through the election's [`Fence`]. The fence is always updated
//! before any other observer, so it is closed before a former leader learns that it lost.

mod metrics;
mod options;
#[cfg(test)]
mod simulation;
mod state;

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::PostParams;
use kubewright_sync::ordered_watch;
use tokio::time::{Instant, sleep_until, timeout_at};

pub use self::metrics::ElectionMetrics;
use self::metrics::LeaseMetrics;
pub use self::options::{LeaderElectionOptions, LeaderElectionOptionsError};
pub(crate) use self::options::{hostname, pod_namespace};
pub use self::state::ElectionEnd;
use self::state::{Contender, Event, Moment, Request, Step};
use crate::Clock;
use crate::events::Recorder;
use crate::fence::{Fence, Gate};

/// The leadership state of a replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leadership {
    /// It waits for the Lease.
    Standby {
        /// The holder of the Lease when it was last read; `None` if it had no holder or was not read yet.
        leader: Option<String>,
    },
    /// It leads.
    Leading {
        /// The `leaseTransitions` of the Lease. It grows with each new leader, unless the Lease is deleted.
        transitions: i32,
    },
    /// It does not lead and has stopped trying.
    Lost,
}

/// One replica's participation in leader election with a `coordination.k8s.io/v1` Lease.
///
/// The protocol is client-go's, so replicas in Go and Rust can compete for one Lease. The replica needs the verbs get,
/// create and update on leases; with [`with_events`](Self::with_events), also create and patch on events.
///
/// ```
/// use std::sync::Arc;
/// use kubewright_runtime::internal::{Election, ElectionEnd, Fenced, Leadership};
/// use kubewright_runtime::{LeaderElectionOptions, SystemClock};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = kubewright_apiserver::ApiServer::new(kubewright_apiserver::Options::default());
/// # let client = kube::Client::new(server, "default");
/// let options = LeaderElectionOptions {
///     namespace: Some("default".to_owned()), // in a pod, its own namespace is the default
///     ..LeaderElectionOptions::new("guestbook.example.com")
/// };
/// let election = Election::new(client, options, Arc::new(SystemClock), fastrand::Rng::new())?;
///
/// let (fence, mut leadership) = (election.fence(), election.leadership());
/// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
/// let running = tokio::spawn(election.run(async { stopped.await.unwrap_or_default() }));
///
/// leadership.wait_for(|now| matches!(now, Leadership::Leading { .. })).await?;
/// assert_eq!(fence.guard(async { "written" }).await, Ok("written"));
///
/// drop(stop);
/// assert_eq!(running.await?, ElectionEnd::Cancelled);
/// assert_eq!(fence.check(), Err(Fenced::NotLeading));
/// # Ok(())
/// # }
/// ```
pub struct Election {
    contender: Contender,
    leases: Api<Lease>,
    /// The name of the Lease.
    name: String,
    identity: String,
    clock: Arc<dyn Clock>,
    /// The origin of the contender's monotonic time.
    zero: Instant,
    gate: Gate,
    fence: Fence,
    leadership: ordered_watch::Sender<Leadership>,
    metrics: LeaseMetrics,
    events: Option<Recorder>,
    leader: Option<String>,
    on_new_leader: Option<Report>,
}

/// Called with the identity of each new leader.
type Report = Box<dyn FnMut(&str) + Send + Sync>;

impl Election {
    /// Creates an election that does nothing until [`run`](Self::run). Must be called within a tokio runtime.
    ///
    /// `clock` is the wall clock for the timestamps in the Lease. `rng` jitters the retries, and generates the identity
    /// if the options have none. Replicas need different seeds.
    pub fn new(
        client: kube::Client,
        options: LeaderElectionOptions,
        clock: Arc<dyn Clock>,
        mut rng: fastrand::Rng,
    ) -> Result<Self, LeaderElectionOptionsError> {
        let settings = options.settle(&mut rng)?;
        let (gate, fence) = Fence::closed(clock.clone());
        Ok(Self {
            leases: Api::namespaced(client, &settings.namespace),
            name: settings.name.clone(),
            identity: settings.identity.clone(),
            contender: Contender::new(settings, rng),
            clock,
            zero: Instant::now(),
            gate,
            fence,
            leadership: ordered_watch::Sender::new(Leadership::Standby { leader: None }),
            metrics: LeaseMetrics::default(),
            events: None,
            leader: None,
            on_new_leader: None,
        })
    }

    /// Records metrics, labelled with the name of the Lease.
    #[must_use]
    pub fn with_metrics(mut self, metrics: &ElectionMetrics) -> Self {
        self.metrics = metrics.of(&self.name);
        self
    }

    /// Records an Event about the Lease when this replica becomes the leader, with client-go's reason and text.
    #[must_use]
    pub fn with_events(mut self, recorder: Recorder) -> Self {
        self.events = Some(recorder);
        self
    }

    /// Calls `report` with the identity of each new leader, including this replica. It must not block.
    #[must_use]
    pub fn on_new_leader(mut self, report: impl FnMut(&str) + Send + Sync + 'static) -> Self {
        self.on_new_leader = Some(Box::new(report));
        self
    }

    /// The identity of this replica in the Lease.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The fence that is open while this replica leads.
    pub fn fence(&self) -> Fence {
        self.fence.clone()
    }

    /// The leadership state and its changes. When it is `Leading`, the fence is open.
    pub fn leadership(&self) -> ordered_watch::Receiver<Leadership> {
        self.leadership.subscribe()
    }

    /// Runs until leadership is acquired and lost again, or until `cancelled`. On cancellation the fence closes first,
    /// then the Lease is released (if the options enable it).
    ///
    /// Dropping the future closes the fence and leaves the Lease to expire.
    pub async fn run(mut self, cancelled: impl Future<Output = ()>) -> ElectionEnd {
        let mut cancelled = pin!(cancelled);
        let mut cancelling = false;
        let mut event = Event::Wake;
        tracing::info!(lease = self.name, identity = self.identity, "Attempting to acquire leader lease...");
        loop {
            let step = self.contender.step(self.now(), event);
            self.publish();
            if let Step::End(end) = step {
                return end;
            }
            event = tokio::select! {
                biased;
                () = &mut cancelled, if !cancelling => {
                    cancelling = true;
                    Event::Cancelled
                }
                event = self.carry_out(step) => event,
            };
        }
    }

    fn now(&self) -> Moment {
        Moment { at: self.zero.elapsed(), wall: self.clock.now() }
    }

    fn instant(&self, at: Duration) -> Instant {
        self.zero + at
    }

    async fn carry_out(&self, step: Step) -> Event {
        match step {
            Step::Send { request, until } => {
                let answer = timeout_at(self.instant(until), self.send(request)).await;
                answer.unwrap_or_else(|_| {
                    tracing::warn!(lease = self.name, "Lease request timed out");
                    Event::Failed
                })
            }
            Step::Wait { until } => {
                sleep_until(self.instant(until)).await;
                Event::Wake
            }
            Step::End(_) => unreachable!("the caller returns"),
        }
    }

    async fn send(&self, request: Request) -> Event {
        let params = PostParams::default();
        let (verb, answer) = match request {
            Request::Get => {
                ("read", self.leases.get(&self.name).await.map(|lease| Event::Read(lease.into())))
            }
            Request::Create(lease) => (
                "create",
                self.leases.create(&params, &lease).await.map(|lease| Event::Written(lease.into())),
            ),
            Request::Update(lease) => {
                let answer = self.leases.replace(&self.name, &params, &lease).await;
                ("update", answer.map(|lease| Event::Written(lease.into())))
            }
        };
        answer.unwrap_or_else(|error| {
            let event = match &error {
                kube::Error::Api(status) if status.code == 404 => Event::NotFound,
                kube::Error::Api(status) if status.code == 409 => Event::Conflict,
                _ => Event::Failed,
            };
            // A missing Lease and a conflict with another replica are expected.
            let expected = match verb {
                "read" => matches!(event, Event::NotFound),
                _ => matches!(event, Event::Conflict),
            };
            if !expected {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(lease = self.name, error, "Failed to {verb} lease");
            }
            event
        })
    }

    /// Publishes the state of the contender, the fence first.
    fn publish(&mut self) {
        let held = self.contender.held();
        match held {
            Some(held) => self.gate.hold(self.instant(held.at), held.wall),
            None => self.gate.close(),
        }
        self.metrics.master_status.set(held.is_some().into());
        self.metrics.slowpath.inc_by(self.contender.take_slow_paths());
        let leader = self.contender.leader().map(str::to_owned);
        let transitions = self.contender.transitions();
        self.set_leadership(|before| match (before, held) {
            (_, Some(_)) => Leadership::Leading { transitions },
            (Leadership::Standby { .. }, None) => Leadership::Standby { leader: leader.clone() },
            (Leadership::Leading { .. } | Leadership::Lost, None) => Leadership::Lost,
        });
        if self.leader != leader {
            self.leader = leader;
            if let Some(leader) = &self.leader {
                tracing::info!(lease = self.name, leader, "New leader elected");
                if let Some(report) = &mut self.on_new_leader {
                    report(leader);
                }
            }
        }
    }

    fn set_leadership(&self, next: impl FnOnce(&Leadership) -> Leadership) {
        self.leadership.send_if_modified(|now| {
            let next = next(now);
            let changed = *now != next;
            if changed {
                tracing::debug!(lease = self.name, from = ?now, to = ?next, "Leadership state changed");
                if matches!((&*now, &next), (Leadership::Standby { .. }, Leadership::Leading { .. })) {
                    tracing::info!(
                        lease = self.name,
                        identity = self.identity,
                        "Successfully acquired lease"
                    );
                    self.record_event();
                }
                *now = next;
            }
            changed
        });
    }

    fn record_event(&self) {
        if let (Some(events), Some(lease)) = (&self.events, self.contender.lease()) {
            events.normal(lease, "LeaderElection").note(format_args!("{} became leader", self.identity));
        }
    }
}

impl Drop for Election {
    /// Runs also after a panic and when the task is aborted.
    fn drop(&mut self) {
        self.gate.close();
        self.metrics.master_status.set(0);
        self.set_leadership(|_| Leadership::Lost);
    }
}

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Election")
            .field("lease", &self.name)
            .field("identity", &self.identity)
            .field("leadership", &*self.leadership.borrow())
            .finish_non_exhaustive()
    }
}
