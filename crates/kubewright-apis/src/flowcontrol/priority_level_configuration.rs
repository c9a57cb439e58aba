//! PriorityLevelConfiguration.

mod validation;

use serde_json::Value;

use crate::defaults::zero_to;
use crate::kinds::KindRules;
use crate::table::row::{NONE, Row};
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "PriorityLevelConfiguration",
    defaults,
    validate: validation::create,
    validate_update: |new, _| validation::create(new),
    cells,
    ..super::GROUP
};

fn defaults(object: &mut Value) {
    if object.has("spec.limited") {
        object.default_at("spec.limited.nominalConcurrencyShares", 30);
        object.default_at("spec.limited.lendablePercent", 0);
        if object.has("spec.limited.limitResponse.queuing") {
            zero_to(object, "spec.limited.limitResponse.queuing.handSize", 8);
            zero_to(object, "spec.limited.limitResponse.queuing.queues", 64);
            zero_to(object, "spec.limited.limitResponse.queuing.queueLengthLimit", 50);
        }
    }
    if object.has("spec.exempt") {
        object.default_at("spec.exempt.nominalConcurrencyShares", 0);
        object.default_at("spec.exempt.lendablePercent", 0);
    }
}

fn cells(row: &Row<'_>) -> Vec<Value> {
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

#[cfg(test)]
mod tests;
