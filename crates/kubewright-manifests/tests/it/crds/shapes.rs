//! Types whose schemars schema is not valid in a CRD.

use std::collections::{BTreeMap, HashMap};
use std::num::{NonZeroI32, NonZeroU32};

use k8s_openapi::api::apps::v1::{DaemonSetSpec, StatefulSetSpec};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscalerSpec;
use k8s_openapi::api::core::v1::{PersistentVolumeSpec, ServiceSpec};
use k8s_openapi::api::networking::v1::{IngressSpec, NetworkPolicySpec};
use k8s_openapi::api::resource::v1::{ResourceClaimSpec, ResourceClaimStatus};
use kube::CustomResource;
use kubewright_manifests::{crd, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{judged, rendered};

#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Shapes", namespaced)]
struct ShapesSpec {
    open: Open,
    either: Either,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chosen: Option<Chosen>,
    nested: Vec<BTreeMap<String, Chosen>>,
    array: [i32; 3],
    positive: NonZeroU32,
    not_zero: NonZeroI32,
    #[serde(flatten)]
    chosen_here: Chosen,
    values: HashMap<String, Value>,
    strict: Strict,
    #[schemars(length(max = 3), regex(pattern = "^a"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    renamed: Option<Renamed>,
    #[schemars(inner(length(min = 2)))]
    all_renamed: Vec<Renamed>,
}

/// A string type.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug)]
struct Renamed(#[schemars(length(min = 1, max = 5))] String);

/// An integer or a string.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(untagged)]
enum Either {
    Number(i64),
    Text(String),
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(untagged)]
enum Chosen {
    Host {
        #[schemars(length(max = 4))]
        host: Renamed,
    },
    Socket {
        path: String,
        #[schemars(transform = schema::preserve_unknown_fields())]
        mode: Option<Value>,
    },
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug)]
struct Open {
    known: bool,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields)]
struct Strict {
    only: bool,
}

#[test]
fn converted_schemas_keep_their_meaning() {
    let described = crd::of::<Shapes>();
    assert_eq!(rendered(&described), "");
    assert_eq!(judged(&described.definition), [""; 0]);
    let spec = &super::schema(&described)["properties"]["spec"];
    let field = |name: &str| &spec["properties"][name];
    assert_eq!(field("either")["x-kubernetes-int-or-string"], true);
    let choice = json!([{ "required": ["host"] }, { "required": ["path"] }]);
    assert_eq!(field("chosen")["anyOf"], choice);
    assert_eq!(field("nested")["items"]["additionalProperties"]["anyOf"], choice);
    assert_eq!(spec["anyOf"], choice, "flattened");
    assert_eq!((&field("host")["type"], &field("host")["maxLength"]), (&json!("string"), &json!(4)));
    assert_eq!((&field("array")["minItems"], &field("array")["maxItems"]), (&json!(3), &json!(3)));
    assert_eq!(field("positive")["minimum"], 1);
    assert_eq!(field("not_zero")["not"], json!({ "enum": [0] }));
    assert_eq!(field("open")["x-kubernetes-preserve-unknown-fields"], true);
    assert_eq!(
        field("values")["additionalProperties"],
        json!({ "x-kubernetes-preserve-unknown-fields": true })
    );
    let renamed = json!({
        "description": "A string type.", "type": "string", "minLength": 1, "maxLength": 3, "pattern": "^a",
    });
    assert_eq!(field("renamed"), &renamed, "the field takes precedence over its type");
    let renamed =
        json!({ "description": "A string type.", "type": "string", "minLength": 2, "maxLength": 5 });
    assert_eq!(field("all_renamed")["items"], renamed);
    assert_eq!(field("strict")["properties"], json!({ "only": { "type": "boolean" } }));
}

#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Embeds", namespaced)]
#[serde(rename_all = "camelCase")]
struct EmbedsSpec {
    service: ServiceSpec,
    stateful_set: Box<StatefulSetSpec>,
    daemon_set: Box<DaemonSetSpec>,
    ingress: IngressSpec,
    network_policy: NetworkPolicySpec,
    autoscaler: HorizontalPodAutoscalerSpec,
    volume: Box<PersistentVolumeSpec>,
    claim: ResourceClaimSpec,
    claimed: ResourceClaimStatus,
}

#[test]
fn built_in_types_are_accepted_by_the_api_server() {
    let described = crd::of::<Embeds>();
    assert_eq!(rendered(&described), "");
    assert_eq!(judged(&described.definition), [""; 0]);
    let ports = "/properties/spec/properties/service/properties/ports/x-kubernetes-list-map-keys";
    assert_eq!(super::schema(&described).pointer(ports).unwrap(), &json!(["port", "protocol"]));
}
