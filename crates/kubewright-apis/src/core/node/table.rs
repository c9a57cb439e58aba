//! The row of a Node.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::table::row::{NONE, Row, UNKNOWN, joined, non_empty};
use kubewright_apimachinery::object::Fields as _;

pub(super) fn cells(row: &Row<'_>) -> Vec<Value> {
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
