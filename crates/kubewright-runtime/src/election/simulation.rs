//! Simulates contenders under faults: clock drift; late, lost and duplicated messages; processes that pause, crash,
//! stop and restart at any point.
//!
//! The simulation knows the true time, the contenders only their own clocks. It checks at each step that no two
//! contenders may act as the leader at the same true time, and that a stable leader emerges after the faults end.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use proptest::prelude::*;

use super::options::Settings;
use super::state::{Contender, Event, Moment, Request, Step};
use crate::LeaderElectionOptions;

/// True time, in microseconds.
type Time = u64;

const SECOND: Time = 1_000_000;
const FAULTS_END: Time = 200 * SECOND;
/// The longest delay of a message without a fault.
const USUAL_DELAY: Time = SECOND / 20;
/// How long the leader must stay after the faults end.
const STABLE: Time = 60 * SECOND;
/// The longest message delay or process pause; longer than any lease duration here.
const WORST: Time = 40 * SECOND;
/// How often the set of faulty nodes changes. If all nodes were faulty all the time, none could take over at the worst
/// moment.
const FAULTY_NODES_CHANGE: Time = 15 * SECOND;
/// The longest delay before a stopped process restarts.
const RESTART: Time = 5 * SECOND;

#[derive(Debug, Clone)]
struct Plan {
    seed: u64,
    /// The clock drift of each contender, in ppm.
    drifts: Vec<i32>,
    lease_seconds: u64,
    /// The renew deadline, in hundredths of the lease duration.
    renew: u32,
    /// The retry period, in hundredths of the renew deadline.
    retry: u32,
    /// The percentage of steps that fail on a faulty node.
    faults: u32,
}

fn plans() -> impl Strategy<Value = Plan> {
    let drifts = prop::collection::vec(prop_oneof![-10_000..=10_000, Just(-10_000), Just(10_000)], 2..6);
    let usual = Just((15, 66, 20));
    let unusual = (2_u64..20, prop_oneof![40_u32..=98, Just(98)], prop_oneof![1_u32..80, 1_u32..5]);
    (any::<u64>(), drifts, prop_oneof![usual, unusual], 1_u32..40).prop_map(
        |(seed, drifts, (lease_seconds, renew, retry), faults)| Plan {
            seed,
            drifts,
            lease_seconds,
            renew,
            retry,
            faults,
        },
    )
}

impl Plan {
    fn settings(&self, identity: String) -> Settings {
        let lease_duration = Duration::from_secs(self.lease_seconds);
        let renew_deadline = lease_duration * self.renew / 100;
        // From one renewal's request to the response of the next, with a clock that is 1 % fast. A leader with less time
        // loses the Lease to usual delays.
        let two_round_trips = Duration::from_micros(4 * USUAL_DELAY) * 102 / 100;
        let options = LeaderElectionOptions {
            namespace: Some("default".to_owned()),
            identity: Some(identity),
            lease_duration,
            renew_deadline,
            retry_period: (renew_deadline * self.retry / 100)
                .min(renew_deadline.saturating_sub(two_round_trips)),
            ..LeaderElectionOptions::new("lock")
        };
        options.settle(&mut fastrand::Rng::with_seed(0)).expect("the options of the plan are valid")
    }

    /// The longest time from the last fault to a leader: a process restarts or waits for a lost response, reads the old
    /// record, waits until it expires, and may lose a race. All on the slowest clock.
    fn recovery(&self) -> Time {
        let settings = self.settings("any".to_owned());
        let tries = settings.retry_period.mul_f64(2.2) * 3;
        let local = settings.renew_deadline / 2 + tries + Duration::from_secs(self.lease_seconds);
        RESTART + micros(local) * 102 / 100 + SECOND
    }
}

fn micros(span: Duration) -> Time {
    u64::try_from(span.as_micros()).expect("spans here are short")
}

/// A scheduled event of the simulation.
enum Happening {
    /// The set of faulty nodes changes.
    FaultyNodesChange,
    /// A process starts.
    Start { node: usize },
    /// A request reaches the server.
    Arrival { from: Waiting, request: Request },
    /// A process receives an event: a response, a timer, a signal.
    Delivered { process: Waiting, event: Event },
}

/// Identifies a wait of a process.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    node: usize,
    /// The incarnation of the node's process.
    life: u32,
    /// The number of the wait. Responses to earlier waits are ignored.
    turn: u32,
}

/// A turn that is never ignored.
const ANY: u32 = u32::MAX;

struct Node {
    contender: Option<Contender>,
    /// The clock drift, in ppm.
    drift: i32,
    /// The initial value of its monotonic clock.
    offset: Time,
    /// The initial value of its wall clock.
    wall: Timestamp,
    life: u32,
    turn: u32,
    paused_until: Time,
    faulty: bool,
}

impl Node {
    fn local(&self, time: Time) -> Duration {
        let drifted = i128::from(time) * i128::from(1_000_000 + self.drift) / 1_000_000;
        Duration::from_micros(self.offset + u64::try_from(drifted).expect("time is not negative"))
    }

    /// The first true time at which the local clock shows `local`.
    fn time(&self, local: Duration) -> Time {
        let local = u128::from(micros(local).saturating_sub(self.offset));
        let rate = u128::from((1_000_000 + self.drift).unsigned_abs());
        u64::try_from((local * 1_000_000).div_ceil(rate)).expect("times here are short") + 1
    }

    fn moment(&self, time: Time) -> Moment {
        Moment { at: self.local(time), wall: self.wall + self.local(time) }
    }

    /// Whether its fence is open.
    fn leads(&self, time: Time) -> bool {
        let held = self.contender.as_ref().and_then(Contender::held);
        held.is_some_and(|held| self.local(time) < held.at)
    }
}

struct World {
    plan: Plan,
    rng: fastrand::Rng,
    now: Time,
    nodes: Vec<Node>,
    lease: Option<Box<Lease>>,
    version: u64,
    /// Scheduled events; the counter orders events at the same time.
    agenda: BTreeMap<(Time, u64), Happening>,
    count: u64,
    trace: String,
}

impl World {
    fn new(plan: Plan) -> Self {
        let mut rng = fastrand::Rng::with_seed(plan.seed);
        let mut nodes = Vec::new();
        for &drift in &plan.drifts {
            nodes.push(Node {
                contender: None,
                drift,
                offset: rng.u64(..1000 * SECOND),
                wall: Timestamp::from_second(rng.i64(1_700_000_000..1_800_000_000)).expect("a valid time"),
                life: 0,
                turn: 0,
                paused_until: 0,
                faulty: false,
            });
        }
        let mut world = Self {
            plan,
            rng,
            now: 0,
            nodes,
            lease: None,
            version: 0,
            agenda: BTreeMap::new(),
            count: 0,
            trace: String::new(),
        };
        for node in 0..world.nodes.len() {
            let at = world.rng.u64(..RESTART);
            world.later(at, Happening::Start { node });
        }
        world.later(0, Happening::FaultyNodesChange);
        world
    }

    /// Runs the simulation to its end. Returns the trace, or the violation.
    fn run(mut self) -> Result<String, String> {
        let recovered = FAULTS_END + self.plan.recovery();
        let mut leader = None;
        while let Some(((time, _), happening)) = self.agenda.pop_first()
            && time < recovered + STABLE
        {
            self.now = time;
            self.happen(happening)?;
            if time < recovered {
                continue;
            }
            let leading = self.nodes.iter().position(|node| node.leads(time));
            if leading.is_none() || leader.is_some_and(|leader| leading != Some(leader)) {
                return Err(self.complaint(&format!("{leading:?} leads after {leader:?}")));
            }
            leader = leading;
        }
        match leader {
            Some(_) => Ok(self.trace),
            None => Err(self.complaint("no further events")),
        }
    }

    fn complaint(&self, what: &str) -> String {
        format!("at {} us {what}:\n{}", self.now, self.trace)
    }

    fn note(&mut self, node: usize, what: &str) {
        writeln!(self.trace, "{:>9} {node}.{} {what}", self.now, self.nodes[node].life)
            .expect("writing to a String succeeds");
    }

    fn later(&mut self, time: Time, happening: Happening) {
        self.count += 1;
        self.agenda.insert((time, self.count), happening);
    }

    /// Whether to inject a fault here.
    fn fault(&mut self, node: usize) -> bool {
        self.now < FAULTS_END && self.nodes[node].faulty && self.rng.u32(..100) < self.plan.faults
    }

    /// The delay of a message. Late messages arrive when the faults end at the latest.
    fn delay(&mut self, node: usize) -> Time {
        if self.fault(node) { self.long() } else { self.rng.u64(100..USUAL_DELAY) }
    }

    fn long(&mut self) -> Time {
        self.rng.u64(..WORST).min(FAULTS_END.saturating_sub(self.now))
    }

    fn happen(&mut self, happening: Happening) -> Result<(), String> {
        match happening {
            Happening::FaultyNodesChange => {
                for node in 0..self.nodes.len() {
                    self.nodes[node].faulty = self.rng.u8(..3) == 0;
                }
                self.later(self.now + FAULTY_NODES_CHANGE, Happening::FaultyNodesChange);
                Ok(())
            }
            Happening::Start { node } => {
                let process = self.start(node);
                self.deliver(process, Event::Wake)
            }
            Happening::Arrival { from, request } => {
                let event = self.serve(request);
                if !self.fault(from.node) {
                    let at = self.now + self.delay(from.node);
                    self.later(at, Happening::Delivered { process: from, event });
                }
                Ok(())
            }
            Happening::Delivered { process, event } => self.deliver(process, event),
        }
    }

    /// Starts a new process with its own identity.
    fn start(&mut self, node: usize) -> Waiting {
        let rng = self.rng.fork();
        let place = &mut self.nodes[node];
        place.life += 1;
        let settings = self.plan.settings(format!("{node}.{}", place.life));
        place.contender = Some(Contender::new(settings, rng));
        Waiting { node, life: place.life, turn: ANY }
    }

    fn end(&mut self, node: usize, how: &str) {
        self.note(node, how);
        self.nodes[node].contender = None;
        let at = self.now + self.rng.u64(..RESTART);
        self.later(at, Happening::Start { node });
    }

    /// The server: one object with an increasing resourceVersion.
    fn serve(&mut self, request: Request) -> Event {
        let version = |lease: &Lease| lease.metadata.resource_version.clone();
        match (request, &self.lease) {
            (Request::Get, Some(lease)) => return Event::Read(lease.clone()),
            (Request::Get | Request::Update(_), None) => return Event::NotFound,
            (Request::Create(_), Some(_)) => return Event::Conflict,
            (Request::Update(new), Some(old)) if version(&new) != version(old) => return Event::Conflict,
            (Request::Create(new) | Request::Update(new), _) => self.lease = Some(new),
        }
        self.version += 1;
        let lease = self.lease.as_mut().expect("it was just stored");
        lease.metadata.resource_version = Some(self.version.to_string());
        Event::Written(lease.clone())
    }

    /// Delivers `event` to a process that waits for it, once the process is not paused.
    fn deliver(&mut self, process: Waiting, event: Event) -> Result<(), String> {
        let place = &mut self.nodes[process.node];
        if self.now < place.paused_until {
            let at = place.paused_until;
            self.later(at, Happening::Delivered { process, event });
            return Ok(());
        }
        let moment = place.moment(self.now);
        let waits = place.life == process.life && (place.turn == process.turn || process.turn == ANY);
        let Some(contender) = place.contender.as_mut().filter(|_| waits) else { return Ok(()) };
        place.turn += 1;
        let process = Waiting { turn: place.turn, ..process };
        let received = event_name(&event);
        let before = contender.held();
        let step = contender.step(moment, event);
        let held = contender.held();
        let until = held.map(|held| held.at);
        self.note(process.node, &format!("{received}, {}, leads until {until:?}", step_name(&step)));
        if held.is_some() && held != before {
            let mut others = self.nodes.iter().enumerate().filter(|(index, _)| *index != process.node);
            if let Some((other, _)) = others.find(|(_, node)| node.leads(self.now)) {
                return Err(
                    self.complaint(&format!("{} and {other} may lead at the same time", process.node))
                );
            }
        }
        self.carry_out(process, step);
        if self.fault(process.node) {
            self.hit(process);
        }
        Ok(())
    }

    fn carry_out(&mut self, process: Waiting, step: Step) {
        match step {
            Step::Send { request, until } => {
                let at = self.nodes[process.node].time(until);
                self.later(at, Happening::Delivered { process, event: Event::Failed });
                let lost = self.fault(process.node) && self.rng.bool();
                let copies = if lost { 0 } else { 1 + u8::from(self.fault(process.node)) };
                for _ in 0..copies {
                    let at = self.now + self.delay(process.node);
                    self.later(at, Happening::Arrival { from: process, request: request.clone() });
                }
            }
            Step::Wait { until } => {
                let at = self.nodes[process.node].time(until);
                self.later(at, Happening::Delivered { process, event: Event::Wake });
            }
            Step::End(_) => self.end(process.node, "ended"),
        }
    }

    /// Injects a fault into the process itself.
    fn hit(&mut self, process: Waiting) {
        if self.nodes[process.node].contender.is_none() {
            return;
        }
        match self.rng.u32(..10) {
            0 => self.end(process.node, "crashes"),
            1 => {
                let at = self.now + self.rng.u64(..SECOND);
                self.later(
                    at,
                    Happening::Delivered {
                        process: Waiting { turn: ANY, ..process },
                        event: Event::Cancelled,
                    },
                );
            }
            _ => self.nodes[process.node].paused_until = self.now + self.long(),
        }
    }
}

/// The event, for the trace.
fn event_name(event: &Event) -> &'static str {
    match event {
        Event::Wake => "wakes up",
        Event::Read(_) => "reads",
        Event::Written(_) => "has written",
        Event::Conflict => "has a conflict",
        Event::NotFound => "finds nothing",
        Event::Failed => "gets no response",
        Event::Cancelled => "is cancelled",
    }
}

/// The resulting step, for the trace.
fn step_name(step: &Step) -> &'static str {
    match step {
        Step::Send { request: Request::Get, .. } => "gets",
        Step::Send { request: Request::Create(_), .. } => "creates",
        Step::Send { request: Request::Update(_), .. } => "updates",
        Step::Wait { .. } => "waits",
        Step::End(_) => "ends",
    }
}

proptest! {
    #![proptest_config(crate::seeds::cases(128))]

    #[test]
    fn there_is_never_more_than_one_leader_and_one_leads_after_the_faults_end(plan in plans()) {
        if let Err(complaint) = World::new(plan).run() {
            return Err(TestCaseError::fail(complaint));
        }
    }
}

proptest! {
    #![proptest_config(crate::seeds::cases(8))]

    #[test]
    fn the_same_seed_gives_the_same_trace(plan in plans()) {
        prop_assert_eq!(World::new(plan.clone()).run(), World::new(plan).run());
    }
}
