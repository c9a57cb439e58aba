//! Completes the schemas of Kubernetes types in CRDs.
//!
//! k8s-openapi is generated from the published schemas. controller-gen reads the Go sources, which contain
//! more: list and map types, defaults, and the validation of conditions. These are added from the facts about
//! built-in types.

use kubewright_apimachinery::types::{self as facts, Field, FieldType, Merge};
use serde_json::{Map, Value, json};

use crate::schema::union;

/// Options of CRD generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Generates schemas for the metadata of embedded objects: controller-gen's `generateEmbeddedObjectMeta`.
    pub embedded_object_meta: bool,
}

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// The schema of a type that differs from that of k8s-openapi.
pub(super) fn replaced(name: &str, options: Options) -> Option<Map<String, Value>> {
    let schema = match name {
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" if options.embedded_object_meta => {
            let strings = json!({ "type": "object", "additionalProperties": { "type": "string" } });
            json!({ "type": "object", "properties": {
                "annotations": strings,
                "finalizers": { "type": "array", "items": { "type": "string" } },
                "labels": strings,
                "name": { "type": "string" },
                "namespace": { "type": "string" },
            }})
        }
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
        | "io.k8s.apimachinery.pkg.runtime.RawExtension" => {
            json!({ "type": "object" })
        }
        "io.k8s.apimachinery.pkg.api.resource.Quantity" => {
            let mut quantity = union::int_or_string();
            quantity["pattern"] = QUANTITY.into();
            quantity
        }
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString" => union::int_or_string(),
        "io.k8s.apimachinery.pkg.apis.meta.v1.Time" | "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime" => {
            json!({ "type": "string", "format": "date-time" })
        }
        _ => return None,
    };
    schema.as_object().cloned()
}

const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// Adds properties from the Go sources to the schema of the type `name`.
pub(super) fn complete(name: &str, map: &mut Map<String, Value>, options: Options) {
    if replaced(name, options).is_some() {
        return;
    }
    let Some(known) = fact_name(name).and_then(|name| facts::type_named(&name)) else { return };
    if known.atomic {
        map.insert("x-kubernetes-map-type".to_owned(), "atomic".into());
    }
    let Some(Value::Object(properties)) = map.get_mut("properties") else { return };
    for (name, property) in properties {
        if let (Some(field), Value::Object(property)) = (known.field(name), property) {
            complete_field(field, property);
        }
    }
    if name.strip_prefix(META) == Some("Condition") {
        complete_condition(map);
    }
}

/// The name of a k8s-openapi type in the facts table.
fn fact_name(name: &str) -> Option<String> {
    let known = name.strip_prefix("io.k8s.api.").map(str::to_owned);
    known.or_else(|| name.strip_prefix(META).map(|name| format!("meta.v1.{name}"))).or_else(|| {
        let name = name.strip_prefix("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.")?;
        Some(format!("apiextensions.v1.{name}"))
    })
}

fn complete_field(field: &Field, property: &mut Map<String, Value>) {
    let mut set = |key: &str, value: Value| _ = property.insert(key.to_owned(), value);
    match (&field.merge, &field.ty) {
        (Merge::Atomic, FieldType::List(_)) => set("x-kubernetes-list-type", "atomic".into()),
        (Merge::Set, _) => set("x-kubernetes-list-type", "set".into()),
        (Merge::Map(keys), ty)
            if ty.object().is_some_and(|item| keys.iter().all(|key| is_key(item.field(key)))) =>
        {
            set("x-kubernetes-list-type", "map".into());
            set("x-kubernetes-list-map-keys", keys.iter().copied().collect());
        }
        (Merge::Atomic, _) => set("x-kubernetes-map-type", "atomic".into()),
        (Merge::Granular, _) => set("x-kubernetes-map-type", "granular".into()),
        _ => {}
    }
    if let Some(default) = field.default.and_then(|text| serde_json::from_str(text).ok()) {
        set("default", default);
    }
}

/// Whether a field can be a list map key. The API server rejects optional keys, which some built-in types
/// have.
fn is_key(field: Option<&Field>) -> bool {
    field.is_some_and(|field| field.required || field.default.is_some())
}

fn complete_condition(map: &mut Map<String, Value>) {
    let facts = json!({
        "message": { "maxLength": 32768 },
        "observedGeneration": { "minimum": 0 },
        "reason": { "maxLength": 1024, "minLength": 1, "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$" },
        "status": { "enum": ["True", "False", "Unknown"] },
        "type": {
            "maxLength": 316,
            "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        },
    });
    let Some(Value::Object(properties)) = map.get_mut("properties") else { return };
    for (name, property) in properties {
        if let (Some(Value::Object(more)), Value::Object(property)) = (facts.get(name), property) {
            property.extend(more.clone());
        }
    }
}
