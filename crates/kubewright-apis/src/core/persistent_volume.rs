//! PersistentVolume.

pub(crate) mod defaults;
pub(crate) mod sources;
pub(crate) mod table;
pub(crate) mod validation;
pub(crate) mod warnings;

use serde_json::{Value, json};

use crate::kinds::KindRules;
use crate::registry::{RegistryRules, Stamp};
use crate::strategy::keep;
use kubewright_apimachinery::meta::Check;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "PersistentVolume",
    defaults: defaults::persistent_volume,
    prepare_create: |object| object.set_at("status", json!({"phase": "Pending"})),
    prepare_update: |new, old| keep(new, old, "status"),
    warnings: |new, _| warnings::persistent_volume(new),
    update_checks: &[Check::New, Check::New],
    validate: validation::persistent_volume,
    validate_update: validation::persistent_volume_update,
    cells: table::cells,
    registry: RegistryRules { returns_deleted: true, stamp, ..RegistryRules::DEFAULT },
    ..super::GROUP
};

/// Sets the time of a new or changed phase.
fn stamp(new: &mut Value, old: Option<&Value>, write: &Stamp<'_>) {
    let time = "status.lastPhaseTransitionTime";
    let is_unstamped = |old: &Value| {
        old.str_at("status.phase") != new.str_at("status.phase") && old.at(time) == new.at(time)
    };
    if old.is_none_or(is_unstamped) {
        new.set_at(time, write.time());
    }
}

#[cfg(test)]
mod tests;
