//! Binding, which assigns a pod to a node and is never stored.

use serde_json::Value;

use super::pod::validation::checks;
use crate::kinds::KindRules;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules { kind: "Binding", validate, ..super::GROUP };

fn validate(binding: &Value) -> ErrorList {
    let path = Path::new("target");
    let mut errors = ErrorList::new();
    let kind = binding.str_at("target.kind");
    if !matches!(kind, "" | "Node") {
        errors.push(FieldError::not_supported(&path.child("kind"), kind, &["Node", "<empty>"]));
    }
    checks::required(binding.at("target"), "name", &path, &mut errors);
    errors
}
