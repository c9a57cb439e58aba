//! Namespace.

use serde_json::{Value, json};

use crate::kinds::KindRules;
use crate::registry::RegistryRules;
use crate::reset_fields::ResetFields;
use crate::selectable::{Refusal, Selectable, texts};
use crate::strategy::keep;
use crate::table::row::Row;
use crate::validation::strings;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta::{self, NameRule};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "Namespace",
    defaults,
    prepare_create,
    prepare_update: |new, old| {
        keep(new, old, "spec.finalizers");
        keep(new, old, "status");
    },
    prepare_subresource: |subresource, new, old| match subresource {
        "finalize" => keep(new, old, "status"),
        "status" => keep(new, old, "spec"),
        _ => {}
    },
    name: |_| NameRule::DnsLabel,
    validate,
    validate_update: |new, _| validate(new),
    validate_subresource: |subresource, new, _| match subresource {
        "finalize" => finalize(new),
        "status" => status(new),
        _ => ErrorList::new(),
    },
    reset_fields: |subresource| (subresource == "finalize").then_some(ResetFields::These(&[&["status"]])),
    selectable: Some(&Selectable {
        fields: texts!("metadata.name", "status.phase"),
        refusal: Refusal::Plain,
    }),
    cells,
    registry: RegistryRules {
        // Defaulting runs before the name is generated.
        finish_create: |object| {
            let name = object.at("metadata.name").clone();
            object.object_mut("metadata.labels").insert("kubernetes.io/metadata.name".to_owned(), name);
        },
        prepare_delete: |object| {
            object.set_at("status.phase", "Terminating");
            object.object_mut("metadata").remove("deletionGracePeriodSeconds");
        },
        has_own_finalizers: |object| !object.list_at("spec.finalizers").is_empty(),
        own_preconditions: true,
        returns_deleted: true,
        ..RegistryRules::DEFAULT
    },
    ..super::GROUP
};

fn defaults(object: &mut Value) {
    let name = object.str_at("metadata.name").to_owned();
    // With generateName the label is added after the name is generated.
    if !name.is_empty() {
        object.object_mut("metadata.labels").insert("kubernetes.io/metadata.name".to_owned(), name.into());
    }
    object.default_at("status.phase", "Active");
}

fn prepare_create(object: &mut Value) {
    object.set_at("status", json!({"phase": "Active"}));
    let mut finalizers = object.list_at("spec.finalizers").to_vec();
    if !finalizers.iter().any(|finalizer| finalizer == "kubernetes") {
        finalizers.push("kubernetes".into());
    }
    object.set_at("spec.finalizers", finalizers);
}

/// Validates a Namespace. Updates keep the old finalizers.
fn validate(object: &Value) -> ErrorList {
    let path = Path::new("spec").child("finalizers");
    strings(object, "spec.finalizers").iter().flat_map(|finalizer| finalizer_name(finalizer, &path)).collect()
}

/// Validates an update of the `finalize` subresource.
fn finalize(object: &Value) -> ErrorList {
    let path = Path::new("spec").child("finalizers");
    let finalizers = strings(object, "spec.finalizers");
    finalizers
        .iter()
        .enumerate()
        .flat_map(|(i, finalizer)| finalizer_name(finalizer, &path.index(i)))
        .collect()
}

/// Validates a status update. The phase must match the deletion timestamp.
fn status(object: &Value) -> ErrorList {
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

fn cells(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), row.text("status.phase"), row.age()]
}

#[cfg(test)]
mod tests;
