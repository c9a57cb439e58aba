//! Order, version v2 of sales.example.com.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kubewright::prelude::*;
use kubewright::schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// OrderSpec defines the desired state of Order.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "sales.example.com",
    version = "v2",
    kind = "Order",
    plural = "orders",
    storage = false,
    namespaced,
    status = "OrderStatus",
    doc = "Order is the Schema for the orders API.",
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
pub struct OrderSpec {
    /// Foo is an example field. Edit or remove it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foo: Option<String>,
}

/// OrderStatus defines the observed state of Order.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct OrderStatus {
    /// Conditions represent the current state of the Order.
    #[schemars(transform = schema::list_map(["type"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
