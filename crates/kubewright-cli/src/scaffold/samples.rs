//! Minimal valid objects of built-in kinds for controller tests.

use serde_json::{Value, json};

use kubewright_manifests::yaml;

/// A minimal object as YAML, or `None` for rarely reconciled kinds.
pub(super) fn object(group: &str, version: &str, kind: &str) -> Option<String> {
    let object = value(group, version, kind)?;
    Some(yaml::document(&object).trim_start_matches("---\n").trim_end().to_owned())
}

/// A minimal object whose defaults do not depend on cluster state.
pub(super) fn fixture(group: &str, version: &str, kind: &str) -> Option<Value> {
    let mut object = value(group, version, kind)?;
    match kind {
        "Pod" => object["spec"]["automountServiceAccountToken"] = false.into(),
        "Service" => object["spec"]["clusterIP"] = "None".into(),
        "Job" => {
            let labels = json!({ "app": "example" });
            object["spec"]["manualSelector"] = true.into();
            object["spec"]["selector"] = json!({ "matchLabels": labels });
        }
        _ => {}
    }
    Some(object)
}

fn value(group: &str, version: &str, kind: &str) -> Option<Value> {
    let fields = fields(group, version, kind)?;
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let mut object = json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": "example" } });
    if let (Value::Object(object), Value::Object(fields)) = (&mut object, fields) {
        object.extend(fields);
    }
    Some(object)
}

fn fields(group: &str, version: &str, kind: &str) -> Option<Value> {
    let pod = json!({ "containers": [{ "name": "example", "image": "example:v1" }] });
    let labels = json!({ "app": "example" });
    let template = json!({ "metadata": { "labels": labels }, "spec": pod });
    let selector = json!({ "matchLabels": labels });
    let mut job = template.clone();
    job["spec"]["restartPolicy"] = "Never".into();
    Some(match (group, version, kind) {
        ("", "v1", "ConfigMap") => json!({ "data": { "key": "value" } }),
        ("", "v1", "Secret") => json!({ "stringData": { "key": "value" } }),
        ("", "v1", "Namespace" | "Node" | "ServiceAccount") => json!({}),
        ("", "v1", "Pod") => json!({ "spec": pod }),
        ("", "v1", "Service") => json!({ "spec": { "selector": labels, "ports": [{ "port": 80 }] } }),
        ("", "v1", "PersistentVolumeClaim") => json!({ "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } },
        } }),
        ("apps", "v1", "Deployment" | "DaemonSet" | "ReplicaSet") => {
            json!({ "spec": { "selector": selector, "template": template } })
        }
        ("apps", "v1", "StatefulSet") => {
            json!({ "spec": { "selector": selector, "serviceName": "example", "template": template } })
        }
        ("batch", "v1", "Job") => json!({ "spec": { "template": job } }),
        ("batch", "v1", "CronJob") => {
            json!({ "spec": { "schedule": "@daily", "jobTemplate": { "spec": { "template": job } } } })
        }
        ("networking.k8s.io", "v1", "Ingress") => json!({ "spec": {
            "defaultBackend": { "service": { "name": "example", "port": { "number": 80 } } },
        } }),
        ("networking.k8s.io", "v1", "NetworkPolicy") => json!({ "spec": { "podSelector": {} } }),
        ("autoscaling", "v2", "HorizontalPodAutoscaler") => json!({ "spec": {
            "maxReplicas": 2,
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "example" },
        } }),
        ("coordination.k8s.io", "v1", "Lease") => json!({ "spec": { "holderIdentity": "example" } }),
        _ => return None,
    })
}
