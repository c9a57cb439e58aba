//! Oddity, version v1 of lab.example.com.

#![allow(
    clippy::doc_lazy_continuation,
    clippy::doc_overindented_list_items,
    clippy::enum_variant_names,
    reason = "texts and names come from the CRD"
)]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kubewright::prelude::*;
use kubewright::schema::{self, Format};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is odd.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "lab.example.com",
    version = "v1",
    kind = "Oddity",
    plural = "oddities",
    singular = "odd",
    shortname = "od",
    shortname = "odds",
    category = "all",
    status = "OddityStatus",
    doc = "Oddity has every odd name.\nAnd a second line.",
    attr = "cfg_attr(true, schemars(extend(\"required\" = [\"metadata\", \"spec\"])))",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    selectable = ".spec.type",
    printcolumn(
        name = "Type",
        type_ = "string",
        json_path = ".spec.type",
        description = "What it is.",
        priority = 1
    ),
    printcolumn(
        name = "Replicas",
        type_ = "integer",
        json_path = ".spec.replicas",
        format = "int32"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    ),
    validation = kube::core::Rule::new("self.metadata.name != 'even'").message("it is odd")
)]
#[schemars(extend("oneOf" = [{"required": ["kebab-case"]}, {"required": ["snake_case"]}]))]
#[schemars(extend("x-kubernetes-validations" = [{"fieldPath": ".replicas", "messageExpression": "'no'", "reason": "FieldValueInvalid", "rule": "self.replicas >= 0"}]))]
#[serde(rename_all = "camelCase")]
pub struct OdditySpec {
    /// A reference that is none:
    ///
    /// - with a list
    ///   that goes on
    #[serde(rename = "$ref", default, skip_serializing_if = "Option::is_none")]
    pub ref_: Option<String>,
    #[schemars(transform = schema::multiple_of(4))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub _4th: Option<i32>,
    #[schemars(transform = schema::maximum(9))]
    #[schemars(transform = schema::exclusive_minimum(0.5))]
    #[serde(rename = "UPPER", default, skip_serializing_if = "Option::is_none")]
    pub upper: Option<f64>,
    #[serde(rename = "a.b/c", default, skip_serializing_if = "Option::is_none")]
    pub a_b_c: Option<OddityABC>,
    #[serde(
        rename = "aFieldWhoseNameIsSoLongThatLinesBreakInPlacesWhereTheyDoNotOtherwise-x",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub a_field_whose_name_is_so_long_that_lines_break_in_places_where_they_do_not_otherwise_x:
        Option<BTreeMap<String, Vec<String>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Vec<OddityAddress>>,
    #[schemars(transform = schema::any())]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub any_object: Option<BTreeMap<String, serde_json::Value>>,
    /// Any JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anything: Option<serde_json::Value>,
    #[schemars(transform = schema::format(Format::Byte))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<String>,
    #[schemars(transform = schema::items(schema::format(Format::Ipv4)))]
    #[schemars(transform = schema::items(schema::max_length(15)))]
    #[schemars(transform = schema::max_items(3))]
    #[schemars(transform = schema::list_set())]
    #[serde(
        rename = "clusterIPs",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub cluster_ips: Option<Vec<String>>,
    #[schemars(transform = schema::embedded_resource())]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedded: Option<BTreeMap<String, serde_json::Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty: Option<OddityEmpty>,
    /// The first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_address: Option<OddityAddress>,
    /// Another one.
    pub fn_: i64,
    #[serde(default = "default_image")]
    pub image: String,
    #[schemars(transform = schema::pattern(r#"^[a-z]+"\d$"#))]
    #[serde(
        rename = "kebab-case",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub kebab_case: Option<String>,
    /// Known and unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<OddityKnown>,
    #[schemars(transform = schema::values(schema::min_length(1)))]
    #[schemars(transform = schema::max_properties(5))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    #[schemars(transform = schema::enumeration([1, 2, 3]))]
    #[serde(default = "default_level")]
    pub level: i32,
    #[schemars(transform = schema::nullable())]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maybe: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nested: Option<BTreeMap<String, Vec<OddityNested>>>,
    #[schemars(transform = schema::nullable())]
    #[schemars(required)]
    pub nothing: Option<String>,
    #[serde(default = "default_on")]
    pub on: bool,
    #[serde(default = "default_policy")]
    pub policy: OddityPolicy,
    /// A port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<IntOrString>,
    #[serde(default = "default_ratio")]
    pub ratio: f64,
    #[schemars(transform = schema::minimum(0))]
    #[serde(default = "default_replicas")]
    pub replicas: i32,
    /// The second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_address: Option<OddityAddress>,
    /// Which ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub self_: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Quantity>,
    #[schemars(extend("description" = "Code of another language:\n\n    if err != nil {}\n\n```go\npanic(\"no\")\n```"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sketch: Option<String>,
    #[schemars(transform = schema::format(Format::Hostname))]
    #[schemars(transform = schema::max_length(63))]
    #[serde(
        rename = "snake_case",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub snake_case: Option<String>,
    #[schemars(transform = schema::min_items(1))]
    #[schemars(transform = schema::list_map(["name"]))]
    #[schemars(extend("default" = [{"name": "first"}]))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<OddityStep>>,
    /// How it goes.
    pub strategy: OddityStrategy,
    /// A word of the language.
    #[schemars(transform = schema::min_length(1))]
    pub type_: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Time>,
}

// `spec.a.b/c` of an Oddity.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum OddityABC {
    #[serde(rename = "")]
    Empty,
    #[serde(rename = "on")]
    On,
    #[serde(rename = "off")]
    Off,
    #[serde(rename = "1.2")]
    V12,
    #[serde(rename = "Self")]
    ItSelf,
}

// `spec.addresses[]` of an Oddity.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct OddityAddress {
    /// The city.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub city: Option<String>,
    #[schemars(transform = schema::max_length(5))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zip: Option<String>,
}

// `spec.empty` of an Oddity.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct OddityEmpty {}

// `spec.known` of an Oddity.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[schemars(transform = schema::atomic_struct())]
#[serde(rename_all = "camelCase")]
pub struct OddityKnown {
    #[serde(rename = "other")]
    pub other_2: String,
    #[schemars(extend("default" = {}))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<OddityKnownSpec>,
    /// Unknown fields, which the CRD preserves.
    #[serde(flatten)]
    pub other: BTreeMap<String, serde_json::Value>,
}

// `spec.known.spec` of an Oddity.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct OddityKnownSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<String>,
}

// `spec.nested[*][]` of an Oddity.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct OddityNested {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
}

// `spec.policy` of an Oddity.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum OddityPolicy {
    A,
    B,
}

/// One step.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[schemars(transform = schema::validation("self.name != 'x'"))]
#[serde(rename_all = "camelCase")]
pub struct OddityStep {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<OddityStepKind>,
    pub name: String,
}

// `spec.steps[].kind` of an Oddity.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum OddityStepKind {
    #[serde(rename = "one")]
    One,
    #[serde(rename = "two")]
    Two,
}

// `spec.strategy` of an Oddity.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum OddityStrategy {
    Allow,
    Forbid,
    Replace,
}

// `status` of an Oddity.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct OddityStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
}

fn default_image() -> String {
    "example.com/odd:1".to_owned()
}

fn default_level() -> i32 {
    2
}

fn default_on() -> bool {
    true
}

fn default_policy() -> OddityPolicy {
    OddityPolicy::B
}

fn default_ratio() -> f64 {
    0.5
}

fn default_replicas() -> i32 {
    1
}
