//! A typical custom resource of about 1 KB including metadata.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::NAMESPACE;

/// WidgetSpec defines the desired state of Widget.
#[derive(CustomResource, JsonSchema, Debug, Clone, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "bench.kubewright.dev",
    version = "v1",
    kind = "Widget",
    namespaced,
    status = "WidgetStatus",
    doc = "A front end of a shop"
)]
#[serde(rename_all = "camelCase")]
pub struct WidgetSpec {
    /// The container image.
    pub image: String,
    /// The number of replicas.
    pub replicas: i32,
    /// The container ports.
    pub ports: Vec<Port>,
    /// The hostnames.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// The environment variables.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Whether the widget is paused.
    #[serde(default)]
    pub paused: bool,
}

/// A port of a widget.
#[derive(JsonSchema, Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Port {
    /// The name of the port.
    pub name: String,
    /// Its number.
    pub port: i32,
    /// TCP or UDP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
}

/// WidgetStatus defines the observed state of Widget.
#[derive(JsonSchema, Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WidgetStatus {
    /// The turn of the benchmark that wrote the status.
    #[serde(default)]
    pub turn: i64,
    /// Whether the widget is ready.
    #[serde(default)]
    pub ready: bool,
}

/// Creates a widget. Each `turn` gives a different spec.
pub fn widget(name: &str, turn: u32) -> Widget {
    let map = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let port = |name: &str, port| Port { name: name.to_owned(), port, protocol: Some("TCP".to_owned()) };
    Widget {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(NAMESPACE.to_owned()),
            labels: Some(map(&[
                ("app.kubernetes.io/name", "front-end"),
                ("app.kubernetes.io/instance", name),
                ("app.kubernetes.io/part-of", "shop"),
                ("app.kubernetes.io/managed-by", "bench"),
            ])),
            annotations: Some(map(&[("shop.example.com/owner", "team-front-end@example.com")])),
            ..ObjectMeta::default()
        },
        spec: WidgetSpec {
            image: format!("registry.example.com/shop/front-end:1.4.{turn}"),
            replicas: 3,
            ports: vec![port("http", 8080), port("metrics", 9090)],
            hosts: vec!["shop.example.com".to_owned(), "www.shop.example.com".to_owned()],
            env: map(&[
                ("LOG_LEVEL", "info"),
                ("REGION", "eu-central-1"),
                ("UPSTREAM_CART", "http://cart.shop.svc.cluster.local:8080"),
                ("UPSTREAM_CATALOGUE", "http://catalogue.shop.svc.cluster.local:8080"),
                ("UPSTREAM_PAYMENT", "http://payment.shop.svc.cluster.local:8080"),
            ]),
            paused: false,
        },
        status: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_widget_has_about_one_kilobyte() {
        let size = serde_json::to_string(&widget("widget-00001", 0)).unwrap().len();
        assert!((800..1_100).contains(&size), "{size}");
    }
}
