//! The manager's Deployment as OLM runs it.
//!
//! OLM mounts a certificate for webhooks, injects its CA, and passes the namespaces to watch in an annotation of
//! the Pod.

use serde_json::{Value, json};

/// Where OLM mounts the certificate of webhooks.
const CERTIFICATES: &str = "/tmp/k8s-webhook-server/serving-certs";
/// The volume of the certificate in the scaffold. OLM adds its own.
const VOLUME: &str = "webhook-certs";

/// The spec of the Deployment in the install strategy.
pub(super) fn spec(deployment: &Value, serves_webhooks: bool, namespaced: bool) -> Value {
    let mut spec = deployment["spec"].clone();
    let pod = &mut spec["template"]["spec"];
    if serves_webhooks {
        retain(&mut pod["volumes"], |volume| volume["name"] != VOLUME);
    }
    for container in pod["containers"].as_array_mut().into_iter().flatten() {
        if container["name"] != "manager" {
            continue;
        }
        if serves_webhooks {
            retain(&mut container["volumeMounts"], |mount| mount["name"] != VOLUME);
            retain(&mut container["env"], |variable| variable["name"] != "WEBHOOK_SERVICE_NAME");
            retain(&mut container["args"], |argument| {
                let argument = argument.as_str().unwrap_or_default();
                !argument.starts_with("--webhook-cert-path") && !argument.starts_with("--webhook-cert-mode")
            });
            push(&mut container["args"], format!("--webhook-cert-path={CERTIFICATES}").into());
        }
        if namespaced {
            retain(&mut container["env"], |variable| variable["name"] != "WATCH_NAMESPACE");
            let field =
                json!({ "fieldRef": { "fieldPath": "metadata.annotations['olm.targetNamespaces']" } });
            push(&mut container["env"], json!({ "name": "WATCH_NAMESPACE", "valueFrom": field }));
        }
    }
    without_empty(&mut spec);
    spec
}

/// Images of all containers, and of variables `RELATED_IMAGE_*`.
pub(super) fn related_images(spec: &Value) -> Vec<Value> {
    let mut images: Vec<Value> = Vec::new();
    let mut add = |name: String, image: &str| {
        let image = json!({ "name": name, "image": image });
        if !images.contains(&image) {
            images.push(image);
        }
    };
    let pod = &spec["template"]["spec"];
    for field in ["initContainers", "containers"] {
        for container in pod[field].as_array().into_iter().flatten() {
            if let (Some(name), Some(image)) = (container["name"].as_str(), container["image"].as_str()) {
                add(name.to_owned(), image);
            }
            for variable in container["env"].as_array().into_iter().flatten() {
                let name = variable["name"].as_str().and_then(|name| name.strip_prefix("RELATED_IMAGE_"));
                if let (Some(name), Some(image)) = (name, variable["value"].as_str()) {
                    add(name.to_lowercase().replace('_', "-"), image);
                }
            }
        }
    }
    images
}

fn retain(list: &mut Value, keep: impl Fn(&Value) -> bool) {
    if let Value::Array(list) = list {
        list.retain(keep);
    }
}

fn push(list: &mut Value, item: Value) {
    match list {
        Value::Array(list) => list.push(item),
        other => *other = json!([item]),
    }
}

/// Removes lists that the changes left empty, and fields that indexing created.
fn without_empty(spec: &mut Value) {
    let empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    let pod = &mut spec["template"]["spec"];
    for container in pod["containers"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        for field in ["args", "env", "volumeMounts"] {
            if container.get(field).is_some_and(empty) {
                container.remove(field);
            }
        }
    }
    if let Some(pod) = pod.as_object_mut()
        && pod.get("volumes").is_some_and(empty)
    {
        pod.remove("volumes");
    }
}
