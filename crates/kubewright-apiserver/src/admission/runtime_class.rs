//! RuntimeClass: a pod gets the overhead and the scheduling constraints of its RuntimeClass.

use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::ApiError;
use serde_json::Value;

use super::{Admission, Attributes, Cluster, Notes, Operation, Plugin};

pub(super) struct RuntimeClass;

impl Plugin for RuntimeClass {
    fn name(&self) -> &'static str {
        "RuntimeClass"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Create
    }

    fn admit<'a>(
        &'a self,
        cluster: &'a Cluster,
        attributes: &'a mut Attributes<'_>,
        _notes: &'a mut Notes,
    ) -> Admission<'a> {
        if !attributes.is_for("", "pods") {
            return Admission::ALLOWED;
        }
        set(cluster, attributes).into()
    }

    fn validate<'a>(
        &'a self,
        cluster: &'a Cluster,
        attributes: &'a Attributes<'_>,
        _notes: &'a mut Notes,
    ) -> Admission<'a> {
        if !attributes.is_for("", "pods") {
            return Admission::ALLOWED;
        }
        check(cluster, attributes).into()
    }
}

const MISMATCH: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

/// The RuntimeClass of a pod.
fn class_of(cluster: &Cluster, attributes: &Attributes<'_>) -> Result<Option<Value>, ApiError> {
    if !attributes.object.has("spec.runtimeClassName") {
        return Ok(None);
    }
    let name = attributes.object.str_at("spec.runtimeClassName");
    if name.is_empty() {
        // Upstream's client returns this error for an empty name.
        return Err(ApiError::new(500, "", "resource name may not be empty"));
    }
    match cluster.get("node.k8s.io/runtimeclasses", "", name) {
        Some(class) => Ok(Some(class)),
        None => Err(attributes.forbidden(&format!("pod rejected: RuntimeClass {name:?} not found"))),
    }
}

fn set(cluster: &Cluster, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
    let Some(class) = class_of(cluster, attributes)? else { return Ok(()) };
    if class.has("overhead") {
        let (own, fixed) = (attributes.object.at("spec.overhead"), class.at("overhead.podFixed"));
        if !attributes.object.map_at("spec.overhead").is_empty() && own != fixed {
            return Err(attributes.forbidden(MISMATCH));
        }
        if !fixed.is_null() {
            attributes.object.set_at("spec.overhead", fixed.clone());
        }
    }
    if !class.has("scheduling") {
        return Ok(());
    }
    let mut selector = attributes.object.map_at("spec.nodeSelector").clone();
    for (key, value) in class.map_at("scheduling.nodeSelector") {
        if let Some(own) = selector.get(key).filter(|own| *own != value) {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let why = format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {}",
                text(value),
                text(own)
            );
            return Err(attributes.forbidden(&why));
        }
        selector.insert(key.clone(), value.clone());
    }
    if !selector.is_empty() {
        attributes.object.set_at("spec.nodeSelector", selector);
    }
    let own = attributes.object.list_at("spec.tolerations");
    let merged = merge_tolerations(own, class.list_at("scheduling.tolerations"));
    if !merged.is_empty() {
        attributes.object.set_at("spec.tolerations", merged);
    }
    Ok(())
}

/// Both lists, without tolerations that another one covers.
fn merge_tolerations(first: &[Value], second: &[Value]) -> Vec<Value> {
    let all: Vec<&Value> = first.iter().chain(second).collect();
    let mut merged: Vec<Value> = Vec::new();
    for (at, toleration) in all.iter().enumerate() {
        let covered = merged.iter().any(|other| covers(other, toleration))
            || all[at + 1..].iter().any(|other| other != toleration && covers(other, toleration));
        if !covered {
            merged.push((*toleration).clone());
        }
    }
    merged
}

/// Whether `wide` tolerates everything that `toleration` tolerates.
fn covers(wide: &Value, toleration: &Value) -> bool {
    if wide == toleration {
        return true;
    }
    let text = |value: &Value, field: &str| value.str_at(field).to_owned();
    let any_key = text(wide, "key").is_empty() && text(wide, "operator") == "Exists";
    if text(toleration, "key") != text(wide, "key") && !any_key {
        return false;
    }
    let effect = text(wide, "effect");
    if text(toleration, "effect") != effect && !effect.is_empty() {
        return false;
    }
    if let Some(seconds) = wide.int_at("tolerationSeconds").filter(|_| effect == "NoExecute")
        && toleration.int_at("tolerationSeconds").is_none_or(|own| own > seconds)
    {
        return false;
    }
    match &*text(wide, "operator") {
        "" | "Equal" => {
            text(toleration, "operator") == "Equal" && text(toleration, "value") == text(wide, "value")
        }
        "Exists" => true,
        _ => false,
    }
}

fn check(cluster: &Cluster, attributes: &Attributes<'_>) -> Result<(), ApiError> {
    let class = class_of(cluster, attributes)?;
    let own = attributes.object.at("spec.overhead");
    match class.filter(|class| class.has("overhead")) {
        Some(class) if class.at("overhead.podFixed") != own => Err(attributes.forbidden(MISMATCH)),
        None if !own.is_null() => Err(attributes
            .forbidden("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")),
        _ => Ok(()),
    }
}
