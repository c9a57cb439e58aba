//! The protocol: client-go's leader election on a Lease, as a state machine.
//!
//! [`Contender::step`] takes what happened and when, and says what to do next; it reads no clock and sends nothing.
//! One request is under way at a time. The invariant: [`Contender::held`] is never later than the renew deadline
//! counted from *before* the last write that worked was sent ([`fence`](crate::fence) has the proof that rests on it).
//!
//! The records are those that client-go writes, so that replicas in Go and in Rust can contend for one Lease. Where
//! client-go leaves a leader in doubt, this one stops:
//!
//! - The renew deadline counts from the last renewal that worked. (client-go counts from the first try that failed,
//!   which is a retry period later.)
//! - A leader that reads another's name in the Lease has lost at once, and does not wait for its deadline.
//! - A Lease that vanishes is not free before the holder that was last seen would have expired.

use std::mem;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};

use super::options::{JITTER_FACTOR, Settings};

/// One moment by two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// By the monotonic clock, since a zero of the caller's choice. All decisions are made by this one.
    pub(crate) at: Duration,
    /// The time of day. It is written into records, and never compared with what others wrote.
    pub(crate) wall: Timestamp,
}

impl Moment {
    fn plus(self, span: Duration) -> Self {
        Self { at: self.at + span, wall: self.wall.saturating_add(span).unwrap_or(Timestamp::MAX) }
    }
}

/// What happened.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// Time to begin, or the time that [`Step::Wait`] named has come.
    Wake,
    /// The Lease, as [`Request::Get`] found it.
    Read(Box<Lease>),
    /// The Lease, as the server stored it.
    Written(Box<Lease>),
    /// There is another version, or one already.
    Conflict,
    /// There is none.
    NotFound,
    /// No answer in time, or another error: the server may have done what was asked, or do it later.
    Failed,
    /// The contender is to end. What is under way is not waited for.
    Cancelled,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// Send this, and say how it went, or [`Event::Failed`] when there is no answer by `until`.
    Send { request: Request, until: Duration },
    /// Say [`Event::Wake`] then.
    Wait { until: Duration },
    /// Nothing more.
    End(ElectionEnd),
}

/// What to ask of the server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Request {
    /// Read the Lease, and not from a cache.
    Get,
    /// Create it.
    Create(Box<Lease>),
    /// Replace the version that `resourceVersion` names.
    Update(Box<Lease>),
}

/// Why an election ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElectionEnd {
    /// This replica led, and does so no more: the Lease could not be renewed in time, or became another's. The
    /// process should end, as what it knows may be old; a new one stands by.
    Lost,
    /// It was asked to end.
    Cancelled,
}

/// One contender for one Lease.
#[derive(Debug)]
pub(crate) struct Contender {
    settings: Settings,
    rng: fastrand::Rng,
    /// The last version seen: what a write starts from.
    lease: Option<Box<Lease>>,
    /// The last record seen.
    observed: Option<Observed>,
    asked: Asked,
    /// While this replica leads: up to when it may.
    held: Option<Moment>,
    /// Whether a write that makes this replica the holder was sent, and it is unknown what became of it.
    claimed: bool,
    /// While the Lease is being given up: until when to try.
    releasing: Option<Duration>,
    slow_paths: u64,
}

/// A record, and since when it is known. Its age is counted from there, because no clock but the local one is
/// trusted.
#[derive(Debug)]
struct Observed {
    record: LeaseSpec,
    since: Duration,
}

/// The request under way.
#[derive(Debug, Clone, Copy)]
enum Asked {
    Nothing,
    Read,
    /// A write that makes or keeps this replica the holder. It was sent at that moment or later. `fast`: without a
    /// read before it.
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
            asked: Asked::Nothing,
            held: None,
            claimed: false,
            releasing: None,
            slow_paths: 0,
        }
    }

    /// Up to when this replica may act as the leader, if it leads.
    pub(crate) fn held(&self) -> Option<Moment> {
        self.held
    }

    /// Who held the Lease when it was last seen.
    pub(crate) fn leader(&self) -> Option<&str> {
        self.observed.as_ref().and_then(|observed| holder(&observed.record))
    }

    /// How often the Lease had changed hands when it was last seen.
    pub(crate) fn transitions(&self) -> i32 {
        self.observed.as_ref().and_then(|observed| observed.record.lease_transitions).unwrap_or(0)
    }

    /// How often this replica had to read its own Lease before it could renew it, since this was last asked.
    pub(crate) fn take_slow_paths(&mut self) -> u64 {
        mem::take(&mut self.slow_paths)
    }

    /// Takes in what happened. `now` is read after it happened, and before the answer is acted on.
    pub(crate) fn step(&mut self, now: Moment, event: Event) -> Step {
        let asked = mem::replace(&mut self.asked, Asked::Nothing);
        if let Event::Read(lease) | Event::Written(lease) = &event {
            self.observe(now, lease.clone());
        }
        if matches!(event, Event::Cancelled) {
            return self.cancel(now);
        }
        if let Some(until) = self.releasing {
            return self.release(now, until, asked, &event);
        }
        if self.held.is_some_and(|held| now.at >= held.at) {
            return self.lose();
        }
        match (event, asked) {
            (Event::Written(_), Asked::Claim { sent, .. }) => self.won(now, sent),
            (Event::Read(lease), _) => self.consider(now, *lease),
            (Event::NotFound, Asked::Read) => self.replace_missing(now),
            // Nobody else writes it as a rule, so that the version at hand is the last one.
            (Event::Wake, _) if self.held.is_some() => self.renew(now, true),
            (Event::Wake, _) | (_, Asked::Claim { fast: true, .. }) => {
                self.ask(now, Asked::Read, Request::Get)
            }
            _ => self.pause(now),
        }
    }

    /// Keeps what was seen. A record that did not change goes on ageing.
    fn observe(&mut self, now: Moment, lease: Box<Lease>) {
        let record = lease.spec.clone().unwrap_or_default();
        self.claimed = self.claimed && holder(&record) == Some(&self.settings.identity);
        self.lease = Some(lease);
        if self.observed.as_ref().is_none_or(|observed| observed.record != record) {
            self.observed = Some(Observed { record, since: now.at });
        }
    }

    /// The Lease was read: takes it if it is free, and lets it be otherwise.
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

    /// Whether the last record names another that may still lead. A record without a duration lasts as long as ours.
    fn held_by_another(&self, now: Moment) -> bool {
        self.observed.as_ref().is_some_and(|Observed { record, since }| {
            let seconds = record.lease_duration_seconds.unwrap_or(self.settings.lease_seconds);
            let lasts = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
            holder(record).is_some_and(|holder| holder != self.settings.identity) && now.at < *since + lasts
        })
    }

    /// There is no Lease.
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

    /// Writes the version at hand again, with a new time.
    fn renew(&mut self, now: Moment, fast: bool) -> Step {
        let Some(lease) = self.lease.clone() else { return self.ask(now, Asked::Read, Request::Get) };
        let acquired = lease.spec.as_ref().and_then(|spec| spec.acquire_time.clone());
        let spec = self.record(now, acquired, self.transitions());
        self.claim(now, fast, Request::Update, Lease { spec: Some(spec), ..*lease })
    }

    /// What the Lease is to say when this replica holds it.
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

    /// The time of day, but later than in our last record, even on a clock that stands still: a renewal that changes
    /// nothing would be invisible to the others, who would go on counting. On a clock that was set back the times are
    /// different anyway, and true.
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
        self.ask(now, Asked::Claim { sent: now, fast }, request(Box::new(lease)))
    }

    fn label(&self, lease: &mut Lease) {
        if !self.settings.labels.is_empty() {
            let labels = self.settings.labels.iter().map(|(key, value)| (key.clone(), value.clone()));
            lease.metadata.labels.get_or_insert_default().extend(labels);
        }
    }

    /// The server stored our name.
    fn won(&mut self, now: Moment, sent: Moment) -> Step {
        let held = sent.plus(self.settings.renew_deadline);
        if now.at >= held.at {
            // The answer is so late that others may have taken over since. A leader was caught before.
            return self.pause(now);
        }
        self.held = Some(held);
        Step::Wait { until: (now.at + self.settings.retry_period).min(held.at) }
    }

    /// Waits for the next try: contenders at odd intervals, so that they do not meet again and again.
    fn pause(&mut self, now: Moment) -> Step {
        let period = self.settings.retry_period;
        let until = match self.held {
            Some(held) => (now.at + period).min(held.at),
            None => now.at + period + period.mul_f64(JITTER_FACTOR * self.rng.f64()),
        };
        Step::Wait { until }
    }

    /// A call has half of the renew deadline, as controller-runtime gives it: one that hangs leaves time for another.
    fn ask(&mut self, now: Moment, asked: Asked, request: Request) -> Step {
        self.asked = asked;
        let ends = self.held.map(|held| held.at).or(self.releasing);
        let until = now.at + self.settings.renew_deadline / 2;
        Step::Send { request, until: ends.map_or(until, |end| until.min(end)) }
    }

    fn lose(&mut self) -> Step {
        self.held = None;
        Step::End(ElectionEnd::Lost)
    }

    /// Stops leading, and then gives the Lease up if it is ours or may be.
    fn cancel(&mut self, now: Moment) -> Step {
        let may_hold = self.held.take().is_some() || self.claimed;
        if !self.settings.release_on_cancel || !may_hold || self.releasing.is_some() {
            return Step::End(ElectionEnd::Cancelled);
        }
        self.releasing = Some(now.at + self.settings.renew_deadline);
        self.ask(now, Asked::Read, Request::Get)
    }

    /// A release that fails does no harm: the Lease expires.
    fn release(&mut self, now: Moment, until: Duration, asked: Asked, event: &Event) -> Step {
        match (event, asked) {
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
                self.ask(now, Asked::Release, Request::Update(Box::new(lease)))
            }
            // A renewal that was under way came first.
            (Event::Conflict, Asked::Release) if now.at < until => self.ask(now, Asked::Read, Request::Get),
            _ => Step::End(ElectionEnd::Cancelled),
        }
    }
}

/// Who holds a Lease by its record; a name that is empty is nobody's.
fn holder(record: &LeaseSpec) -> Option<&str> {
    record.holder_identity.as_deref().filter(|identity| !identity.is_empty())
}

#[cfg(test)]
mod tests;
