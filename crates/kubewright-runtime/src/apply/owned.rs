//! Extracts the fields that one field manager owns: its entry in `metadata.managedFields`, with the object's values.
//!
//! Needs no schema and no server. A list is extracted item by item if managedFields name its items, and as one value
//! otherwise.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kubewright_structured_merge::{Element, ElementError};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::Key;
use crate::client::Writable;

/// Why the fields of a field manager cannot be extracted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExtractError {
    /// The object has no managedFields.
    #[error(
        "{0} has no metadata.managedFields, which the cache drops by default: read it with Client::uncached, or keep \
         them with KindOptions::keep_managed_fields"
    )]
    NoManagedFields(String),
    /// The managedFields are invalid.
    #[error("metadata.managedFields of {object} has an invalid field name")]
    Fields {
        /// The object.
        object: String,
        /// The invalid name.
        #[source]
        source: ElementError,
    },
    /// The object could not be serialized as JSON.
    #[error("failed to encode {object} as JSON")]
    Encode {
        /// The object.
        object: String,
        /// The error of the encoder.
        #[source]
        source: serde_json::Error,
    },
    /// The extracted fields do not match the requested type.
    #[error("failed to decode the extracted fields of {object}")]
    Decode {
        /// The object.
        object: String,
        /// The error of the decoder.
        #[source]
        source: serde_json::Error,
    },
}

/// The fields that `manager` applied last, with the current values of the object.
///
/// Applying them again changes nothing. For a manager that never applied anything, only the name is returned.
/// Subresources are tracked separately: use `Some("status")` for the status. The result can be any type with these
/// fields: a [`Configuration`](super::Configuration), a struct of k8s-openapi, or JSON.
pub fn extract<P: DeserializeOwned>(
    object: &impl Writable,
    manager: &str,
    subresource: Option<&str>,
) -> Result<P, ExtractError> {
    let meta = object.metadata();
    let value = serde_json::to_value(object)
        .map_err(|source| ExtractError::Encode { object: described(object, None), source })?;
    let entries = meta.managed_fields.as_deref().unwrap_or_default();
    if entries.is_empty() {
        return Err(ExtractError::NoManagedFields(described(object, Some(&value))));
    }
    let is_wanted = |entry: &&ManagedFieldsEntry| {
        entry.manager.as_deref() == Some(manager)
            && entry.operation.as_deref() == Some("Apply")
            && entry.subresource.as_deref().unwrap_or_default() == subresource.unwrap_or_default()
    };
    let fields = |entry: &'_ ManagedFieldsEntry| entry.fields_v1.as_ref().map(|fields| fields.0.clone());
    let mut part = match entries.iter().find(is_wanted).and_then(fields) {
        None => Value::Object(Map::new()),
        Some(mine) => {
            let all: Vec<Value> = entries.iter().filter_map(fields).collect();
            let part = owned(&value, &mine, &all.iter().collect::<Vec<_>>());
            part.map_err(|source| ExtractError::Fields { object: described(object, Some(&value)), source })?
        }
    };
    identify(&mut part, &value, object);
    serde_json::from_value(part)
        .map_err(|source| ExtractError::Decode { object: described(object, Some(&value)), source })
}

/// Adds the fields that every apply needs: apiVersion, kind, name and namespace.
fn identify<K: Writable>(part: &mut Value, whole: &Value, object: &K) {
    let Some(part) = part.as_object_mut() else { return };
    let types = K::known_kind().map(|kind| kind.type_meta());
    for (name, known) in [
        ("apiVersion", types.as_ref().map(|types| &types.api_version)),
        ("kind", types.as_ref().map(|types| &types.kind)),
    ] {
        let known = known.map(|text| Value::from(text.as_str())).or_else(|| whole.get(name).cloned());
        part.extend(known.map(|text| (name.to_owned(), text)));
    }
    let metadata = part.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if let Some(metadata) = metadata.as_object_mut() {
        let meta = object.metadata();
        for (name, text) in [("name", &meta.name), ("namespace", &meta.namespace)] {
            metadata.extend(text.as_deref().map(|text| (name.to_owned(), Value::from(text))));
        }
    }
}

fn described<K: Writable>(object: &K, value: Option<&Value>) -> String {
    let meta = object.metadata();
    let kind = K::known_kind().map(|kind| kind.name().to_owned());
    let kind = kind.or_else(|| value?.get("kind")?.as_str().map(str::to_owned));
    let key = Key::new(meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default());
    format!("{} {key}", kind.as_deref().unwrap_or("the object"))
}

/// The part of a value that `mine` names. `all` has the names of all field managers at this place.
fn owned(value: &Value, mine: &Value, all: &[&Value]) -> Result<Value, ElementError> {
    let names = elements(mine)?;
    if names.is_empty() {
        // Owned as one value. If other managers own fields inside, only the empty value is owned.
        let shared =
            all.iter().any(|fields| fields.as_object().is_some_and(|it| it.keys().any(|name| name != ".")));
        return Ok(match value {
            Value::Object(_) if shared => Value::Object(Map::new()),
            Value::Array(_) if shared => Value::Array(Vec::new()),
            value => value.clone(),
        });
    }
    match value {
        Value::Object(members) => {
            let mut part = Map::new();
            for (text, element, below) in names {
                if let Element::Field(name) = element
                    && let Some(member) = members.get(&*name)
                {
                    part.insert(name.to_string(), owned(member, below, &all_below(all, text))?);
                }
            }
            Ok(Value::Object(part))
        }
        Value::Array(items) => {
            let mut part = Vec::new();
            for (index, item) in items.iter().enumerate() {
                let Some((text, element, below)) =
                    names.iter().find(|(_, name, _)| is_named(item, index, name))
                else {
                    continue;
                };
                let mut item = owned(item, below, &all_below(all, text))?;
                if let (Element::Key(keys), Some(members)) = (element, item.as_object_mut()) {
                    for (name, value) in keys.iter() {
                        members.entry(&**name).or_insert_with(|| value.clone());
                    }
                }
                part.push(item);
            }
            Ok(Value::Array(part))
        }
        value => Ok(value.clone()),
    }
}

/// The named fields and items, each with the names below it.
fn elements(fields: &Value) -> Result<Vec<(&str, Element, &Value)>, ElementError> {
    let mut elements = Vec::new();
    for (text, below) in fields.as_object().into_iter().flatten().filter(|(text, _)| *text != ".") {
        match Element::parse(text) {
            Ok(element) => elements.push((text.as_str(), element, below)),
            // Of a later Kubernetes version; skip it.
            Err(ElementError::Unknown) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(elements)
}

fn all_below<'f>(all: &[&'f Value], text: &str) -> Vec<&'f Value> {
    all.iter().filter_map(|fields| fields.get(text)).collect()
}

/// Whether an item of a list has this name.
fn is_named(item: &Value, index: usize, name: &Element) -> bool {
    match name {
        Element::Field(_) => false,
        Element::Key(keys) => {
            // A key with a default may be absent in the item.
            let own = keys
                .iter()
                .filter_map(|(name, _)| Some((name.clone(), item.get(&**name)?.clone())))
                .collect();
            let there: Vec<_> =
                keys.iter().filter(|(name, _)| item.get(&**name).is_some()).cloned().collect();
            !there.is_empty() && Element::key(own) == Element::key(there)
        }
        Element::Value(value) => Element::Value(value.clone()) == Element::Value(item.clone().into()),
        Element::Index(own) => usize::try_from(*own) == Ok(index),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn part(value: &Value, mine: &Value, others: &[Value]) -> Value {
        let all: Vec<&Value> = std::iter::once(mine).chain(others).collect();
        owned(value, mine, &all).unwrap()
    }

    #[test]
    fn items_are_found_by_key_by_value_and_by_index() {
        let value = json!({
            "ports": [{"port": 80, "protocol": "TCP", "name": "web"}, {"port": 80, "protocol": "UDP"}, {"port": 90}],
            "finalizers": ["a", "b"],
            "numbers": [1, 2, 3],
        });
        let mine = json!({
            "f:ports": {
                r#"k:{"port":80,"protocol":"TCP"}"#: {".": {}, "f:name": {}},
                r#"k:{"port":90,"protocol":"TCP"}"#: {".": {}, "f:port": {}},
            },
            "f:finalizers": {".": {}, r#"v:"b""#: {}},
            "f:numbers": {"i:1": {}},
            "x:later": {},
        });
        // Partially owned items include their keys.
        let expected = json!({
            "ports": [{"name": "web", "port": 80, "protocol": "TCP"}, {"port": 90, "protocol": "TCP"}],
            "finalizers": ["b"],
            "numbers": [2],
        });
        assert_eq!(part(&value, &mine, &[]), expected);
    }

    #[test]
    fn a_leaf_is_owned_as_a_whole_unless_others_own_fields_inside() {
        let value = json!({"selector": {"app": "web"}, "labels": {"x": "1"}, "args": ["a"]});
        let mine = json!({"f:selector": {}, "f:labels": {}, "f:args": {}});
        let other = json!({"f:labels": {"f:x": {}}});
        let expected = json!({"selector": {"app": "web"}, "labels": {}, "args": ["a"]});
        assert_eq!(part(&value, &mine, &[other]), expected);
    }

    #[test]
    fn a_missing_field_is_skipped_and_an_invalid_name_is_an_error() {
        assert_eq!(part(&json!({"a": 1}), &json!({"f:a": {}, "f:b": {}}), &[]), json!({"a": 1}));
        let mine = json!({"nonsense": {}});
        assert_eq!(owned(&json!({"a": 1}), &mine, &[&mine]), Err(ElementError::Colon("nonsense".to_owned())));
    }
}
