//! Validation of admission policies and their bindings.

use std::collections::HashSet;

use serde_json::Value;

use super::super::{one_of, required, strings};
use super::{FAILURE_POLICIES, MATCH_POLICIES, REINVOCATION_POLICIES, match_conditions, rules};
use crate::admission::PolicyEnvironment;
use crate::validation::label_selector;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;
use kubewright_cel::{CompileError, Program};

const MAX_AUDIT_ANNOTATIONS: usize = 20;
const MAX_AUDIT_EXPRESSION: usize = 5 * 1024;
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
/// Reserved words of CEL.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

pub(super) fn validating(object: &Value) -> ErrorList {
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

pub(super) fn mutating(object: &Value) -> ErrorList {
    let spec = object.at("spec");
    let path = Path::new("spec");
    let mut environment = PolicyEnvironment::new(spec.has("paramKind"));
    let mut errors = policy(spec, &mut environment, &path);
    if spec.list_at("mutations").is_empty() {
        errors
            .push(FieldError::required(&path.child("mutations"), "mutations must contain at least one item"));
    }
    for (i, mutation) in spec.list_at("mutations").iter().enumerate() {
        errors.extend(self::mutation(mutation, &environment, &path.child("mutations").index(i)));
    }
    match spec.str_at("reinvocationPolicy") {
        "" => errors.push(FieldError::required(&path.child("reinvocationPolicy"), "")),
        policy => errors.extend(one_of(policy, &REINVOCATION_POLICIES, &path.child("reinvocationPolicy"))),
    }
    errors
}

pub(super) fn validating_binding(object: &Value) -> ErrorList {
    let mut errors = mutating_binding(object);
    let path = Path::new("spec").child("validationActions");
    let actions = strings(object, "spec.validationActions");
    let mut seen = HashSet::new();
    for (i, action) in actions.iter().enumerate() {
        errors.extend(one_of(action, &["Audit", "Deny", "Warn"], &path.index(i)));
        if !seen.insert(action) {
            errors.push(FieldError::duplicate(&path.index(i), *action));
        }
    }
    if actions.contains(&"Deny") && actions.contains(&"Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the \
                      API response and headers serves no purpose)";
        errors.push(FieldError::invalid(&path, object.at("spec.validationActions").clone(), detail));
    }
    if actions.is_empty() {
        errors.push(FieldError::required(&path, "at least one validation action is required"));
    }
    errors
}

pub(super) fn mutating_binding(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = object.at("spec");
    let path = Path::new("spec");
    let name = path.child("policyName");
    match spec.str_at("policyName") {
        "" => errors.push(FieldError::required(&name, "")),
        policy => errors.extend(meta::invalid(&name, policy, names::dns1123_subdomain(policy))),
    }
    if spec.has("paramRef") {
        errors.extend(param_ref(spec.at("paramRef"), &path.child("paramRef")));
    }
    errors.extend(match_resources(spec.at("matchResources"), &path.child("matchResources")));
    errors
}

/// Validates the fields that both kinds of policies have.
fn policy(spec: &Value, environment: &mut PolicyEnvironment, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    match spec.at("failurePolicy").as_str() {
        Some(policy) => errors.extend(one_of(policy, &FAILURE_POLICIES, &path.child("failurePolicy"))),
        None => errors.push(FieldError::required(&path.child("failurePolicy"), "")),
    }
    if spec.has("paramKind") {
        errors.extend(param_kind(spec.at("paramKind"), &path.child("paramKind")));
    }
    let constraints = path.child("matchConstraints");
    if spec.has("matchConstraints") {
        errors.extend(match_resources(spec.at("matchConstraints"), &constraints));
        if spec.list_at("matchConstraints.resourceRules").is_empty() {
            errors.push(FieldError::required(&constraints.child("resourceRules"), ""));
        }
    } else {
        errors.push(FieldError::required(&constraints, ""));
    }
    let conditions = spec.list_at("matchConditions");
    errors.extend(match_conditions(conditions, spec.has("paramKind"), &path.child("matchConditions")));
    for (i, one) in spec.list_at("variables").iter().enumerate() {
        errors.extend(variable(one, environment, &path.child("variables").index(i)));
    }
    errors
}

fn param_kind(kind: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let api_version = kind.str_at("apiVersion");
    let at = path.child("apiVersion");
    if api_version.is_empty() {
        errors.push(FieldError::required(&at, ""));
    } else if api_version.matches('/').count() > 1 {
        errors.push(FieldError::invalid(
            &at,
            api_version,
            format!("unexpected GroupVersion string: {api_version}"),
        ));
    } else {
        let (group, version) = kubewright_apimachinery::gvk::split_api_version(api_version);
        errors.extend(joined(group, names::dns1123_subdomain, &at, ""));
        if version.is_empty() {
            errors.push(FieldError::invalid(&at, api_version, "version must be specified"));
        }
        errors.extend(joined(version, names::dns1035_label, &at, ""));
    }
    match kind.str_at("kind") {
        "" => errors.push(FieldError::required(&path.child("kind"), "")),
        kind => errors.extend(joined(
            kind,
            |kind| names::dns1035_label(&kind.to_lowercase()),
            &path.child("kind"),
            "may have mixed case, but should otherwise match: ",
        )),
    }
    errors
}

/// Returns the problems of a non-empty name as one error.
fn joined(name: &str, check: fn(&str) -> Vec<String>, path: &Path, intro: &str) -> Option<FieldError> {
    let messages = if name.is_empty() { Vec::new() } else { check(name) };
    (!messages.is_empty()).then(|| FieldError::invalid(path, name, format!("{intro}{}", messages.join(","))))
}

fn match_resources(resources: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if resources.is_null() {
        return errors;
    }
    match resources.at("matchPolicy").as_str() {
        Some(policy) => errors.extend(one_of(policy, &MATCH_POLICIES, &path.child("matchPolicy"))),
        None => errors.push(FieldError::required(&path.child("matchPolicy"), "")),
    }
    for name in ["namespaceSelector", "objectSelector"] {
        if !resources.has(name) {
            errors.push(FieldError::required(&path.child(name), ""));
        }
        errors.extend(label_selector::validate(resources.at(name), &path.child(name)));
    }
    for name in ["resourceRules", "excludeResourceRules"] {
        for (i, rule) in resources.list_at(name).iter().enumerate() {
            errors.extend(rules::named_rule(rule, &path.child(name).index(i)));
        }
    }
    errors
}

fn variable(variable: &Value, environment: &mut PolicyEnvironment, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let name = variable.str_at("name");
    if name.trim().is_empty() {
        errors.push(FieldError::required(&path.child("name"), "name is not specified"));
    } else if !is_identifier(name) {
        errors.push(FieldError::invalid(&path.child("name"), name, "must be a valid CEL identifier"));
    }
    let expression = variable.str_at("expression");
    let path = path.child("expression");
    if expression.trim().is_empty() {
        errors.push(FieldError::required(&path, "expression is not specified"));
    } else {
        errors.extend(uncompilable(environment.variable(name, expression), expression, &path));
    }
    errors
}

/// The compile error of an expression, if any.
fn uncompilable(
    compiled: Result<Program, CompileError>,
    expression: &str,
    path: &Path,
) -> Option<FieldError> {
    let error = compiled.err()?;
    Some(FieldError::invalid(path, expression, error.to_string()))
}

fn is_identifier(name: &str) -> bool {
    let starts = name.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic());
    starts && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()) && !RESERVED.contains(&name)
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

fn mutation(mutation: &Value, environment: &PolicyEnvironment, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let field = match mutation.str_at("patchType") {
        "ApplyConfiguration" => "applyConfiguration",
        "JSONPatch" => "jsonPatch",
        "" => return vec![FieldError::required(&path.child("patchType"), "")],
        other => {
            let known = ["ApplyConfiguration", "JSONPatch"];
            return one_of(other, &known, &path.child("patchType")).into_iter().collect();
        }
    };
    let path = path.child(field);
    let expression = mutation.at(field).str_at("expression");
    if !mutation.has(field) {
        errors.push(FieldError::required(&path, ""));
    } else if expression.trim().is_empty() {
        errors.push(FieldError::required(&path.child("expression"), "expression is not specified"));
    } else {
        let compiled = match field {
            "jsonPatch" => environment.json_patch(expression),
            _ => environment.apply_configuration(expression),
        };
        errors.extend(uncompilable(compiled, expression, &path.child("expression")));
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

fn param_ref(reference: &Value, path: &Path) -> ErrorList {
    const EXCLUSIVE: &str = "name and selector are mutually exclusive";
    let mut errors = ErrorList::new();
    let name = reference.str_at("name");
    let (named, selects) = (!name.is_empty(), reference.has("selector"));
    if named {
        errors.extend(meta::invalid(&path.child("name"), name, names::path_segment_name(name)));
    }
    if named && selects {
        errors.push(FieldError::forbidden(&path.child("name"), EXCLUSIVE));
    }
    errors.extend(label_selector::validate(reference.at("selector"), &path.child("selector")));
    if named && selects {
        errors.push(FieldError::forbidden(&path.child("selector"), EXCLUSIVE));
    }
    if !named && !selects {
        errors.push(FieldError::required(path, "one of name or selector must be specified"));
    }
    let action = path.child("parameterNotFoundAction");
    match reference.str_at("parameterNotFoundAction") {
        "" => errors.extend(required("", &action)),
        value => errors.extend(one_of(value, &["Deny", "Allow"], &action)),
    }
    errors
}
