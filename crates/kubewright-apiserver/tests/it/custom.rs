//! Custom resources with kube's clients: derived kinds, and handwritten CRDs.

mod endings;
mod names;
mod using;
mod versions;
mod worlds;

use std::collections::BTreeMap;

use anyhow::Result;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use kube::{Client, CustomResource, CustomResourceExt as _, KubeSchema, ResourceExt};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::world::object;

/// A kind that uses all features of derived CRDs.
#[derive(CustomResource, KubeSchema, Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[kube(
    group = "example.org",
    version = "v1",
    kind = "Widget",
    namespaced,
    status = "WidgetStatus",
    shortname = "wd",
    category = "things",
    derive = "PartialEq",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Color", type_ = "string", json_path = ".spec.color"),
    selectable = ".spec.color"
)]
#[x_kube(validation = Rule::new("self.replicas <= self.max").message("replicas must not exceed max"))]
struct WidgetSpec {
    color: String,
    #[serde(default = "one")]
    replicas: i32,
    #[serde(default = "ten")]
    max: i32,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    settings: BTreeMap<String, String>,
}

#[derive(KubeSchema, Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct WidgetStatus {
    replicas: i32,
    selector: Option<String>,
}

fn one() -> i32 {
    1
}

fn ten() -> i32 {
    10
}

fn widget(name: &str) -> Widget {
    Widget::new(name, WidgetSpec { color: "red".to_owned(), replicas: 1, max: 10, ..WidgetSpec::default() })
}

/// Creates the CRD of [`Widget`] and returns its client.
async fn widgets(client: &Client) -> Result<Api<Widget>> {
    definitions(client).create(&PostParams::default(), &Widget::crd()).await?;
    Ok(Api::default_namespaced(client.clone()))
}

fn definitions(client: &Client) -> Api<CustomResourceDefinition> {
    Api::all(client.clone())
}

/// A CRD version whose `spec` has these fields.
fn version(name: &str, storage: bool, fields: &Value) -> Value {
    json!({
        "name": name, "served": true, "storage": storage,
        "schema": {"openAPIV3Schema": {
            "type": "object",
            "properties": {"spec": {"type": "object", "properties": fields}},
        }},
    })
}

/// A handwritten CRD.
fn definition(kind: &str, versions: &[Value]) -> CustomResourceDefinition {
    let singular = kind.to_lowercase();
    object(json!({
        "metadata": {"name": format!("{singular}s.example.org")},
        "spec": {
            "group": "example.org", "scope": "Namespaced", "versions": versions,
            "names": {"kind": kind, "plural": format!("{singular}s")},
        },
    }))
}

fn resource(kind: &str, version: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("example.org", version, kind))
}

/// A dynamic client.
fn dynamic(client: &Client, kind: &str, version: &str) -> Api<DynamicObject> {
    Api::default_namespaced_with(client.clone(), &resource(kind, version))
}

fn thing(name: &str, spec: &Value) -> DynamicObject {
    DynamicObject::new(name, &resource("Thing", "v1")).data(json!({"spec": spec}))
}

/// The conditions of a CRD, as type and status.
fn conditions(definition: &CustomResourceDefinition) -> BTreeMap<String, String> {
    let conditions = definition.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions
        .map(|found| {
            (found.type_.clone(), format!("{} {}", found.status, found.reason.clone().unwrap_or_default()))
        })
        .collect()
}

/// The names of all objects of a kind.
async fn names<K>(api: &Api<K>) -> Result<Vec<String>>
where
    K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    Ok(api.list(&kube::api::ListParams::default()).await?.items.iter().map(ResourceExt::name_any).collect())
}
