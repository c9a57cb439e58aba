//! Converts schemas of schemars to structural schemas.
//!
//! A single pass over a schema without references. Each step keeps the meaning if a structural schema can
//! express it, and otherwise reports a [`Found`]. The result has only keywords of `JSONSchemaProps`.

mod keywords;
mod notes;

use serde_json::{Map, Value, json};

use super::inline::overlay;
use crate::schema::note;
use crate::schema::union::{self, INT_OR_STRING, PRESERVE};

/// A problem and its location.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) code: &'static str,
    /// Whether it is only a warning.
    pub(super) warning: bool,
    pub(super) field: String,
    pub(super) message: String,
    pub(super) help: String,
}

/// The path of a nested field.
pub(super) fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Makes a schema structural. Returns the paths of internally tagged enums.
pub(super) fn settle(schema: &mut Value, found: &mut Vec<Found>) -> Vec<String> {
    let mut walk = Walk { found, tagged: Vec::new() };
    walk.schema(schema, "", Place::Value);
    walk.tagged
}

/// The position of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The schema of a value.
    Value,
    /// An alternative in `anyOf` or `oneOf`.
    Variant,
}

struct Walk<'a> {
    found: &'a mut Vec<Found>,
    tagged: Vec<String>,
}

impl Walk<'_> {
    fn schema(&mut self, schema: &mut Value, path: &str, place: Place) {
        match schema {
            Value::Object(map) => self.object(map, path, place),
            Value::Bool(false) => {
                self.report("KW107", path, "this type has no values", "remove the field, or change its type");
                *schema = json!({ PRESERVE: true });
            }
            _ => *schema = json!({ PRESERVE: true }),
        }
    }

    fn object(&mut self, map: &mut Map<String, Value>, path: &str, place: Place) {
        self.drop_null(map, path);
        self.choices(map, path);
        keywords::translate(self, map, path);
        self.inside(map, path);
        if !map.contains_key("type") && !map.contains_key(INT_OR_STRING) && place == Place::Value {
            // The API server requires this for a schema without constraints.
            map.insert(PRESERVE.to_owned(), true.into());
        }
        if map.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true))
            && !map.contains_key("properties")
        {
            map.insert(PRESERVE.to_owned(), true.into());
        }
        for note in note::take(map) {
            notes::check(self, map, &note, path);
        }
        keywords::prune(self, map, path);
    }

    /// Removes null from an `Option`, which only means that the field may be absent. A marker makes it
    /// nullable.
    fn drop_null(&mut self, map: &mut Map<String, Value>, path: &str) {
        if let Some(Value::Array(types)) = map.get_mut("type") {
            types.retain(|one| one != "null");
            match types.as_slice() {
                [one] => {
                    let one = one.clone();
                    map.insert("type".to_owned(), one);
                }
                [] => _ = map.insert("type".to_owned(), "null".into()),
                _ => {
                    // Equivalent to alternatives.
                    let choices = types.iter().map(|one| json!({ "type": one })).collect();
                    map.remove("type");
                    map.insert("anyOf".to_owned(), choices);
                }
            }
        }
        for choice in ["anyOf", "oneOf"] {
            let Some(Value::Array(variants)) = map.get_mut(choice) else { continue };
            variants.retain(|variant| !is_null(variant));
            if let [only] = variants.as_mut_slice() {
                let only = std::mem::take(only);
                map.remove(choice);
                if let Value::Object(mut inner) = only {
                    let beside = std::mem::take(map);
                    // The alternative may contain alternatives itself.
                    self.drop_null(&mut inner, path);
                    overlay(&mut inner, beside);
                    *map = inner;
                }
            }
        }
        if let Some(Value::Array(values)) = map.get_mut("enum") {
            values.retain(|value| !value.is_null());
        }
        if map.get("type").is_some_and(|one| one == "null") {
            self.report(
                "KW107",
                path,
                "`()` and unit structs are always null, which CRD schemas cannot express",
                "remove the field, or make it a struct with empty braces",
            );
            map.insert("type".to_owned(), "object".into());
        }
    }

    fn choices(&mut self, map: &mut Map<String, Value>, path: &str) {
        for choice in ["allOf", "oneOf", "anyOf"] {
            if map.contains_key(INT_OR_STRING) {
                break;
            }
            let Some(Value::Array(variants)) = map.get_mut(choice) else { continue };
            for variant in variants {
                self.schema(variant, path, Place::Variant);
            }
        }
        match union::hoist(map) {
            Ok(tags) if tags.is_empty() => {}
            Ok(_) => self.tagged.push(path.to_owned()),
            Err(problem) => {
                let message = format!("CRD schemas cannot represent this enum: {problem}");
                self.report("KW105", path, &message, problem.remedy());
                map.retain(|key, _| matches!(key.as_str(), "description" | "title" | "default"));
                map.insert(PRESERVE.to_owned(), true.into());
            }
        }
    }

    fn inside(&mut self, map: &mut Map<String, Value>, path: &str) {
        if let Some(Value::Object(fields)) = map.get_mut("properties") {
            for (name, field) in fields {
                self.schema(field, &child(path, name), Place::Value);
            }
        }
        if let Some(items) = map.get_mut("items") {
            self.schema(items, &format!("{path}[]"), Place::Value);
        }
        if let Some(values) = map.get_mut("additionalProperties") {
            self.schema(values, &format!("{path}[*]"), Place::Value);
        }
    }

    fn report(&mut self, code: &'static str, path: &str, message: &str, help: &str) {
        self.add(code, false, path, message, help);
    }

    fn warn(&mut self, code: &'static str, path: &str, message: &str, help: &str) {
        self.add(code, true, path, message, help);
    }

    fn add(&mut self, code: &'static str, warning: bool, path: &str, message: &str, help: &str) {
        // A variant and the schema that it was merged into have the same path.
        if !self
            .found
            .iter()
            .any(|known| known.code == code && known.field == path && known.message == message)
        {
            let (message, help) = (message.to_owned(), help.to_owned());
            self.found.push(Found { code, warning, field: path.to_owned(), message, help });
        }
    }
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").is_some_and(|one| one == "null") || schema.get("const").is_some_and(Value::is_null)
}
