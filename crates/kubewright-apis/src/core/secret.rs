//! Secret.

mod validation;
mod warnings;

use serde_json::Value;

use crate::kinds::KindRules;
use crate::quota::Quota;
use crate::selectable::{Refusal, Selectable, texts};
use crate::table::row::Row;
use kubewright_apimachinery::meta::{Check, bytes};
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "Secret",
    defaults,
    warnings: |new, _| warnings::key_pair(new).into_iter().collect(),
    update_checks: &[Check::Update, Check::New],
    validate: validation::create,
    validate_update: validation::update,
    selectable: Some(&Selectable {
        fields: texts!("metadata.name", "metadata.namespace", "type"),
        refusal: Refusal::Plain,
    }),
    cells,
    quota: Some(&Quota::counted("secrets")),
    ..super::GROUP
};

/// Merges the write-only `stringData` into `data`. It takes precedence.
fn defaults(object: &mut Value) {
    object.default_at("type", "Opaque");
    let Some(Value::Object(texts)) = object.remove_at("stringData") else { return };
    for (key, text) in texts {
        let encoded = bytes::encode(text.as_str().unwrap_or_default().as_bytes());
        object.object_mut("data").insert(key, encoded.into());
    }
}

fn cells(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), row.text("type"), row.object.map_at("data").len().into(), row.age()]
}

#[cfg(test)]
mod tests;
