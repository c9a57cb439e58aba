//! Validation of pod annotations, most of which are deprecated in favor of fields.

use serde_json::{Map, Value};

use super::{checks, scheduling};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path, quote};
use kubewright_apimachinery::object::Fields as _;

/// Marks a mirror pod of a static pod.
pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const SECCOMP_OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Whether a pod is a mirror pod.
pub(super) fn is_mirror(metadata: &Value) -> bool {
    metadata.map_at("annotations").contains_key(MIRROR)
}

/// Validates the annotations of a pod or template at `path`.
pub(super) fn of_pod(metadata: &Value, spec: &Value, path: &Path, errors: &mut ErrorList) {
    let annotations = metadata.map_at("annotations");
    if let Some(value) = text(annotations, MIRROR)
        && spec.str_at("nodeName").is_empty()
    {
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        errors.push(FieldError::invalid(&path.key(MIRROR), value, detail));
    }
    if let Some(value) = text(annotations, TOLERATIONS)
        && !value.is_empty()
    {
        tolerations(value, path, errors);
    }
    if let Some(cost) = text(annotations, DELETION_COST)
        && !is_cost(cost)
    {
        errors.push(FieldError::invalid(&path.key(DELETION_COST), cost, "must be a 32bit integer"));
    }
    for (key, value) in annotations {
        if key == SECCOMP_OF_POD || key.starts_with(SECCOMP_OF_CONTAINER) {
            seccomp(value.as_str().unwrap_or_default(), &path.child(key), errors);
        }
    }
    for (key, value) in annotations {
        let Some(container) = key.strip_prefix(APP_ARMOR) else { continue };
        let value = value.as_str().unwrap_or_default();
        if !checks::containers(spec, path).any(|(c, _)| c.str_at("name") == container) {
            errors.push(FieldError::invalid(&path.key(key), container, "container not found"));
        }
        if !matches!(value, "" | "runtime/default" | "unconfined") && !value.starts_with("localhost/") {
            let detail = format!("invalid AppArmor profile name: {}", quote(value));
            errors.push(FieldError::invalid(&path.key(key), value, detail));
        }
    }
}

/// Validates that immutable annotations are unchanged.
pub(super) fn updates(new: &Value, old: &Value, errors: &mut ErrorList) {
    let path = Path::new("metadata").child("annotations");
    let (after, before) = (new.map_at("metadata.annotations"), old.map_at("metadata.annotations"));
    let kept = |key: &str| match key {
        MIRROR => Some("mirror pod annotation"),
        key if key.starts_with(APP_ARMOR) => Some("AppArmor annotations"),
        _ => None,
    };
    for (key, value) in before {
        if after.get(key) != Some(value)
            && let Some(what) = kept(key)
        {
            errors.push(FieldError::forbidden(&path.key(key), format!("may not remove or update {what}")));
        }
    }
    for key in after.keys().filter(|key| !before.contains_key(*key)) {
        if let Some(what) = kept(key) {
            errors.push(FieldError::forbidden(&path.key(key), format!("may not add {what}")));
        }
    }
    of_pod(new.at("metadata"), new.at("spec"), &path, errors);
}

/// Validates that annotations match the corresponding fields. `path` is that of the spec.
pub(super) fn match_fields(metadata: &Value, spec: &Value, path: &Path, errors: &mut ErrorList) {
    let annotations = metadata.map_at("annotations");
    let mut compare = |key: &str, profile: &Value, path: Path, name: &str| {
        let (false, Some(annotation)) = (profile.is_null(), text(annotations, key)) else { return };
        errors.extend(profile_matches(annotation, profile, name).map(|(field, detail)| {
            FieldError::forbidden(
                &path.child("securityContext").child(&format!("{name}Profile")).child(field),
                detail,
            )
        }));
    };
    compare(SECCOMP_OF_POD, spec.at("securityContext.seccompProfile"), path.clone(), "seccomp");
    for (container, path) in checks::containers(spec, path) {
        let key = format!("{SECCOMP_OF_CONTAINER}{}", container.str_at("name"));
        compare(&key, container.at("securityContext.seccompProfile"), path, "seccomp");
    }
    if spec.str_at("os.name") == "windows" {
        return;
    }
    let of_pod = spec.at("securityContext.appArmorProfile");
    for (container, path) in checks::containers(spec, path) {
        let own = container.at("securityContext.appArmorProfile");
        let key = format!("{APP_ARMOR}{}", container.str_at("name"));
        compare(&key, if own.is_null() { of_pod } else { own }, path, "appArmor");
    }
}

/// The field that does not match an annotation, and the message.
fn profile_matches(annotation: &str, profile: &Value, name: &str) -> Option<(&'static str, String)> {
    let said = name.to_lowercase();
    let other_type = || Some(("type", format!("{said} type in annotation and field must match")));
    match profile.str_at("type") {
        "Unconfined" if annotation != "unconfined" => other_type(),
        "RuntimeDefault" if annotation == "docker/default" && name == "seccomp" => None,
        "RuntimeDefault" if annotation != "runtime/default" => other_type(),
        "Localhost" => match annotation.strip_prefix("localhost/") {
            None => other_type(),
            Some(file) if profile.at("localhostProfile").as_str() != Some(file) => {
                Some(("localhostProfile", format!("{said} profile in annotation and field must match")))
            }
            Some(_) => None,
        },
        _ => None,
    }
}

fn seccomp(profile: &str, path: &Path, errors: &mut ErrorList) {
    if matches!(profile, "runtime/default" | "docker/default" | "unconfined") {
        return;
    }
    match profile.strip_prefix("localhost/") {
        Some(file) => checks::local_path(file, path, errors),
        None => errors.push(FieldError::invalid(path, profile, "must be a valid seccomp profile")),
    }
}

fn tolerations(value: &str, path: &Path, errors: &mut ErrorList) {
    match serde_json::from_str::<Value>(value) {
        Ok(tolerations) => {
            let spec = Value::from(Map::from_iter([(TOLERATIONS.to_owned(), tolerations)]));
            scheduling::tolerations_in(&spec, TOLERATIONS, path, errors);
        }
        // Upstream's message is that of Go's decoder, which is not reproduced.
        Err(error) => errors.push(FieldError::invalid(path, TOLERATIONS, error.to_string())),
    }
}

/// Whether a cost is an integer without a plus sign and leading zeros.
fn is_cost(cost: &str) -> bool {
    let is_plain = cost == "0" || cost.starts_with(|c: char| matches!(c, '-' | '1'..='9'));
    is_plain && cost.parse::<i32>().is_ok()
}

fn text<'a>(annotations: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    annotations.get(key).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deletion_cost_is_an_integer() {
        for cost in ["0", "-1", "2147483647"] {
            assert!(is_cost(cost), "{cost}");
        }
        for cost in ["", "+1", "01", "2147483648", "x"] {
            assert!(!is_cost(cost), "{cost}");
        }
    }
}
