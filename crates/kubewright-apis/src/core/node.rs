//! Node.

mod table;
mod validation;

use serde_json::{Value, json};

use super::pod::defaults::one_address;
use super::pod::defaults::resources::round_up;
use crate::kinds::KindRules;
use crate::registry::RegistryRules;
use crate::selectable::{NAME, Read, Refusal, Selectable};
use crate::strategy::keep;
use kubewright_apimachinery::field::ErrorList;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "Node",
    defaults,
    // A node may be created with a status.
    prepare_create: |node| drop_disabled(node, &Value::Null),
    prepare_update: |new, old| {
        keep(new, old, "status");
        drop_disabled(new, old);
    },
    prepare_subresource: |subresource, new, old| {
        if subresource == "status" {
            keep(new, old, "spec");
            drop_disabled(new, old);
        }
    },
    warnings: |node, _| warnings(node),
    validate: validation::create,
    validate_update: |new, old| {
        let mut errors = validation::create(new);
        errors.extend(validation::update(new, old));
        errors
    },
    validate_subresource: |subresource, new, old| match subresource {
        "status" => validation::update(new, old),
        _ => ErrorList::new(),
    },
    selectable: Some(&Selectable {
        fields: &[(NAME, Read::Text(NAME)), ("spec.unschedulable", Read::Flag("spec.unschedulable"))],
        refusal: Refusal::Plain,
    }),
    cells: table::cells,
    registry: RegistryRules { etcd_name: Some("minions"), ..RegistryRules::DEFAULT },
    ..super::GROUP
};

fn defaults(node: &mut Value) {
    if let Some(spec) = node.at_mut("spec") {
        one_address(
            spec,
            "podCIDR",
            "podCIDRs",
            |cidr| json!(cidr),
            |entry| entry.as_str().unwrap_or_default().to_owned(),
        );
    }
    if node.has("status.capacity") && !node.has("status.allocatable") {
        let capacity = node.at("status.capacity").clone();
        node.set_at("status.allocatable", capacity);
    }
    round_up(node, "status.capacity");
    round_up(node, "status.allocatable");
}

/// Drops the kubelet config source, unless the old node has one.
fn drop_disabled(node: &mut Value, old: &Value) {
    for path in ["spec.configSource", "status.config"] {
        if !old.has(path) {
            node.remove_at(path);
        }
    }
}

fn warnings(node: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    if node.has("spec.configSource") {
        warnings.push("spec.configSource: the feature is removed".to_owned());
    }
    if !node.str_at("spec.externalID").is_empty() {
        warnings.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned());
    }
    for (index, cidr) in node.list_at("spec.podCIDRs").iter().filter_map(Value::as_str).enumerate() {
        warnings.extend(names::cidr_warnings(&format!("spec.podCIDRs[{index}]"), cidr));
    }
    warnings
}

#[cfg(test)]
mod tests;
