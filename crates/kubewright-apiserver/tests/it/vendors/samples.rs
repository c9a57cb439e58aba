//! Objects generated from schemas: the smallest and largest valid ones, and invalid ones.
//!
//! This interprets OpenAPI schemas independently of the server, so that both can be compared.

use regex::Regex;
use serde_json::{Map, Value, json};

/// Strings to try for a pattern.
const TEXTS: [&str; 9] =
    ["a", "1", "1s", "1B", "00:00", "2000", "monday", "january", "https://example.org/a"];

/// How many of a schema's fields an object has.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Fill {
    /// Required fields only.
    Least,
    /// All fields, except for mutually exclusive ones.
    Most,
}

/// A valid value for the schema.
pub(crate) fn sample(schema: &Value, fill: Fill) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
        return first.clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return json!(1);
    }
    match schema["type"].as_str() {
        Some("string") => text(schema).into(),
        Some("boolean") => json!(true),
        Some("integer" | "number") => json!(number(schema)),
        Some("array") => {
            let least = usize::from(fill == Fill::Most);
            (0..size(schema, "minItems", least)).map(|_| sample(&schema["items"], fill)).collect()
        }
        Some("object") => object(schema, fill),
        _ => json!({}),
    }
}

fn object(schema: &Value, fill: Fill) -> Value {
    let mut object = Map::new();
    if schema["x-kubernetes-embedded-resource"] == true {
        object.extend(embedded());
    }
    let alternatives = ["oneOf", "anyOf", "allOf", "not"].iter().any(|junctor| schema.get(junctor).is_some());
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let wanted = fill == Fill::Most && !alternatives;
        if !object.contains_key(name) && (wanted || requires(schema, name)) {
            object.insert(name.clone(), sample(property, fill));
        }
    }
    if fill == Fill::Most && schema["additionalProperties"].is_object() {
        object.insert("key".to_owned(), sample(&schema["additionalProperties"], fill));
    }
    object.into()
}

fn embedded() -> Map<String, Value> {
    let embedded = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "embedded"}});
    embedded.as_object().cloned().unwrap_or_default()
}

fn requires(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|required| required.iter().any(|found| found == name))
}

fn text(schema: &Value) -> String {
    match schema["format"].as_str() {
        Some("date-time") => return "2026-01-01T00:00:00Z".to_owned(),
        Some("byte") => return "YQ==".to_owned(),
        _ => {}
    }
    if let Some(pattern) = schema["pattern"].as_str() {
        let pattern = Regex::new(pattern).expect("a vendor's pattern is valid");
        let fits = TEXTS.iter().find(|text| pattern.is_match(text));
        return (*fits.unwrap_or_else(|| panic!("no text matches {pattern}"))).to_owned();
    }
    "a".repeat(size(schema, "minLength", 1))
}

/// The size that the schema requires, but at least `least`.
fn size(schema: &Value, keyword: &str, least: usize) -> usize {
    schema[keyword].as_u64().and_then(|size| usize::try_from(size).ok()).unwrap_or(0).max(least)
}

fn number(schema: &Value) -> i64 {
    let least = schema["minimum"].as_i64().unwrap_or(1).max(1);
    schema["maximum"].as_i64().map_or(least, |most| least.min(most))
}

/// An object with one mistake.
pub(crate) struct Mistake {
    pub(crate) sort: &'static str,
    pub(crate) object: Value,
    /// The field in the expected error.
    pub(crate) field: String,
    /// The text of the expected error.
    pub(crate) says: String,
}

/// All mistakes that the schema can detect, one per object, at most `of_a_sort` of each kind.
pub(crate) fn mistakes(schema: &Value, whole: &Value, of_a_sort: usize) -> Vec<Mistake> {
    let mut found = Found { mistakes: Vec::new(), of_a_sort };
    // The schema does not apply to top-level metadata.
    for name in ["spec", "status"] {
        let schema = &schema["properties"][name];
        if schema.is_object() && whole.get(name).is_some() {
            walk(schema, &Place { whole, pointer: format!("/{name}"), field: name.to_owned() }, &mut found);
        }
    }
    found.mistakes
}

struct Found {
    mistakes: Vec<Mistake>,
    of_a_sort: usize,
}

impl Found {
    /// Adds the object with another value at a place.
    fn wrong(&mut self, sort: &'static str, at: &Place<'_>, value: Value, says: &str) {
        let field = &at.field;
        self.add(sort, at, field.clone(), format!("{field}{says}"), |here| *here = value);
    }

    /// Adds the object without a field at a place.
    fn missing(&mut self, at: &Place<'_>, name: &str) {
        let field = format!("{}.{name}", at.field);
        self.add("missing", at, field.clone(), format!("{field}: Required value"), |here| {
            here.as_object_mut().and_then(|here| here.remove(name));
        });
    }

    fn add(
        &mut self,
        sort: &'static str,
        at: &Place<'_>,
        field: String,
        says: String,
        change: impl FnOnce(&mut Value),
    ) {
        if self.mistakes.iter().filter(|mistake| mistake.sort == sort).count() < self.of_a_sort {
            let mut object = at.whole.clone();
            object.pointer_mut(&at.pointer).map(change);
            self.mistakes.push(Mistake { sort, object, field, says });
        }
    }
}

/// A position within an object.
struct Place<'a> {
    whole: &'a Value,
    pointer: String,
    field: String,
}

impl Place<'_> {
    fn value(&self) -> &Value {
        self.whole.pointer(&self.pointer).unwrap_or(&Value::Null)
    }

    fn member(&self, name: &str) -> Place<'_> {
        let escaped = name.replace('~', "~0").replace('/', "~1");
        let field = format!("{}.{name}", self.field);
        Place { whole: self.whole, pointer: format!("{}/{escaped}", self.pointer), field }
    }

    fn item(&self, at: usize) -> Place<'_> {
        let field = format!("{}[{at}]", self.field);
        Place { whole: self.whole, pointer: format!("{}/{at}", self.pointer), field }
    }
}

fn walk(schema: &Value, at: &Place<'_>, found: &mut Found) {
    if schema["x-kubernetes-int-or-string"] == true {
        found.wrong("type", at, json!(true), " in body must be of type integer,string: \"boolean\"");
        return;
    }
    if let Some(right) = schema["type"].as_str() {
        // A string with a format is validated as the format's type, and a number as Go decodes it.
        let (wrong, right, given) = match (right, schema["format"].as_str()) {
            ("string", Some(format)) => (json!(7), format, "int64"),
            ("string", None) => (json!(7), right, "integer"),
            _ => (json!("x"), right, "string"),
        };
        found.wrong("type", at, wrong, &format!(" in body must be of type {right}: \"{given}\""));
    }
    if schema["enum"].is_array() {
        let says = ": Unsupported value: \"no-such-value\": supported values: ";
        found.wrong("enum", at, json!("no-such-value"), says);
    } else if let Some(pattern) = schema["pattern"].as_str() {
        found.wrong("pattern", at, json!("-\u{7}-"), &format!(" in body should match '{pattern}'"));
    }
    if let Some(least) = schema["minimum"].as_i64() {
        let says = format!(" in body should be greater than or equal to {least}");
        found.wrong("minimum", at, json!(least - 1), &says);
    }
    if schema["maxLength"].is_u64() {
        let most = size(schema, "maxLength", 0);
        let says = format!(": Too long: may not be more than {most} bytes");
        found.wrong("length", at, "a".repeat(most + 1).into(), &says);
    }
    if schema["format"] == "date-time" {
        found.wrong("format", at, json!("yesterday"), " in body must be of type date-time: \"yesterday\"");
    }
    match at.value() {
        Value::Array(items) => {
            for place in (0..items.len()).map(|item| at.item(item)) {
                walk(&schema["items"], &place, found);
            }
        }
        Value::Object(members) if schema["x-kubernetes-embedded-resource"] != true => {
            for name in members.keys() {
                if requires(schema, name) {
                    found.missing(at, name);
                }
                let property = schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]);
                walk(property, &at.member(name), found);
            }
        }
        _ => {}
    }
}
