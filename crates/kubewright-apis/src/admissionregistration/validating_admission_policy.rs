//! ValidatingAdmissionPolicy.

use std::collections::HashSet;

use serde_json::Value;

use super::policy::{self, policy, uncompilable};
use crate::admission::PolicyEnvironment;
use crate::kinds::KindRules;
use crate::strategy::{count_change, keep, reset_status_and_generation};
use crate::validation::one_of;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "ValidatingAdmissionPolicy",
    defaults: policy::defaults,
    prepare_create: reset_status_and_generation,
    prepare_update: |new, old| {
        keep(new, old, "status");
        count_change(new, old, "spec");
    },
    validate,
    validate_update: |new, _| validate(new),
    cells: |row| policy::cells(row, "spec.validations"),
    ..super::GROUP
};

const MAX_AUDIT_ANNOTATIONS: usize = 20;

const MAX_AUDIT_EXPRESSION: usize = 5 * 1024;

const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];

fn validate(object: &Value) -> ErrorList {
    let spec = object.at("spec");
    let path = Path::new("spec");
    let mut environment = PolicyEnvironment::new(spec.has("paramKind"));
    let mut errors = policy(spec, &mut environment, &path);
    let annotations = spec.list_at("auditAnnotations");
    if spec.list_at("validations").is_empty() && annotations.is_empty() {
        for name in ["validations", "auditAnnotations"] {
            let detail = "validations or auditAnnotations must contain at least one item";
            errors.push(FieldError::required(&path.child(name), detail));
        }
        return errors;
    }
    for (i, one) in spec.list_at("validations").iter().enumerate() {
        errors.extend(validation(one, &environment, &path.child("validations").index(i)));
    }
    let path = path.child("auditAnnotations");
    if annotations.len() > MAX_AUDIT_ANNOTATIONS {
        let detail = format!("must not have more than {MAX_AUDIT_ANNOTATIONS} auditAnnotations");
        errors.push(FieldError::invalid_printed(&path, printed_annotations(annotations), detail));
    }
    let mut seen = HashSet::new();
    for (i, annotation) in annotations.iter().enumerate() {
        let path = path.index(i);
        errors.extend(audit_annotation(annotation, object.str_at("metadata.name"), &environment, &path));
        let key = annotation.str_at("key");
        if !seen.insert(key) {
            errors.push(FieldError::duplicate(&path.child("key"), key));
        }
    }
    errors
}

fn validation(validation: &Value, environment: &PolicyEnvironment, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let expression = validation.str_at("expression");
    if expression.trim().is_empty() {
        errors.push(FieldError::required(&path.child("expression"), "expression is not specified"));
    } else {
        let compiled = environment.condition(expression);
        errors.extend(uncompilable(compiled, expression, &path.child("expression")));
    }
    let message = validation.str_at("messageExpression");
    if !message.trim().is_empty() {
        let compiled = environment.message(message);
        errors.extend(uncompilable(compiled, message, &path.child("messageExpression")));
    }
    for name in ["messageExpression", "message"] {
        let text = validation.str_at(name);
        if !text.is_empty() && text.trim().is_empty() {
            errors.push(FieldError::invalid(&path.child(name), text, "must be non-empty if specified"));
        } else if name == "message" && text.trim().contains(['\n', '\r']) {
            errors.push(FieldError::invalid(&path.child(name), text, "must not contain line breaks"));
        }
    }
    if let Some(reason) = validation.at("reason").as_str() {
        errors.extend(one_of(reason, &REASONS, &path.child("reason")));
    }
    errors
}

fn audit_annotation(
    annotation: &Value,
    policy: &str,
    environment: &PolicyEnvironment,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let key = annotation.str_at("key");
    if policy.is_empty() {
        errors.push(FieldError::invalid(&path.child("key"), key, "requires metadata.name be non-empty"));
    } else {
        let full = format!("{policy}/{key}");
        errors.extend(meta::invalid(&path.child("key"), &full, names::label_key(&full)));
    }
    let expression = annotation.str_at("valueExpression").trim();
    let path = path.child("valueExpression");
    if expression.is_empty() {
        errors.push(FieldError::required(&path, "valueExpression is not specified"));
    } else if expression.len() > MAX_AUDIT_EXPRESSION {
        errors.push(FieldError::required(
            &path,
            format!("must not exceed {MAX_AUDIT_EXPRESSION} bytes in length"),
        ));
    } else {
        errors.extend(uncompilable(environment.annotation(expression), expression, &path));
    }
    errors
}

fn printed_annotations(annotations: &[Value]) -> String {
    let each: Vec<String> = annotations
        .iter()
        .map(|annotation| {
            format!(
                "{{\"Key\":{},\"ValueExpression\":{}}}",
                kubewright_apimachinery::json::quote(annotation.str_at("key")),
                kubewright_apimachinery::json::quote(annotation.str_at("valueExpression"))
            )
        })
        .collect();
    format!("[{}]", each.join(","))
}
