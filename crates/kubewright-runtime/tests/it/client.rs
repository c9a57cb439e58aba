//! The client on the server: every method of it, typed, dynamic and of metadata, with the cache and without.

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

/// A Widget whose type the program does not know.
fn dynamic_widget(name: &str, color: &str) -> DynamicObject {
    object(json!({
        "apiVersion": "example.org/v1", "kind": "Widget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"color": color},
    }))
}

/// Who wrote which fields of an object, by the server's own book.
fn managers(map: &ConfigMap) -> Vec<String> {
    let entries = map.metadata.managed_fields.iter().flatten();
    entries
        .map(|entry| {
            let manager = entry.manager.as_deref().unwrap_or_default();
            format!("{manager} by {}", entry.operation.as_deref().unwrap_or_default())
        })
        .collect()
}
