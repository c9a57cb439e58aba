//! MutatingAdmissionPolicy.

use serde_json::Value;

use super::REINVOCATION_POLICIES;
use super::policy::{self, policy, uncompilable};
use crate::admission::PolicyEnvironment;
use crate::kinds::KindRules;
use crate::validation::one_of;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "MutatingAdmissionPolicy",
    defaults: policy::defaults,
    validate,
    validate_update: |new, _| validate(new),
    cells: |row| policy::cells(row, "spec.mutations"),
    ..super::GROUP
};

fn validate(object: &Value) -> ErrorList {
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
