//! Validation of Namespaces.

use serde_json::Value;

use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

/// Validates a Namespace. Updates keep the old finalizers.
pub(super) fn namespace(object: &Value) -> ErrorList {
    let path = Path::new("spec").child("finalizers");
    super::strings(object, "spec.finalizers")
        .iter()
        .flat_map(|finalizer| finalizer_name(finalizer, &path))
        .collect()
}

/// Validates an update of the `finalize` subresource.
pub(super) fn finalize(object: &Value) -> ErrorList {
    let path = Path::new("spec").child("finalizers");
    let finalizers = super::strings(object, "spec.finalizers");
    finalizers
        .iter()
        .enumerate()
        .flat_map(|(i, finalizer)| finalizer_name(finalizer, &path.index(i)))
        .collect()
}

/// Validates a status update. The phase must match the deletion timestamp.
pub(super) fn status(object: &Value) -> ErrorList {
    let (phase, detail) = if object.has("metadata.deletionTimestamp") {
        ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty")
    } else {
        ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
    };
    if object.str_at("status.phase") == phase {
        return ErrorList::new();
    }
    vec![FieldError::invalid(&Path::new("status").child("Phase"), object.str_at("status.phase"), detail)]
}

fn finalizer_name(finalizer: &str, path: &Path) -> ErrorList {
    let mut errors: ErrorList = meta::invalid(path, finalizer, names::label_key(finalizer)).collect();
    errors.extend(meta::kube_finalizer(finalizer, path));
    errors
}
