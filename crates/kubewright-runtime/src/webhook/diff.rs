//! Computes the JSON patch of a defaulter.
//!
//! The patch contains only what the defaulter changed. Fields that the Rust type does not have are kept: the decoded
//! objects before and after are compared, and the difference is applied to the raw object.

use serde_json::Value;

/// The operations that apply the change from `before` to `after` to `raw`.
pub(super) fn patch(raw: &Value, before: &Value, after: Value) -> Vec<Value> {
    if *before == after {
        return Vec::new();
    }
    let mut wanted = raw.clone();
    carry_over(&mut wanted, before, after);
    match serde_json::to_value(json_patch::diff(raw, &wanted)) {
        Ok(Value::Array(operations)) => operations,
        _ => Vec::new(),
    }
}

/// Applies the difference between two values to a third one, which has at least the fields of the first.
fn carry_over(target: &mut Value, before: &Value, after: Value) {
    if *before == after {
        return;
    }
    match (target, before, after) {
        (Value::Object(target), Value::Object(before), Value::Object(after)) => {
            target.retain(|key, _| after.contains_key(key) || !before.contains_key(key));
            for (key, value) in after {
                match (target.get_mut(&key), before.get(&key)) {
                    (Some(field), Some(was)) => carry_over(field, was, value),
                    // The type serialized a field that the object did not have, and the defaulter did not change it.
                    (None, Some(was)) if *was == value => {}
                    _ => {
                        target.insert(key, value);
                    }
                }
            }
        }
        (Value::Array(target), Value::Array(before), Value::Array(after))
            if target.len() == before.len() && before.len() == after.len() =>
        {
            for ((item, was), value) in target.iter_mut().zip(before).zip(after) {
                carry_over(item, was, value);
            }
        }
        (target, _, after) => *target = after,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_unknown_to_the_type_are_kept() {
        let raw = json!({ "spec": { "unknown": 1, "replicas": 1 }, "extra": true });
        let before = json!({ "spec": { "replicas": 1 } });
        let after = json!({ "spec": { "replicas": 2, "image": "a" } });
        assert_eq!(
            patch(&raw, &before, after),
            [
                json!({ "op": "add", "path": "/spec/image", "value": "a" }),
                json!({ "op": "replace", "path": "/spec/replicas", "value": 2 }),
            ]
        );
    }

    #[test]
    fn nulls_that_the_type_writes_are_not_part_of_the_patch() {
        let raw = json!({ "spec": {} });
        let before = json!({ "spec": { "image": null, "replicas": null } });
        let after = json!({ "spec": { "image": null, "replicas": 1 } });
        assert_eq!(
            patch(&raw, &before, after),
            [json!({ "op": "add", "path": "/spec/replicas", "value": 1 })]
        );
    }

    #[test]
    fn items_of_lists_keep_their_unknown_fields_and_changed_lists_are_replaced() {
        let raw = json!({ "a": [{ "x": 1, "unknown": 2 }], "b": [1] });
        let before = json!({ "a": [{ "x": 1 }], "b": [1] });
        let after = json!({ "a": [{ "x": 3 }], "b": [1, 2] });
        let mut patched = raw.clone();
        let operations: json_patch::Patch =
            serde_json::from_value(Value::Array(patch(&raw, &before, after))).unwrap();
        json_patch::patch(&mut patched, &operations).unwrap();
        assert_eq!(patched, json!({ "a": [{ "x": 3, "unknown": 2 }], "b": [1, 2] }));
    }

    #[test]
    fn a_removed_field_is_removed_and_an_unchanged_object_has_no_patch() {
        let raw = json!({ "spec": { "a": 1, "b": 2 } });
        let before = json!({ "spec": { "a": 1 } });
        assert_eq!(
            patch(&raw, &before, json!({ "spec": {} })),
            [json!({ "op": "remove", "path": "/spec/a" })]
        );
        assert!(patch(&raw, &before, before.clone()).is_empty());
    }
}
