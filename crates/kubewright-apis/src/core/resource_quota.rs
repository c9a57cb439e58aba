//! ResourceQuota. [`crate::quota`] computes the usage of other kinds.

mod validation;

use serde_json::Value;

use super::pod::defaults::resources::round_up;
use crate::kinds::KindRules;
use crate::quota::Quota;
use crate::registry::RegistryRules;
use crate::strategy::{keep, reset_status};
use crate::table::row::Row;
use kubewright_apimachinery::field::ErrorList;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "ResourceQuota",
    defaults,
    prepare_create: reset_status,
    prepare_update: |new, old| keep(new, old, "status"),
    validate: validation::resource_quota,
    validate_update: validation::resource_quota_update,
    validate_subresource: |subresource, new, _| match subresource {
        "status" => validation::quota_status(new),
        _ => ErrorList::new(),
    },
    cells,
    quota: Some(&Quota::counted("resourcequotas")),
    registry: RegistryRules { returns_deleted: true, ..RegistryRules::DEFAULT },
    ..super::GROUP
};

fn defaults(object: &mut Value) {
    for path in ["spec.hard", "status.hard", "status.used"] {
        round_up(object, path);
    }
}

fn cells(row: &Row<'_>) -> Vec<Value> {
    let used = row.object.map_at("status.used");
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in row.object.map_at("status.hard") {
        let used = used.get(resource).and_then(Value::as_str).unwrap_or("0");
        let shown = format!("{resource}: {used}/{}", hard.as_str().unwrap_or("0"));
        if resource.starts_with("limits.") { limits.push(shown) } else { requests.push(shown) }
    }
    vec![row.name(), requests.join(", ").into(), limits.join(", ").into(), row.age()]
}

#[cfg(test)]
mod tests;
