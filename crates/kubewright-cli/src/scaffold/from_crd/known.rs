//! Recognizes Kubernetes types in the schema of a CRD.
//!
//! A CRD has no references: where a Go type embeds a PodTemplateSpec, the schema contains its full expansion.
//! Such a schema becomes the k8s-openapi type again. It may come from another release: a schema that lacks
//! newer fields still matches, and the regenerated CRD gains them.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::LazyLock;

use k8s_openapi::api::{batch, core};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as definitions;
use k8s_openapi::apimachinery::pkg::apis::meta;
use kube::core::crd::v1::CustomResourceExt;
use kube::core::discovery::ApiResource;
use kubewright_manifests::crd;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

/// A Kubernetes type.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) name: &'static str,
    /// Its module.
    pub(super) module: &'static str,
    /// Its schema in a CRD.
    pub(super) schema: Map<String, Value>,
}

/// The recognized types. A type comes after those that contain it.
static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
    const BATCH: &str = "k8s_openapi::api::batch::v1";
    const CORE: &str = "k8s_openapi::api::core::v1";
    const META: &str = "k8s_openapi::apimachinery::pkg::apis::meta::v1";
    vec![
        known::<meta::v1::Condition>("Condition", META),
        known::<meta::v1::LabelSelector>("LabelSelector", META),
        known::<batch::v1::JobTemplateSpec>("JobTemplateSpec", BATCH),
        known::<batch::v1::JobSpec>("JobSpec", BATCH),
        known::<core::v1::PodTemplateSpec>("PodTemplateSpec", CORE),
        known::<core::v1::PodSpec>("PodSpec", CORE),
        known::<core::v1::Container>("Container", CORE),
        known::<core::v1::Volume>("Volume", CORE),
        known::<core::v1::PersistentVolumeClaimSpec>("PersistentVolumeClaimSpec", CORE),
        known::<core::v1::Affinity>("Affinity", CORE),
        known::<core::v1::Toleration>("Toleration", CORE),
        known::<core::v1::TopologySpreadConstraint>("TopologySpreadConstraint", CORE),
        known::<core::v1::PodSecurityContext>("PodSecurityContext", CORE),
        known::<core::v1::SecurityContext>("SecurityContext", CORE),
        known::<core::v1::ResourceRequirements>("ResourceRequirements", CORE),
        known::<core::v1::VolumeResourceRequirements>("VolumeResourceRequirements", CORE),
        known::<core::v1::Probe>("Probe", CORE),
        known::<core::v1::EnvVar>("EnvVar", CORE),
        known::<core::v1::EnvFromSource>("EnvFromSource", CORE),
        known::<core::v1::VolumeMount>("VolumeMount", CORE),
        known::<core::v1::ObjectReference>("ObjectReference", CORE),
    ]
});

/// Finds the type of a schema.
pub(super) fn find(schema: &Map<String, Value>) -> Option<&'static Known> {
    schema.get("properties")?;
    KNOWN.iter().find(|known| {
        let fields = |schema: &Map<String, Value>| {
            schema.get("properties").and_then(Value::as_object).map_or(0, Map::len)
        };
        // A small part of a type does not match, but an earlier release had a few fields less.
        fields(schema) * 4 >= fields(&known.schema) * 3 && is_within(schema, &known.schema)
    })
}

/// Whether the schema accepts the same as the type, or less.
fn is_within(schema: &Map<String, Value>, known: &Map<String, Value>) -> bool {
    schema.iter().all(|(key, value)| match (key.as_str(), value, known.get(key)) {
        // Descriptions and merge keywords differ between releases.
        (
            "description"
            | "title"
            | "default"
            | "nullable"
            | "example"
            | "externalDocs"
            | "x-kubernetes-list-type"
            | "x-kubernetes-list-map-keys"
            | "x-kubernetes-map-type",
            ..,
        ) => true,
        ("properties", Value::Object(fields), Some(Value::Object(known))) => {
            fields.iter().all(|(name, field)| within(Some(field), known.get(name)))
        }
        ("items" | "additionalProperties", inner, known) => within(Some(inner), known),
        (_, value, known) => Some(value) == known,
    }) && schema.get("required") == known.get("required")
}

fn within(schema: Option<&Value>, known: Option<&Value>) -> bool {
    match (schema.and_then(Value::as_object), known.and_then(Value::as_object)) {
        (Some(schema), Some(known)) => is_within(schema, known),
        _ => schema == known,
    }
}

fn known<T: JsonSchema>(name: &'static str, module: &'static str) -> Known {
    let mut made = crd::of::<Holder<T>>().definition;
    let schema = made.pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties/held");
    let schema = schema.and_then(Value::as_object_mut).map(std::mem::take);
    Known { name, module, schema: schema.unwrap_or_default() }
}

/// A kind with one field of the type.
struct Holder<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for Holder<T> {
    fn schema_name() -> Cow<'static, str> {
        "Holder".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "properties": { "held": generator.subschema_for::<T>() } })
    }
}

impl<T> CustomResourceExt for Holder<T> {
    fn crd() -> definitions::CustomResourceDefinition {
        let mut made = definitions::CustomResourceDefinition::default();
        made.spec.versions.push(definitions::CustomResourceDefinitionVersion::default());
        made
    }

    fn crd_name() -> &'static str {
        "holders.kubewright.dev"
    }

    fn api_resource() -> ApiResource {
        ApiResource {
            group: "kubewright.dev".to_owned(),
            version: "v1".to_owned(),
            api_version: "kubewright.dev/v1".to_owned(),
            kind: "Holder".to_owned(),
            plural: "holders".to_owned(),
        }
    }

    fn shortnames() -> &'static [&'static str] {
        &[]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(schema: &Value) -> Option<&'static str> {
        find(schema.as_object().expect("a schema is an object")).map(|known| known.name)
    }

    fn schema_of(name: &str) -> Value {
        let known = KNOWN.iter().find(|known| known.name == name).expect("it is known");
        Value::Object(known.schema.clone())
    }

    #[test]
    fn every_type_is_recognized_as_itself() {
        for known in KNOWN.iter() {
            assert!(known.schema.contains_key("properties"), "{}", known.name);
            assert_eq!(found(&Value::Object(known.schema.clone())), Some(known.name));
        }
    }

    #[test]
    fn earlier_releases_match_and_parts_or_supersets_do_not() {
        let mut pod = schema_of("PodSpec");
        let fields = pod["properties"].as_object_mut().unwrap();
        fields.remove("workloadRef");
        fields.remove("resources");
        assert_eq!(found(&pod), Some("PodSpec"));
        pod["properties"]["mine"] = json!({ "type": "string" });
        assert_eq!(found(&pod), None);
        let part = json!({ "type": "object", "properties": { "nodeName": { "type": "string" } } });
        assert_eq!(found(&part), None);
    }
}
