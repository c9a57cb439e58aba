//! Index of list elements by their keys, for lists of type `map`.
//!
//! Avoids quadratic lookups in long lists.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::json;

/// List elements indexed by their keys. Of several elements with the same keys, the first one wins. Elements
/// with missing or non-scalar keys are not indexed.
#[derive(Debug)]
pub struct Keyed<'a, 'k> {
    keys: &'k [String],
    elements: HashMap<Vec<u8>, &'a Value>,
}

impl<'a, 'k> Keyed<'a, 'k> {
    /// Indexes `elements` by the values of `keys`.
    pub fn new(elements: &'a [Value], keys: &'k [String]) -> Self {
        let mut found = HashMap::with_capacity(elements.len());
        for element in elements {
            if let Some(text) = text(element, keys) {
                found.entry(text).or_insert(element);
            }
        }
        Self { keys, elements: found }
    }

    /// The indexed element with the same keys as `element`.
    pub fn find(&self, element: &Value) -> Option<&'a Value> {
        self.elements.get(&text(element, self.keys)?).copied()
    }
}

/// A unique encoding of the key values.
fn text(element: &Value, keys: &[String]) -> Option<Vec<u8>> {
    let fields = element.as_object()?;
    let mut text = Vec::new();
    for key in keys {
        match fields.get(key)? {
            value @ (Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                json::write_to(&mut text, value);
                text.push(b',');
            }
            _ => return None,
        }
    }
    (!keys.is_empty()).then_some(text)
}

/// Whether the list contains a value more than once.
pub fn has_duplicates(items: &[Value]) -> bool {
    let mut seen = HashSet::with_capacity(items.len());
    !items.iter().all(|item| seen.insert(json::to_vec(item)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_element_is_found_by_all_of_its_keys() {
        let items =
            [json!({"a": 1, "b": "x"}), json!({"a": 1, "b": "y", "c": 3}), json!({"a": "1", "b": "y"})];
        let keys = ["a".to_owned(), "b".to_owned()];
        let keyed = Keyed::new(&items, &keys);
        assert_eq!(keyed.find(&json!({"a": 1, "b": "y"})), Some(&items[1]));
        assert_eq!(keyed.find(&json!({"a": "1", "b": "y"})), Some(&items[2]));
        for absent in [json!({"a": 1}), json!({"a": 1, "b": []}), json!({"a": 2, "b": "x"}), json!(1)] {
            assert_eq!(keyed.find(&absent), None, "{absent}");
        }
    }

    #[test]
    fn the_first_of_several_elements_with_the_same_keys_wins() {
        let items = [json!({"a": 1, "at": 0}), json!({"a": 1, "at": 1})];
        let keys = ["a".to_owned()];
        assert_eq!(Keyed::new(&items, &keys).find(&json!({"a": 1})), Some(&items[0]));
    }

    #[test]
    fn elements_without_keys_are_not_found() {
        let items = [json!({"a": 1})];
        assert_eq!(Keyed::new(&items, &[]).find(&json!({"a": 1})), None);
    }

    #[test]
    fn duplicates_are_equal_values() {
        assert!(has_duplicates(&[json!([1]), json!("a"), json!([1])]));
        assert!(!has_duplicates(&[json!([1]), json!("1"), json!(1)]));
    }
}
