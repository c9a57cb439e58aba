//! Tests of the client against the server: all methods, with typed, dynamic and metadata objects, with and without
//! cache.

mod errors;
mod patching;
mod reading;
mod subresources;
mod upserting;
mod watching;
mod writing;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::DynamicObject;
use kubewright_runtime::{Gvk, Key};
use serde_json::json;

use crate::world::object;

fn key(name: &str) -> Key {
    Key::namespaced("default", name)
}

fn widgets() -> Gvk {
    Gvk::new("example.org", "v1", "Widget")
}

/// A Widget as a dynamic object.
fn dynamic_widget(name: &str, color: &str) -> DynamicObject {
    object(json!({
        "apiVersion": "example.org/v1", "kind": "Widget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"color": color},
    }))
}

/// The field managers of an object, from its managedFields.
fn managers(map: &ConfigMap) -> Vec<String> {
    let entries = map.metadata.managed_fields.iter().flatten();
    entries
        .map(|entry| {
            let manager = entry.manager.as_deref().unwrap_or_default();
            format!("{manager} by {}", entry.operation.as_deref().unwrap_or_default())
        })
        .collect()
}
