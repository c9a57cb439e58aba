//! Computes the next status of a pod.
//!
//! Pure: takes the pod, its behaviour, its node and the time; returns a new status, events and the time of
//! the next change. Deterministic, so an unchanged status is not written again.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::behaviour::Behaviour;
use crate::node::whole;
use crate::pod::{is_terminal, is_terminating, until};

const CREATING: &str = "ContainerCreating";
const INITIALIZING: &str = "PodInitializing";
const PULL_FAILED: &str = "ErrImagePull";
const PULL_BACKOFF: &str = "ImagePullBackOff";
const CRASHING: &str = "CrashLoopBackOff";
/// Initial and maximum restart backoff, and the run time that resets it.
const BACKOFF: Duration = Duration::from_secs(10);
const LONGEST_BACKOFF: Duration = Duration::from_mins(5);
const STABLE: Duration = Duration::from_mins(10);

/// The addresses of the node and the pod.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) host_ip: String,
    pub(super) pod_ip: String,
}

/// The changes to make.
#[derive(Debug, Default)]
pub(super) struct Next {
    /// The status to write, if it changed.
    pub(super) status: Option<PodStatus>,
    /// The events to record.
    pub(super) events: Vec<Event>,
    /// Whether the pod has stopped and can be removed.
    pub(super) remove: bool,
    /// The time until the next change.
    pub(super) wake: Option<Duration>,
}

/// An event of a pod.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) level: Level,
    pub(super) reason: &'static str,
    pub(super) action: &'static str,
    pub(super) note: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Normal,
    Warning,
}

/// Computes the changes of a bound pod.
pub(super) fn next(pod: &Pod, behaviour: &Behaviour, place: &Place, now: Timestamp) -> Next {
    if is_terminating(pod) {
        return ending(pod, behaviour, now);
    }
    if is_terminal(pod) {
        return Next::default();
    }
    let mut run = Run { pod, behaviour, now, wake: None, events: Vec::new() };
    let mut status = pod.status.clone().unwrap_or_default();
    let old = pod.status.as_ref();
    status.host_ip = Some(place.host_ip.clone());
    status.host_ips = Some(vec![HostIP { ip: place.host_ip.clone() }]);
    let begun = status.start_time.get_or_insert_with(|| whole(now)).0;
    let is_new = old.is_none_or(|old| old.start_time.is_none());
    let spec = pod.spec.as_ref();
    let init = spec.and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
    let before = old.and_then(|old| old.container_statuses.as_deref()).unwrap_or_default();
    let mut containers = Vec::<ContainerStatus>::new();
    for container in spec.into_iter().flat_map(|spec| &spec.containers) {
        let old = before.iter().find(|status| status.name == container.name);
        let waits = if init.is_empty() { CREATING } else { INITIALIZING };
        containers.push(match old {
            Some(old) if !is_new => run.container(container, old, begun),
            _ => waiting(container, waits, None),
        });
    }
    let deadline = spec.and_then(|spec| spec.active_deadline_seconds);
    if let Some(deadline) = deadline.and_then(|seconds| u64::try_from(seconds).ok()) {
        if let Some(left) = until(begun, Duration::from_secs(deadline), now) {
            run.wakes(left);
        } else {
            for container in &mut containers {
                *container = ended(container, 137, now);
            }
            status.reason = Some("DeadlineExceeded".to_owned());
            status.message = Some("Pod was active on the node longer than the specified deadline".to_owned());
        }
    }
    let phase = if status.reason.as_deref() == Some("DeadlineExceeded") {
        "Failed"
    } else {
        phase(&containers, spec.and_then(|spec| spec.restart_policy.as_deref()).unwrap_or("Always"))
    };
    let started = phase != "Pending";
    if started || containers.iter().any(|container| reason(container) != Some(CREATING)) {
        status.pod_ip = Some(place.pod_ip.clone());
        status.pod_ips = Some(vec![PodIP { ip: place.pod_ip.clone() }]);
    }
    if !init.is_empty() {
        let before = old.and_then(|old| old.init_container_statuses.as_deref()).unwrap_or_default();
        let statuses = init.iter().map(|container| {
            let old = before.iter().find(|status| status.name == container.name);
            init_container(container, old, started, matches!(phase, "Succeeded" | "Failed"), now)
        });
        status.init_container_statuses = Some(statuses.collect());
    }
    status.phase = Some(phase.to_owned());
    let sandbox = status.pod_ip.is_some() && !matches!(phase, "Succeeded" | "Failed");
    let conditions = conditions(&containers, phase, started || init.is_empty(), sandbox);
    status.conditions = Some(with_conditions(status.conditions.unwrap_or_default(), conditions, now));
    status.container_statuses = Some(containers);
    status.observed_generation = pod.metadata.generation;
    let changed = pod.status.as_ref() != Some(&status);
    Next { status: changed.then_some(status), events: run.events, wake: run.wake, remove: false }
}

/// A deleted pod: its containers stop, then it is removed.
fn ending(pod: &Pod, behaviour: &Behaviour, now: Timestamp) -> Next {
    let grace =
        u64::try_from(pod.metadata.deletion_grace_period_seconds.unwrap_or_default()).unwrap_or_default();
    let grace = Duration::from_secs(grace);
    let deadline = pod.metadata.deletion_timestamp.as_ref().map_or(now, |time| time.0);
    let asked = deadline.saturating_sub(grace).unwrap_or(Timestamp::MIN);
    if let Some(left) = until(asked, behaviour.stop_delay.min(grace), now) {
        return Next { wake: Some(left), ..Next::default() };
    }
    let mut next = Next { remove: true, ..Next::default() };
    let running = |status: &&PodStatus| status.container_statuses.iter().flatten().any(|it| it.ready);
    if pod.status.as_ref().is_some_and(|status| running(&status)) {
        for container in pod.spec.iter().flat_map(|spec| &spec.containers) {
            next.events.push(Event {
                level: Level::Normal,
                reason: "Killing",
                action: "Killing",
                note: format!("Stopping container {}", container.name),
            });
        }
    }
    // Pods with finalizers stay visible and need a terminal status; others are removed immediately.
    if pod.metadata.finalizers.iter().flatten().next().is_some() && !is_terminal(pod) {
        let mut status = pod.status.clone().unwrap_or_default();
        let mut containers = status.container_statuses.unwrap_or_default();
        for container in &mut containers {
            if container.state.as_ref().is_none_or(|state| state.terminated.is_none()) {
                *container = ended(container, 0, now);
            }
        }
        let failed = containers.iter().any(|container| exit_code(container) != Some(0));
        let phase = if failed { "Failed" } else { "Succeeded" };
        let conditions = conditions(&containers, phase, true, false);
        status.conditions = Some(with_conditions(status.conditions.unwrap_or_default(), conditions, now));
        status.container_statuses = Some(containers);
        status.phase = Some(phase.to_owned());
        next.status = Some(status);
    }
    next
}

struct Run<'a> {
    pod: &'a Pod,
    behaviour: &'a Behaviour,
    now: Timestamp,
    wake: Option<Duration>,
    events: Vec<Event>,
}

impl Run<'_> {
    fn wakes(&mut self, left: Duration) {
        self.wake = Some(self.wake.map_or(left, |wake| wake.min(left)));
    }

    fn event(&mut self, level: Level, reason: &'static str, action: &'static str, note: String) {
        self.events.push(Event { level, reason, action, note });
    }

    /// Computes the next state of a container.
    fn container(
        &mut self,
        container: &Container,
        old: &ContainerStatus,
        begun: Timestamp,
    ) -> ContainerStatus {
        let state = old.state.clone().unwrap_or_default();
        if let Some(running) = state.running {
            return self.running(container, old, running.started_at.map_or(begun, |time| time.0));
        }
        if let Some(terminated) = state.terminated {
            return self.restarting(container, old, &terminated);
        }
        if reason(old) == Some(CRASHING)
            && let Some(last) = old.last_state.as_ref().and_then(|last| last.terminated.clone())
        {
            return self.restarting(container, old, &last);
        }
        self.starting(container, old, begun)
    }

    fn starting(
        &mut self,
        container: &Container,
        old: &ContainerStatus,
        begun: Timestamp,
    ) -> ContainerStatus {
        let image = container.image.clone().unwrap_or_default();
        if self.behaviour.is_bad(&image) {
            let why = format!("failed to pull and unpack image {image:?}: not found");
            if matches!(reason(old), Some(PULL_FAILED | PULL_BACKOFF)) {
                if reason(old) == Some(PULL_FAILED) {
                    let note = format!("Back-off pulling image {image:?}");
                    self.event(Level::Normal, "BackOff", "Pulling", note);
                }
                let message = format!("Back-off pulling image {image:?}: {PULL_FAILED}: {why}");
                return waiting(container, PULL_BACKOFF, Some(message));
            }
            self.event(Level::Normal, "Pulling", "Pulling", format!("Pulling image {image:?}"));
            let note = format!("Failed to pull image {image:?}: {why}");
            self.event(Level::Warning, "Failed", "Pulling", note);
            self.event(Level::Warning, "Failed", "Pulling", format!("Error: {PULL_FAILED}"));
            return waiting(container, PULL_FAILED, Some(why));
        }
        if let Some(left) = until(begun, self.behaviour.start_delay, self.now) {
            self.wakes(left);
            return old.clone();
        }
        let note = format!("Container image {image:?} already present on machine");
        self.event(Level::Normal, "Pulled", "Pulling", note);
        self.started(container, 0, None)
    }

    fn started(
        &mut self,
        container: &Container,
        restarts: i32,
        last: Option<&ContainerStateTerminated>,
    ) -> ContainerStatus {
        let name = &container.name;
        self.event(Level::Normal, "Created", "Created", format!("Created container: {name}"));
        self.event(Level::Normal, "Started", "Started", format!("Started container {name}"));
        let image = container.image.clone().unwrap_or_default();
        let uid = self.pod.metadata.uid.as_deref().unwrap_or_default();
        let status = ContainerStatus {
            name: name.clone(),
            image_id: format!("{image}@simulated"),
            image,
            container_id: Some(format!("kubewright://{uid}/{name}/{restarts}")),
            restart_count: restarts,
            started: Some(true),
            state: Some(ContainerState {
                running: Some(ContainerStateRunning { started_at: Some(whole(self.now)) }),
                ..ContainerState::default()
            }),
            last_state: last
                .map(|last| ContainerState { terminated: Some(last.clone()), ..ContainerState::default() }),
            ..ContainerStatus::default()
        };
        self.running(container, &status, whole(self.now).0)
    }

    fn running(&mut self, container: &Container, old: &ContainerStatus, since: Timestamp) -> ContainerStatus {
        let mut status = old.clone();
        if let Some(run_time) = self.behaviour.run_time {
            let Some(left) = until(since, run_time, self.now) else {
                let ended = ended(&status, self.behaviour.exit_code, self.now);
                let terminated = ended.state.clone().and_then(|state| state.terminated);
                return match terminated {
                    Some(terminated) => self.restarting(container, &ended, &terminated),
                    None => ended,
                };
            };
            self.wakes(left);
        }
        let left = until(since, self.behaviour.ready_delay, self.now);
        if let Some(left) = left {
            self.wakes(left);
        }
        status.ready = left.is_none();
        status
    }

    /// A terminated container: restarts, waits for its backoff, or stays terminated.
    fn restarting(
        &mut self,
        container: &Container,
        old: &ContainerStatus,
        last: &ContainerStateTerminated,
    ) -> ContainerStatus {
        let policy =
            self.pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()).unwrap_or("Always");
        if !restarts(policy, last.exit_code) {
            return ContainerStatus { ready: false, started: Some(false), ..old.clone() };
        }
        let delay = backoff(old.restart_count, ran_for(last));
        let finished = last.finished_at.as_ref().map_or(self.now, |time| time.0);
        let Some(left) = until(finished, delay, self.now) else {
            return self.started(container, old.restart_count + 1, Some(last));
        };
        self.wakes(left);
        let meta = &self.pod.metadata;
        let [name, namespace, uid] =
            [&meta.name, &meta.namespace, &meta.uid].map(|it| it.clone().unwrap_or_default());
        let which = format!("{name}_{namespace}({uid})");
        if reason(old) != Some(CRASHING) {
            let note = format!("Back-off restarting failed container {} in pod {which}", container.name);
            self.event(Level::Warning, "BackOff", "Restarting", note);
        }
        let seconds = delay.as_secs();
        let delay =
            if seconds < 60 { format!("{seconds}s") } else { format!("{}m{}s", seconds / 60, seconds % 60) };
        let message = format!("back-off {delay} restarting failed container={} pod={which}", container.name);
        ContainerStatus {
            ready: false,
            started: Some(false),
            state: Some(waits(CRASHING, Some(message))),
            last_state: Some(ContainerState { terminated: Some(last.clone()), ..ContainerState::default() }),
            ..old.clone()
        }
    }
}

fn restarts(policy: &str, exit_code: i32) -> bool {
    match policy {
        "Never" => false,
        "OnFailure" => exit_code != 0,
        _ => true,
    }
}

/// The restart backoff of a container. The first restart is immediate.
fn backoff(restarts: i32, ran: Duration) -> Duration {
    if restarts <= 0 || ran >= STABLE {
        return Duration::ZERO;
    }
    let doublings = u32::try_from(restarts - 1).unwrap_or_default().min(16);
    (BACKOFF * 2_u32.pow(doublings)).min(LONGEST_BACKOFF)
}

fn ran_for(terminated: &ContainerStateTerminated) -> Duration {
    let (Some(from), Some(to)) = (&terminated.started_at, &terminated.finished_at) else {
        return Duration::ZERO;
    };
    Duration::try_from(to.0.duration_since(from.0)).unwrap_or_default()
}

fn waits(reason: &str, message: Option<String>) -> ContainerState {
    let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), message };
    ContainerState { waiting: Some(waiting), ..ContainerState::default() }
}

fn waiting(container: &Container, reason: &str, message: Option<String>) -> ContainerStatus {
    ContainerStatus {
        name: container.name.clone(),
        image: container.image.clone().unwrap_or_default(),
        started: Some(false),
        state: Some(waits(reason, message)),
        ..ContainerStatus::default()
    }
}

fn ended(old: &ContainerStatus, exit_code: i32, now: Timestamp) -> ContainerStatus {
    let running = old.state.as_ref().and_then(|state| state.running.as_ref());
    let terminated = ContainerStateTerminated {
        exit_code,
        reason: Some(if exit_code == 0 { "Completed" } else { "Error" }.to_owned()),
        started_at: running.and_then(|running| running.started_at.clone()),
        finished_at: Some(whole(now)),
        container_id: old.container_id.clone(),
        ..ContainerStateTerminated::default()
    };
    ContainerStatus {
        ready: false,
        started: Some(false),
        state: Some(ContainerState { terminated: Some(terminated), ..ContainerState::default() }),
        ..old.clone()
    }
}

fn init_container(
    container: &Container,
    old: Option<&ContainerStatus>,
    started: bool,
    over: bool,
    now: Timestamp,
) -> ContainerStatus {
    let sidecar = container.restart_policy.as_deref() == Some("Always");
    let is_over = old.is_some_and(|old| exit_code(old).is_some());
    let runs = old.is_some_and(|old| old.state.as_ref().is_some_and(|state| state.running.is_some()));
    match old {
        Some(old) if is_over || (runs && !over) => old.clone(),
        Some(old) if runs => ended(old, 0, now),
        _ if !started => waiting(container, INITIALIZING, None),
        _ => {
            let mut status = waiting(container, INITIALIZING, None);
            let state = ContainerStateRunning { started_at: Some(whole(now)) };
            status.state = Some(ContainerState { running: Some(state), ..ContainerState::default() });
            if sidecar {
                return ContainerStatus { ready: true, started: Some(true), ..status };
            }
            ContainerStatus { ready: true, ..ended(&status, 0, now) }
        }
    }
}

fn reason(container: &ContainerStatus) -> Option<&str> {
    container.state.as_ref()?.waiting.as_ref()?.reason.as_deref()
}

fn exit_code(container: &ContainerStatus) -> Option<i32> {
    Some(container.state.as_ref()?.terminated.as_ref()?.exit_code)
}

fn phase(containers: &[ContainerStatus], policy: &str) -> &'static str {
    let codes: Option<Vec<i32>> = containers.iter().map(exit_code).collect();
    match codes {
        Some(codes) if codes.iter().all(|code| !restarts(policy, *code)) => {
            if codes.iter().all(|code| *code == 0) { "Succeeded" } else { "Failed" }
        }
        _ if containers.iter().any(|container| !matches!(reason(container), None | Some(CRASHING))) => {
            "Pending"
        }
        _ => "Running",
    }
}

/// Type, status, and optional reason and message of a pod condition.
type Condition = (&'static str, bool, Option<(&'static str, String)>);

fn conditions(
    containers: &[ContainerStatus],
    phase: &str,
    initialized: bool,
    sandbox: bool,
) -> Vec<Condition> {
    let unready: Vec<&str> =
        containers.iter().filter(|it| !it.ready).map(|container| container.name.as_str()).collect();
    let ready = unready.is_empty();
    let why = match (ready, phase) {
        (true, _) => None,
        (false, "Succeeded") => Some(("PodCompleted", String::new())),
        (false, "Failed") => Some(("PodFailed", String::new())),
        (false, _) => {
            Some(("ContainersNotReady", format!("containers with unready status: [{}]", unready.join(" "))))
        }
    };
    let not_initialized = (!initialized)
        .then(|| ("ContainersNotInitialized", "containers with incomplete status: []".to_owned()));
    vec![
        ("PodReadyToStartContainers", sandbox, None),
        ("Initialized", initialized, not_initialized),
        ("Ready", ready, why.clone()),
        ("ContainersReady", ready, why),
        ("PodScheduled", true, None),
    ]
}

/// Updates the conditions. `lastTransitionTime` changes only with the status.
fn with_conditions(old: Vec<PodCondition>, wanted: Vec<Condition>, now: Timestamp) -> Vec<PodCondition> {
    let mut conditions = Vec::with_capacity(wanted.len());
    for (type_, status, why) in wanted {
        let status = if status { "True" } else { "False" };
        let kept = old.iter().find(|old| old.type_ == type_ && old.status == status);
        let (reason, message) = why.unzip();
        conditions.push(PodCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: reason.map(str::to_owned),
            message: message.filter(|message| !message.is_empty()),
            last_transition_time: kept
                .and_then(|kept| kept.last_transition_time.clone())
                .or_else(|| Some::<Time>(whole(now))),
            ..PodCondition::default()
        });
    }
    // Keep conditions of other controllers, such as readiness gates.
    conditions.extend(old.into_iter().filter(|old| !conditions_include(old)));
    conditions
}

fn conditions_include(condition: &PodCondition) -> bool {
    ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]
        .contains(&condition.type_.as_str())
}

#[cfg(test)]
mod tests;
