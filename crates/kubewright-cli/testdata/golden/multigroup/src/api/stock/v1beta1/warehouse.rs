//! Warehouse, version v1beta1 of stock.example.com.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kubewright::prelude::*;
use kubewright::schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// WarehouseSpec defines the desired state of Warehouse.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug)]
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
    /// Foo is an example field. Edit or remove it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foo: Option<String>,
}

/// WarehouseStatus defines the observed state of Warehouse.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WarehouseStatus {
    /// Conditions represent the current state of the Warehouse.
    #[schemars(transform = schema::list_map(["type"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
