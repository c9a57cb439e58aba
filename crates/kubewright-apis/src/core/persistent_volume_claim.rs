//! PersistentVolumeClaim.

mod data_source;
mod quota;
mod table;
pub(crate) mod validation;

use serde_json::{Value, json};

use super::persistent_volume::warnings::{STORAGE_CLASS, annotations};
use super::pod::defaults::resources::round_up;
use crate::kinds::KindRules;
use crate::registry::RegistryRules;
use crate::strategy::keep;
use kubewright_apimachinery::field::{ErrorList, quote};
use kubewright_apimachinery::meta::Check;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::quantity::Quantity;

pub(crate) const RULES: KindRules = KindRules {
    kind: "PersistentVolumeClaim",
    defaults,
    prepare_create: |object| {
        object.set_at("status", json!({"phase": "Pending"}));
        data_source::prepare(object, None);
    },
    prepare_update: |new, old| {
        keep(new, old, "status");
        data_source::prepare(new, Some(old));
    },
    warnings: |new, _| warnings(new),
    update_checks: &[Check::New, Check::Update, Check::New],
    validate: validation::claim,
    validate_update: validation::claim_update,
    validate_subresource: |subresource, new, _| match subresource {
        "status" => validation::claim_status(new),
        _ => ErrorList::new(),
    },
    cells: table::cells,
    quota: Some(&quota::QUOTA),
    registry: RegistryRules { returns_deleted: true, ..RegistryRules::DEFAULT },
    ..super::GROUP
};

pub(crate) fn defaults(object: &mut Value) {
    object.default_at("spec.volumeMode", "Filesystem");
    round_up(object, "spec.resources.requests");
    round_up(object, "spec.resources.limits");
    object.default_at("status.phase", "Pending");
    round_up(object, "status.capacity");
    round_up(object, "status.allocatedResources");
}

fn warnings(claim: &Value) -> Vec<String> {
    let mut warnings = annotations(claim, &[STORAGE_CLASS]);
    for name in ["requests", "limits"] {
        let amount = Quantity::from_json(claim.at(&format!("spec.resources.{name}.storage")));
        if let Ok(amount) = amount
            && amount.milli_value() % 1000 != 0
        {
            let amount = quote(&amount.to_string());
            warnings.push(format!(
                "spec.resources.{name}[storage]: fractional byte value {amount} is invalid, must be an integer"
            ));
        }
    }
    warnings
}

#[cfg(test)]
mod tests;
