//! The row of a pod, including its ready count and status.

use serde_json::{Value, json};

use crate::table::row::{NONE, Row, age_of, instant, is_true, non_empty};
use kubewright_apimachinery::object::Fields as _;

/// The fields that [`cells`] and [`row_conditions`] read.
pub(super) const CELL_PATHS: &[&str] = &[
    "metadata.name",
    "metadata.creationTimestamp",
    "metadata.deletionTimestamp",
    "spec.containers.name",
    "spec.initContainers.name",
    "spec.initContainers.restartPolicy",
    "spec.nodeName",
    "spec.readinessGates",
    "status",
];

pub(super) fn cells(row: &Row<'_>) -> Vec<Value> {
    let summary = Summary::of(row);
    let init_containers = row.list("spec.initContainers");
    let sidecars = init_containers.iter().filter(|container| restarts_always(container)).count();
    let total = row.list("spec.containers").len() + sidecars;
    let ip = row.list("status.podIPs").first().map_or("", |ip| ip.str_at("ip"));
    vec![
        row.name(),
        format!("{}/{total}", summary.ready).into(),
        summary.reason.into(),
        summary.restarts.text(row.now).into(),
        row.age(),
        non_empty(ip, NONE).into(),
        row.text_or("spec.nodeName", NONE),
        row.text_or("status.nominatedNodeName", NONE),
        readiness_gates(row).into(),
    ]
}

/// The `conditions` of the row of a completed pod.
pub(super) fn row_conditions(object: &Value) -> Option<Value> {
    let phase = object.str_at("status.phase");
    let message = match phase {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": phase, "message": message}]))
}

struct Summary {
    ready: usize,
    reason: String,
    restarts: Restarts,
}

#[derive(Default)]
struct Restarts {
    count: i64,
    last: Option<i64>,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count += status.int_at("restartCount").unwrap_or_default();
        self.last = self.last.max(instant(status.str_at("lastState.terminated.finishedAt")));
    }

    fn text(&self, now: i64) -> String {
        match self.last {
            Some(last) if self.count != 0 => format!("{} ({} ago)", self.count, age_of(last, now)),
            _ => self.count.to_string(),
        }
    }
}

impl Summary {
    fn of(row: &Row<'_>) -> Self {
        let phase = row.str("status.phase");
        let mut summary = Self {
            ready: 0,
            reason: non_empty(row.str("status.reason"), phase).to_owned(),
            restarts: Restarts::default(),
        };
        let conditions = row.list("status.conditions");
        let is_gate =
            |c: &Value| c.str_at("type") == "PodScheduled" && c.str_at("reason") == "SchedulingGated";
        if conditions.iter().any(is_gate) {
            "SchedulingGated".clone_into(&mut summary.reason);
        }
        let mut restarts_of_sidecars = Restarts::default();
        let initializing = summary.add_init_containers(row, &mut restarts_of_sidecars);
        if !initializing || is_true(conditions, "Initialized") {
            // Restarts of completed init containers do not count.
            summary.restarts = restarts_of_sidecars;
            summary.add_containers(row);
        }
        if row.is_deleted() && row.str("status.reason") == "NodeLost" {
            "Unknown".clone_into(&mut summary.reason);
        } else if row.is_deleted() && !matches!(phase, "Failed" | "Succeeded") {
            "Terminating".clone_into(&mut summary.reason);
        }
        summary
    }

    /// Visits init containers up to the first one that is not done. Returns whether there is one.
    fn add_init_containers(&mut self, row: &Row<'_>, restarts_of_sidecars: &mut Restarts) -> bool {
        let containers = row.list("spec.initContainers");
        for (index, status) in row.list("status.initContainerStatuses").iter().enumerate() {
            let name = status.str_at("name");
            let is_sidecar = containers.iter().any(|c| c.str_at("name") == name && restarts_always(c));
            self.restarts.add(status);
            if is_sidecar {
                restarts_of_sidecars.add(status);
            }
            if status.has("state.terminated") && exit_code(status) == 0 {
                continue;
            }
            if is_sidecar && status.bool_at("started") {
                self.ready += usize::from(status.bool_at("ready"));
                continue;
            }
            let waits_for = status.str_at("state.waiting.reason");
            self.reason = if status.has("state.terminated") {
                format!("Init:{}", termination(status))
            } else if !matches!(waits_for, "" | "PodInitializing") {
                format!("Init:{waits_for}")
            } else {
                format!("Init:{index}/{}", containers.len())
            };
            return true;
        }
        false
    }

    /// The first container with a reason determines the status.
    fn add_containers(&mut self, row: &Row<'_>) {
        let mut has_running = false;
        for status in row.list("status.containerStatuses").iter().rev() {
            self.restarts.add(status);
            let waits_for = status.str_at("state.waiting.reason");
            if !waits_for.is_empty() {
                waits_for.clone_into(&mut self.reason);
            } else if status.has("state.terminated") {
                self.reason = termination(status);
            } else if status.bool_at("ready") && status.has("state.running") {
                has_running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" && has_running {
            let ready = |c: &Value| c.str_at("type") == "Ready" && c.str_at("status") == "True";
            let is_ready = row.list("status.conditions").iter().any(ready);
            if is_ready { "Running" } else { "NotReady" }.clone_into(&mut self.reason);
        }
    }
}

/// The reason of a terminated container.
fn termination(status: &Value) -> String {
    let reason = status.str_at("state.terminated.reason");
    match status.int_at("state.terminated.signal").unwrap_or_default() {
        _ if !reason.is_empty() => reason.to_owned(),
        0 => format!("ExitCode:{}", exit_code(status)),
        signal => format!("Signal:{signal}"),
    }
}

fn exit_code(status: &Value) -> i64 {
    status.int_at("state.terminated.exitCode").unwrap_or_default()
}

/// Whether an init container is a sidecar.
fn restarts_always(container: &Value) -> bool {
    container.str_at("restartPolicy") == "Always"
}

fn readiness_gates(row: &Row<'_>) -> String {
    let gates = row.list("spec.readinessGates");
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let conditions = row.list("status.conditions");
    let is_open = |gate: &&Value| is_true(conditions, gate.str_at("conditionType"));
    format!("{}/{}", gates.iter().filter(is_open).count(), gates.len())
}
