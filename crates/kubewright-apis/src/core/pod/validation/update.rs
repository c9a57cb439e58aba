//! Validation of pod updates, and of the `ephemeralcontainers` subresource.

use std::collections::HashSet;

use serde_json::Value;

use super::{annotations, checks, containers, internal, scheduling};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// The mutable fields, as listed in the error.
const MUTABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be \
    set to 1 if it was previously negative)";

pub(in crate::core::pod) fn pod(new: &Value, old: &Value) -> ErrorList {
    let path = Path::new("spec");
    let mut errors = super::pod_as_such(new);
    annotations::updates(new, old, &mut errors);
    let (after, before) = (new.at("spec"), old.at("spec"));
    for kind in ["containers", "initContainers"] {
        if after.list_at(kind).len() != before.list_at(kind).len() {
            let detail = "pod updates may not add or remove containers";
            errors.push(FieldError::forbidden(&path.child(kind), detail));
            return errors;
        }
        for (container, path) in checks::items(after, kind, &path) {
            checks::required(container, "image", &path, &mut errors);
            containers::trimmed_image(container, &path, &mut errors);
        }
    }
    if !deadline(after, before, &path.child("activeDeadlineSeconds"), &mut errors) {
        return errors;
    }
    tolerations(after, before, &path, &mut errors);
    scheduling_gates(after, before, &path, &mut errors);
    if after != before {
        let rest = without_mutable(after, before, &path, &mut errors);
        if rest != *before {
            let difference = internal::difference("PodSpec", before, &rest);
            let detail = format!("pod updates may not change fields other than {MUTABLE}\n{difference}");
            errors.push(FieldError::forbidden(&path, detail));
        }
    }
    errors
}

/// Validates an update of ephemeral containers, which can be added but not changed.
pub(in crate::core::pod) fn ephemeral_containers(new: &Value, old: &Value) -> ErrorList {
    if annotations::is_mirror(old.at("metadata")) {
        return vec![checks::forbidden_object("static pods do not support ephemeral containers")];
    }
    let mut errors = super::pod_as_such(new);
    annotations::updates(new, old, &mut errors);
    let path = Path::new("spec").child("ephemeralContainers");
    let after = new.list_at("spec.ephemeralContainers");
    for before in old.list_at("spec.ephemeralContainers") {
        let name = before.str_at("name");
        let quoted = kubewright_apimachinery::field::quote(name);
        match after.iter().rfind(|container| container.str_at("name") == name) {
            None => {
                let detail = format!("existing ephemeral containers {quoted} may not be removed\n");
                errors.push(FieldError::forbidden(&path, detail));
            }
            Some(after) if after != before => {
                let difference = internal::difference("EphemeralContainer", before, after);
                let detail =
                    format!("existing ephemeral containers {quoted} may not be changed\n{difference}");
                errors.push(FieldError::forbidden(&path, detail));
            }
            Some(_) => {}
        }
    }
    errors
}

/// Validates that a deadline is only set or shortened. Returns false if upstream stops here.
fn deadline(after: &Value, before: &Value, path: &Path, errors: &mut ErrorList) -> bool {
    let was = before.int_at("activeDeadlineSeconds");
    let Some(seconds) = after.int_at("activeDeadlineSeconds") else {
        if was.is_some() {
            let detail = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid(path, Value::Null, detail));
        }
        return true;
    };
    let messages = names::in_range(seconds, 0, i64::from(i32::MAX));
    if !messages.is_empty() {
        checks::number(seconds, messages, path, errors);
        return false;
    }
    if was.is_some_and(|was| was < seconds) {
        let detail = "must be less than or equal to previous value";
        errors.push(FieldError::invalid(path, seconds, detail));
        return false;
    }
    true
}

/// Validates that tolerations are only added. Of existing ones, only `tolerationSeconds` may change.
fn tolerations(after: &Value, before: &Value, path: &Path, errors: &mut ErrorList) {
    let timeless = |toleration: &Value| {
        let mut toleration = toleration.clone();
        toleration.remove_at("tolerationSeconds");
        toleration
    };
    let kept: HashSet<Value> = after.list_at("tolerations").iter().map(timeless).collect();
    if before.list_at("tolerations").iter().any(|toleration| !kept.contains(&timeless(toleration))) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(FieldError::forbidden(&path.child("tolerations"), detail));
    } else {
        scheduling::tolerations(after, path, errors);
    }
}

/// Validates that scheduling gates are only removed.
fn scheduling_gates(after: &Value, before: &Value, path: &Path, errors: &mut ErrorList) {
    let known: HashSet<&str> =
        before.list_at("schedulingGates").iter().map(|gate| gate.str_at("name")).collect();
    for (gate, path) in checks::items(after, "schedulingGates", path) {
        let name = gate.str_at("name");
        if !known.contains(name) {
            let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.push(FieldError::forbidden(&path.child("name"), detail));
        }
    }
}

/// The new spec with all mutable fields restored. Remaining differences are forbidden ones.
fn without_mutable(after: &Value, before: &Value, path: &Path, errors: &mut ErrorList) -> Value {
    let mut spec = after.clone();
    for kind in ["containers", "initContainers"] {
        let images: Vec<Value> = before.list_at(kind).iter().map(|c| c.at("image").clone()).collect();
        for (container, image) in spec.list_mut(kind).into_iter().flatten().zip(images) {
            restore(container, "image", image);
        }
    }
    for name in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        restore(&mut spec, name, before.at(name).clone());
    }
    let grace = "terminationGracePeriodSeconds";
    if before.int_at(grace).is_some_and(|seconds| seconds < 0) && spec.int_at(grace) == Some(1) {
        restore(&mut spec, grace, before.at(grace).clone());
    }
    if !before.list_at("schedulingGates").is_empty() {
        while_gated(&mut spec, before, path, errors);
    }
    spec
}

/// Validates changes of a pod with scheduling gates, which may restrict its nodes further.
fn while_gated(spec: &mut Value, before: &Value, path: &Path, errors: &mut ErrorList) {
    if spec.at("nodeSelector") != before.at("nodeSelector") {
        let selector = spec.map_at("nodeSelector");
        if before.map_at("nodeSelector").iter().any(|(key, value)| selector.get(key) != Some(value)) {
            let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
            let value = spec.at("nodeSelector").clone();
            errors.push(FieldError::invalid(&path.child("nodeSelector"), value, detail));
        }
        restore(spec, "nodeSelector", before.at("nodeSelector").clone());
    }
    let was = before.at("affinity.nodeAffinity").clone();
    if *spec.at("affinity.nodeAffinity") == was {
        return;
    }
    let node_path = path.child("affinity").child("nodeAffinity");
    node_affinity(spec.at("affinity.nodeAffinity"), &was, &node_path, errors);
    let has_other = ["podAffinity", "podAntiAffinity"].into_iter().any(|name| spec.at("affinity").has(name));
    if !before.has("affinity") && !has_other {
        spec.remove_at("affinity");
    } else {
        restore(spec, "affinity.nodeAffinity", was);
    }
}

/// Validates that the number of terms is unchanged and requirements are only appended.
fn node_affinity(after: &Value, before: &Value, path: &Path, errors: &mut ErrorList) {
    let path = path.child(REQUIRED).child("nodeSelectorTerms");
    let (terms, were) =
        (after.at(REQUIRED).list_at("nodeSelectorTerms"), before.at(REQUIRED).list_at("nodeSelectorTerms"));
    if were.is_empty() {
        return;
    }
    if terms.len() != were.len() {
        let printed: Vec<String> =
            terms.iter().map(|term| internal::compact("NodeSelectorTerm", term)).collect();
        let printed = if printed.is_empty() { "null".to_owned() } else { format!("[{}]", printed.join(",")) };
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.push(FieldError::invalid_printed(&path, printed, detail));
        return;
    }
    for (index, (term, was)) in terms.iter().zip(were).enumerate() {
        let lists = ["matchExpressions", "matchFields"];
        let was_empty = lists.into_iter().all(|list| was.list_at(list).is_empty());
        let is_empty = lists.into_iter().all(|list| term.list_at(list).is_empty());
        let extended = lists.into_iter().all(|list| term.list_at(list).starts_with(was.list_at(list)));
        if !extended || was_empty && !is_empty {
            let printed = internal::compact("NodeSelectorTerm", term);
            let detail = "only additions are allowed (no mutations or deletions)";
            errors.push(FieldError::invalid_printed(&path.index(index), printed, detail));
        }
    }
}

fn restore(object: &mut Value, path: &str, value: Value) {
    if value.is_null() {
        object.remove_at(path);
    } else {
        object.set_at(path, value);
    }
}
