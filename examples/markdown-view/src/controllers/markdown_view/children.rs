//! The desired state of the objects that a MarkdownView owns.
//!
//! Pure: the same view gives the same objects, so an unchanged apply is not sent again. The caller sets
//! namespace and owner reference. A misspelled field is a compile error.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kubewright::object::ApplyObject;
use kubewright::prelude::*;

use crate::api::v1::MarkdownView;

/// The ConfigMap with the pages.
pub(super) fn pages(view: &MarkdownView) -> ApplyObject<ConfigMap> {
    let name = format!("markdowns-{}", view.name_any());
    object! { ConfigMap { metadata: { name: name }, data: &view.spec.markdowns } }
}

/// The Deployment of the viewers.
pub(super) fn viewers(view: &MarkdownView) -> ApplyObject<Deployment> {
    let (name, labels) = (view.name_any(), labels(view));
    object! { Deployment {
        metadata: { name: format!("viewer-{name}"), labels: &labels },
        spec: {
            replicas: view.spec.replicas,
            selector: { matchLabels: &labels },
            template: {
                metadata: { labels: &labels },
                spec: {
                    containers: [{
                        name: "mdbook", image: &view.spec.viewer_image,
                        command: ["mdbook"], args: ["serve", "--hostname", "0.0.0.0"],
                        ports: [{ name: "http", protocol: "TCP", containerPort: 3000 }],
                        livenessProbe: { httpGet: { port: "http", path: "/", scheme: "HTTP" } },
                        readinessProbe: { httpGet: { port: "http", path: "/", scheme: "HTTP" } },
                        volumeMounts: [{ name: "markdowns", mountPath: "/book/src" }],
                    }],
                    volumes: [{ name: "markdowns", configMap: { name: format!("markdowns-{name}") } }],
                },
            },
        },
    } }
}

/// The Service in front of the viewers.
pub(super) fn service(view: &MarkdownView) -> ApplyObject<Service> {
    let labels = labels(view);
    object! { Service {
        metadata: { name: format!("viewer-{}", view.name_any()), labels: &labels },
        spec: { selector: &labels, ports: [{ protocol: "TCP", port: 80, targetPort: "http" }] },
    } }
}

fn labels(view: &MarkdownView) -> BTreeMap<&'static str, String> {
    BTreeMap::from([
        ("app.kubernetes.io/name", "mdbook".to_owned()),
        ("app.kubernetes.io/instance", view.name_any()),
        ("app.kubernetes.io/created-by", "markdown-view".to_owned()),
    ])
}
