//! EndpointSlice.

mod validation;

use serde_json::Value;

use crate::core::endpoints::is_managed_by;
use crate::core::service::warnings::about_ips;
use crate::kinds::KindRules;
use crate::strategy::{count_generation, start_generation};
use crate::table::row::{Row, SHOWN, UNSET, first, non_empty};
use kubewright_apimachinery::field::Path;
use kubewright_apimachinery::meta::Check;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    group: "discovery.k8s.io",
    kind: "EndpointSlice",
    defaults,
    prepare_create: |object| {
        start_generation(object);
        drop_topology(object);
    },
    prepare_update,
    warnings: |new, old| warnings(new, old.is_none()),
    kube_finalizers: true,
    update_checks: &[Check::New],
    validate: validation::slice,
    validate_update: validation::slice_update,
    cells,
    ..KindRules::DEFAULT
};

fn defaults(object: &mut Value) {
    for port in object.list_mut("ports").into_iter().flatten() {
        port.default_at("name", "");
        port.default_at("protocol", "TCP");
    }
}

fn prepare_update(new: &mut Value, old: &Value) {
    let differs = |field| new.at(field) != old.at(field);
    let changed = ["addressType", "endpoints", "ports", "metadata.labels"].into_iter().any(differs);
    let endpoints_changed = differs("endpoints");
    count_generation(new, old, changed);
    if endpoints_changed {
        drop_topology(new);
    }
}

/// Drops `deprecatedTopology`, a field of an older API version.
fn drop_topology(slice: &mut Value) {
    for endpoint in slice.list_mut("endpoints").into_iter().flatten() {
        endpoint.remove_at("deprecatedTopology");
    }
}

fn warnings(object: &Value, created: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    if created && object.str_at("addressType") == "FQDN" {
        warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    let controllers = ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];
    if is_managed_by(object, "endpointslice.kubernetes.io/managed-by", &controllers) {
        return warnings;
    }
    for (index, endpoint) in object.list_at("endpoints").iter().enumerate() {
        let path = Path::new("endpoints").index(index).child("addresses");
        warnings.extend(about_ips(endpoint.list_at("addresses"), &path));
    }
    warnings
}

fn cells(row: &Row<'_>) -> Vec<Value> {
    let port = |port: &Value| match port.int_at("port") {
        Some(number) => number.to_string(),
        None => port.at("name").as_str().unwrap_or("*").to_owned(),
    };
    let ports: Vec<String> = row.list("ports").iter().map(port).collect();
    let addresses = row.list("endpoints").iter().flat_map(|endpoint| endpoint.list_at("addresses"));
    let addresses: Vec<String> = addresses.filter_map(Value::as_str).map(str::to_owned).collect();
    vec![
        row.name(),
        row.text("addressType"),
        non_empty(&first(&ports, SHOWN, ","), UNSET).into(),
        non_empty(&first(&addresses, SHOWN, ","), UNSET).into(),
        row.age(),
    ]
}

#[cfg(test)]
mod tests;
