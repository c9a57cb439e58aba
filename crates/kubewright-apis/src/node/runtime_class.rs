//! RuntimeClass.

use serde_json::Value;

use crate::core::pod;
use crate::core::pod::defaults::resources::round_up;
use crate::kinds::KindRules;
use crate::registry::RegistryRules;
use crate::validation::resource_name::container_limits;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path, quote};
use kubewright_apimachinery::meta::{self, Check};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    group: "node.k8s.io",
    kind: "RuntimeClass",
    defaults: |object| round_up(object, "overhead.podFixed"),
    update_checks: &[Check::New, Check::Update],
    validate,
    validate_update,
    cells: |row| vec![row.name(), row.text("handler"), row.age()],
    registry: RegistryRules { creates_on_update: true, ..RegistryRules::CONDITIONAL_UPDATE },
    ..KindRules::DEFAULT
};

fn validate(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("handler");
    match object.str_at("handler") {
        "" => errors.push(FieldError::required(&path, "")),
        handler => errors.extend(meta::invalid(&path, handler, names::dns1123_label(handler))),
    }
    // Upstream validates the overhead as limits.
    let path = Path::new("overhead").child("limits");
    errors.extend(container_limits(object.map_at("overhead.podFixed"), &path));
    let path = Path::new("scheduling");
    let selector = object.at("scheduling.nodeSelector");
    errors.extend(meta::labels(selector, &path.child("nodeSelector")));
    errors.extend(tolerations(object.at("scheduling"), &path));
    errors
}

/// Validates the tolerations of a RuntimeClass, which must be unique.
fn tolerations(scheduling: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    pod::validation::tolerations(scheduling, path, &mut errors);
    let path = path.child("tolerations");
    let mut seen = std::collections::HashSet::new();
    for (index, toleration) in scheduling.list_at("tolerations").iter().enumerate() {
        let fields = ["key", "operator", "value", "effect"].map(|field| toleration.str_at(field));
        if !seen.insert(fields) {
            // Printed in the field order of upstream's internal type.
            let [key, operator, value, effect] = fields.map(quote);
            let seconds = toleration.int_at("tolerationSeconds");
            let seconds = seconds.map_or_else(|| "null".to_owned(), |seconds| seconds.to_string());
            let shown = format!(
                "{{\"Key\":{key},\"Operator\":{operator},\"Value\":{value},\"Effect\":{effect},\
                 \"TolerationSeconds\":{seconds}}}"
            );
            errors.push(FieldError::duplicate_printed(&path.index(index), shown));
        }
    }
    errors
}

fn validate_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = validate(new);
    errors.extend(meta::immutable(new.at("handler"), old.at("handler"), &Path::new("handler")));
    errors
}
