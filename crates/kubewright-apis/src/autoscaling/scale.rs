//! Scale, the subresource of workloads.

use serde_json::Value;

use crate::kinds::KindRules;
use crate::table::row::Row;
use crate::validation::not_negative;
use kubewright_apimachinery::field::{ErrorList, Path};
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules =
    KindRules { kind: "Scale", validate, validate_update: |new, _| validate(new), cells, ..super::GROUP };

fn validate(object: &Value) -> ErrorList {
    not_negative(object.at("spec"), "replicas", &Path::new("spec")).into_iter().collect()
}

fn cells(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), row.number("spec.replicas"), row.number("status.replicas"), row.age()]
}

#[cfg(test)]
mod tests;
