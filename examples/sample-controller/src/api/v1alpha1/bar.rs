//! Bar, version v1alpha1 of samplecontroller.example.com.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kubewright::prelude::*;
use kubewright::schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// BarSpec defines the desired state of Bar.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "samplecontroller.example.com",
    version = "v1alpha1",
    kind = "Bar",
    plural = "bars",
    namespaced,
    status = "BarStatus",
    doc = "Bar is the Schema for the bars API.",
    printcolumn(name = "Deployment", type_ = "string", json_path = ".spec.deploymentName"),
    printcolumn(name = "Desired", type_ = "integer", json_path = ".spec.replicas"),
    printcolumn(name = "Available", type_ = "integer", json_path = ".status.availableReplicas"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct BarSpec {
    /// Name of the Deployment. After a change, the Deployment with the old name is deleted.
    #[schemars(transform = schema::min_length(1))]
    #[schemars(transform = schema::max_length(63))]
    #[schemars(transform = schema::pattern("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub deployment_name: String,
    /// Number of Pods.
    #[serde(default = "one")]
    #[schemars(range(min = 0))]
    pub replicas: i32,
}

fn one() -> i32 {
    1
}

/// BarStatus defines the observed state of Bar.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BarStatus {
    /// Number of available Pods of the Deployment.
    #[serde(default)]
    pub available_replicas: i32,
    /// Conditions represent the current state of the Bar.
    #[schemars(transform = schema::list_map(["type"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
