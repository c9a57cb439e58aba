//! ResourceClaimTemplate.

use serde_json::Value;

use super::resource_claim::{claim_spec, default_devices, spec_changed};
use crate::kinds::KindRules;
use crate::table::name_and_age;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "ResourceClaimTemplate",
    defaults: |object| default_devices(object, "spec.spec.devices"),
    validate,
    validate_update: |new, old| {
        let mut errors = validate(new);
        errors.extend(spec_changed(new, old));
        errors
    },
    cells: name_and_age,
    ..super::GROUP
};

fn validate(object: &Value) -> ErrorList {
    template(object.at("spec"), &Path::new("spec"))
}

fn template(template: &Value, path: &Path) -> ErrorList {
    let metadata = path.child("metadata");
    let mut errors = meta::annotations(template.at("metadata.annotations"), &metadata.child("annotations"));
    errors.extend(meta::labels(template.at("metadata.labels"), &metadata.child("labels")));
    for name in template.map_at("metadata").keys() {
        if !matches!(name.as_str(), "annotations" | "labels") && template.at("metadata").has(name) {
            errors.push(FieldError::forbidden(&metadata.child(name), "cannot be set"));
        }
    }
    errors.extend(claim_spec(template.at("spec"), &path.child("spec")));
    errors
}
