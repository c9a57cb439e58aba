//! Strategy of Pod, and warnings about pod templates in other kinds.

mod features;
pub(crate) mod qos;
mod selectors;
mod warnings;

use serde_json::{Value, json};

use super::validation;
use crate::strategy::{keep, put};
use kubewright_apimachinery::field::{ErrorList, Path};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::{Fields as _, semantically_equal};

const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Metadata that subresources other than the status may not change.
const KEPT_METADATA: [&str; 6] =
    ["deletionTimestamp", "generation", "labels", "annotations", "finalizers", "ownerReferences"];

pub(super) fn prepare_update(new: &mut Value, old: &Value) {
    keep(new, old, "status");
    drop_disabled(new.at_mut("spec"));
    count(new, old, "spec");
}

pub(super) fn prepare_subresource(subresource: &str, new: &mut Value, old: &Value) {
    match subresource {
        "status" => update_pod_status(new, old),
        "ephemeralcontainers" => {
            let containers = new.at("spec.ephemeralContainers").clone();
            keep_all_but_spec(new, old);
            put(new, "spec.ephemeralContainers", containers);
            drop_disabled(new.at_mut("spec"));
            count(new, old, "spec");
        }
        "resize" => {
            resize(new, old);
            drop_disabled(new.at_mut("spec"));
            count(new, old, "spec");
        }
        _ => {}
    }
}

/// Warnings about a new pod. Upstream does not compute warnings for pod updates.
pub(super) fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    if old.is_some() {
        return warnings;
    }
    let messages = names::dns1123_label(new.str_at("metadata.name"));
    if !messages.is_empty() {
        warnings.push(format!(
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a \
             DNS label is recommended: [{}]",
            messages.join(" ")
        ));
    }
    warnings.extend(warnings::warnings(new, &Path::root(), false));
    warnings
}

/// Warnings about a pod template.
pub(crate) fn pod_template_warnings(template: &Value, path: &Path) -> Vec<String> {
    warnings::warnings(template, path, true)
}

/// Drops fields of disabled features from a pod spec. All kinds with a pod template do this before
/// validation.
pub(crate) fn drop_disabled(spec: Option<&mut Value>) {
    if let Some(spec) = spec {
        features::drop_from_spec(spec);
    }
}

pub(super) fn prepare_create(pod: &mut Value) {
    pod.set_at("metadata.generation", 1);
    let class = qos::computed(pod.at("spec"));
    pod.set_at("status", json!({"phase": "Pending", "qosClass": class}));
    drop_disabled(pod.at_mut("spec"));
    if !pod.list_at("spec.schedulingGates").is_empty() {
        // The server adds the transition time.
        let condition = json!({
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        });
        pod.set_at("status.conditions", vec![condition]);
    }
    selectors::apply_label_keys(pod);
    app_armor_fields(pod);
}

/// Converts deprecated AppArmor annotations to fields, which kubelets read.
fn app_armor_fields(pod: &mut Value) {
    if pod.str_at("spec.os.name") == "windows" {
        return;
    }
    let annotations = pod.map_at("metadata.annotations").clone();
    let of_pod = pod.at("spec.securityContext.appArmorProfile").clone();
    for kind in ["initContainers", "containers", "ephemeralContainers"] {
        for container in pod.list_mut(&format!("spec.{kind}")).into_iter().flatten() {
            let key = format!("{APP_ARMOR}{}", container.str_at("name"));
            let Some(annotation) = annotations.get(&key).and_then(Value::as_str) else { continue };
            if container.has("securityContext.appArmorProfile") {
                continue;
            }
            if let Some(profile) = app_armor_profile(annotation)
                && profile != of_pod
            {
                container.set_at("securityContext.appArmorProfile", profile);
            }
        }
    }
}

fn app_armor_profile(annotation: &str) -> Option<Value> {
    let profile = match annotation {
        "unconfined" => json!({"type": "Unconfined"}),
        "runtime/default" => json!({"type": "RuntimeDefault"}),
        _ => {
            let file = annotation.strip_prefix("localhost/").filter(|file| !file.is_empty())?;
            json!({"type": "Localhost", "localhostProfile": file})
        }
    };
    let mut errors = ErrorList::new();
    validation::security::app_armor(&profile, &Path::root(), &mut errors);
    errors.is_empty().then_some(profile)
}

fn update_pod_status(new: &mut Value, old: &Value) {
    for path in ["spec", "metadata.deletionTimestamp", "metadata.generation", "metadata.ownerReferences"] {
        keep(new, old, path);
    }
    // Old kubelets dropped these.
    for name in ["status.qosClass", "status.observedGeneration"] {
        if !new.has(name) {
            keep(new, old, name);
        }
    }
    let mut before = old.list_at("status.conditions").to_vec();
    for condition in new.list_mut("status.conditions").into_iter().flatten() {
        // A type may occur more than once; each old condition is used once.
        let same = before.iter().position(|old| old.at("type") == condition.at("type"));
        let was = same.map(|index| before.remove(index));
        if let Some(was) = was
            && !condition.has("observedGeneration")
        {
            keep(condition, &was, "observedGeneration");
        }
    }
}

/// Only resources and resize policies of containers can change. If containers were added, removed or renamed,
/// the object is left for validation to reject.
fn resize(new: &mut Value, old: &Value) {
    let kinds = ["containers", "initContainers"];
    let is_same_length =
        |kind: &str| new.at("spec").list_at(kind).len() == old.at("spec").list_at(kind).len();
    if !kinds.into_iter().all(is_same_length) {
        return;
    }
    let resources = new.at("spec.resources").clone();
    let lists = kinds.map(|kind| {
        let (after, before) = (new.at("spec").list_at(kind), old.at("spec").list_at(kind));
        let is_same = |(after, before): (&Value, &Value)| after.str_at("name") == before.str_at("name");
        if !after.iter().zip(before).all(is_same) {
            return new.at("spec").at(kind).clone();
        }
        let resized = after.iter().zip(before).map(|(after, before)| {
            let mut container = before.clone();
            keep(&mut container, after, "resources");
            keep(&mut container, after, "resizePolicy");
            container
        });
        if before.is_empty() { Value::Null } else { resized.collect() }
    });
    keep_all_but_spec(new, old);
    put(new, "spec.resources", resources);
    for (kind, list) in kinds.into_iter().zip(lists) {
        put(new, &format!("spec.{kind}"), list);
    }
}

fn keep_all_but_spec(new: &mut Value, old: &Value) {
    keep(new, old, "spec");
    keep(new, old, "status");
    for name in KEPT_METADATA {
        keep(new, old, &format!("metadata.{name}"));
    }
}

/// Increments the generation if the value at `path` has changed.
pub(crate) fn count(new: &mut Value, old: &Value, path: &str) {
    let generation = old.int_at("metadata.generation").unwrap_or_default();
    let changed = !semantically_equal(new.at(path), old.at(path));
    let generation = generation.saturating_add(i64::from(changed));
    if generation > 0 {
        new.set_at("metadata.generation", generation);
    }
}

#[cfg(test)]
mod tests;
