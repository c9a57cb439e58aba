//! Fields that both kinds of admission policies, or of their bindings, have.

use serde_json::{Value, json};

use super::{FAILURE_POLICIES, MATCH_POLICIES, match_conditions, rules};
use crate::admission::PolicyEnvironment;
use crate::table::row::{Row, UNSET, joined_list};
use crate::validation::{label_selector, one_of, required};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;
use kubewright_cel::{CompileError, Program};

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

/// Sets the defaults of a policy.
pub(super) fn defaults(object: &mut Value) {
    object.default_at("spec.failurePolicy", "Fail");
    default_match_resources(object, "spec.matchConstraints");
}

/// Sets the defaults of a binding.
pub(super) fn binding_defaults(object: &mut Value) {
    default_match_resources(object, "spec.matchResources");
}

fn default_match_resources(object: &mut Value, path: &str) {
    let Some(resources) = object.at_mut(path) else { return };
    resources.default_at("matchPolicy", "Equivalent");
    resources.default_at("namespaceSelector", json!({}));
    resources.default_at("objectSelector", json!({}));
    for rules in ["resourceRules", "excludeResourceRules"] {
        resources.list_mut(rules).into_iter().flatten().for_each(rules::default_scope);
    }
}

/// Validates the fields that both kinds of bindings have.
pub(super) fn binding(object: &Value) -> ErrorList {
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
pub(super) fn policy(spec: &Value, environment: &mut PolicyEnvironment, path: &Path) -> ErrorList {
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
pub(super) fn joined(
    name: &str,
    check: fn(&str) -> Vec<String>,
    path: &Path,
    intro: &str,
) -> Option<FieldError> {
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
pub(super) fn uncompilable(
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

/// The row of a policy. `rules` is the name of the list of its rules.
pub(super) fn cells(row: &Row<'_>, rules: &str) -> Vec<Value> {
    let kind = row.object.at("spec.paramKind");
    let kind = if kind.is_null() {
        UNSET.to_owned()
    } else {
        format!("{}/{}", kind.str_at("apiVersion"), kind.str_at("kind"))
    };
    vec![row.name(), row.count(rules), kind.into(), row.age()]
}

pub(super) fn binding_cells(row: &Row<'_>) -> Vec<Value> {
    let params = row.object.at("spec.paramRef");
    let shown = match (params.str_at("namespace"), params.str_at("name")) {
        (_, "") if params.has("selector") => selector(params.at("selector")),
        (_, "") => UNSET.to_owned(),
        ("", name) => format!("*/{name}"),
        (namespace, name) => format!("{namespace}/{name}"),
    };
    vec![row.name(), row.text("spec.policyName"), shown.into(), row.age()]
}

/// A label selector in Go's struct format, as upstream prints it here.
fn selector(selector: &Value) -> String {
    let label = |(key, value): (&String, &Value)| format!("{key}: {},", value.as_str().unwrap_or_default());
    let labels: String = selector.map_at("matchLabels").iter().map(label).collect();
    let requirement = |one: &Value| {
        let values = joined_list(one.list_at("values"), " ");
        format!(
            "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{values}],}},",
            one.str_at("key"),
            one.str_at("operator")
        )
    };
    let requirements: String = selector.list_at("matchExpressions").iter().map(requirement).collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{requirements}}},}}"
    )
}

#[cfg(test)]
mod tests;
