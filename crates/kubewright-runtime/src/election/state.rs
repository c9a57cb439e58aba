//! client-go's leader election protocol on a Lease, as a state machine.
//!
//! [`Contender::step`] takes an event with its time and returns the next action; it reads no clock and performs no I/O.
//! At most one request is in flight. The invariant: [`Contender::held`] is never later than the renew deadline counted
//! from *before* the last successful write was sent. The proof in [`fence`](crate::fence) rests on it.
//!
//! The records are those of client-go, so that replicas in Go and Rust can compete for one Lease. It is stricter than
//! client-go in three points:
//!
//! - The renew deadline counts from the last successful renewal. client-go counts from the first failed attempt, a
//!   retry period later.
//! - A leader that reads another holder in the Lease has lost immediately; it does not wait for its deadline.
//! - A deleted Lease is not free before its last known holder would have expired.

use std::mem;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};

use super::options::{JITTER_FACTOR, Settings};

/// A point in time on two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// The monotonic clock, since an origin chosen by the caller. All decisions use it.
    pub(crate) at: Duration,
    /// The wall clock. It is written into records and never compared with other replicas' timestamps.
    pub(crate) wall: Timestamp,
}

impl Moment {
    fn plus(self, span: Duration) -> Self {
        Self { at: self.at + span, wall: self.wall.saturating_add(span).unwrap_or(Timestamp::MAX) }
    }
}

/// An input of the state machine.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// The start, or the end of a [`Step::Wait`].
    Wake,
    /// The Lease, as [`Request::Get`] found it.
    Read(Box<Lease>),
    /// The Lease, as the server stored it.
    Written(Box<Lease>),
    /// AlreadyExists, or a conflict of resourceVersion.
    Conflict,
    /// The Lease does not exist.
    NotFound,
    /// A timeout or another error. The server may have executed the request, or may execute it later.
    Failed,
    /// The contender must stop. The request in flight is abandoned.
    Cancelled,
}

/// The next action.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// Send the request and pass on its result, or [`Event::Failed`] if there is no response by `until`.
    Send { request: Request, until: Duration },
    /// Pass [`Event::Wake`] at that time.
    Wait { until: Duration },
    /// Stop.
    End(ElectionEnd),
}

/// A request to the API server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Request {
    /// Read the Lease, not from a cache.
    Get,
    /// Create the Lease.
    Create(Box<Lease>),
    /// Update the Lease, with its `resourceVersion` as precondition.
    Update(Box<Lease>),
}

/// Why an election ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElectionEnd {
    /// This replica led and lost leadership: the Lease was not renewed in time, or has another holder. The process
    /// should exit, because its state may be stale.
    Lost,
    /// It was cancelled.
    Cancelled,
}

/// One contender for one Lease.
#[derive(Debug)]
pub(crate) struct Contender {
    settings: Settings,
    rng: fastrand::Rng,
    /// The last version seen, the base of the next write.
    lease: Option<Box<Lease>>,
    /// The last record seen.
    observed: Option<Observed>,
    in_flight: InFlight,
    /// The deadline of the leadership, while this replica leads.
    held: Option<Moment>,
    /// Whether a write that makes this replica the holder was sent and its result is unknown.
    claimed: bool,
    /// The deadline for releasing the Lease, while it is being released.
    releasing: Option<Duration>,
    slow_paths: u64,
}

/// A record and when it was first observed. Its age counts from there, because only the local clock is trusted.
#[derive(Debug)]
struct Observed {
    record: LeaseSpec,
    since: Duration,
}

/// The request in flight.
#[derive(Debug, Clone, Copy)]
enum InFlight {
    Nothing,
    Read,
    /// A write that makes or keeps this replica the holder, sent at `sent` or later. `fast` means without a preceding
    /// read.
    Claim {
        sent: Moment,
        fast: bool,
    },
    Release,
}

impl Contender {
    pub(crate) fn new(settings: Settings, rng: fastrand::Rng) -> Self {
        Self {
            settings,
            rng,
            lease: None,
            observed: None,
            in_flight: InFlight::Nothing,
            held: None,
            claimed: false,
            releasing: None,
            slow_paths: 0,
        }
    }

    /// The deadline of the leadership, if this replica leads.
    pub(crate) fn held(&self) -> Option<Moment> {
        self.held
    }

    /// The holder of the Lease when it was last read.
    pub(crate) fn leader(&self) -> Option<&str> {
        self.observed.as_ref().and_then(|observed| holder(&observed.record))
    }

    /// The Lease when it was last read or written.
    pub(crate) fn lease(&self) -> Option<&Lease> {
        self.lease.as_deref()
    }

    /// The `leaseTransitions` of the Lease when it was last read.
    pub(crate) fn transitions(&self) -> i32 {
        self.observed.as_ref().and_then(|observed| observed.record.lease_transitions).unwrap_or(0)
    }

    /// How often this replica had to read its own Lease before renewing it, since the last call.
    pub(crate) fn take_slow_paths(&mut self) -> u64 {
        mem::take(&mut self.slow_paths)
    }

    /// Handles an event. `now` must be read after the event and before its result is used.
    pub(crate) fn step(&mut self, now: Moment, event: Event) -> Step {
        let in_flight = mem::replace(&mut self.in_flight, InFlight::Nothing);
        if let Event::Read(lease) | Event::Written(lease) = &event {
            self.observe(now, lease.clone());
        }
        if matches!(event, Event::Cancelled) {
            return self.cancel(now);
        }
        if let Some(until) = self.releasing {
            return self.release(now, until, in_flight, &event);
        }
        if self.held.is_some_and(|held| now.at >= held.at) {
            return self.lose();
        }
        match (event, in_flight) {
            (Event::Written(_), InFlight::Claim { sent, .. }) => self.won(now, sent),
            (Event::Read(lease), _) => self.consider(now, *lease),
            (Event::NotFound, InFlight::Read) => self.replace_missing(now),
            // Usually no other replica has written it, so the cached version is current.
            (Event::Wake, _) if self.held.is_some() => self.renew(now, true),
            (Event::Wake, _) | (_, InFlight::Claim { fast: true, .. }) => {
                self.ask(now, InFlight::Read, Request::Get)
            }
            _ => self.pause(now),
        }
    }

    /// Stores what was read. An unchanged record keeps its age.
    fn observe(&mut self, now: Moment, lease: Box<Lease>) {
        let record = lease.spec.clone().unwrap_or_default();
        self.claimed = self.claimed && holder(&record) == Some(&self.settings.identity);
        self.lease = Some(lease);
        if self.observed.as_ref().is_none_or(|observed| observed.record != record) {
            self.observed = Some(Observed { record, since: now.at });
        }
    }

    /// Handles a read Lease: acquires it if it is free, waits otherwise.
    fn consider(&mut self, now: Moment, lease: Lease) -> Step {
        let ours = self.leader() == Some(&self.settings.identity);
        if self.held.is_some() && !ours {
            return self.lose();
        }
        if ours {
            self.slow_paths += 1;
            return self.renew(now, false);
        }
        if self.held_by_another(now) {
            return self.pause(now);
        }
        let transitions = self.transitions().saturating_add(1);
        let spec = self.record(now, None, transitions);
        self.claim(now, false, Request::Update, Lease { spec: Some(spec), ..lease })
    }

    /// Whether another holder may still lead. A record without a duration lasts as long as ours.
    fn held_by_another(&self, now: Moment) -> bool {
        self.observed.as_ref().is_some_and(|Observed { record, since }| {
            let seconds = record.lease_duration_seconds.unwrap_or(self.settings.lease_seconds);
            let lasts = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
            holder(record).is_some_and(|holder| holder != self.settings.identity) && now.at < *since + lasts
        })
    }

    /// Creates the Lease, unless its last holder may still lead.
    fn replace_missing(&mut self, now: Moment) -> Step {
        if self.held_by_another(now) {
            return self.pause(now);
        }
        let metadata = ObjectMeta {
            name: Some(self.settings.name.clone()),
            namespace: Some(self.settings.namespace.clone()),
            ..ObjectMeta::default()
        };
        let spec = self.record(now, None, 0);
        self.claim(now, false, Request::Create, Lease { metadata, spec: Some(spec) })
    }

    /// Updates the last known version with a new renewTime.
    fn renew(&mut self, now: Moment, fast: bool) -> Step {
        let Some(lease) = self.lease.clone() else { return self.ask(now, InFlight::Read, Request::Get) };
        let acquired = lease.spec.as_ref().and_then(|spec| spec.acquire_time.clone());
        let spec = self.record(now, acquired, self.transitions());
        self.claim(now, fast, Request::Update, Lease { spec: Some(spec), ..*lease })
    }

    /// The record that makes this replica the holder.
    fn record(&self, now: Moment, acquired: Option<MicroTime>, transitions: i32) -> LeaseSpec {
        let time = self.stamp(now);
        LeaseSpec {
            holder_identity: Some(self.settings.identity.clone()),
            lease_duration_seconds: Some(self.settings.lease_seconds),
            acquire_time: Some(acquired.unwrap_or_else(|| time.clone())),
            renew_time: Some(time),
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        }
    }

    /// The wall clock, but always later than in our last record, even if the clock stands still: a renewal that changes
    /// nothing would be invisible to the other replicas, and the Lease would expire for them. If the clock was set back
    /// by a second or more, the timestamps differ anyway.
    fn stamp(&self, now: Moment) -> MicroTime {
        let time = Timestamp::from_microsecond(now.wall.as_microsecond()).unwrap_or(now.wall);
        let ours = self.observed.as_ref().filter(|_| self.leader() == Some(&self.settings.identity));
        let last = ours.and_then(|observed| observed.record.renew_time.as_ref());
        match last.map(|last| (last.0, last.0.duration_since(time).as_millis())) {
            Some((last, 0..1000)) if last >= time => {
                MicroTime(last.saturating_add(Duration::from_micros(1)).unwrap_or(last))
            }
            _ => MicroTime(time),
        }
    }

    fn claim(
        &mut self,
        now: Moment,
        fast: bool,
        request: fn(Box<Lease>) -> Request,
        mut lease: Lease,
    ) -> Step {
        self.claimed = true;
        self.label(&mut lease);
        self.ask(now, InFlight::Claim { sent: now, fast }, request(Box::new(lease)))
    }

    fn label(&self, lease: &mut Lease) {
        if !self.settings.labels.is_empty() {
            let labels = self.settings.labels.iter().map(|(key, value)| (key.clone(), value.clone()));
            lease.metadata.labels.get_or_insert_default().extend(labels);
        }
    }

    /// Handles a successful write.
    fn won(&mut self, now: Moment, sent: Moment) -> Step {
        let held = sent.plus(self.settings.renew_deadline);
        if now.at >= held.at {
            // The response is so late that another replica may lead by now. `step` has already handled this case for a
            // leader.
            return self.pause(now);
        }
        self.held = Some(held);
        Step::Wait { until: (now.at + self.settings.retry_period).min(held.at) }
    }

    /// Waits for the next attempt. Standby replicas add jitter.
    fn pause(&mut self, now: Moment) -> Step {
        let period = self.settings.retry_period;
        let until = match self.held {
            Some(held) => (now.at + period).min(held.at),
            None => now.at + period + period.mul_f64(JITTER_FACTOR * self.rng.f64()),
        };
        Step::Wait { until }
    }

    /// A request may take half of the renew deadline, as in controller-runtime, which leaves time for a second attempt.
    fn ask(&mut self, now: Moment, in_flight: InFlight, request: Request) -> Step {
        self.in_flight = in_flight;
        let ends = self.held.map(|held| held.at).or(self.releasing);
        let until = now.at + self.settings.renew_deadline / 2;
        Step::Send { request, until: ends.map_or(until, |end| until.min(end)) }
    }

    fn lose(&mut self) -> Step {
        self.held = None;
        Step::End(ElectionEnd::Lost)
    }

    /// Stops leading, then releases the Lease if this replica holds it or may hold it.
    fn cancel(&mut self, now: Moment) -> Step {
        let may_hold = self.held.take().is_some() || self.claimed;
        if !self.settings.release_on_cancel || !may_hold || self.releasing.is_some() {
            return Step::End(ElectionEnd::Cancelled);
        }
        self.releasing = Some(now.at + self.settings.renew_deadline);
        self.ask(now, InFlight::Read, Request::Get)
    }

    /// A failed release is harmless: the Lease expires.
    fn release(&mut self, now: Moment, until: Duration, in_flight: InFlight, event: &Event) -> Step {
        match (event, in_flight) {
            (Event::Read(lease), _) if self.leader() == Some(&self.settings.identity) && now.at < until => {
                let time = self.stamp(now);
                let spec = LeaseSpec {
                    holder_identity: Some(String::new()),
                    lease_duration_seconds: Some(1),
                    acquire_time: Some(time.clone()),
                    renew_time: Some(time),
                    lease_transitions: Some(self.transitions()),
                    ..LeaseSpec::default()
                };
                let mut lease = Lease { spec: Some(spec), ..Lease::clone(lease) };
                self.label(&mut lease);
                self.ask(now, InFlight::Release, Request::Update(Box::new(lease)))
            }
            // A renewal in flight was stored first.
            (Event::Conflict, InFlight::Release) if now.at < until => {
                self.ask(now, InFlight::Read, Request::Get)
            }
            _ => Step::End(ElectionEnd::Cancelled),
        }
    }
}

/// The holder of a Lease; `None` if the identity is empty.
fn holder(record: &LeaseSpec) -> Option<&str> {
    record.holder_identity.as_deref().filter(|identity| !identity.is_empty())
}

#[cfg(test)]
mod tests;
