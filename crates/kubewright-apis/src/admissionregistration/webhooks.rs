//! Webhooks of both kinds of configurations.

mod validation;

use serde_json::{Value, json};

use super::rules;
use crate::kinds::KindRules;
use crate::strategy::count_change;
use crate::table::row::Row;
use kubewright_apimachinery::object::Fields as _;

use validation::configuration;

/// The rules of a webhook configuration.
pub(super) const RULES: KindRules = KindRules {
    defaults: |object| webhooks(object).for_each(webhook),
    prepare_update: |new, old| count_change(new, old, "webhooks"),
    validate: |object| configuration(object, None),
    validate_update: |new, old| configuration(new, Some(old)),
    cells: |row: &Row<'_>| vec![row.name(), row.count("webhooks"), row.age()],
    ..super::GROUP
};

pub(super) fn webhooks(object: &mut Value) -> impl Iterator<Item = &mut Value> {
    object.list_mut("webhooks").into_iter().flatten()
}

pub(super) fn webhook(hook: &mut Value) {
    hook.default_at("failurePolicy", "Fail");
    hook.default_at("matchPolicy", "Equivalent");
    hook.default_at("namespaceSelector", json!({}));
    hook.default_at("objectSelector", json!({}));
    hook.default_at("timeoutSeconds", 10);
    if hook.has("clientConfig.service") {
        hook.default_at("clientConfig.service.port", 443);
    }
    hook.list_mut("rules").into_iter().flatten().for_each(rules::default_scope);
}

#[cfg(test)]
mod tests;
