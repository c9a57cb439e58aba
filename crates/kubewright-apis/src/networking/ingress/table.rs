//! The row of an Ingress.

use serde_json::Value;

use crate::core::service::table::load_balancer;
use crate::table::row::{NONE, Row, SHOWN, joined};
use kubewright_apimachinery::object::Fields as _;

pub(super) fn cells(row: &Row<'_>) -> Vec<Value> {
    let ports = if row.list("spec.tls").is_empty() { "80" } else { "80, 443" };
    vec![
        row.name(),
        row.optional("spec.ingressClassName", NONE),
        hosts(row.list("spec.rules")).into(),
        load_balancer(row).into(),
        ports.into(),
        row.age(),
    ]
}

/// The first hosts. Rules without a host count as omitted.
fn hosts(rules: &[Value]) -> String {
    let named: Vec<(usize, &str)> = rules
        .iter()
        .map(|rule| rule.str_at("host"))
        .enumerate()
        .filter(|(_, host)| !host.is_empty())
        .collect();
    let shown = joined(named.iter().take(SHOWN).map(|(_, host)| *host), ",");
    match named.get(SHOWN - 1) {
        _ if named.is_empty() => "*".to_owned(),
        Some((last, _)) if last + 1 < rules.len() => format!("{shown} + {} more...", rules.len() - SHOWN),
        _ => shown,
    }
}
