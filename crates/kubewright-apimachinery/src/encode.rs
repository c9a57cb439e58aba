//! Serializes objects with the field order of Go structs.
//!
//! Field order does not matter in responses, but some error messages quote a whole object. In those, objects
//! that a patch modified have sorted keys, all others have Go's field order.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::json;
use crate::types::{FieldType, Type};

/// The nested objects that a patch decoded to maps, which have sorted keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TakenApart(BTreeMap<String, TakenApart>);

impl TakenApart {
    /// The objects that a merge patch merges into.
    pub fn by_merge_patch(patch: &Value) -> Self {
        let fields = patch.as_object().into_iter().flatten().filter(|(_, value)| value.is_object());
        Self(fields.map(|(name, value)| (name.clone(), Self::by_merge_patch(value))).collect())
    }

    /// The objects on the paths of these JSON pointers.
    pub fn by_pointers<'a>(pointers: impl IntoIterator<Item = &'a str>) -> Self {
        let mut root = Self::default();
        for pointer in pointers {
            let mut parts: Vec<&str> = pointer.split('/').skip(1).collect();
            parts.pop();
            let mut node = &mut root;
            // No object is deeper, and dropping a deeper tree could overflow the stack.
            for part in parts.into_iter().take(json::MAX_DEPTH) {
                node = node.0.entry(part.replace("~1", "/").replace("~0", "~")).or_default();
            }
        }
        root
    }
}

/// Serializes an object as compact JSON. The root always has sorted keys.
pub fn to_string(ty: &'static Type, object: &Value, apart: &TakenApart) -> String {
    let mut text = String::new();
    write_object(&mut text, Some(ty), object, Some(apart));
    text
}

fn write_object(text: &mut String, ty: Option<&'static Type>, object: &Value, apart: Option<&TakenApart>) {
    let Some(map) = object.as_object() else {
        text.push_str(&json::to_string(object));
        return;
    };
    let mut names: Vec<&String> = map.keys().collect();
    if apart.is_none()
        && let Some(ty) = ty
    {
        names.sort_by_key(|name| {
            ty.fields.iter().position(|field| field.name == name.as_str()).unwrap_or(usize::MAX)
        });
    }
    text.push('{');
    for (index, name) in names.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(&json::to_string(&Value::String(name.clone())));
        text.push(':');
        let field = ty.and_then(|ty| ty.field(name)).map(|field| &field.ty);
        write_value(text, field, &map[name], apart.and_then(|apart| apart.0.get(name)));
    }
    text.push('}');
}

fn write_value(text: &mut String, ty: Option<&'static FieldType>, value: &Value, apart: Option<&TakenApart>) {
    match (value, ty) {
        (Value::Object(_), Some(FieldType::Object(of))) => write_object(text, Some(of.get()), value, apart),
        (Value::Object(map), Some(FieldType::Map(of))) => {
            text.push('{');
            for (index, (name, value)) in map.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&json::to_string(&Value::String(name.clone())));
                text.push(':');
                write_value(text, Some(of), value, apart.and_then(|apart| apart.0.get(name)));
            }
            text.push('}');
        }
        (Value::Array(items), Some(FieldType::List(of))) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_value(text, Some(of), item, apart.and_then(|apart| apart.0.get(&index.to_string())));
            }
            text.push(']');
        }
        _ => text.push_str(&json::to_string(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::type_named;
    use serde_json::json;

    #[test]
    fn unpatched_objects_have_gos_field_order() {
        let ty = type_named("core.v1.ConfigMap").unwrap();
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"b": "1", "a": "2"},
            "metadata": {"uid": "u", "name": "x", "labels": {"l": "1"}, "namespace": "n"},
        });
        let apart = TakenApart::by_merge_patch(&json!({"data": {"b": "1"}}));
        assert_eq!(
            to_string(ty, &object, &apart),
            r#"{"apiVersion":"v1","data":{"a":"2","b":"1"},"kind":"ConfigMap","metadata":{"name":"x","namespace":"n","uid":"u","labels":{"l":"1"}}}"#
        );
        let apart = TakenApart::by_pointers(["/metadata/labels/l"]);
        assert!(
            to_string(ty, &object, &apart)
                .ends_with(r#""metadata":{"labels":{"l":"1"},"name":"x","namespace":"n","uid":"u"}}"#)
        );
    }

    #[test]
    fn a_dangling_pointer_is_ignored() {
        let ty = type_named("core.v1.ConfigMap").unwrap();
        let apart = TakenApart::by_pointers(["/a".repeat(1_000_000).as_str()]);
        assert_eq!(to_string(ty, &json!({"a": {"a": 1}}), &apart), r#"{"a":{"a":1}}"#);
    }
}
