//! PersistentVolume.

pub(crate) mod defaults;
pub(crate) mod sources;
pub(crate) mod table;
pub(crate) mod validation;
pub(crate) mod warnings;

use serde_json::json;

use crate::kinds::KindRules;
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
    ..super::GROUP
};

#[cfg(test)]
mod tests;
