//! Validation of affinity, tolerations, topology spread constraints and scheduling gates.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::checks;
use crate::validation::label_selector;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const TAINT_EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

pub(super) fn affinity(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let (affinity, path) = (spec.at("affinity"), path.child("affinity"));
    node_affinity(affinity.at("nodeAffinity"), &path.child("nodeAffinity"), errors);
    for name in ["podAffinity", "podAntiAffinity"] {
        let (terms, path) = (affinity.at(name), path.child(name));
        for (term, path) in checks::items(terms, REQUIRED, &path) {
            pod_affinity_term(term, &path, errors);
        }
        for (term, path) in checks::items(terms, PREFERRED, &path) {
            weight(term, &path, errors);
            pod_affinity_term(term.at("podAffinityTerm"), &path.child("podAffinityTerm"), errors);
        }
    }
}

fn node_affinity(affinity: &Value, path: &Path, errors: &mut ErrorList) {
    if affinity.has(REQUIRED) {
        let (required, path) = (affinity.at(REQUIRED), path.child(REQUIRED));
        if required.list_at("nodeSelectorTerms").is_empty() {
            let detail = "must have at least one node selector term";
            errors.push(FieldError::required(&path.child("nodeSelectorTerms"), detail));
        }
        for (term, path) in checks::items(required, "nodeSelectorTerms", &path) {
            node_selector_term(term, true, &path, errors);
        }
    }
    for (term, path) in checks::items(affinity, PREFERRED, path) {
        weight(term, &path, errors);
        node_selector_term(term.at("preference"), false, &path.child("preference"), errors);
    }
}

fn weight(term: &Value, path: &Path, errors: &mut ErrorList) {
    let weight = term.int_at("weight").unwrap_or_default();
    if !(1..=100).contains(&weight) {
        errors.push(FieldError::invalid(&path.child("weight"), weight, "must be in the range 1-100"));
    }
}

/// Validates a node selector term. Values are only checked if `check_values` is set, not for preferred terms.
fn node_selector_term(term: &Value, check_values: bool, path: &Path, errors: &mut ErrorList) {
    for (requirement, path) in checks::items(term, "matchExpressions", path) {
        node_requirement(requirement, check_values, &path, errors);
    }
    for (requirement, path) in checks::items(term, "matchFields", path) {
        field_requirement(requirement, &path, errors);
    }
}

fn node_requirement(requirement: &Value, check_values: bool, path: &Path, errors: &mut ErrorList) {
    let count = requirement.list_at("values").len();
    let values_path = path.child("values");
    match requirement.str_at("operator") {
        "In" | "NotIn" if count == 0 => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(&values_path, detail));
        }
        "Exists" | "DoesNotExist" if count > 0 => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(&values_path, detail));
        }
        "Gt" | "Lt" if count != 1 => {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            errors.push(FieldError::required(&values_path, detail));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        operator => {
            let detail = "not a valid selector operator";
            errors.push(FieldError::invalid(&path.child("operator"), operator, detail));
        }
    }
    checks::label_key(requirement.str_at("key"), &path.child("key"), errors);
    if check_values {
        for (index, value) in checks::strings(requirement, "values").enumerate() {
            checks::named(value, names::label_value(value), &values_path.index(index), errors);
        }
    }
}

fn field_requirement(requirement: &Value, path: &Path, errors: &mut ErrorList) {
    match requirement.str_at("operator") {
        "In" | "NotIn" => {
            if requirement.list_at("values").len() != 1 {
                let detail =
                    "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                errors.push(FieldError::required(&path.child("values"), detail));
            }
        }
        operator => {
            let detail = "not a valid selector operator";
            errors.push(FieldError::invalid(&path.child("operator"), operator, detail));
        }
    }
    match requirement.str_at("key") {
        "metadata.name" => {
            for (index, value) in checks::strings(requirement, "values").enumerate() {
                checks::dns_subdomain(value, &path.child("values").index(index), errors);
            }
        }
        key => errors.push(FieldError::invalid(&path.child("key"), key, "not a valid field selector key")),
    }
}

fn pod_affinity_term(term: &Value, path: &Path, errors: &mut ErrorList) {
    for name in ["labelSelector", "namespaceSelector"] {
        errors.extend(label_selector::validate(term.at(name), &path.child(name)));
    }
    for name in checks::strings(term, "namespaces") {
        checks::dns_label(name, &path.child("namespace"), errors);
    }
    label_keys(term, path, errors);
    let topology = term.str_at("topologyKey");
    if topology.is_empty() {
        errors.push(FieldError::required(&path.child("topologyKey"), "can not be empty"));
    }
    checks::label_key(topology, &path.child("topologyKey"), errors);
}

/// Validates `matchLabelKeys` and `mismatchLabelKeys`. They may not also occur in the selector. For new pods
/// the strategy has already merged each key into the selector once, so only a second occurrence is an error.
fn label_keys(term: &Value, path: &Path, errors: &mut ErrorList) {
    for name in ["matchLabelKeys", "mismatchLabelKeys"] {
        if term.list_at(name).is_empty() {
            continue;
        }
        if !term.has("labelSelector") {
            let detail = "must not be specified when labelSelector is not set";
            errors.push(FieldError::forbidden(&path.child(name), detail));
            continue;
        }
        for (index, key) in checks::strings(term, name).enumerate() {
            checks::label_key(key, &path.child(name).index(index), errors);
        }
    }
    let indexes: HashMap<&str, usize> =
        checks::strings(term, "matchLabelKeys").enumerate().map(|(index, key)| (key, index)).collect();
    let selector = term.at("labelSelector");
    let mut selected: HashSet<&str> = selector.map_at("matchLabels").keys().map(String::as_str).collect();
    for expression in selector.list_at("matchExpressions") {
        let key = expression.str_at("key");
        if !selected.insert(key)
            && let Some(index) = indexes.get(key)
        {
            let detail = "exists in both matchLabelKeys and labelSelector";
            errors.push(FieldError::invalid(&path.index(*index), key, detail));
        }
    }
    let mismatch: HashSet<&str> = checks::strings(term, "mismatchLabelKeys").collect();
    for (index, key) in checks::strings(term, "matchLabelKeys").enumerate() {
        if mismatch.contains(key) {
            let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
            errors.push(FieldError::invalid(&path.child("matchLabelKeys").index(index), key, detail));
        }
    }
}

pub(crate) fn tolerations(spec: &Value, path: &Path, errors: &mut ErrorList) {
    tolerations_in(spec, "tolerations", path, errors);
}

/// Validates the tolerations in the list `name`.
pub(super) fn tolerations_in(parent: &Value, name: &str, path: &Path, errors: &mut ErrorList) {
    let path = path.child(name);
    for (index, item) in parent.get(name).and_then(Value::as_array).into_iter().flatten().enumerate() {
        toleration(item, &path.index(index), errors);
    }
}

fn toleration(toleration: &Value, path: &Path, errors: &mut ErrorList) {
    let (key, operator) = (toleration.str_at("key"), toleration.str_at("operator"));
    let (value, effect) = (toleration.str_at("value"), toleration.str_at("effect"));
    let operator_path = path.child("operator");
    if !key.is_empty() {
        checks::label_key(key, &path.child("key"), errors);
    } else if operator != "Exists" {
        let detail =
            "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.push(FieldError::invalid(&operator_path, operator, detail));
    }
    if toleration.has("tolerationSeconds") && effect != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(FieldError::invalid(&path.child("effect"), effect, detail));
    }
    match operator {
        "Equal" | "" => {
            let messages = names::label_value(value);
            if !messages.is_empty() {
                errors.push(FieldError::invalid(&operator_path, value, messages.join(";")));
            }
        }
        "Exists" => {
            if !value.is_empty() {
                let detail = "value must be empty when `operator` is 'Exists'";
                errors.push(FieldError::invalid(&operator_path, value, detail));
            }
        }
        // These operators need a disabled feature but are listed as supported.
        "Lt" | "Gt" => {
            errors.push(FieldError::not_supported(
                &operator_path,
                operator,
                &["Equal", "Exists", "Lt", "Gt"],
            ));
        }
        _ => errors.push(FieldError::not_supported(&operator_path, operator, &["Equal", "Exists"])),
    }
    if !effect.is_empty() {
        taint_effect(effect, &path.child("effect"), errors);
    }
}

/// Validates the effect of a taint or toleration.
pub(crate) fn taint_effect(effect: &str, path: &Path, errors: &mut ErrorList) {
    checks::one_of(effect, &TAINT_EFFECTS, path, errors);
}

pub(super) fn topology_spread(spec: &Value, path: &Path, errors: &mut ErrorList) {
    // Remaining occurrences of each pair. Of duplicates, the last one is not reported.
    let mut to_come: HashMap<(&str, &str), usize> = HashMap::new();
    for constraint in spec.list_at("topologySpreadConstraints") {
        let pair = (constraint.str_at("topologyKey"), constraint.str_at("whenUnsatisfiable"));
        *to_come.entry(pair).or_default() += 1;
    }
    for (constraint, path) in checks::items(spec, "topologySpreadConstraints", path) {
        let skew = constraint.int_at("maxSkew").unwrap_or_default();
        checks::positive(skew, &path.child("maxSkew"), errors);
        let (key, action) = (constraint.str_at("topologyKey"), constraint.str_at("whenUnsatisfiable"));
        if key.is_empty() {
            errors.push(FieldError::required(&path.child("topologyKey"), "can not be empty"));
        }
        let actions = ["DoNotSchedule", "ScheduleAnyway"];
        if !actions.contains(&action) {
            errors.push(FieldError::not_supported(&path.child("whenUnsatisfiable"), action, &actions));
        }
        let left = to_come.entry((key, action)).or_default();
        *left = left.saturating_sub(1);
        if *left > 0 {
            let path = path.child("{topologyKey, whenUnsatisfiable}");
            errors.push(FieldError::duplicate(&path, format!("{{{key}, {action}}}")));
        }
        if let Some(domains) = constraint.int_at("minDomains") {
            let path = path.child("minDomains");
            checks::positive(domains, &path, errors);
            if action != "DoNotSchedule" {
                let detail =
                    format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                errors.push(FieldError::invalid(&path, domains, detail));
            }
        }
        for name in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            checks::optional_one_of(constraint, name, &["Honor", "Ignore"], &path, errors);
        }
        label_keys(constraint, &path, errors);
        errors.extend(label_selector::validate(constraint.at("labelSelector"), &path.child("labelSelector")));
    }
}

pub(super) fn scheduling_gates(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let mut seen = HashSet::new();
    for (gate, path) in checks::items(spec, "schedulingGates", path) {
        let name = gate.str_at("name");
        checks::label_key(name, &path, errors);
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path, name));
        }
    }
}
