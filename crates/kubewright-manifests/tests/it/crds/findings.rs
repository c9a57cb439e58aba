//! Findings about invalid types.

use std::collections::BTreeMap;

use kube::CustomResource;
use kubewright_manifests::{crd, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rendered;

#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Wrong", namespaced)]
#[schemars(transform = schema::exactly_one_of(["text", "lost"]))]
struct WrongSpec {
    #[schemars(transform = schema::min_properties(1))]
    text: String,
    #[schemars(transform = schema::maximum(1.5))]
    number: i32,
    #[schemars(transform = schema::min_length(1))]
    map: BTreeMap<String, String>,
    #[schemars(transform = schema::items(schema::min_length(1)))]
    lone: String,
    #[schemars(extend("minPropertes" = 1))]
    misspelt: BTreeMap<String, String>,
    null: Option<String>,
    #[serde(default)]
    defaulted: Option<Inner>,
    tuple: (String, i32),
    unit: (),
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug)]
struct Inner {
    list: Vec<Deep>,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug)]
struct Deep {
    deep: Option<i32>,
}

#[test]
fn every_problem_is_reported_with_its_location_and_fix() {
    insta::assert_snapshot!(rendered(&crd::of::<Wrong>()), @r#"
    KW101 spec.lone: `schema::items` is for a list, but this is a string
      remove `schema::items`
    KW101 spec.map: `schema::min_length` is for a string, but this is a map
      remove `schema::min_length`, or write `schema::min_properties`
    KW101 spec.number: `schema::maximum` has the bound 1.5, but this is an integer
      use an integer
    KW101 spec.text: `schema::min_properties` is for a map or a struct, but this is a string
      remove `schema::min_properties`, or write `schema::min_length`
    KW102 spec: `schema::exactly_one_of` names the field "lost", which does not exist
      use JSON field names: defaulted, lone, map, misspelt, null, number, text, tuple, unit
    KW103 spec.misspelt: CRD schemas do not support the keyword "minPropertes"; it would be dropped
      use a supported keyword, or a marker of `schema`
    KW104 spec.defaulted.list[].deep: a `None` here is written as `null`, which the API server rejects: the field is optional, not nullable
      add `#[serde(default, skip_serializing_if = "Option::is_none")]`; or, if null has its own meaning, `#[schemars(transform = schema::nullable())]`
    KW104 spec.defaulted: a `None` here is written as `null`, which the API server rejects: the field is optional, not nullable
      add `#[serde(default, skip_serializing_if = "Option::is_none")]`; or, if null has its own meaning, `#[schemars(transform = schema::nullable())]`
    KW104 spec.null: a `None` here is written as `null`, which the API server rejects: the field is optional, not nullable
      add `#[serde(default, skip_serializing_if = "Option::is_none")]`; or, if null has its own meaning, `#[schemars(transform = schema::nullable())]`
    KW107 spec.unit: `()` and unit structs are always null, which CRD schemas cannot express
      remove the field, or make it a struct with empty braces
    KW108 spec.tuple: CRD schemas cannot express list items of different types
      use a struct with named fields
    "#);
}

#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Mixed", namespaced)]
struct MixedSpec {
    mixed: MixedEnum,
    content: Adjacent,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug)]
enum MixedEnum {
    Nothing,
    Something(i32),
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(tag = "t", content = "c")]
enum Adjacent {
    One(i32),
    Two(String),
}

#[test]
fn an_enum_that_makes_kube_panic_is_reported() {
    insta::assert_snapshot!(rendered(&crd::of::<Mixed>()), @r#"
    KW105 spec.content: CRD schemas cannot represent this enum: the field "c" differs between variants
      give the field one type in all variants, or another name in each; or remove `#[serde(tag)]` and `#[serde(content)]`: then each variant is a field of its own
    KW105 spec.mixed: CRD schemas cannot represent this enum: its variants have different types (object, string)
      give each variant without data empty braces (`None {}`), so that all of them are objects; for an integer or a string use `IntOrString`; for anything at all put `#[schemars(transform = schema::any())]` on the field
    "#);
}

#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Tagged", namespaced)]
struct TaggedSpec {
    tagged: TaggedEnum,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(tag = "kind")]
enum TaggedEnum {
    One { a: i32 },
    Two { b: String },
}

#[test]
fn an_internally_tagged_enum_needs_the_union_marker() {
    insta::assert_snapshot!(rendered(&crd::of::<Tagged>()), @"
    KW109 spec.tagged: kube's derive panics on an internally tagged enum
      put `#[schemars(transform = schema::union())]` on the enum, next to `#[serde(tag = ...)]`
    ");
}

#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Recursive", namespaced)]
struct RecursiveSpec {
    tree: Tree,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug)]
struct Tree {
    branches: Vec<Tree>,
}

#[test]
fn a_recursive_type_is_reported() {
    insta::assert_snapshot!(rendered(&crd::of::<Recursive>()), @"
    KW106 : the type Tree is recursive, which CRD schemas cannot represent
      put `#[schemars(transform = schema::any())]` on the recursive field
    ");
}

#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "ValueInMap", namespaced)]
struct ValueInMapSpec {
    map: BTreeMap<String, WithValue>,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug)]
struct WithValue {
    value: serde_json::Value,
}

#[test]
fn a_value_in_a_map_is_reported_because_kube_panics() {
    insta::assert_snapshot!(rendered(&crd::of::<ValueInMap>()), @r#"
    KW109 : kube's derive panics on this kind: valid JSONSchemaProps from schemars schema: Error("invalid type: boolean `true`, expected JSONSchemaProps", line: 0, column: 0)
      put `#[schemars(transform = schema::preserve_unknown_fields())]` on the field with `Value` in a map
    "#);
}
