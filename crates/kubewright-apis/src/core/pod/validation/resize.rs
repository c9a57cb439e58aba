//! Validation of the `resize` subresource of pods.

use serde_json::{Map, Value};

use super::{annotations, checks};
use crate::core::pod::defaults::resources::is_sidecar;
use crate::core::pod::strategy::qos;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;

pub(in crate::core::pod) fn resize(new: &Value, old: &Value) -> ErrorList {
    if annotations::is_mirror(old.at("metadata")) {
        return vec![checks::forbidden_object("static pods cannot be resized")];
    }
    if old.str_at("spec.os.name") == "windows" {
        return vec![checks::forbidden_object("windows pods cannot be resized")];
    }
    let path = Path::new("spec");
    let mut errors = super::pod_as_such(new);
    let (after, before) = (new.at("spec"), old.at("spec"));
    if qos::of_pod(old) != qos::computed(after) {
        let detail = "Pod QOS Class may not change as a result of resizing";
        errors.push(FieldError::invalid(&path, new.str_at("status.qosClass"), detail));
    }
    if !is_supported(old) {
        errors.push(FieldError::forbidden(&path, "Pod running on node without support for resize"));
    }
    let mut rest = after.clone();
    let has_resources = |spec: &Value| {
        ["requests", "limits"].into_iter().any(|kind| !spec.at("resources").map_at(kind).is_empty())
    };
    if has_resources(before) || has_resources(after) {
        of_pod(&mut rest, before, &path, &mut errors);
    }
    let unordered = order(after, before, &path);
    if !unordered.is_empty() {
        errors.extend(unordered);
        return errors;
    }
    for kind in ["initContainers", "containers"] {
        for ((now, path), was) in checks::items(after, kind, &path).zip(before.list_at(kind)) {
            removed(now, was, "", &path.child("resources"), &mut errors);
        }
    }
    regular(&mut rest, before, &path, &mut errors);
    init(&mut rest, before, &path, &mut errors);
    if errors.is_empty() && rest != *before {
        errors.push(FieldError::forbidden(&path, "only cpu and memory resources are mutable"));
    }
    errors
}

/// Validates pod-level resources.
fn of_pod(rest: &mut Value, before: &Value, path: &Path, errors: &mut ErrorList) {
    if before.has("resources") {
        if !rest.has("resources") {
            let detail = "pod-level resources cannot be removed";
            errors.push(FieldError::forbidden(&path.child("resources"), detail));
            return;
        }
        removed(rest, before, "pod-level ", &path.child("resources"), errors);
    }
    without_compute(rest, before);
    let empty = rest.map_at("resources").values().all(|value| value.as_object().is_some_and(Map::is_empty));
    if !before.has("resources") && empty {
        rest.remove_at("resources");
    }
    if rest.at("resources") != before.at("resources") {
        errors.push(FieldError::forbidden(path, "only cpu and memory resources are mutable at pod-level"));
    }
}

/// Rejects removed resources.
fn removed(now: &Value, was: &Value, which: &str, path: &Path, errors: &mut ErrorList) {
    for kind in ["requests", "limits"] {
        let now = now.at("resources").map_at(kind);
        if was.at("resources").map_at(kind).keys().any(|name| !now.contains_key(name)) {
            let detail = format!("{which}resource {kind} cannot be removed");
            errors.push(FieldError::forbidden(&path.child(kind), detail));
        }
    }
}

fn order(after: &Value, before: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for kind in ["containers", "initContainers"] {
        let were = before.list_at(kind);
        if after.list_at(kind).len() != were.len() {
            let detail = format!("{kind} may not be added or removed on resize");
            errors.push(FieldError::forbidden(&path.child(kind), detail));
            continue;
        }
        for ((container, path), was) in checks::items(after, kind, path).zip(were) {
            if container.str_at("name") != was.str_at("name") {
                let detail = format!("{kind} may not be renamed or reordered on resize");
                errors.push(FieldError::forbidden(&path.child("name"), detail));
            }
        }
    }
    errors
}

/// Claims always count as changed, so a pod with a container that has claims cannot be resized.
fn regular(rest: &mut Value, before: &Value, path: &Path, errors: &mut ErrorList) {
    for (container, was) in
        rest.list_mut("containers").into_iter().flatten().zip(before.list_at("containers"))
    {
        without_compute(container, was);
        container.remove_at("resources.claims");
        if container != was {
            errors.push(FieldError::forbidden(path, "only cpu and memory resources are mutable"));
        }
    }
}

fn init(rest: &mut Value, before: &Value, path: &Path, errors: &mut ErrorList) {
    let path = path.child("initContainers");
    let list = rest.list_mut("initContainers").into_iter().flatten();
    for (index, (container, was)) in list.zip(before.list_at("initContainers")).enumerate() {
        let modified = container != was;
        without_compute(container, was);
        container.remove_at("resources.claims");
        if container != was {
            let detail = "only cpu and memory resources for init or sidecar containers are mutable";
            errors.push(FieldError::forbidden(&path.index(index), detail));
        }
        let restarts = container.list_at("resizePolicy").iter();
        let restarts = restarts.filter(|policy| policy.str_at("restartPolicy") == "RestartContainer").count();
        if modified && !is_sidecar(container) {
            let detail =
                "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
            errors.extend((0..restarts).map(|_| FieldError::forbidden(&path.index(index), detail)));
        }
    }
}

/// Restores the old cpu and memory, so that remaining differences are forbidden ones.
fn without_compute(now: &mut Value, was: &Value) {
    for kind in ["limits", "requests"] {
        let path = format!("resources.{kind}");
        let before = was.at("resources").map_at(kind);
        let mut amounts = now.map_at(&path).clone();
        for name in ["cpu", "memory"] {
            match before.get(name) {
                Some(value) => amounts.insert(name.to_owned(), value.clone()),
                None => amounts.remove(name),
            };
        }
        if amounts.is_empty() {
            now.remove_at(&path);
        } else {
            now.set_at(&path, amounts);
        }
    }
}

/// Whether the node supports resize. It does if it reports container resources. Without a running container
/// this is assumed.
fn is_supported(pod: &Value) -> bool {
    let mut statuses = pod.list_at("status.containerStatuses").iter();
    statuses.find(|status| status.has("state.running")).is_none_or(|status| status.has("resources"))
}
