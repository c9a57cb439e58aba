//! Rows of admission policies, flow control and APIServices.

use serde_json::Value;

use super::row::{NONE, Row, UNSET, condition, joined_list};
use kubewright_apimachinery::object::Fields as _;

/// The row of a policy. `rules` is the name of the list of its rules.
pub(super) fn policy(row: &Row<'_>, rules: &str) -> Vec<Value> {
    let kind = row.object.at("spec.paramKind");
    let kind = if kind.is_null() {
        UNSET.to_owned()
    } else {
        format!("{}/{}", kind.str_at("apiVersion"), kind.str_at("kind"))
    };
    vec![row.name(), row.count(rules), kind.into(), row.age()]
}

pub(super) fn policy_binding(row: &Row<'_>) -> Vec<Value> {
    let params = row.object.at("spec.paramRef");
    let shown = match (params.str_at("namespace"), params.str_at("name")) {
        (_, "") if params.has("selector") => selector(params.at("selector")),
        (_, "") => UNSET.to_owned(),
        ("", name) => format!("*/{name}"),
        (namespace, name) => format!("{namespace}/{name}"),
    };
    vec![row.name(), row.text("spec.policyName"), shown.into(), row.age()]
}

/// A label selector in Go's struct format, as upstream prints it here.
fn selector(selector: &Value) -> String {
    let label = |(key, value): (&String, &Value)| format!("{key}: {},", value.as_str().unwrap_or_default());
    let labels: String = selector.map_at("matchLabels").iter().map(label).collect();
    let requirement = |one: &Value| {
        let values = joined_list(one.list_at("values"), " ");
        format!(
            "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{values}],}},",
            one.str_at("key"),
            one.str_at("operator")
        )
    };
    let requirements: String = selector.list_at("matchExpressions").iter().map(requirement).collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{requirements}}},}}"
    )
}

pub(super) fn flow_schema(row: &Row<'_>) -> Vec<Value> {
    let dangling = condition(row.list("status.conditions"), "Dangling");
    let method = row.object.at("spec.distinguisherMethod");
    vec![
        row.name(),
        row.text("spec.priorityLevelConfiguration.name"),
        row.number("spec.matchingPrecedence"),
        if method.is_null() { NONE.into() } else { method.str_at("type").into() },
        row.age(),
        dangling.map_or("?", |dangling| dangling.str_at("status")).into(),
    ]
}

pub(super) fn priority_level(row: &Row<'_>) -> Vec<Value> {
    let within = |holder: &str, field: &str| {
        let holder = row.object.at(holder);
        if holder.is_null() { NONE.into() } else { holder.int_at(field).unwrap_or_default().into() }
    };
    let queuing = "spec.limited.limitResponse.queuing";
    vec![
        row.name(),
        row.text("spec.type"),
        within("spec.limited", "nominalConcurrencyShares"),
        within(queuing, "queues"),
        within(queuing, "handSize"),
        within(queuing, "queueLengthLimit"),
        row.age(),
    ]
}

pub(super) fn api_service(row: &Row<'_>) -> Vec<Value> {
    let service = row.object.at("spec.service");
    let service = if service.is_null() {
        "Local".to_owned()
    } else {
        format!("{}/{}", service.str_at("namespace"), service.str_at("name"))
    };
    let available = condition(row.list("status.conditions"), "Available");
    let available = available.map(|c| (c.str_at("status"), c.str_at("reason")));
    let status = match available {
        None => "Unknown".to_owned(),
        Some((status @ "True", _) | (status, "")) => status.to_owned(),
        Some((status, reason)) => format!("{status} ({reason})"),
    };
    vec![row.name(), service.into(), status.into(), row.age()]
}
