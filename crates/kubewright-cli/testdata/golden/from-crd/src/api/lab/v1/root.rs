//! Root, version v1 of lab.example.com.

#![allow(
    clippy::doc_lazy_continuation,
    clippy::doc_overindented_list_items,
    clippy::enum_variant_names,
    reason = "texts and names come from the CRD"
)]

use std::collections::BTreeMap;

use kubewright::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// `fields` of a Root.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "lab.example.com",
    version = "v1",
    kind = "Root",
    plural = "roots",
    namespaced,
    no_spec,
    doc = "Root is the Schema for the roots API."
)]
#[serde(rename_all = "camelCase")]
pub struct RootSpec {
    pub data: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<RootMode>,
}

// `fields.mode` of a Root.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootMode {
    #[serde(rename = "fast")]
    Fast,
    #[serde(rename = "slow")]
    Slow,
}
