//! Computes the JSON patch of a defaulter.
//!
//! The patch contains only what the defaulter changed. Fields that the Rust type does not have are kept: the decoded
//! objects before and after are compared, and the difference is applied to the raw object.

use serde_json::{Value, json};

/// The operations that apply the change from `before` to `after` to `raw`, which has at least the fields of `before`.
pub(super) fn patch(raw: &Value, before: &Value, after: &Value) -> Vec<Value> {
    let mut patch = Patch::default();
    patch.carry_over(raw, before, after);
    patch.operations
}

/// A JSON patch, and the JSON pointer of the value that is being compared.
#[derive(Default)]
struct Patch {
    operations: Vec<Value>,
    pointer: String,
}

impl Patch {
    /// Applies the difference between two values to `target`.
    fn carry_over(&mut self, target: &Value, before: &Value, after: &Value) {
        if before == after {
            return;
        }
        match (target, before, after) {
            (Value::Object(target), Value::Object(before), Value::Object(after)) => {
                for key in target.keys().filter(|key| before.contains_key(*key) && !after.contains_key(*key))
                {
                    self.at(key, Self::remove);
                }
                for (key, value) in after {
                    match (target.get(key), before.get(key)) {
                        (Some(field), Some(was)) => self.at(key, |patch| patch.carry_over(field, was, value)),
                        (Some(field), None) => self.at(key, |patch| patch.change(field, value)),
                        // The type serialized a field that the object did not have, and the defaulter did not change
                        // it.
                        (None, Some(was)) if was == value => {}
                        (None, _) => self.at(key, |patch| patch.add(value)),
                    }
                }
            }
            (Value::Array(target), Value::Array(before), Value::Array(after))
                if target.len() == before.len() && before.len() == after.len() =>
            {
                for (index, ((item, was), value)) in target.iter().zip(before).zip(after).enumerate() {
                    self.at(&index.to_string(), |patch| patch.carry_over(item, was, value));
                }
            }
            _ => self.change(target, after),
        }
    }

    /// Changes `from` into `to`.
    fn change(&mut self, from: &Value, to: &Value) {
        match (from, to) {
            _ if from == to => {}
            (Value::Object(from), Value::Object(to)) => {
                for key in from.keys().filter(|key| !to.contains_key(*key)) {
                    self.at(key, Self::remove);
                }
                for (key, value) in to {
                    match from.get(key) {
                        Some(field) => self.at(key, |patch| patch.change(field, value)),
                        None => self.at(key, |patch| patch.add(value)),
                    }
                }
            }
            (Value::Array(from), Value::Array(to)) => {
                for (index, (item, value)) in from.iter().zip(to).enumerate() {
                    self.at(&index.to_string(), |patch| patch.change(item, value));
                }
                for (index, value) in to.iter().enumerate().skip(from.len()) {
                    self.at(&index.to_string(), |patch| patch.add(value));
                }
                // From the end, so that the positions of the other items stay the same.
                for index in (to.len()..from.len()).rev() {
                    self.at(&index.to_string(), Self::remove);
                }
            }
            _ => self.operations.push(json!({ "op": "replace", "path": self.pointer, "value": to })),
        }
    }

    fn add(&mut self, value: &Value) {
        self.operations.push(json!({ "op": "add", "path": self.pointer, "value": value }));
    }

    fn remove(&mut self) {
        self.operations.push(json!({ "op": "remove", "path": self.pointer }));
    }

    /// Goes to a member of the value.
    fn at(&mut self, member: &str, compare: impl FnOnce(&mut Self)) {
        let length = self.pointer.len();
        self.pointer.push('/');
        for character in member.chars() {
            match character {
                '~' => self.pointer.push_str("~0"),
                '/' => self.pointer.push_str("~1"),
                _ => self.pointer.push(character),
            }
        }
        compare(self);
        self.pointer.truncate(length);
    }
}

#[cfg(test)]
mod tests {
    use kubewright_apimachinery::patch::apply_json_patch;
    use proptest::prelude::*;

    use super::*;

    fn patched(raw: &Value, before: &Value, after: &Value) -> Value {
        let operations = serde_json::to_vec(&patch(raw, before, after)).unwrap();
        apply_json_patch(raw, &operations).unwrap()
    }

    #[test]
    fn fields_unknown_to_the_type_are_kept() {
        let raw = json!({ "spec": { "unknown": 1, "replicas": 1 }, "extra": true });
        let before = json!({ "spec": { "replicas": 1 } });
        let after = json!({ "spec": { "replicas": 2, "image": "a" } });
        assert_eq!(
            patch(&raw, &before, &after),
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
            patch(&raw, &before, &after),
            [json!({ "op": "add", "path": "/spec/replicas", "value": 1 })]
        );
    }

    #[test]
    fn items_of_lists_keep_their_unknown_fields_and_changed_lists_are_replaced() {
        let raw = json!({ "a": [{ "x": 1, "unknown": 2 }], "b": [1] });
        let before = json!({ "a": [{ "x": 1 }], "b": [1] });
        let after = json!({ "a": [{ "x": 3 }], "b": [1, 2] });
        assert_eq!(patched(&raw, &before, &after), json!({ "a": [{ "x": 3, "unknown": 2 }], "b": [1, 2] }));
    }

    #[test]
    fn a_list_grows_and_shrinks_at_its_end() {
        let raw = json!({ "a": [{ "x": 1, "unknown": 2 }, 2, 3], "b": [1] });
        let before = json!({ "a": [{ "x": 1 }, 2, 3], "b": [1] });
        let after = json!({ "a": [{ "x": 1 }], "b": [1, 2, [3]] });
        assert_eq!(
            patch(&raw, &before, &after),
            [
                json!({ "op": "remove", "path": "/a/0/unknown" }),
                json!({ "op": "remove", "path": "/a/2" }),
                json!({ "op": "remove", "path": "/a/1" }),
                json!({ "op": "add", "path": "/b/1", "value": 2 }),
                json!({ "op": "add", "path": "/b/2", "value": [3] }),
            ]
        );
        assert_eq!(patched(&raw, &before, &after), after);
    }

    #[test]
    fn member_names_are_escaped() {
        let raw = json!({ "metadata": { "annotations": { "a/b~c": "1" } } });
        let after = json!({ "metadata": { "annotations": { "a/b~c": "2", "~1": "" } } });
        assert_eq!(
            patch(&raw, &raw, &after),
            [
                json!({ "op": "replace", "path": "/metadata/annotations/a~1b~0c", "value": "2" }),
                json!({ "op": "add", "path": "/metadata/annotations/~01", "value": "" }),
            ]
        );
        assert_eq!(patched(&raw, &raw, &after), after);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf =
            prop_oneof![Just(Value::Null), (0..3).prop_map(Value::from), "[a/~]{0,2}".prop_map(Value::from)];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("[a-c/~]", inner, 0..4)
                    .prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #![proptest_config(crate::seeds::cases(512))]

        /// For a type with all fields, the patch leads to exactly the object after the defaulter.
        #[test]
        fn a_patch_leads_from_one_object_to_the_other(from in value(), to in value()) {
            let (from, to) = (json!({ "spec": from }), json!({ "spec": to }));
            prop_assert_eq!(patched(&from, &from, &to), to);
        }
    }

    #[test]
    fn a_removed_field_is_removed_and_an_unchanged_object_has_no_patch() {
        let raw = json!({ "spec": { "a": 1, "b": 2 } });
        let before = json!({ "spec": { "a": 1 } });
        assert_eq!(
            patch(&raw, &before, &json!({ "spec": {} })),
            [json!({ "op": "remove", "path": "/spec/a" })]
        );
        assert!(patch(&raw, &before, &before).is_empty());
    }
}
