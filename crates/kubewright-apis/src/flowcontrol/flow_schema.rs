//! FlowSchema.

mod validation;

use serde_json::Value;

use crate::defaults::zero_to;
use crate::kinds::KindRules;
use crate::table::row::{NONE, Row, condition};
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "FlowSchema",
    defaults: |object| zero_to(object, "spec.matchingPrecedence", 1000),
    validate: validation::create,
    validate_update: |new, _| validation::create(new),
    cells,
    sort_rows: Some(|objects| {
        objects
            .sort_by_key(|object| (object.int_at("spec.matchingPrecedence"), object.str_at("metadata.name")));
    }),
    ..super::GROUP
};

fn cells(row: &Row<'_>) -> Vec<Value> {
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

#[cfg(test)]
mod tests;
