//! Rows of workloads.

use serde_json::Value;

use super::row::{NONE, Row, UNSET, age_of, instant, is_true};
use kubewright_apimachinery::gvk::split_api_version;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::selector::LabelSelector;
use kubewright_apimachinery::status::Qualified;

pub(super) fn pod_template(row: &Row<'_>) -> Vec<Value> {
    let [names, images] = row.containers("template.spec");
    vec![row.name(), names, images, row.labels("template.metadata.labels")]
}

pub(super) fn replication_controller(row: &Row<'_>) -> Vec<Value> {
    replicas(row, row.labels("spec.selector"))
}

pub(super) fn replica_set(row: &Row<'_>) -> Vec<Value> {
    replicas(row, row.selector("spec.selector"))
}

fn replicas(row: &Row<'_>, selector: Value) -> Vec<Value> {
    let [names, images] = row.containers("spec.template.spec");
    vec![
        row.name(),
        row.number("spec.replicas"),
        row.number("status.replicas"),
        row.number("status.readyReplicas"),
        row.age(),
        names,
        images,
        selector,
    ]
}

pub(super) fn deployment(row: &Row<'_>) -> Vec<Value> {
    let [names, images] = row.containers("spec.template.spec");
    // Unlike other workloads, a Deployment shows an empty selector as such.
    let selector = LabelSelector::from_object(row.object.at("spec.selector"));
    vec![
        row.name(),
        ready(row),
        row.number("status.updatedReplicas"),
        row.number("status.availableReplicas"),
        row.age(),
        names,
        images,
        selector.map_or_else(|_| "<invalid>".into(), |selector| selector.to_string().into()),
    ]
}

pub(super) fn stateful_set(row: &Row<'_>) -> Vec<Value> {
    let [names, images] = row.containers("spec.template.spec");
    vec![row.name(), ready(row), row.age(), names, images]
}

fn ready(row: &Row<'_>) -> Value {
    format!("{}/{}", row.int("status.readyReplicas"), row.int("spec.replicas")).into()
}

pub(super) fn daemon_set(row: &Row<'_>) -> Vec<Value> {
    let [names, images] = row.containers("spec.template.spec");
    vec![
        row.name(),
        row.number("status.desiredNumberScheduled"),
        row.number("status.currentNumberScheduled"),
        row.number("status.numberReady"),
        row.number("status.updatedNumberScheduled"),
        row.number("status.numberAvailable"),
        row.labels("spec.template.spec.nodeSelector"),
        row.age(),
        names,
        images,
        row.selector("spec.selector"),
    ]
}

pub(super) fn controller_revision(row: &Row<'_>) -> Vec<Value> {
    let owners = row.list("metadata.ownerReferences");
    let controller = owners.iter().find(|owner| owner.bool_at("controller")).map(|owner| {
        let (group, _) = split_api_version(owner.str_at("apiVersion"));
        let kind = Qualified { group, name: owner.str_at("kind") }.to_string().to_lowercase();
        format!("{kind}/{}", owner.str_at("name"))
    });
    vec![row.name(), controller.as_deref().unwrap_or(NONE).into(), row.number("revision"), row.age()]
}

pub(super) fn job(row: &Row<'_>) -> Vec<Value> {
    let [names, images] = row.containers("spec.template.spec");
    vec![
        row.name(),
        job_status(row).into(),
        completions(row).into(),
        job_duration(row).into(),
        row.age(),
        names,
        images,
        row.selector("spec.selector"),
    ]
}

fn job_status(row: &Row<'_>) -> &'static str {
    let conditions = row.list("status.conditions");
    if is_true(conditions, "Complete") {
        "Complete"
    } else if is_true(conditions, "Failed") {
        "Failed"
    } else if row.is_deleted() {
        "Terminating"
    } else if is_true(conditions, "Suspended") {
        "Suspended"
    } else if is_true(conditions, "FailureTarget") {
        "FailureTarget"
    } else {
        "Running"
    }
}

fn completions(row: &Row<'_>) -> String {
    let succeeded = row.int("status.succeeded");
    match (row.object.int_at("spec.completions"), row.int("spec.parallelism")) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        _ => format!("{succeeded}/1"),
    }
}

fn job_duration(row: &Row<'_>) -> String {
    match (instant(row.str("status.startTime")), instant(row.str("status.completionTime"))) {
        (None, _) => String::new(),
        (Some(start), end) => age_of(start, end.unwrap_or(row.now)),
    }
}

pub(super) fn cron_job(row: &Row<'_>) -> Vec<Value> {
    let [names, images] = row.containers("spec.jobTemplate.spec.template.spec");
    let suspend = match row.object.at("spec.suspend").as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => UNSET,
    };
    let last = "status.lastScheduleTime";
    vec![
        row.name(),
        row.text("spec.schedule"),
        row.optional("spec.timeZone", NONE),
        suspend.into(),
        row.count("status.active"),
        if row.has(last) { row.since(last).into() } else { NONE.into() },
        row.age(),
        names,
        images,
        row.selector("spec.jobTemplate.spec.selector"),
    ]
}

pub(super) fn pod_disruption_budget(row: &Row<'_>) -> Vec<Value> {
    let bound = |path: &str| match row.object.at(path) {
        Value::Null => "N/A".into(),
        Value::Number(number) => number.to_string().into(),
        percentage => percentage.clone(),
    };
    vec![
        row.name(),
        bound("spec.minAvailable"),
        bound("spec.maxUnavailable"),
        row.number("status.disruptionsAllowed"),
        row.age(),
    ]
}
