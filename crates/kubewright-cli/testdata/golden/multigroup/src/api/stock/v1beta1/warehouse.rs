//! Warehouse, version v1beta1 of stock.example.com.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kubewright::prelude::*;
use kubewright::schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a Warehouse is to be.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug, Default)]
#[kube(
    group = "stock.example.com",
    version = "v1beta1",
    kind = "Warehouse",
    plural = "warehouses",
    namespaced,
    status = "WarehouseStatus",
    doc = "Warehouse is the Schema for the warehouses API.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct WarehouseSpec {
    /// An example: replace it by what the users of Warehouse are to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foo: Option<String>,
}

/// How a Warehouse is.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WarehouseStatus {
    /// What is true of it: Ready.
    #[schemars(transform = schema::list_map(["type"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
