//! A kind with every marker.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{PodTemplateSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{CustomResource, KubeSchema};
use kubewright_manifests::crd;
use kubewright_manifests::schema::{self, Format};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{same, text};

/// EverythingSpec uses every marker.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "example.com",
    version = "v1alpha1",
    kind = "Everything",
    plural = "everythings",
    shortname = "ev",
    category = "all",
    namespaced,
    status = "EverythingStatus",
    scale(spec_replicas_path = ".spec.unsigned", status_replicas_path = ".status.replicas"),
    selectable = ".spec.text",
    annotation("example.com/team", "blue"),
    label("example.com/tier", "one"),
    deprecated = "use v1",
    validation = Rule::new("self.metadata.name.size() < 64").message("the name is too long")
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::at_most_one_of(["first", "second"]))]
#[schemars(transform = schema::at_least_one_of(["first", "second", "third"]))]
pub(super) struct EverythingSpec {
    #[schemars(transform = schema::exclusive_minimum(0), transform = schema::exclusive_maximum(100))]
    #[schemars(transform = schema::multiple_of(5))]
    number: i32,
    #[schemars(range(min = 1, max = 10))]
    bounded: i64,
    #[schemars(transform = schema::minimum(0.5), transform = schema::maximum(1))]
    fraction: f64,
    unsigned: u32,
    byte: u8,
    short: i16,
    long: u64,
    #[schemars(transform = schema::min_length(1), transform = schema::max_length(63))]
    #[schemars(transform = schema::pattern("^[a-z]+$"))]
    text: String,
    #[schemars(transform = schema::format(Format::DateTime))]
    when: String,
    #[schemars(transform = schema::enumeration(["A", "B"]))]
    letter: String,
    /// An immutable field.
    #[schemars(transform = schema::immutable(), transform = schema::title("Fixed"))]
    fixed: String,
    #[schemars(transform = schema::nullable())]
    nothing: Option<String>,
    #[schemars(transform = schema::external_docs("https://example.com", "More information"))]
    #[schemars(transform = schema::example("an example"))]
    documented: String,
    #[schemars(transform = schema::min_items(1), transform = schema::max_items(3))]
    #[schemars(transform = schema::items(schema::max_length(5)))]
    #[schemars(transform = schema::items(schema::validation("self != 'none'")))]
    list: Vec<String>,
    set: BTreeSet<String>,
    #[schemars(transform = schema::list_map(["name"]))]
    named: Vec<Named>,
    #[schemars(transform = schema::list_atomic())]
    atomic: Vec<String>,
    #[schemars(transform = schema::min_properties(1), transform = schema::max_properties(9))]
    #[schemars(transform = schema::values(schema::min_length(1)))]
    map: BTreeMap<String, String>,
    #[schemars(transform = schema::preserve_unknown_fields())]
    open: Named,
    #[schemars(transform = schema::embedded_resource())]
    embedded: RawExtension,
    #[schemars(transform = schema::any())]
    anything: BTreeMap<String, String>,
    json: serde_json::Value,
    #[schemars(transform = schema::int_or_string())]
    port: String,
    int_or_string: IntOrString,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quantity: Option<Quantity>,
    resources: ResourceRequirements,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    template: Option<PodTemplateSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    second: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    third: Option<Level>,
    source: Source,
    shape: Shape,
    #[serde(default)]
    nested: Nested,
    #[x_kube(merge_strategy = StructMerge::Atomic, validation = Rule::new("self.name != ''").reason(Reason::FieldValueInvalid))]
    whole: Named,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug)]
#[schemars(transform = schema::atomic_struct())]
pub(super) struct Named {
    /// The name.
    name: String,
    value: Option<serde_json::Value>,
}

/// The level.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// The lowest level.
    Low,
    High,
}

/// The source.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) enum Source {
    /// A Git repository.
    Git {
        url: String,
    },
    Inline(String),
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(tag = "type")]
#[schemars(transform = schema::union())]
pub(super) enum Shape {
    Circle { radius: i32 },
    Square { side: i32 },
    Point,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug)]
pub(super) struct Nested {
    #[serde(default = "three")]
    depth: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

fn three() -> i32 {
    3
}

impl Default for Nested {
    fn default() -> Self {
        Self { depth: 3, note: None }
    }
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default)]
pub(super) struct EverythingStatus {
    #[serde(default)]
    replicas: i32,
}

#[test]
fn every_marker_is_in_the_crd() {
    let mut described = crd::of::<Everything>();
    let template =
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/template/properties/spec";
    // Covered by CronJob's snapshot.
    *described.definition.pointer_mut(template).unwrap() = serde_json::json!({ "type": "object" });
    same("everything", &text(&described));
}
