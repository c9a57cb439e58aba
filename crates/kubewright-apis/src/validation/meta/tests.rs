//! Compares metadata validation with recorded responses.

use serde_json::{Value, json};

use super::*;
use kubewright_apimachinery::field::Path;
use kubewright_apimachinery::meta::{MAX_ANNOTATIONS, field_manager};

const CONFIG_MAP: Gvk<'static> = Gvk { group: "", version: "v1", kind: "ConfigMap" };

fn messages(errors: &ErrorList) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn created(gvk: Gvk<'_>, namespaced: bool, name: &str) -> Vec<String> {
    let mut object = json!({"metadata": {"name": name}});
    if namespaced {
        object["metadata"]["namespace"] = "ns".into();
    }
    messages(&create(gvk, namespaced, &object))
}

fn stored() -> Value {
    json!({"metadata": {
        "name": "x", "namespace": "ns", "uid": "u", "resourceVersion": "1", "creationTimestamp": "2020-01-01T00:00:00Z"
    }})
}

#[test]
fn a_name_is_required() {
    let object = json!({"metadata": {"namespace": "ns"}});
    assert_eq!(
        messages(&create(CONFIG_MAP, true, &object)),
        ["metadata.name: Required value: name or generateName is required"]
    );
}

#[test]
fn name_rules_depend_on_the_kind() {
    assert!(created(CONFIG_MAP, true, "ok-1.b").is_empty());
    assert_eq!(created(CONFIG_MAP, true, "a/b").len(), 1);
    let namespace = Gvk { group: "", version: "v1", kind: "Namespace" };
    assert_eq!(
        created(namespace, false, "a.b"),
        ["metadata.name: Invalid value: \"a.b\": must not contain dots"]
    );
    let role = Gvk { group: "rbac.authorization.k8s.io", version: "v1", kind: "Role" };
    assert!(created(role, true, "with:colon").is_empty());
    assert_eq!(created(role, true, "a/b"), ["metadata.name: Invalid value: \"a/b\": may not contain '/'"]);
    let request = Gvk { group: "certificates.k8s.io", version: "v1", kind: "CertificateSigningRequest" };
    assert_eq!(created(request, false, "."), ["metadata.name: Invalid value: \".\": may not be '.'"]);
}

#[test]
fn generate_name_may_end_with_a_dash() {
    let object = json!({"metadata": {"generateName": "a-", "name": "a-12345", "namespace": "ns"}});
    assert!(create(CONFIG_MAP, true, &object).is_empty());
}

#[test]
fn the_name_of_an_api_service_is_version_and_group() {
    let gvk = Gvk { group: "apiregistration.k8s.io", version: "v1", kind: "APIService" };
    let object = json!({"metadata": {"name": "x"}, "spec": {"version": "v1", "group": "g.io"}});
    assert_eq!(
        messages(&create(gvk, false, &object)),
        ["metadata.name: Invalid value: \"x\": must be `spec.version+\".\"+spec.group`: \"v1.g.io\""]
    );
}

#[test]
fn errors_repeat_as_often_as_upstream_checks() {
    let old = stored();
    let mut new = old.clone();
    new["metadata"]["uid"] = "abc".into();
    assert_eq!(
        messages(&update(CONFIG_MAP, true, &new, &old)),
        ["metadata.uid: Invalid value: \"abc\": field is immutable"; 2]
    );
    let mut new = old.clone();
    new["metadata"]["annotations"] = json!({"t~x": "1"});
    assert_eq!(update(CONFIG_MAP, true, &new, &old).len(), 4);
}

#[test]
fn finalizers_cannot_be_added_during_deletion() {
    let mut old = stored();
    old["metadata"]["deletionTimestamp"] = "2020-01-01T00:00:00Z".into();
    old["metadata"]["finalizers"] = json!(["a.io/x"]);
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!(["a.io/x", "c.io/z", "b.io/y"]);
    assert_eq!(
        messages(&update(CONFIG_MAP, true, &new, &old))[0],
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new \
         finalizers []string{\"b.io/y\", \"c.io/z\"}"
    );
}

#[test]
fn a_finalizer_must_be_qualified_or_known() {
    let object = json!({"metadata": {"name": "x", "namespace": "ns", "finalizers": ["orphan", "mine"]}});
    assert_eq!(
        messages(&create(CONFIG_MAP, true, &object)),
        [
            "metadata.finalizers[1]: Invalid value: \"mine\": name is neither a standard finalizer name nor is it fully \
          qualified"
        ]
    );
    let widget = Gvk { group: "example.com", version: "v1", kind: "Widget" };
    assert!(create(widget, true, &object).is_empty());
}

#[test]
fn only_one_owner_reference_can_be_the_controller() {
    let reference =
        |name: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": "1", "controller": true});
    let mut object = stored();
    object["metadata"]["ownerReferences"] = json!([reference("a"), reference("b")]);
    assert_eq!(
        messages(&create(CONFIG_MAP, true, &object)),
        ["metadata.ownerReferences: Invalid value: \
          [{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"a\",\"uid\":\"1\",\"controller\":true},\
          {\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"b\",\"uid\":\"1\",\"controller\":true}]: Only one reference \
          can have Controller set to true. Found \"true\" in references for Pod/a and Pod/b"]
    );
}

#[test]
fn owner_references_must_be_complete_and_not_an_event() {
    let mut object = stored();
    object["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "Event", "name": "", "uid": "1"}]);
    assert_eq!(
        messages(&create(CONFIG_MAP, true, &object)),
        [
            "metadata.ownerReferences.name: Invalid value: \"\": must not be empty",
            "metadata.ownerReferences: Invalid value: {\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"\",\
             \"uid\":\"1\"}: /v1, Kind=Event is disallowed from being an owner",
        ]
    );
}

#[test]
fn the_total_size_of_annotations_is_limited() {
    let object = json!({"metadata": {"name": "x", "namespace": "ns", "annotations": {"a": "x".repeat(MAX_ANNOTATIONS)}}});
    assert_eq!(
        messages(&create(CONFIG_MAP, true, &object)),
        ["metadata.annotations: Too long: may not be more than 262144 bytes"]
    );
}

#[test]
fn a_field_manager_must_be_printable_and_short() {
    let path = Path::new("fieldManager");
    assert_eq!(
        messages(&field_manager("a\tb", &path)),
        ["fieldManager: Invalid value: \"a\\tb\": invalid character U+0009 (at position 1)"]
    );
    assert_eq!(field_manager(&"a".repeat(129), &path).len(), 1);
    assert!(field_manager("kubectl create", &path).is_empty());
}
