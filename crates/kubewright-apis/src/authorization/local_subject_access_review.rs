//! LocalSubjectAccessReview.

use serde_json::Value;

use super::review_spec::printed;
use super::subject_access_review;
use crate::kinds::KindRules;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules { kind: "LocalSubjectAccessReview", validate, ..super::GROUP };

fn validate(object: &Value) -> ErrorList {
    let mut errors = subject_access_review::validate(object);
    let path = Path::new("spec").child("resourceAttributes");
    let namespace = object.str_at("metadata.namespace");
    let asked = object.str_at("spec.resourceAttributes.namespace");
    if object.has("spec.resourceAttributes") && asked != namespace {
        errors.push(FieldError::invalid(&path.child("namespace"), asked, "must match metadata.namespace"));
    }
    if object.has("spec.nonResourceAttributes") {
        let path = Path::new("spec").child("nonResourceAttributes");
        let shown = printed(object.at("spec.nonResourceAttributes"));
        errors.push(FieldError::invalid_printed(&path, shown, "disallowed on this kind of request"));
    }
    errors
}
