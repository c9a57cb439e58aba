//! LimitRange.

mod validation;

use serde_json::Value;

use super::pod::defaults::resources::round_up;
use crate::kinds::KindRules;
use crate::registry::RegistryRules;
use kubewright_apimachinery::meta::Check;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "LimitRange",
    defaults,
    update_checks: &[Check::New],
    validate: validation::limit_range,
    validate_update: |new, _| validation::limit_range(new),
    registry: RegistryRules { creates_on_update: true, ..RegistryRules::DEFAULT },
    ..super::GROUP
};

fn defaults(object: &mut Value) {
    object.list_mut("spec.limits").into_iter().flatten().for_each(limit);
}

/// One limit of a LimitRange. For containers, missing values are derived from the given ones.
fn limit(item: &mut Value) {
    for name in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
        round_up(item, name);
    }
    if item.str_at("type") != "Container" {
        return;
    }
    for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
        for (name, quantity) in item.map_at(from).clone() {
            item.object_mut(to).entry(name).or_insert(quantity);
        }
    }
}

#[cfg(test)]
mod tests;
