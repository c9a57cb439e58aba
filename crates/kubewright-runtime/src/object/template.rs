//! The expansion of `object!`. Use the macro instead.
//!
//! An object is one JSON text with null for every expression, and the values of the expressions with their pointers.
//! Building it never fails: the [`ApplyObject`] stores the error and returns it when it is checked, sent or completed.

use serde_json::{Map, Value};

use super::shape::Fits;
use super::{ApplyObject, ObjectError, check, check_facts};
use crate::{Gvk, Object};

/// The value of an expression, or a computed key.
#[derive(Debug)]
pub struct Hole {
    /// An RFC 6901 pointer to the value, or to the map of a key.
    pointer: &'static str,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Value { value: Result<Value, serde_json::Error>, is_checked: bool },
    Nothing,
    Key { stands_for: &'static str, key: String },
}

/// `key: expression`
pub fn value<S, T: Fits<S> + ?Sized>(pointer: &'static str, value: &T) -> Hole {
    Hole { pointer, content: Content::Value { value: value.to_json(), is_checked: T::STATIC } }
}

/// `key?: expression`
pub fn optional<S, T: Fits<S>>(pointer: &'static str, option: &Option<T>) -> Hole {
    option.as_ref().map_or(Hole { pointer, content: Content::Nothing }, |it| value(pointer, it))
}

/// `(expression): ...`
pub fn key(pointer: &'static str, stands_for: &'static str, key: &(impl AsRef<str> + ?Sized)) -> Hole {
    Hole { pointer, content: Content::Key { stands_for, key: key.as_ref().to_owned() } }
}

/// An object of a built-in kind. Values that the macro could not check are validated at run time.
pub fn builtin<K: Object>(text: &str, holes: &mut [Hole]) -> ApplyObject<K> {
    let (members, error, is_checked) = fill(text, holes);
    // Not `check`, which would compile the Deserialize implementation of K.
    let check = |gvk: &Gvk, members: &mut Map<_, _>| check_facts(gvk, members).unwrap_or(Ok(()));
    ApplyObject::new(members, error, if is_checked { |_, _| Ok(()) } else { check })
}

/// A custom resource, which is validated as a whole.
pub fn custom<K: Object>(text: &str, holes: &mut [Hole]) -> ApplyObject<K> {
    let (members, error, _) = fill(text, holes);
    ApplyObject::new(members, error, check::<K>)
}

/// The object, the first encoding error, and whether all values are known to fit.
fn fill(text: &str, holes: &mut [Hole]) -> (Map<String, Value>, Option<ObjectError>, bool) {
    let mut object: Value = serde_json::from_str(text).expect("the macro generates valid JSON");
    let (mut error, mut all_checked) = (None, true);
    for Hole { pointer, content } in holes {
        match std::mem::replace(content, Content::Nothing) {
            Content::Value { value: Ok(value), is_checked } => {
                all_checked &= is_checked;
                if let Some(place) = object.pointer_mut(pointer) {
                    *place = value;
                }
            }
            Content::Value { value: Err(source), .. } => {
                error.get_or_insert(ObjectError::Encode { path: dotted(pointer), source: source.into() });
            }
            Content::Nothing => {
                let (parent, name) = pointer.rsplit_once('/').unwrap_or_default();
                if let Some(Value::Object(members)) = object.pointer_mut(parent) {
                    members.remove(&name.replace("~1", "/").replace("~0", "~"));
                }
            }
            Content::Key { stands_for, key } => {
                if let Some(Value::Object(members)) = object.pointer_mut(pointer)
                    && let Some(value) = members.remove(stands_for)
                {
                    members.insert(key, value);
                }
            }
        }
    }
    let Value::Object(members) = object else { return (Map::new(), error, all_checked) };
    (members, error, all_checked)
}

/// Converts a pointer to a dotted path.
fn dotted(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".").replace("~1", "/").replace("~0", "~")
}
