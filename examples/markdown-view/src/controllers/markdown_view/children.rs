//! What a MarkdownView owns, as it wants it.
//!
//! Pure: the same view gives the same objects, so that an apply of them is not sent again when nothing changed.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kubewright::owner::set_controller_reference;
use kubewright::prelude::*;
use kubewright::serde_json::json;

use crate::api::v1::MarkdownView;

/// The ConfigMap with the pages.
pub(super) fn pages(view: &MarkdownView) -> Result<ConfigMap> {
    let mut map: ConfigMap = serde_json::from_value(json!({
        "metadata": { "name": format!("markdowns-{}", view.name_any()), "namespace": view.namespace() },
        "data": view.spec.markdowns,
    }))?;
    set_controller_reference(view, &mut map)?;
    Ok(map)
}

/// The Deployment of the viewers.
pub(super) fn viewers(view: &MarkdownView) -> Result<Deployment> {
    let labels = labels(view);
    let mut deployment: Deployment = serde_json::from_value(json!({
        "metadata": { "name": format!("viewer-{}", view.name_any()), "namespace": view.namespace(), "labels": labels },
        "spec": {
            "replicas": view.spec.replicas,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "containers": [{
                        "name": "mdbook",
                        "image": view.spec.viewer_image,
                        "command": ["mdbook"],
                        "args": ["serve", "--hostname", "0.0.0.0"],
                        "ports": [{ "name": "http", "protocol": "TCP", "containerPort": 3000 }],
                        "livenessProbe": { "httpGet": { "port": "http", "path": "/", "scheme": "HTTP" } },
                        "readinessProbe": { "httpGet": { "port": "http", "path": "/", "scheme": "HTTP" } },
                        "volumeMounts": [{ "name": "markdowns", "mountPath": "/book/src" }],
                    }],
                    "volumes": [{
                        "name": "markdowns",
                        "configMap": { "name": format!("markdowns-{}", view.name_any()) },
                    }],
                },
            },
        },
    }))?;
    set_controller_reference(view, &mut deployment)?;
    Ok(deployment)
}

/// The Service in front of the viewers.
pub(super) fn service(view: &MarkdownView) -> Result<Service> {
    let labels = labels(view);
    let mut service: Service = serde_json::from_value(json!({
        "metadata": { "name": format!("viewer-{}", view.name_any()), "namespace": view.namespace(), "labels": labels },
        "spec": {
            "type": "ClusterIP",
            "selector": labels,
            "ports": [{ "protocol": "TCP", "port": 80, "targetPort": "http" }],
        },
    }))?;
    set_controller_reference(view, &mut service)?;
    Ok(service)
}

fn labels(view: &MarkdownView) -> serde_json::Value {
    json!({
        "app.kubernetes.io/name": "mdbook",
        "app.kubernetes.io/instance": view.name_any(),
        "app.kubernetes.io/created-by": "markdown-view",
    })
}
