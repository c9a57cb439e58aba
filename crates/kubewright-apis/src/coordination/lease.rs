//! Lease.

use serde_json::Value;

use crate::kinds::KindRules;
use crate::registry::RegistryRules;
use crate::validation::not_negative;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    group: "coordination.k8s.io",
    kind: "Lease",
    prepare_create: |object| drop_disabled(object, None),
    prepare_update: |new, old| drop_disabled(new, Some(old)),
    validate,
    validate_update: |new, _| validate(new),
    cells: |row| vec![row.name(), row.text("spec.holderIdentity"), row.age()],
    registry: RegistryRules { creates_on_update: true, ..RegistryRules::CONDITIONAL_UPDATE },
    ..KindRules::DEFAULT
};

/// Drops the fields of coordinated leader election, whose feature gate is off.
fn drop_disabled(new: &mut Value, old: Option<&Value>) {
    for path in ["spec.strategy", "spec.preferredHolder"] {
        if !old.is_some_and(|old| old.has(path)) {
            new.remove_at(path);
        }
    }
}

fn validate(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = object.at("spec");
    let path = Path::new("spec");
    if let Some(seconds @ ..=0) = spec.int_at("leaseDurationSeconds") {
        errors.push(FieldError::invalid(
            &path.child("leaseDurationSeconds"),
            seconds,
            "must be greater than 0",
        ));
    }
    errors.extend(not_negative(spec, "leaseTransitions", &path));
    if !spec.str_at("preferredHolder").is_empty() && spec.str_at("strategy").is_empty() {
        let detail = "may only be specified if `strategy` is defined";
        errors.push(FieldError::forbidden(&path.child("preferredHolder"), detail));
    }
    errors
}
