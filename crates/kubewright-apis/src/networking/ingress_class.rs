//! IngressClass.

use serde_json::Value;

use super::reference;
use crate::kinds::KindRules;
use crate::strategy::{count_spec, start_generation};
use crate::table::row::{NONE, Row};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta::{self, Check, invalid};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "IngressClass",
    defaults,
    prepare_create: start_generation,
    prepare_update: count_spec,
    update_checks: &[Check::Update, Check::New],
    validate,
    validate_update,
    cells,
    ..super::GROUP
};

const MAX_CONTROLLER: usize = 250;

fn defaults(object: &mut Value) {
    if object.has("spec.parameters") {
        object.default_at("spec.parameters.scope", "Cluster");
    }
}

fn validate(class: &Value) -> ErrorList {
    let path = Path::new("spec").child("controller");
    let mut errors = ErrorList::new();
    let controller = class.str_at("spec.controller");
    if controller.is_empty() {
        errors.push(FieldError::required(&path, ""));
    } else {
        if controller.len() > MAX_CONTROLLER {
            errors.push(FieldError::too_long(&path, MAX_CONTROLLER));
        }
        let parts = names::domain_prefixed_path(controller).into_iter();
        errors.extend(parts.map(|(part, message)| FieldError::invalid(&path, part, message)));
    }
    let parameters = class.at("spec.parameters");
    if !parameters.is_null() {
        errors.extend(class_parameters(parameters, &Path::new("spec").child("parameters")));
    }
    errors
}

fn validate_update(new: &Value, old: &Value) -> ErrorList {
    let path = Path::new("spec").child("controller");
    let (controller, before) = (new.str_at("spec.controller"), old.str_at("spec.controller"));
    let mut errors = ErrorList::new();
    errors.extend(meta::immutable(&controller.into(), &before.into(), &path));
    errors.extend(validate(new));
    errors
}

fn class_parameters(parameters: &Value, path: &Path) -> ErrorList {
    let mut errors = reference(parameters, path);
    let Some(scope) = parameters.at("scope").as_str() else {
        errors.push(FieldError::required(&path.child("scope"), ""));
        return errors;
    };
    let (namespace, namespace_path) = (parameters.at("namespace").as_str(), path.child("namespace"));
    match (scope, namespace) {
        ("Namespace", None) => {
            errors.push(FieldError::required(&namespace_path, "`parameters.scope` is set to 'Namespace'"));
        }
        ("Namespace", Some(name)) => {
            errors.extend(invalid(&namespace_path, name, names::dns1123_label(name)));
        }
        ("Cluster", Some(_)) => {
            errors.push(FieldError::forbidden(&namespace_path, "`parameters.scope` is set to 'Cluster'"));
        }
        ("Cluster", None) => {}
        (other, _) => {
            errors.push(FieldError::not_supported(&path.child("scope"), other, &["Cluster", "Namespace"]));
        }
    }
    errors
}

fn cells(row: &Row<'_>) -> Vec<Value> {
    let parameters = row.object.at("spec.parameters");
    let shown = if parameters.is_null() {
        NONE.to_owned()
    } else {
        let group = parameters.at("apiGroup").as_str().map(|group| format!(".{group}")).unwrap_or_default();
        format!("{}{group}/{}", parameters.str_at("kind"), parameters.str_at("name"))
    };
    vec![row.name(), row.text("spec.controller"), shown.into(), row.age()]
}

#[cfg(test)]
mod tests;
