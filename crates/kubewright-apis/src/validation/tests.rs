//! Compares validation with recorded responses.

mod services;
mod workloads;

use serde_json::{Value, json};

use crate::kinds::rules;
use kubewright_apimachinery::field::ErrorList;
use kubewright_apimachinery::gvk::Gvk;

fn messages(errors: &ErrorList) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn created(object: &Value) -> Vec<String> {
    messages(&(rules(Gvk::of(object)).validate)(object))
}

fn updated(new: &Value, old: &Value) -> Vec<String> {
    messages(&(rules(Gvk::of(new)).validate_update)(new, old))
}

#[test]
fn a_secret_must_have_the_keys_of_its_type() {
    let secret =
        |kind: &str, data: Value| json!({"apiVersion": "v1", "kind": "Secret", "type": kind, "data": data});
    assert_eq!(
        created(&secret("kubernetes.io/tls", json!({"tls.crt": "YQ=="}))),
        ["data[tls.key]: Required value"]
    );
    assert_eq!(
        created(&secret("kubernetes.io/basic-auth", json!({}))),
        ["data[username]: Required value", "data[password]: Required value"]
    );
    assert!(created(&secret("kubernetes.io/basic-auth", json!({"password": ""}))).is_empty());
    assert_eq!(
        created(&secret("kubernetes.io/dockerconfigjson", json!({".dockerconfigjson": "eA=="}))),
        [
            "data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": invalid character 'x' looking for \
          beginning of value"
        ]
    );
    assert_eq!(
        created(&secret("Opaque", json!({"..": "YQ=="}))),
        ["data[..]: Invalid value: \"..\": must not be '..'"]
    );
}

#[test]
fn immutable_config_maps_cannot_change() {
    let old = json!({"apiVersion": "v1", "kind": "ConfigMap", "immutable": true, "data": {"a": "b"}});
    let mut new = old.clone();
    new["data"]["a"] = "c".into();
    assert_eq!(updated(&new, &old), ["data: Forbidden: field is immutable when `immutable` is set"]);
    let mut new = old.clone();
    new["immutable"] = false.into();
    assert_eq!(updated(&new, &old), ["immutable: Forbidden: field is immutable when `immutable` is set"]);
}

#[test]
fn the_size_of_a_config_map_is_limited() {
    let data = json!({"a": "x".repeat(1024 * 1024 + 1)});
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data});
    assert_eq!(created(&object), ["[]: Too long: may not be more than 1048576 bytes"]);
}

#[test]
fn a_volume_needs_a_source_and_a_capacity() {
    let object =
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": {}});
    assert_eq!(
        created(&object),
        [
            "spec.accessModes: Required value",
            "spec.capacity: Required value",
            "spec.capacity: Unsupported value: null: supported values: \"storage\"",
            "spec: Required value: must specify a volume type",
        ]
    );
}

#[test]
fn a_claim_needs_a_size_and_access_modes() {
    let claim = |spec: Value| json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": spec});
    assert_eq!(
        created(&claim(json!({"resources": {}}))),
        [
            "spec.accessModes: Required value: at least 1 access mode is required",
            "spec.resources[storage]: Required value",
        ]
    );
    assert_eq!(
        created(&claim(json!({"accessModes": ["X"], "resources": {"requests": {"storage": "0"}}}))),
        [
            "spec.accessModes: Unsupported value: \"X\": supported values: \"ReadOnlyMany\", \"ReadWriteMany\", \
             \"ReadWriteOnce\", \"ReadWriteOncePod\"",
            "spec.resources[storage]: Invalid value: \"0\": must be greater than zero",
        ]
    );
}

#[test]
fn a_changed_claim_is_rejected_with_a_diff() {
    let claim = |mode: &str| {
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "spec": {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}, "volumeMode": "Filesystem"},
            "status": {"phase": "Pending"}
        })
    };
    assert_eq!(
        updated(&claim("ReadOnlyMany"), &claim("ReadWriteOnce")),
        [
            "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName \
          for bound claims\n@@ -1,6 +1,6 @@\n {\n  \"AccessModes\": [\n-  \"ReadWriteOnce\"\n+  \"ReadOnlyMany\"\n  ],\n  \
          \"Selector\": null,\n  \"Resources\": {\n"
        ]
    );
}

#[test]
fn a_bound_claim_can_grow_but_not_shrink() {
    let claim = |size: &str| {
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}},
            "status": {"phase": "Bound", "capacity": {"storage": "2Gi"}}
        })
    };
    assert!(updated(&claim("3Gi"), &claim("2Gi")).is_empty());
    assert_eq!(
        updated(&claim("1Gi"), &claim("2Gi")),
        ["spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"]
    );
}

#[test]
fn limits_must_be_consistent() {
    let object = json!({
        "apiVersion": "v1", "kind": "LimitRange",
        "spec": {"limits": [{
            "type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}, "default": {"cpu": "1"},
            "defaultRequest": {"cpu": "1"}
        }]}
    });
    assert_eq!(
        created(&object),
        [
            "spec.limits[0].min[cpu]: Invalid value: \"2\": min value 2 is greater than max value 1",
            "spec.limits[0].defaultRequest[cpu]: Invalid value: \"1\": min value 2 is greater than default request \
             value 1",
            "spec.limits[0].default[cpu]: Invalid value: \"2\": min value 2 is greater than default value 1",
        ]
    );
}

#[test]
fn a_quota_needs_known_resources_and_integer_counts() {
    let quota = |hard: Value| json!({"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": hard}, "status": {}});
    assert_eq!(
        created(&quota(json!({"bogus": "1"}))),
        [
            "spec.hard[bogus]: Invalid value: \"bogus\": must be a standard resource type or fully qualified",
            "spec.hard[bogus]: Invalid value: \"bogus\": must be a standard resource for quota",
        ]
    );
    assert_eq!(
        created(&quota(json!({"pods": "1500m"}))),
        ["spec.hard[pods]: Invalid value: \"1500m\": must be an integer"]
    );
    assert!(created(&quota(json!({"requests.cpu": "1500m", "count/widgets.example.com": "3"}))).is_empty());
}

#[test]
fn the_role_ref_of_a_binding_is_immutable() {
    let binding = |name: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
        })
    };
    assert_eq!(
        updated(&binding("r2"), &binding("r1")),
        [
            "roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\",\"Name\":\"r2\"}: \
          cannot change roleRef"
        ]
    );
}

#[test]
fn system_priority_classes_are_reserved() {
    let class = |name: &str, value: i64| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value
        })
    };
    assert_eq!(
        created(&class("system-x", 1)),
        [
            "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. \
          error: system-x is not a known system priority class"
        ]
    );
    assert_eq!(
        created(&class("x", 2_000_000_000)),
        ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"]
    );
    assert_eq!(
        updated(&class("x", 6), &class("x", 5)),
        ["value: Forbidden: may not be changed in an update."]
    );
}

#[test]
fn webhooks_are_validated() {
    let hook = |change: (&str, Value)| {
        let mut hook = json!({
            "name": "a.example.com", "clientConfig": {"url": "https://127.0.0.1/x"}, "sideEffects": "None",
            "admissionReviewVersions": ["v1"]
        });
        hook[change.0] = change.1;
        let kind = "ValidatingWebhookConfiguration";
        created(&json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "webhooks": [hook]}))
    };
    assert_eq!(
        hook(("name", "x".into())),
        [
            "webhooks[0].name: Invalid value: \"x\": should be a domain with at least three segments separated by dots"
        ]
    );
    assert_eq!(
        hook(("clientConfig", json!({"url": "https://x?y"}))),
        ["webhooks[0].clientConfig.url: Invalid value: \"y\": query parameters are not permitted in the URL"]
    );
    assert_eq!(
        hook(("sideEffects", Value::Null)),
        ["webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun"]
    );
    assert_eq!(
        hook(("admissionReviewVersions", json!(["v9"]))),
        [
            "webhooks[0].admissionReviewVersions: Invalid value: [\"v9\"]: must include at least one of v1, v1beta1"
        ]
    );
    assert_eq!(hook(("rules", json!([{}]))).len(), 4);
}

#[test]
fn a_review_needs_exactly_one_kind_of_attributes() {
    let review = |spec: Value| json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec});
    assert_eq!(
        created(&review(json!({}))),
        [
            "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or \
             resourceAttributes must be specified",
            "spec.user: Invalid value: \"\": at least one of user or group must be specified",
        ]
    );
    assert_eq!(
        created(&review(json!({"user": "x", "resourceAttributes": {}, "nonResourceAttributes": {}}))),
        ["spec.nonResourceAttributes: Invalid value: {\"Path\":\"\",\"Verb\":\"\"}: cannot be specified in \
          combination with resourceAttributes"]
    );
}

#[test]
fn events_of_events_k8s_io_are_immutable() {
    let event = |note: &str| {
        json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"namespace": "ns"}, "note": note,
            "eventTime": "2024-01-01T00:00:00.000000Z", "reportingController": "c.io/x", "reportingInstance": "i",
            "action": "a", "reason": "r", "type": "Normal", "regarding": {"namespace": "ns"}
        })
    };
    assert!(created(&event("n")).is_empty());
    assert_eq!(
        updated(&event("changed"), &event("n")),
        ["message: Invalid value: \"changed\": field is immutable"]
    );
}

#[test]
fn the_phase_of_a_namespace_must_match_its_deletion_timestamp() {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "status": {"phase": "Bogus"}});
    assert_eq!(
        messages(&(rules(Gvk::of(&object)).validate_subresource)("status", &object, &object)),
        ["status.Phase: Invalid value: \"Bogus\": may only be 'Active' if `deletionTimestamp` is empty"]
    );
}
