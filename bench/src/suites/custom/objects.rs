//! The CRDs and objects that are applied and validated.

use serde_json::{Map, Value, json};

pub(super) const GROUP: &str = "bench.example.com";
pub(super) const KIND: &str = "Wides";
pub(in crate::suites) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A cluster-scoped CRD with this number of fields, alternating between five types.
pub(in crate::suites) fn definition(plural: &str, fields: usize) -> Value {
    let properties: Map<String, Value> = (0..fields).map(|at| (format!("field{at}"), sort(at).0)).collect();
    let mut kind = plural.to_owned();
    kind[..1].make_ascii_uppercase();
    let spec = json!({"type": "object", "properties": properties, "required": ["field0"]});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {"plural": plural, "singular": format!("{plural}-one"), "kind": kind},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
    })
}

/// An object of that CRD. Each turn gives a different version.
pub(in crate::suites) fn wide(fields: usize) -> impl Fn(u32) -> Value {
    move |turn| {
        let mut spec: Map<String, Value> = (0..fields).map(|at| (format!("field{at}"), sort(at).1)).collect();
        spec.insert("field1".to_owned(), turn.into());
        json!({
            "apiVersion": format!("{GROUP}/v1"),
            "kind": KIND,
            "metadata": {"name": "one", "labels": {"app": "bench"}},
            "spec": spec,
        })
    }
}

/// Schema and value of the field at index `at`.
fn sort(at: usize) -> (Value, Value) {
    match at % 5 {
        0 => (
            json!({"type": "string", "maxLength": 120, "pattern": "^[a-z0-9 ,-]+$"}),
            json!(format!(
                "the value of the field at index {at} of this object, with a few additional words"
            )),
        ),
        1 => (json!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 100_000}), json!(at)),
        2 => (json!({"type": "string", "enum": ["First", "Second", "Third"]}), json!("Second")),
        3 => (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"first": "a value of a map", "second": "another value of a map"}),
        ),
        _ => (
            json!({
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": {"type": "string"}, "port": {"type": "integer", "default": 80}},
                },
            }),
            json!([{"name": "http", "port": 8080}, {"name": "https", "port": 8443}, {"name": "metrics"}]),
        ),
    }
}

/// A Deployment with several containers. Each turn gives a different version.
pub(in crate::suites) fn deployment() -> impl Fn(u32) -> Value {
    |turn| {
        let labels = json!({"app.kubernetes.io/name": "shop", "app.kubernetes.io/instance": "one"});
        let container = |name: &str| {
            json!({
                "name": name,
                "image": format!("registry.example.com/shop/{name}:1.4.{turn}"),
                "args": [format!("--config=/etc/{name}/{name}.properties"), "--log-format=json"],
                "ports": [
                    {"name": format!("{name}-h"), "containerPort": 8080, "protocol": "TCP"},
                    {"name": format!("{name}-m"), "containerPort": 9090, "protocol": "TCP"},
                ],
                "env": [
                    {"name": "REGION", "valueFrom": {"configMapKeyRef": {"name": name, "key": "region"}}},
                    {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {"name": "CACHE_SIZE", "value": "256MiB"},
                ],
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
                "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 5},
                "livenessProbe": {"httpGet": {"path": "/livez", "port": 8080}, "periodSeconds": 10},
                "volumeMounts": [{"name": "config", "mountPath": format!("/etc/{name}"), "readOnly": true}],
            })
        };
        let names = ["front", "cart", "search", "pay", "proxy", "agent"];
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "one", "labels": labels},
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels, "annotations": {"prometheus.io/scrape": "true"}},
                    "spec": {
                        "serviceAccountName": "shop",
                        "securityContext": {"runAsNonRoot": true, "runAsUser": 65532},
                        "containers": names.map(container),
                        "volumes": [{"name": "config", "configMap": {"name": "shop"}}],
                    },
                },
            },
        })
    }
}

pub(in crate::suites) fn path_of(object: &Value) -> String {
    if object["kind"] == KIND {
        return format!("/apis/{GROUP}/v1/wides/one");
    }
    "/apis/apps/v1/namespaces/default/deployments/one".to_owned()
}

/// A schema whose spec has one CEL rule.
pub(super) fn with_rule(rule: &str) -> Value {
    json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "x-kubernetes-validations": [{"rule": rule}],
                "properties": {
                    "replicas": {"type": "integer"},
                    "limit": {"type": "integer"},
                    "image": {"type": "string", "maxLength": 200},
                    "ports": {"type": "array", "maxItems": 20, "items": {"type": "integer"}},
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use kubewright_apiextensions::custom::{self, CrdValidation};

    use super::*;

    #[test]
    fn objects_have_the_documented_size() {
        for object in [deployment()(0), wide(85)(0)] {
            let size = object.to_string().len();
            assert!((4_000..6_000).contains(&size), "{size}");
        }
    }

    #[test]
    fn objects_are_valid_for_their_crd() {
        let definition = CrdValidation::compile(&definition("wides", 100)).unwrap();
        let errors = custom::validate_create(&definition, "v1", &wide(100)(3));
        assert!(errors.is_empty(), "{errors:?}");
    }

    #[test]
    fn every_turn_gives_a_different_version() {
        assert_ne!(deployment()(1), deployment()(2));
        assert_ne!(wide(85)(1), wide(85)(2));
    }
}
