//! SubjectAccessReview.

use serde_json::Value;

use super::review_spec::attributes;
use crate::kinds::KindRules;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules { kind: "SubjectAccessReview", validate, ..super::GROUP };

pub(super) fn validate(object: &Value) -> ErrorList {
    let spec = object.at("spec");
    let mut errors = attributes(spec);
    if spec.str_at("user").is_empty() && spec.list_at("groups").is_empty() {
        let path = Path::new("spec").child("user");
        errors.push(FieldError::invalid(&path, "", "at least one of user or group must be specified"));
    }
    errors
}
