//! Typed values: identification of list items, field sets, and validation against the schema.
//!
//! [`validate`] runs first: all other operations require valid values.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;

use super::path::{Element, go_number};
use super::schema::{Fields, Keys, List, Map, Relation, Scalar, Shape, Ty};
use super::set::Set;
use kubewright_apimachinery::field::quote;

/// Whether lists may contain duplicate items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Duplicates {
    Allowed,
    Refused,
}

/// Validates a value. The error lists all problems, one line with a path for each.
pub(crate) fn validate(ty: Ty<'_>, value: &Value, duplicates: Duplicates) -> Result<(), String> {
    let mut walk = Validation { duplicates, path: Vec::new(), errors: Vec::new() };
    walk.value(ty, value);
    match walk.errors.as_slice() {
        [] => Ok(()),
        [error] => Err(error.clone()),
        errors => Err(format!("errors:\n  {}", errors.join("\n  "))),
    }
}

/// The field set of a value.
pub(crate) fn field_set(ty: Ty<'_>, value: &Value) -> Set {
    below(ty, value).1
}

/// The fields below a value, and whether the value itself is a field.
fn below(ty: Ty<'_>, value: &Value) -> (bool, Set) {
    match ty.shape_of(value) {
        Shape::Scalar(_) => (true, Set::default()),
        Shape::List(list) if list.is_atomic() => (true, Set::default()),
        Shape::Map(map) if map.atomic => (true, Set::default()),
        Shape::List(list) => (false, list_set(&list, value)),
        Shape::Map(map) => {
            let mut set = Set::default();
            for (name, value) in value.as_object().into_iter().flatten() {
                let named = map.field(name);
                let (own, children) = below(named.or(map.element).unwrap_or(Ty::Untyped), value);
                let empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
                let element = match named {
                    Some(Ty::Field(field)) => Element::known(field.name),
                    _ => Element::field(name),
                };
                set.push(element, own || empty || named.is_none(), children);
            }
            (false, set)
        }
    }
}

/// The items of a list with their path elements, sorted. Skips items without a key.
pub(crate) fn named_items<'v>(list: &List<'_>, value: &'v Value) -> Vec<(Element, &'v Value)> {
    let items = value.as_array().into_iter().flatten();
    let mut named: Vec<(Element, &Value)> =
        items.filter_map(|item| Some((element(list, item).ok()?, item))).collect();
    named.sort_by(|a, b| a.0.cmp(&b.0));
    named
}

fn list_set(list: &List<'_>, value: &Value) -> Set {
    let mut set = Set::default();
    for same in named_items(list, value).chunk_by(|a, b| a.0 == b.0) {
        // Duplicate items are owned as one element, without their fields.
        let children = if let [(_, item)] = same { below(list.element, item).1 } else { Set::default() };
        set.push(same[0].0.clone(), true, children);
    }
    set
}

/// The path element of an item of a non-atomic list.
pub(crate) fn element(list: &List<'_>, item: &Value) -> Result<Element, String> {
    check_item(list, item)?;
    let Relation::Keys(keys) = list.relation else {
        return Ok(Element::Value(Arc::new(item.clone())));
    };
    let map = list.element.atom().map;
    let fields = keys.iter().filter_map(|name| {
        let value = item.get(name).cloned().or_else(|| map.and_then(|map| map.default_of(name)))?;
        Some((name.into(), value))
    });
    Ok(Element::key(fields.collect()))
}

/// Why an item has no path element, in upstream's wording.
fn check_item(list: &List<'_>, item: &Value) -> Result<(), String> {
    let text = match list.relation {
        Relation::Atomic => "invalid indexing of non-associative list",
        Relation::Set => match item {
            Value::Object(_) => "associative list without keys has an element that's a map type",
            Value::Array(_) => "not supported: associative list with lists as elements",
            Value::Null => "associative list without keys has an element that's an explicit null",
            _ => return Ok(()),
        },
        Relation::Keys(keys) => match item {
            Value::Object(_) => return check_keys(list, keys, item),
            Value::Null => "associative list with keys may not have a null element",
            _ => "associative list with keys may not have non-map elements",
        },
    };
    Err(text.to_owned())
}

fn check_keys(list: &List<'_>, keys: Keys<'_>, item: &Value) -> Result<(), String> {
    if keys.iter().any(|name| item.get(name).is_some()) {
        return Ok(());
    }
    let map = list.element.atom().map;
    if keys.iter().any(|name| map.is_some_and(|map| map.default_of(name).is_some())) {
        return Ok(());
    }
    let names: Vec<String> = keys.iter().map(quote).collect();
    Err(format!(
        "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for \
         any key fields)",
        names.join(" ")
    ))
}

/// One step of the path during validation. Formatted only for errors.
enum Step<'v> {
    Field(&'v str),
    Item(Element),
    Position(usize),
    Unnamed(List<'v>, &'v Value),
}

struct Validation<'v> {
    duplicates: Duplicates,
    path: Vec<Step<'v>>,
    errors: Vec<String>,
}

impl<'v> Validation<'v> {
    fn value(&mut self, ty: Ty<'v>, value: &'v Value) {
        match ty.shape_of(value) {
            Shape::Scalar(scalar) => {
                if let Some(error) = scalar_error(scalar, value) {
                    self.error(&error);
                }
            }
            Shape::List(list) => match value {
                Value::Null => {}
                Value::Array(items) => self.items(list, items),
                _ => self.error(&format!("expected list, got &{{{}}}", go_value(value))),
            },
            Shape::Map(map) => match value {
                Value::Null => {}
                Value::Object(fields) => self.fields(map, fields),
                _ => self.error(&format!("expected map, got &{{{}}}", go_value(value))),
            },
        }
    }

    fn items(&mut self, list: List<'v>, items: &'v [Value]) {
        let mut seen: Vec<Element> = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let step = if list.is_atomic() {
                Step::Position(index)
            } else if let Err(error) = check_item(&list, item) {
                self.error(&format!("element {index}: {error}"));
                return;
            } else if self.duplicates == Duplicates::Allowed {
                Step::Unnamed(list, item)
            } else {
                let Ok(element) = element(&list, item) else { return };
                match seen.binary_search(&element) {
                    Ok(_) => self.error(&format!("duplicate entries for key {element}")),
                    Err(at) => seen.insert(at, element.clone()),
                }
                Step::Item(element)
            };
            self.path.push(step);
            self.value(list.element, item);
            self.path.pop();
        }
    }

    fn fields(&mut self, map: Map<'v>, fields: &'v serde_json::Map<String, Value>) {
        let metadata = matches!(map.fields, Fields::Known(ty) if ty.name == "meta.v1.ObjectMeta");
        for (name, value) in fields {
            // Skip managedFields: the server wrote them, and they are often the largest part of an object.
            if metadata && name == "managedFields" {
                continue;
            }
            self.path.push(Step::Field(name));
            let ty = map.at(name);
            match ty {
                Some(ty) => self.value(ty, value),
                None => self.error("field not declared in schema"),
            }
            self.path.pop();
            if ty.is_none() {
                return;
            }
        }
    }

    fn error(&mut self, message: &str) {
        let mut text = String::new();
        for step in &self.path {
            let written = match step {
                Step::Field(name) => write!(text, ".{name}"),
                Step::Item(element) => write!(text, "{element}"),
                Step::Position(index) => write!(text, "[{index}]"),
                Step::Unnamed(list, item) => match element(list, item) {
                    Ok(element) => write!(text, "{element}"),
                    Err(_) => Ok(()),
                },
            };
            // Writing to a string cannot fail.
            written.ok();
        }
        let gap = if text.is_empty() { "" } else { ": " };
        self.errors.push(format!("{text}{gap}{message}"));
    }
}

fn scalar_error(scalar: Scalar, value: &Value) -> Option<String> {
    let (fits, expected) = match scalar {
        _ if value.is_null() => return None,
        Scalar::Numeric => (value.is_number(), "numeric (int or float)"),
        Scalar::String => (value.is_string(), "string"),
        Scalar::Boolean => (value.is_boolean(), "boolean"),
        Scalar::Untyped => (!value.is_array() && !value.is_object(), "any scalar"),
    };
    // Upstream uses a different format verb for each scalar type.
    let got = match scalar {
        _ if fits => return None,
        Scalar::Numeric => go_type(value).to_owned(),
        Scalar::String => format!("&value.valueUnstructured{{Value:{}}}", go_syntax(value)),
        Scalar::Boolean | Scalar::Untyped => format!("&{{{}}}", go_value(value)),
    };
    Some(format!("expected {expected}, got {got}"))
}

/// The value as Go's `%v` prints it.
fn go_value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => go_number(number),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(go_value).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name}:{}", go_value(value)));
            format!("map[{}]", fields.collect::<Vec<_>>().join(" "))
        }
    }
}

/// The value as Go's `%#v` prints it.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => quote(text),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(go_syntax).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{}:{}", quote(name), go_syntax(value)));
            format!("map[string]interface {{}}{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        _ => go_value(value),
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
