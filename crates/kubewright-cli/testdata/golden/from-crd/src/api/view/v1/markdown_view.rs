//! MarkdownView, version v1 of view.example.com.

#![allow(
    clippy::doc_lazy_continuation,
    clippy::doc_overindented_list_items,
    clippy::enum_variant_names,
    reason = "texts and names come from the CRD"
)]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kubewright::prelude::*;
use kubewright::schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// MarkdownViewSpec defines the desired state of MarkdownView.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "view.example.com",
    version = "v1",
    kind = "MarkdownView",
    plural = "markdownviews",
    namespaced,
    status = "MarkdownViewStatus",
    doc = "MarkdownView is the Schema for the markdownviews API.",
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".spec.replicas"),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Available\")].status"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct MarkdownViewSpec {
    /// Markdown pages by file name.
    #[schemars(transform = schema::min_properties(1))]
    pub markdowns: BTreeMap<String, String>,
    /// Number of viewer Pods.
    #[schemars(transform = schema::minimum(0))]
    #[serde(default = "default_replicas")]
    pub replicas: i32,
    /// Container image of the viewer.
    #[serde(default = "default_viewer_image")]
    pub viewer_image: String,
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

fn default_replicas() -> i32 {
    1
}

fn default_viewer_image() -> String {
    "peaceiris/mdbook:latest".to_owned()
}
