//! Rows of nodes, namespaces and other cluster kinds.

use std::collections::BTreeSet;

use serde_json::Value;

use super::row::{NONE, Row, UNKNOWN, age, condition, joined, non_empty};
use kubewright_apimachinery::duration::human_duration;
use kubewright_apimachinery::object::Fields as _;

pub(super) fn node(row: &Row<'_>) -> Vec<Value> {
    let address = |ty: &str| {
        let addresses = row.list("status.addresses").iter();
        let found = addresses.into_iter().find(|address| address.str_at("type") == ty);
        found.map_or(NONE, |address| address.str_at("address")).into()
    };
    vec![
        row.name(),
        node_status(row).into(),
        non_empty(&node_roles(row), NONE).into(),
        row.age(),
        row.text("status.nodeInfo.kubeletVersion"),
        address("InternalIP"),
        address("ExternalIP"),
        row.text_or("status.nodeInfo.osImage", UNKNOWN),
        kernel(row).into(),
        row.text_or("status.nodeInfo.containerRuntimeVersion", UNKNOWN),
    ]
}

fn node_status(row: &Row<'_>) -> String {
    let conditions = row.list("status.conditions").iter();
    let ready = conditions.rev().find(|condition| condition.str_at("type") == "Ready");
    let status = match ready.map(|ready| ready.str_at("status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let disabled = if row.object.bool_at("spec.unschedulable") { ",SchedulingDisabled" } else { "" };
    format!("{status}{disabled}")
}

fn node_roles(row: &Row<'_>) -> String {
    let role = |(key, value): (&'_ String, &'_ Value)| match key.strip_prefix("node-role.kubernetes.io/") {
        Some(role) => role.to_owned(),
        None if key == "kubernetes.io/role" => value.as_str().unwrap_or_default().to_owned(),
        None => String::new(),
    };
    let roles: BTreeSet<String> = row.object.map_at("metadata.labels").iter().map(role).collect();
    joined(roles.iter().map(String::as_str).filter(|role| !role.is_empty()), ",")
}

/// The kernel version and architecture.
fn kernel(row: &Row<'_>) -> String {
    match (row.str("status.nodeInfo.kernelVersion"), row.str("status.nodeInfo.architecture")) {
        ("", _) => UNKNOWN.to_owned(),
        (kernel, "") => kernel.to_owned(),
        (kernel, architecture) => format!("{kernel} ({architecture})"),
    }
}

pub(super) fn namespace(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), row.text("status.phase"), row.age()]
}

pub(super) fn component_status(row: &Row<'_>) -> Vec<Value> {
    let healthy = condition(row.list("conditions"), "Healthy");
    let status = match healthy.map(|healthy| healthy.str_at("status")) {
        Some("True") => "Healthy",
        Some(_) => "Unhealthy",
        None => "Unknown",
    };
    let text = |field: &str| healthy.map_or("", |healthy| healthy.str_at(field)).into();
    vec![row.name(), status.into(), text("message"), text("error")]
}

pub(super) fn config_map(row: &Row<'_>) -> Vec<Value> {
    let count = row.object.map_at("data").len() + row.object.map_at("binaryData").len();
    vec![row.name(), count.into(), row.age()]
}

pub(super) fn secret(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), row.text("type"), row.object.map_at("data").len().into(), row.age()]
}

pub(super) fn resource_quota(row: &Row<'_>) -> Vec<Value> {
    let used = row.object.map_at("status.used");
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in row.object.map_at("status.hard") {
        let used = used.get(resource).and_then(Value::as_str).unwrap_or("0");
        let shown = format!("{resource}: {used}/{}", hard.as_str().unwrap_or("0"));
        if resource.starts_with("limits.") { limits.push(shown) } else { requests.push(shown) }
    }
    vec![row.name(), requests.join(", ").into(), limits.join(", ").into(), row.age()]
}

/// Expects an object of core/v1.
pub(super) fn event(row: &Row<'_>) -> Vec<Value> {
    let time = |path: &str| Some(row.str(path)).filter(|time| super::row::instant(time).is_some());
    let first = time("firstTimestamp").or(time("eventTime")).unwrap_or_default();
    let last = time("lastTimestamp").unwrap_or(first);
    let (last, count) = if row.has("series") {
        (row.str("series.lastObservedTime"), row.int("series.count"))
    } else {
        // Events of events.k8s.io have no count.
        (last, row.int("count").max(1))
    };
    let about = row.object.at("involvedObject");
    let slash = if about.str_at("name").is_empty() { "" } else { "/" };
    vec![
        age(last, row.now).into(),
        row.text("type"),
        row.text("reason"),
        format!("{}{slash}{}", about.str_at("kind").to_lowercase(), about.str_at("name")).into(),
        about.str_at("fieldPath").into(),
        event_source(row).into(),
        row.str("message").trim().into(),
        age(first, row.now).into(),
        count.into(),
        row.name(),
    ]
}

fn event_source(row: &Row<'_>) -> String {
    let component = non_empty(row.str("source.component"), row.str("reportingComponent"));
    let instance = non_empty(row.str("source.host"), row.str("reportingInstance"));
    if instance.is_empty() { component.to_owned() } else { format!("{component}, {instance}") }
}

pub(super) fn role_binding(row: &Row<'_>) -> Vec<Value> {
    let role = row.object.at("roleRef");
    let subjects = row.list("subjects");
    let names = |kind: &str| {
        let of_kind = subjects.iter().filter(|subject| subject.str_at("kind") == kind);
        joined(of_kind.map(|subject| subject.str_at("name")), ", ").into()
    };
    let accounts = subjects.iter().filter(|subject| subject.str_at("kind") == "ServiceAccount");
    let accounts = accounts.map(|a| format!("{}/{}", a.str_at("namespace"), a.str_at("name")));
    vec![
        row.name(),
        format!("{}/{}", role.str_at("kind"), role.str_at("name")).into(),
        row.age(),
        names("User"),
        names("Group"),
        accounts.collect::<Vec<_>>().join(", ").into(),
    ]
}

pub(super) fn certificate_signing_request(row: &Row<'_>) -> Vec<Value> {
    let duration = row.object.int_at("spec.expirationSeconds").map(human_duration);
    vec![
        row.name(),
        row.age(),
        row.text_or("spec.signerName", NONE),
        row.text("spec.username"),
        duration.as_deref().unwrap_or(NONE).into(),
        certificate_status(row).into(),
    ]
}

fn certificate_status(row: &Row<'_>) -> String {
    let has = |ty: &str| condition(row.list("status.conditions"), ty).is_some();
    let decision = if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    };
    let failed = if has("Failed") { ",Failed" } else { "" };
    let issued = if row.str("status.certificate").is_empty() { "" } else { ",Issued" };
    format!("{decision}{failed}{issued}")
}

pub(super) fn priority_class(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), row.number("value"), row.flag("globalDefault"), row.age(), row.text("preemptionPolicy")]
}

pub(super) fn resource_claim(row: &Row<'_>) -> Vec<Value> {
    let is_allocated = row.has("status.allocation");
    let states = [
        ("deleted", row.is_deleted()),
        ("pending", !is_allocated && !row.is_deleted()),
        ("allocated", is_allocated),
        ("reserved", is_allocated && !row.list("status.reservedFor").is_empty()),
    ];
    let state = joined(states.into_iter().filter(|(_, holds)| *holds).map(|(state, _)| state), ",");
    vec![row.name(), state.into(), row.age()]
}

pub(super) fn resource_slice(row: &Row<'_>) -> Vec<Value> {
    vec![
        row.name(),
        row.text("spec.nodeName"),
        row.text("spec.driver"),
        row.text("spec.pool.name"),
        row.age(),
    ]
}
