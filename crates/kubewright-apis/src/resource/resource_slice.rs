//! ResourceSlice.

use serde_json::Value;

use crate::kinds::KindRules;
use crate::selectable::{Refusal, Selectable, texts};
use crate::strategy::{count_change, start_generation};
use crate::table::row::Row;
use kubewright_apimachinery::meta::Check;

pub(crate) const RULES: KindRules = KindRules {
    kind: "ResourceSlice",
    prepare_create: start_generation,
    prepare_update: |new, old| count_change(new, old, "spec"),
    update_checks: &[Check::Update],
    selectable: Some(&Selectable {
        fields: texts!("metadata.name", "spec.nodeName", "spec.driver"),
        refusal: Refusal::WithKind,
    }),
    cells,
    ..super::GROUP
};

fn cells(row: &Row<'_>) -> Vec<Value> {
    vec![
        row.name(),
        row.text("spec.nodeName"),
        row.text("spec.driver"),
        row.text("spec.pool.name"),
        row.age(),
    ]
}
