//! Reading CRDs for the registry and discovery.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn widgets() -> Value {
    json!({
        "metadata": {"name": "widgets.example.com", "uid": "u"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [
                {"name": "v1beta1", "served": true, "storage": false, "deprecated": true},
                {"name": "v1alpha1", "served": true, "deprecated": true, "deprecationWarning": "go away"},
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}},
                 "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}},
                 "selectableFields": [{"jsonPath": ".spec.color"}]},
                {"name": "v2alpha1", "served": false, "storage": false}
            ]
        },
        "status": {
            "acceptedNames": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList", "shortNames": ["w"]},
            "conditions": [{"type": "Established", "status": "True"}]
        }
    })
}

#[test]
fn served_versions_and_names_are_read_from_a_crd() {
    let definition = CrdInfo::from_object(&widgets());
    assert!(definition.is_served() && definition.established && !definition.terminating);
    assert_eq!(definition.names.short_names, ["w"]);
    let served: Vec<&str> = definition.served_versions().map(|version| version.name.as_str()).collect();
    assert_eq!(served, ["v1beta1", "v1alpha1", "v1"]);
    assert!(definition.served_version("v2alpha1").is_none());
    let stored = definition.storage_version().unwrap();
    assert!(stored.status && stored.scale.is_some());
}

#[test]
fn deprecated_versions_have_a_warning() {
    let definition = CrdInfo::from_object(&widgets());
    let warning = |name: &str| definition.served_version(name).unwrap().warning.as_deref();
    assert_eq!(
        warning("v1beta1"),
        Some("example.com/v1beta1 Widget is deprecated; use example.com/v1 Widget")
    );
    assert_eq!(warning("v1alpha1"), Some("go away"));
    assert_eq!(warning("v1"), None);
}

#[test]
fn selectable_fields_are_compared_as_text() {
    let definition = CrdInfo::from_object(&widgets());
    let field = &definition.storage_version().unwrap().selectable[0];
    assert_eq!(field.name, "spec.color");
    assert_eq!(field.value(&json!({"spec": {"color": "red"}})), "red");
    assert_eq!(field.value(&json!({"spec": {"color": 3}})), "3");
    assert_eq!(field.value(&json!({})), "");
}

#[test]
fn the_storage_version_hash_is_computed_as_for_built_in_kinds() {
    assert_eq!(storage_version_hash("", "v1", "Pod"), "xPOwRZ+Yhw8=");
    assert_eq!(storage_version_hash("apps", "v1", "Deployment"), "8aSe+NMegvE=");
}

#[test]
fn versions_are_sorted_by_stability_then_number() {
    let mut versions = ["v1alpha1", "v10", "v2beta2", "v1", "v2beta1", "foo1", "v2", "v11alpha2", "bar"];
    versions.sort_by(|one, other| compare_versions(other, one));
    assert_eq!(versions, ["v10", "v2", "v1", "v2beta2", "v2beta1", "v11alpha2", "v1alpha1", "bar", "foo1"]);
}

proptest! {
    #[test]
    fn version_priority_is_a_total_order(names in proptest::collection::vec("(v[0-9]{1,2}((alpha|beta)[0-9])?|[a-z]{1,3})", 3)) {
        let [a, b, c] = [&names[0], &names[1], &names[2]];
        prop_assert_eq!(compare_versions(a, b), compare_versions(b, a).reverse());
        if compare_versions(a, b).is_ge() && compare_versions(b, c).is_ge() {
            prop_assert!(compare_versions(a, c).is_ge());
        }
        prop_assert_eq!(compare_versions(a, b).is_eq(), a == b);
    }
}
