//! Field access for objects that are plain JSON.
//!
//! A missing field, `null` and a value of another type all read as absent: decoding has already rejected
//! wrong types.

use serde_json::{Map, Value};

static NULL: Value = Value::Null;
static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);

/// Field access by dotted paths.
pub trait Fields {
    /// The value at a dotted path (`spec.template.spec`), or null.
    fn at(&self, path: &str) -> &Value;
    /// The string at a path, or the empty string.
    fn str_at(&self, path: &str) -> &str;
    /// The integer at a path.
    fn int_at(&self, path: &str) -> Option<i64>;
    /// The bool at a path, or false.
    fn bool_at(&self, path: &str) -> bool;
    /// The list at a path, or the empty one.
    fn list_at(&self, path: &str) -> &[Value];
    /// The map at a path, or the empty one.
    fn map_at(&self, path: &str) -> &Map<String, Value>;
    /// Whether a value other than null is at a path.
    fn has(&self, path: &str) -> bool;
    /// The object at a path. Creates it and its parents if absent.
    fn object_mut(&mut self, path: &str) -> &mut Map<String, Value>;
    /// The list at a path, if present.
    fn list_mut(&mut self, path: &str) -> Option<&mut Vec<Value>>;
    /// The value at a path, if present and not null.
    fn at_mut(&mut self, path: &str) -> Option<&mut Value>;
    /// Sets the value at a path if it is absent or null. Creates parents.
    fn default_at(&mut self, path: &str, value: impl Into<Value>);
    /// Sets the value at a path. Creates parents.
    fn set_at(&mut self, path: &str, value: impl Into<Value>);
    /// Removes the value at a path.
    fn remove_at(&mut self, path: &str) -> Option<Value>;
}

impl Fields for Value {
    fn at(&self, path: &str) -> &Value {
        let mut value = self;
        for name in names(path) {
            match value {
                Value::Object(fields) => match fields.get(name) {
                    Some(next) => value = next,
                    None => return &NULL,
                },
                _ => return &NULL,
            }
        }
        value
    }

    #[inline]
    fn str_at(&self, path: &str) -> &str {
        self.at(path).as_str().unwrap_or_default()
    }

    #[inline]
    fn int_at(&self, path: &str) -> Option<i64> {
        self.at(path).as_i64()
    }

    #[inline]
    fn bool_at(&self, path: &str) -> bool {
        self.at(path).as_bool().unwrap_or_default()
    }

    #[inline]
    fn list_at(&self, path: &str) -> &[Value] {
        self.at(path).as_array().map_or(&[], Vec::as_slice)
    }

    #[inline]
    fn map_at(&self, path: &str) -> &Map<String, Value> {
        self.at(path).as_object().unwrap_or(&EMPTY)
    }

    #[inline]
    fn has(&self, path: &str) -> bool {
        !self.at(path).is_null()
    }

    fn object_mut(&mut self, path: &str) -> &mut Map<String, Value> {
        let mut value = self;
        for name in names(path) {
            let fields = own(value);
            // Two lookups, so that the name is cloned only if it is missing.
            if !fields.contains_key(name) {
                fields.insert(name.to_owned(), Value::Null);
            }
            value = fields.get_mut(name).unwrap_or_else(|| unreachable!("inserted above"));
        }
        own(value)
    }

    fn list_mut(&mut self, path: &str) -> Option<&mut Vec<Value>> {
        self.at_mut(path).and_then(Value::as_array_mut)
    }

    fn at_mut(&mut self, path: &str) -> Option<&mut Value> {
        let mut value = self;
        for name in names(path) {
            value = value.get_mut(name)?;
        }
        (!value.is_null()).then_some(value)
    }

    fn default_at(&mut self, path: &str, value: impl Into<Value>) {
        if !self.has(path) {
            self.set_at(path, value);
        }
    }

    fn set_at(&mut self, path: &str, value: impl Into<Value>) {
        match path.rsplit_once('.') {
            Some((parent, name)) => self.object_mut(parent).insert(name.to_owned(), value.into()),
            None => own(self).insert(path.to_owned(), value.into()),
        };
    }

    fn remove_at(&mut self, path: &str) -> Option<Value> {
        match path.rsplit_once('.') {
            Some((parent, name)) => self.at_mut(parent)?.as_object_mut()?.remove(name),
            None => self.as_object_mut()?.remove(path),
        }
    }
}

/// Splits a dotted path. The names are short, so a byte-wise scan is fastest.
fn names(path: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(path);
    std::iter::from_fn(move || {
        let path = rest?;
        match path.bytes().position(|byte| byte == b'.') {
            Some(dot) => {
                rest = Some(&path[dot + 1..]);
                Some(&path[..dot])
            }
            None => rest.take(),
        }
    })
}

/// The value as an object. Any other value is replaced by an empty object.
fn own(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("set to an object above"),
    }
}

/// Equality like upstream's `equality.Semantic`: empty and absent lists and maps are equal.
pub fn semantically_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let matches = |(key, value): (&String, &Value), map: &Map<String, Value>| {
                semantically_equal(value, map.get(key).unwrap_or(&Value::Null))
            };
            one.iter().all(|entry| matches(entry, other))
                && other.iter().all(|(key, value)| one.contains_key(key) || is_nothing(value))
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(a, b)| semantically_equal(a, b))
        }
        _ => one == other || is_nothing(one) && is_nothing(other),
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn absent_null_and_wrong_types_read_as_absent() {
        let object = json!({"spec": {"a": null, "b": 3, "c": "x"}});
        assert!(!object.has("spec.a"));
        assert!(!object.has("spec.z.y"));
        assert_eq!(object.str_at("spec.b"), "");
        assert_eq!(object.int_at("spec.b"), Some(3));
        assert!(object.list_at("spec.c").is_empty());
        assert!(object.map_at("status").is_empty());
    }

    #[test]
    fn empty_and_absent_lists_and_maps_are_equal() {
        let one = json!({"a": [], "b": {"c": null}, "d": 1});
        assert!(semantically_equal(&one, &json!({"b": {}, "d": 1})));
        assert!(semantically_equal(&json!({"d": 1}), &json!({"a": [], "d": 1})));
        assert!(!semantically_equal(&one, &json!({"a": [0], "d": 1})));
        assert!(!semantically_equal(&one, &json!({"d": 2})));
    }

    #[test]
    fn a_default_does_not_override_a_value() {
        let mut object = json!({"spec": {"a": 1, "b": null}});
        object.default_at("spec.a", 2);
        object.default_at("spec.b", 2);
        object.default_at("spec.c.d", "x");
        assert_eq!(object, json!({"spec": {"a": 1, "b": 2, "c": {"d": "x"}}}));
    }

    #[test]
    fn removing_keeps_the_parents() {
        let mut object = json!({"spec": {"a": 1}});
        assert_eq!(object.remove_at("spec.a"), Some(json!(1)));
        assert_eq!(object.remove_at("spec.a.b"), None);
        assert_eq!(object, json!({"spec": {}}));
    }
}
