//! ServiceAccount.

use serde_json::{Value, json};

use crate::kinds::KindRules;
use crate::registry::RegistryRules;
use crate::table::name_and_age;
use kubewright_apimachinery::meta::Check;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "ServiceAccount",
    prepare_create: drop_secret_fields,
    prepare_update: |new, _| drop_secret_fields(new),
    warnings: |new, old| enforced_secrets(new, old).into_iter().collect(),
    update_checks: &[Check::Update, Check::New],
    cells: name_and_age,
    registry: RegistryRules { returns_deleted: true, ..RegistryRules::DEFAULT },
    ..super::GROUP
};

/// Drops all fields of secret references but the name.
fn drop_secret_fields(object: &mut Value) {
    for secret in object.list_mut("secrets").into_iter().flatten() {
        *secret = match secret.str_at("name") {
            "" => json!({}),
            name => json!({"name": name}),
        };
    }
}

/// Warns about a newly set deprecated annotation.
fn enforced_secrets(new: &Value, old: Option<&Value>) -> Option<String> {
    const ANNOTATION: &str = "kubernetes.io/enforce-mountable-secrets";
    let has = |account: &Value| account.map_at("metadata.annotations").contains_key(ANNOTATION);
    (has(new) && !old.is_some_and(has)).then(|| {
        format!(
            "metadata.annotations[{ANNOTATION}]: deprecated in v1.32+; prefer separate namespaces to isolate access to \
             mounted secrets"
        )
    })
}
