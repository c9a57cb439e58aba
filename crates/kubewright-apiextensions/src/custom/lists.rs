//! Uniqueness in lists of type `set` and `map`.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Map, Value};

use super::print::shown;
use crate::structural::{ListType, Structural};
use kubewright_apimachinery::field::{ErrorKind, ErrorList, FieldError, Path};
use kubewright_apimachinery::json;

/// Reports duplicate items in lists of type `set` and `map`.
pub fn validate_lists(schema: &Structural, object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    check(schema, object, &Path::root(), &mut errors);
    errors
}

fn check(schema: &Structural, value: &Value, path: &Path, errors: &mut ErrorList) {
    if !schema.contains.unique_lists {
        return;
    }
    match value {
        Value::Object(fields) => {
            if let Some(further) = schema.additional_schema() {
                // As upstream, also visit properties here.
                for (name, field) in fields {
                    check(further, field, &path.key(name), errors);
                }
            }
            for (name, field) in fields {
                if let Some(property) = schema.properties.get(name).filter(|of| of.contains.unique_lists) {
                    check(property, field, &path.child(name), errors);
                }
            }
        }
        Value::Array(items) => {
            match schema.list_type {
                Some(ListType::Set) => {
                    let found = duplicates(items.iter().map(Key::Value)).into_iter();
                    errors.extend(found.map(|index| duplicate(path, index, &items[index])));
                }
                Some(ListType::Map) => list_map(schema, items, path, errors),
                Some(ListType::Atomic) | None => {}
            }
            if let Some(of) = schema.items.as_deref().filter(|of| of.contains.unique_lists) {
                for (index, item) in items.iter().enumerate() {
                    check(of, item, &path.index(index), errors);
                }
            }
        }
        _ => {}
    }
}

fn list_map(schema: &Structural, items: &[Value], path: &Path, errors: &mut ErrorList) {
    let odd = items.iter().position(|item| !matches!(item, Value::Object(_) | Value::Null));
    if let Some(index) = odd {
        let detail = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid_printed(&path.index(index), shown(&items[index]), detail));
        return;
    }
    let keys = |item: &Value| -> Map<String, Value> {
        let named = schema.list_map_keys.iter();
        named.filter_map(|key| Some((key.clone(), item.get(key)?.clone()))).collect()
    };
    let found = match schema.list_map_keys.as_slice() {
        [key] => duplicates(items.iter().map(|item| item.get(key).map_or(Key::Absent, Key::Value))),
        _ => duplicates(items.iter().map(|item| Key::Fields(keys(item)))),
    };
    errors.extend(found.into_iter().map(|index| duplicate(path, index, &keys(&items[index]).into())));
}

fn duplicate(path: &Path, index: usize, value: &Value) -> FieldError {
    FieldError {
        kind: ErrorKind::Duplicate,
        field: path.index(index).to_string(),
        value: Some(shown(value)),
        detail: String::new(),
    }
}

/// The identity of a list item.
enum Key<'a> {
    Absent,
    Value(&'a Value),
    Fields(Map<String, Value>),
}

impl<'a> Key<'a> {
    fn equals(&self, other: &Self) -> bool {
        let written_alike = |one: &Value, other: &Value| json::to_string(one) == json::to_string(other);
        match (self, other) {
            (Self::Absent, Self::Absent) => true,
            (Self::Value(one), Self::Value(other)) => {
                one == other || (is_compound(one) && is_compound(other) && written_alike(one, other))
            }
            (Self::Fields(one), Self::Fields(other)) => {
                one == other || written_alike(&one.clone().into(), &other.clone().into())
            }
            _ => false,
        }
    }

    /// A text that is equal for equal keys. `1` and `1.0` differ at the top level, but not inside lists and
    /// objects, which are compared as JSON.
    fn text(self) -> Cow<'a, str> {
        match self {
            Self::Absent => "-".into(),
            Self::Value(Value::String(text)) => format!("s{text}").into(),
            Self::Value(value) if is_compound(value) => json::to_string(value).into(),
            Self::Value(value) => value.to_string().into(),
            Self::Fields(fields) => json::to_string(&fields.into()).into(),
        }
    }
}

fn is_compound(value: &Value) -> bool {
    matches!(value, Value::Array(_) | Value::Object(_))
}

/// Up to this length, comparing all pairs is faster than hashing.
const FEW: usize = 16;

/// The indices of repeated keys.
fn duplicates<'a>(keys: impl Iterator<Item = Key<'a>>) -> Vec<usize> {
    let keys: Vec<Key<'a>> = keys.collect();
    if keys.len() <= FEW {
        let second = |at: &usize| keys[..*at].iter().filter(|key| key.equals(&keys[*at])).count() == 1;
        return (1..keys.len()).filter(second).collect();
    }
    let mut times: HashMap<Cow<'a, str>, usize> = HashMap::with_capacity(keys.len());
    let second = |(at, key): (usize, Key<'a>)| {
        let times = times.entry(key.text()).or_default();
        *times += 1;
        (*times == 2).then_some(at)
    };
    keys.into_iter().enumerate().filter_map(second).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(schema: &Value, value: &Value, expected: &[&str]) {
        let schema = json!({"type": "object", "properties": {"l": schema}});
        let schema = Structural::parse(&schema).unwrap();
        let errors: Vec<String> =
            validate_lists(&schema, &json!({"l": value})).iter().map(ToString::to_string).collect();
        assert_eq!(errors, expected);
    }

    #[test]
    fn items_of_a_set_are_unique() {
        let set = json!({"type": "array", "items": {}, "x-kubernetes-list-type": "set"});
        check(
            &set,
            &json!(["a", "b", "a", "a", "b"]),
            &[r#"l[2]: Duplicate value: "a""#, r#"l[4]: Duplicate value: "b""#],
        );
        check(&set, &json!([1, 1.0, "1", null, [1], [2]]), &[]);
        check(
            &set,
            &json!([{"x": 1}, {"x": 1}, 2.5, 2.5]),
            &[r#"l[1]: Duplicate value: {"x":1}"#, "l[3]: Duplicate value: 2.5"],
        );
    }

    #[test]
    fn items_of_a_list_map_have_unique_keys() {
        let one = json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]});
        check(&one, &json!([{"k": "a"}, {"k": "a", "v": 1}]), &[r#"l[1]: Duplicate value: {"k":"a"}"#]);
        check(&one, &json!([{}, null, {"k": "-"}]), &["l[1]: Duplicate value: {}"]);
        check(
            &one,
            &json!(["x"]),
            &[r#"l[0]: Invalid value: "x": must be an object for an array of list-type map"#],
        );
        let two = json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "n"]});
        check(
            &two,
            &json!([{"k": "a", "n": 1}, {"k": "a", "n": 2}, {"k": "a", "n": 1}]),
            &[r#"l[2]: Duplicate value: {"k":"a","n":1}"#],
        );
        check(&two, &json!([{"k": "a"}, {"k": "a"}]), &[r#"l[1]: Duplicate value: {"k":"a"}"#]);
    }

    #[test]
    fn long_lists_have_the_same_errors() {
        let set = json!({"type": "array", "items": {}, "x-kubernetes-list-type": "set"});
        let mut long: Vec<Value> = (0..40).map(Value::from).collect();
        long.extend([json!(1.0), json!("1"), json!([1]), json!([1.0]), json!(7), json!(7)]);
        check(&set, &long.into(), &["l[43]: Duplicate value: [1]", "l[44]: Duplicate value: 7"]);
        check(&set, &json!([1, 1.0, "1", [1], [1.0]]), &["l[4]: Duplicate value: [1]"]);
    }

    #[test]
    fn nested_lists_are_checked() {
        let nested = json!({"type": "object", "additionalProperties": {"type": "array", "items":
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}}});
        check(&nested, &json!({"k": [["a"], ["b", "b"]]}), &[r#"l[k][1][1]: Duplicate value: "b""#]);
    }
}
