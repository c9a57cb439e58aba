//! JSON merge patches: RFC 7386, as `github.com/evanphx/json-patch` applies them.
//!
//! The library differs from the RFC in one point: it also removes `null` fields inside list elements, unless
//! the list replaces an object.

use serde_json::{Map, Value};

use crate::json::{self, Document, ParseError, ParseOptions};

/// Why a merge patch is invalid. The server responds with status 400 and this text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergePatchError {
    /// The check found invalid JSON or a number out of range.
    #[error("error decoding patch: {0}")]
    Decode(#[source] ParseError),
    /// The check found a value that is not an object.
    #[error(
        "error decoding patch: json: cannot unmarshal {0} into Go value of type map[string]interface {{}}"
    )]
    NotAnObject(&'static str),
    /// Invalid JSON, or neither an object nor a list. Without the check, this is the only message.
    #[error("Invalid JSON Patch")]
    Invalid,
}

/// The `fieldValidation` check. Returns the strict errors: duplicate fields.
pub fn check_merge_patch(patch: &[u8]) -> Result<Vec<String>, MergePatchError> {
    let parsed = match json::parse(patch, ParseOptions::default()) {
        Ok(parsed) => parsed,
        Err(error) => return Err(not_an_object(patch).unwrap_or(MergePatchError::Decode(error))),
    };
    match parsed.value {
        Value::Object(_) => Ok(parsed.strict_errors().collect()),
        // Go decodes null to an unchanged map; the decoding itself rejects it later.
        Value::Null => Ok(Vec::new()),
        _ => Err(not_an_object(patch).unwrap_or(MergePatchError::Invalid)),
    }
}

/// The error for a patch that is not an object, if so. Numbers out of range only matter in objects.
fn not_an_object(patch: &[u8]) -> Option<MergePatchError> {
    match Document::parse(patch, ParseOptions::default()).ok()? {
        Document::Object(_) => None,
        other => Some(MergePatchError::NotAnObject(other.kind())),
    }
}

/// Decodes a patch. A list is valid and replaces the whole document.
pub fn decode_merge_patch(patch: &[u8]) -> Result<Value, MergePatchError> {
    match json::parse(patch, ParseOptions::default()) {
        Ok(parsed) if parsed.value.is_object() || parsed.value.is_array() => Ok(parsed.value),
        _ => Err(MergePatchError::Invalid),
    }
}

/// Applies a patch. A patch that is not an object replaces the document.
pub fn apply_merge_patch(document: &Value, patch: &Value) -> Value {
    let mut result = document.clone();
    merge(&mut result, patch);
    result
}

fn merge(current: &mut Value, patch: &Value) {
    match (current, patch) {
        (Value::Object(fields), Value::Object(patch)) => merge_fields(fields, patch),
        (current @ Value::Object(_), _) => *current = patch.clone(),
        (current, _) => *current = without_nulls(patch),
    }
}

fn merge_fields(fields: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (key, wish) in patch {
        match fields.get_mut(key) {
            _ if wish.is_null() => {
                fields.remove(key);
            }
            Some(current) if !current.is_null() => merge(current, wish),
            _ => {
                fields.insert(key.clone(), without_nulls(wish));
            }
        }
    }
}

/// The patch as a new value: without `null` fields.
fn without_nulls(patch: &Value) -> Value {
    match patch {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, field)| !field.is_null());
            Value::Object(fields.map(|(key, field)| (key.clone(), without_nulls(field))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        scalar => scalar.clone(),
    }
}

/// Creates the patch from `original` to `modified`. Requires that `modified` contains no `null`.
pub fn create_merge_patch(original: &Value, modified: &Value) -> Value {
    let (Value::Object(original), Value::Object(modified)) = (original, modified) else {
        return modified.clone();
    };
    let mut patch = Map::new();
    for key in original.keys().filter(|key| !modified.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, field) in modified {
        match original.get(key) {
            Some(before) if before == field => {}
            Some(before) => {
                patch.insert(key.clone(), create_merge_patch(before, field));
            }
            None => {
                patch.insert(key.clone(), field.clone());
            }
        }
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn check_error(patch: &str) -> String {
        check_merge_patch(patch.as_bytes()).expect_err(patch).to_string()
    }

    #[test]
    fn fields_are_set_merged_and_removed() {
        for (document, patch, result) in [
            (json!({"a": 1}), json!({"b": 2}), json!({"a": 1, "b": 2})),
            (json!({"a": 1, "b": 2}), json!({"a": null}), json!({"b": 2})),
            (json!({"a": 1}), json!({"b": null}), json!({"a": 1})),
            (
                json!({"a": {"b": 1, "c": 2}}),
                json!({"a": {"b": null, "d": 3}}),
                json!({"a": {"c": 2, "d": 3}}),
            ),
            (json!({"a": [1, 2]}), json!({"a": [3]}), json!({"a": [3]})),
            (json!({"a": 1}), json!({"a": {"b": {"c": null}}}), json!({"a": {"b": {}}})),
            (json!({"a": {"b": 1}}), json!({"a": 5}), json!({"a": 5})),
            (json!({"a": null}), json!({"a": {"b": null}}), json!({"a": {}})),
            (json!({"a": 1}), json!({}), json!({"a": 1})),
        ] {
            assert_eq!(apply_merge_patch(&document, &patch), result, "{document} {patch}");
        }
    }

    #[test]
    fn nulls_in_list_elements_are_removed_unless_the_list_replaces_an_object() {
        let patch = json!({"a": [{"b": null, "c": 1}, null]});
        assert_eq!(apply_merge_patch(&json!({}), &patch), json!({"a": [{"c": 1}, null]}));
        assert_eq!(apply_merge_patch(&json!({"a": []}), &patch), json!({"a": [{"c": 1}, null]}));
        assert_eq!(apply_merge_patch(&json!({"a": {}}), &patch), patch);
    }

    #[test]
    fn a_non_object_patch_replaces_the_document() {
        assert_eq!(apply_merge_patch(&json!({"a": 1}), &json!([1])), json!([1]));
        assert_eq!(apply_merge_patch(&json!("x"), &json!({"a": null})), json!({}));
    }

    #[test]
    fn the_check_reports_duplicate_fields() {
        let strict = check_merge_patch(br#"{"data":{"k":"1","k":"2"}}"#).unwrap();
        assert_eq!(strict, ["duplicate field \"data.k\""]);
        assert_eq!(check_merge_patch(b"null").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn the_check_rejects_non_objects() {
        for (patch, kind) in
            [("[]", "array"), ("\"x\"", "string"), ("1", "number"), ("true", "bool"), ("[1e999]", "array")]
        {
            assert_eq!(
                check_error(patch),
                format!(
                    "error decoding patch: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
                )
            );
        }
        assert_eq!(check_error(""), "error decoding patch: unexpected end of JSON input");
        assert_eq!(check_error("{"), "error decoding patch: unexpected end of JSON input");
        assert_eq!(check_error("{} x"), "error decoding patch: invalid character 'x' after top-level value");
        assert_eq!(
            check_error("{\"a\":1e999}"),
            "error decoding patch: json: cannot unmarshal number 1e999 into Go value of type float64"
        );
    }

    #[test]
    fn decoding_without_the_check_has_a_generic_message() {
        for patch in ["", "{", "null", "1", "\"x\""] {
            assert_eq!(
                decode_merge_patch(patch.as_bytes()).expect_err(patch).to_string(),
                "Invalid JSON Patch"
            );
        }
        assert_eq!(decode_merge_patch(b"[1]").unwrap(), json!([1]));
        assert_eq!(decode_merge_patch(b"{\"a\":null}").unwrap(), json!({"a": null}));
    }

    fn document(null: bool) -> impl Strategy<Value = Value> {
        let mut leaf = vec![any::<i8>().prop_map(Value::from).boxed(), "[a-c]".prop_map(Value::from).boxed()];
        if null {
            leaf.push(Just(Value::Null).boxed());
        }
        let value = proptest::strategy::Union::new(leaf).prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-c]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        });
        prop::collection::btree_map("[a-c]", value, 0..4)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
    }

    proptest! {
        #[test]
        fn applying_a_patch_twice_changes_nothing(document in document(true), patch in document(true)) {
            let once = apply_merge_patch(&document, &patch);
            // A list that replaces an object keeps its nulls the first time and loses them the second time.
            prop_assume!(!patch.to_string().contains('['));
            prop_assert_eq!(apply_merge_patch(&once, &patch), once);
        }

        #[test]
        fn a_created_patch_transforms_the_original(a in document(true), b in document(false)) {
            prop_assert_eq!(apply_merge_patch(&a, &create_merge_patch(&a, &b)), b);
        }

        #[test]
        fn the_empty_patch_changes_nothing(document in document(true)) {
            prop_assert_eq!(apply_merge_patch(&document, &json!({})), document.clone());
            prop_assert_eq!(create_merge_patch(&document, &document), json!({}));
        }
    }
}
