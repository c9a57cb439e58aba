//! Strategies of Service, Endpoints, EndpointSlice and the kinds of networking.k8s.io.
//!
//! The server allocates cluster IPs and node ports after these functions and before validation, starting with
//! [`ip_families`].

pub(crate) mod ip_families;
pub(crate) mod service;
mod warnings;

use serde_json::{Value, json};

use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::{Fields as _, semantically_equal};

pub(super) use warnings::warnings;

pub(super) fn prepare_create(gvk: Gvk<'_>, object: &mut Value) {
    match gvk.kind {
        "Service" => service::prepare_create(object),
        "Ingress" => {
            object.set_at("status", json!({"loadBalancer": {}}));
            object.set_at("metadata.generation", 1);
        }
        "IngressClass" | "NetworkPolicy" => object.set_at("metadata.generation", 1),
        "EndpointSlice" => {
            object.set_at("metadata.generation", 1);
            drop_topology(object);
        }
        _ => {}
    }
}

pub(super) fn prepare_update(gvk: Gvk<'_>, new: &mut Value, old: &Value) {
    match gvk.kind {
        "Service" => service::prepare_update(new, old),
        "Ingress" => {
            keep(new, old, "status");
            let changed = !semantically_equal(new.at("spec"), old.at("spec"));
            count_generation(new, old, changed);
        }
        "IngressClass" | "NetworkPolicy" => {
            let changed = !semantically_equal(new.at("spec"), old.at("spec"));
            count_generation(new, old, changed);
        }
        "EndpointSlice" => {
            let differs = |field| new.at(field) != old.at(field);
            let changed = ["addressType", "endpoints", "ports", "metadata.labels"].into_iter().any(differs);
            let endpoints_changed = differs("endpoints");
            count_generation(new, old, changed);
            if endpoints_changed {
                drop_topology(new);
            }
        }
        _ => {}
    }
}

pub(super) fn prepare_subresource(gvk: Gvk<'_>, subresource: &str, new: &mut Value, old: &Value) {
    match (gvk.kind, subresource) {
        ("Service" | "Ingress", "status") => keep(new, old, "spec"),
        ("ServiceCIDR", "status") => {
            keep(new, old, "spec");
            for field in
                ["labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp", "generation"]
            {
                keep(new, old, &format!("metadata.{field}"));
            }
        }
        _ => {}
    }
}

/// Restores a field from the old object, or removes it if the old object has none.
fn keep(new: &mut Value, old: &Value, path: &str) {
    match old.at(path) {
        Value::Null => {
            new.remove_at(path);
        }
        value => new.set_at(path, value.clone()),
    }
}

fn count_generation(new: &mut Value, old: &Value, changed: bool) {
    let generation = old.int_at("metadata.generation").unwrap_or_default().saturating_add(i64::from(changed));
    new.set_at("metadata.generation", generation);
}

/// Drops `deprecatedTopology`, a field of an older API version.
fn drop_topology(slice: &mut Value) {
    for endpoint in slice.list_mut("endpoints").into_iter().flatten() {
        endpoint.remove_at("deprecatedTopology");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn updated(new: Value, old: &Value) -> Value {
        let mut new = new;
        prepare_update(Gvk::of(old), &mut new, old);
        new
    }

    #[test]
    fn an_ingress_is_created_without_status_and_has_a_generation() {
        let mut ingress = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"},
            "spec": {"ingressClassName": "a"}, "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
        });
        let copy = ingress.clone();
        prepare_create(Gvk::of(&copy), &mut ingress);
        assert_eq!(ingress.at("status"), &json!({"loadBalancer": {}}));
        assert_eq!(ingress.int_at("metadata.generation"), Some(1));

        let mut new = ingress.clone();
        new.set_at("metadata.labels", json!({"a": "b"}));
        assert_eq!(updated(new.clone(), &ingress).int_at("metadata.generation"), Some(1));
        new.set_at("spec.ingressClassName", "b");
        new.remove_at("status");
        let new = updated(new, &ingress);
        assert_eq!(new.int_at("metadata.generation"), Some(2));
        assert_eq!(new.at("status"), &json!({"loadBalancer": {}}));
    }

    #[test]
    fn an_endpoint_slice_increments_its_generation_except_for_annotations() {
        let old = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": "s", "generation": 3}, "endpoints": [{"addresses": ["192.0.2.1"]}], "ports": null,
        });
        let mut new = old.clone();
        new.set_at("metadata.annotations", json!({"a": "b"}));
        assert_eq!(updated(new, &old).int_at("metadata.generation"), Some(3));
        let mut new = old.clone();
        new.set_at("metadata.labels", json!({"a": "b"}));
        assert_eq!(updated(new, &old).int_at("metadata.generation"), Some(4));
        let mut new = old.clone();
        new.set_at("endpoints", json!([{"addresses": ["192.0.2.2"], "deprecatedTopology": {"a": "b"}}]));
        let new = updated(new, &old);
        assert_eq!(new.int_at("metadata.generation"), Some(4));
        assert_eq!(new.at("endpoints"), &json!([{"addresses": ["192.0.2.2"]}]));
    }

    #[test]
    fn a_status_update_keeps_the_spec() {
        let old = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
            "metadata": {"name": "c", "labels": {"a": "b"}}, "spec": {"cidrs": ["10.0.0.0/24"]},
        });
        let mut new = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
            "metadata": {"name": "c", "finalizers": ["x/y"]}, "spec": {"cidrs": []}, "status": {"conditions": []},
        });
        prepare_subresource(Gvk::of(&old), "status", &mut new, &old);
        assert_eq!(new.at("spec"), old.at("spec"));
        assert_eq!(new.at("metadata"), old.at("metadata"));
        assert!(new.has("status"));
    }
}
