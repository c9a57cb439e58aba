//! MarkdownView, version v2 of view.example.com.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kubewright::prelude::*;
use kubewright::schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// MarkdownViewSpec defines the desired state of MarkdownView.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "view.example.com",
    version = "v2",
    kind = "MarkdownView",
    plural = "markdownviews",
    storage = false,
    namespaced,
    status = "MarkdownViewStatus",
    doc = "MarkdownView is the Schema for the markdownviews API.",
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".spec.replicas"),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Available\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct MarkdownViewSpec {
    /// Markdown pages by file name.
    #[schemars(transform = schema::min_properties(1))]
    pub pages: BTreeMap<String, String>,
    /// Number of viewer Pods.
    #[serde(default = "one")]
    #[schemars(range(min = 0))]
    pub replicas: i32,
    /// Viewer that serves the pages.
    #[serde(default)]
    pub viewer: Viewer,
}

/// Viewer defines the container that serves the pages.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Viewer {
    /// Container image of the viewer.
    #[serde(default = "mdbook")]
    pub image: String,
}

impl Default for Viewer {
    fn default() -> Self {
        Self { image: mdbook() }
    }
}

fn one() -> i32 {
    1
}

fn mdbook() -> String {
    "peaceiris/mdbook:latest".to_owned()
}

/// MarkdownViewStatus defines the observed state of MarkdownView.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct MarkdownViewStatus {
    /// Conditions represent the current state of the MarkdownView.
    #[schemars(transform = schema::list_map(["type"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
