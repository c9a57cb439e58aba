//! The type of a custom resource for server-side apply.

use kubewright_structured_merge::{
    FieldDef, ListDef, ListType as MergeListType, MapDef, Scalar, TypeDef, TypeRef,
};

use super::{Additional, ListType, MapType, Structural, Type};

impl Structural {
    /// The type of whole objects for server-side apply. `preserve_unknown_fields` is `spec.preserveUnknownFields` of
    /// the CRD.
    pub fn type_def(&self, preserve_unknown_fields: bool) -> TypeDef {
        map(self, preserve_unknown_fields || self.preserve_unknown_fields, true).into()
    }
}

/// `preserve` is inherited: all fields below an object that preserves unknown fields do too.
fn value(schema: &Structural, preserve: bool) -> TypeDef {
    let preserve = preserve || schema.preserve_unknown_fields;
    let resource = schema.embedded_resource;
    match schema.ty {
        None if schema.unknown_type.is_none() => {
            TypeDef::any(list(schema, preserve), map(schema, preserve, resource))
        }
        Some(Type::Object) => map(schema, preserve, resource).into(),
        Some(Type::Array) => list(schema, preserve).into(),
        Some(Type::Integer | Type::Number) => Scalar::Numeric.into(),
        Some(Type::Boolean) => Scalar::Boolean.into(),
        Some(Type::String) if schema.format.as_ref().is_none_or(|format| format.name == "byte") => {
            Scalar::String.into()
        }
        _ => Scalar::Untyped.into(),
    }
}

fn list(schema: &Structural, preserve: bool) -> ListDef {
    let list_type = match schema.list_type {
        Some(ListType::Set) => MergeListType::Set,
        Some(ListType::Map) => MergeListType::map(schema.list_map_keys.iter().map(String::as_str)),
        Some(ListType::Atomic) | None => MergeListType::Atomic,
    };
    let element = match &schema.items {
        Some(items) => TypeRef::Def(value(items, preserve)),
        None => TypeRef::Untyped,
    };
    ListDef { element, list_type }
}

/// `resource`: the object has `apiVersion`, `kind` and `metadata` even if undeclared.
fn map(schema: &Structural, preserve: bool, resource: bool) -> MapDef {
    let mut map = MapDef::object(schema.properties.iter().map(|(name, schema)| {
        let ty = TypeRef::Def(value(schema, preserve));
        (name.as_str(), FieldDef { ty, default: schema.default.clone() })
    }));
    let element = match &schema.additional {
        Some(Additional::Schema(of)) => Some(TypeRef::Def(value(of, preserve))),
        Some(Additional::Allowed(allowed)) => allowed.then_some(TypeRef::Deduced),
        None => (preserve || (schema.properties.is_empty() && !resource)).then_some(TypeRef::Deduced),
    };
    if let Some(element) = element {
        map = map.with_element(element);
    }
    if schema.map_type == Some(MapType::Atomic) {
        map = map.atomic();
    }
    if resource { map.resource() } else { map }
}

#[cfg(test)]
mod tests {
    use kubewright_structured_merge::{ApplyError, OneVersion, Owners, Reset, Schema, Write, apply};
    use serde_json::{Value, json};

    use super::*;

    /// The fields that a manager owns after it applied this spec.
    fn owned(schema: &Structural, spec: &Value) -> Result<Value, ApplyError> {
        let ty = schema.type_def(false);
        let versions = OneVersion { api_version: "e.io/v1", schema: Schema::custom(&ty) };
        let write = Write {
            manager: "m",
            api_version: "e.io/v1",
            kind: "W",
            subresource: "",
            time: "2026-01-01T00:00:00Z",
            versions: &versions,
            reset: &Reset::default(),
            owners: Owners::Json,
        };
        let object = json!({"apiVersion": "e.io/v1", "kind": "W", "metadata": {"name": "a"}, "spec": spec});
        Ok(apply(None, &object, false, &write)?["metadata"]["managedFields"][0]["fieldsV1"].clone())
    }

    #[test]
    fn the_schema_of_a_custom_resource_decides_what_is_atomic() {
        let schema = Structural::parse(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "p"], "items": {
                "type": "object", "properties": {"k": {"type": "string"}, "p": {"type": "string", "default": "d"}, "v": {"type": "integer"}},
            }},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "list": {"type": "array", "items": {"type": "string"}},
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "inner": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
        }}}}))
        .unwrap();
        let spec = json!({
            "map": [{"k": "a", "v": 1}],
            "set": ["x"],
            "list": ["x"],
            "whole": {"a": "b"},
            "free": {"a": {"b": [1]}},
            "inner": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"l": "1"}}, "spec": {"x": 1}},
        });
        assert_eq!(
            owned(&schema, &spec).unwrap(),
            json!({"f:spec": {
                "f:map": {"k:{\"k\":\"a\",\"p\":\"d\"}": {".": {}, "f:k": {}, "f:v": {}}},
                "f:set": {"v:\"x\"": {}},
                "f:list": {},
                "f:whole": {},
                "f:free": {"f:a": {".": {}, "f:b": {}}},
                "f:inner": {
                    "f:apiVersion": {}, "f:kind": {}, "f:metadata": {"f:labels": {"f:l": {}}}, "f:spec": {".": {}, "f:x": {}},
                },
            }})
        );
        let error = owned(&schema, &json!({"nosuch": 1})).unwrap_err();
        assert!(error.to_string().ends_with(".spec.nosuch: field not declared in schema"), "{error}");
    }
}
