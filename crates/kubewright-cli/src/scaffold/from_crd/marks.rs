//! Schema keywords as Rust attributes.

use serde_json::{Map, Value};

/// An attribute for a keyword.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Mark {
    /// A marker in `kubewright::schema`.
    Marker(String),
    /// A verbatim keyword without a marker.
    Keyword(String, Value),
}

impl Mark {
    /// The attribute's source line.
    pub(super) fn line(&self) -> String {
        match self {
            Self::Marker(marker) => format!("#[schemars(transform = schema::{marker})]"),
            Self::Keyword(key, value) => format!("#[schemars(extend({key:?} = {}))]", literal(value)),
        }
    }

    /// Applies the attribute to list items or map values, which only markers support.
    pub(super) fn within(self, wrapper: &str) -> Result<Self, String> {
        match self {
            Self::Marker(marker) => Ok(Self::Marker(format!("{wrapper}(schema::{marker})"))),
            Self::Keyword(key, _) => Err(key),
        }
    }
}

/// The converted keywords of a schema.
#[derive(Debug, Default)]
pub(super) struct Marked {
    pub(super) marks: Vec<Mark>,
    /// The resulting schema keywords.
    pub(super) said: Map<String, Value>,
    /// Keywords that cannot be expressed.
    pub(super) lost: Vec<String>,
}

/// Converts all keywords except those expressed by the type (`form`).
pub(super) fn marks(schema: &Map<String, Value>, form: &[&str]) -> Marked {
    let mut made = Marked::default();
    let type_ = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    for (key, value) in schema {
        if ["description", "default", "nullable"].contains(&key.as_str()) || form.contains(&key.as_str()) {
            continue;
        }
        let value = whole(value);
        match mark(schema, key, &value, type_) {
            Some(marks) => {
                made.marks.extend(marks);
                made.said.insert(key.clone(), value);
            }
            None => made.lost.push(key.clone()),
        }
    }
    made
}

/// `None` if the keyword cannot be expressed; empty if another keyword's marker covers it.
fn mark(schema: &Map<String, Value>, key: &str, value: &Value, type_: &str) -> Option<Vec<Mark>> {
    let is_number = matches!(type_, "integer" | "number");
    let keyword = || Some(vec![Mark::Keyword(key.to_owned(), value.clone())]);
    let marker = |text: String| Some(vec![Mark::Marker(text)]);
    let exclusive = |key: &str| schema.get(key) == Some(&Value::Bool(true));
    match key {
        "minimum" if is_number && exclusive("exclusiveMinimum") => {
            marker(format!("exclusive_minimum({})", number(value)))
        }
        "maximum" if is_number && exclusive("exclusiveMaximum") => {
            marker(format!("exclusive_maximum({})", number(value)))
        }
        "exclusiveMinimum" | "exclusiveMaximum" if is_number => Some(Vec::new()),
        "minimum" | "maximum" if is_number => marker(format!("{key}({})", number(value))),
        "multipleOf" if is_number => marker(format!("multiple_of({})", number(value))),
        "minLength" if type_ == "string" => marker(format!("min_length({value})")),
        "maxLength" if type_ == "string" => marker(format!("max_length({value})")),
        "pattern" if type_ == "string" => marker(format!("pattern({})", text(value.as_str()?))),
        "format" if type_ == "string" => match format(value.as_str()?) {
            Some(known) => marker(format!("format(Format::{known})")),
            None => keyword(),
        },
        "minItems" if type_ == "array" => marker(format!("min_items({value})")),
        "maxItems" if type_ == "array" => marker(format!("max_items({value})")),
        "minProperties" if type_ == "object" => marker(format!("min_properties({value})")),
        "maxProperties" if type_ == "object" => marker(format!("max_properties({value})")),
        "enum" => {
            let all = value.as_array()?;
            // Values that a Rust list literal supports.
            if all.iter().all(Value::is_string) || all.iter().all(Value::is_i64) {
                marker(format!("enumeration({})", literal(value)))
            } else {
                keyword()
            }
        }
        "title" => marker(format!("title({})", text(value.as_str()?))),
        "x-kubernetes-list-type" if type_ == "array" => match value.as_str()? {
            "map" => {
                let keys = schema.get("x-kubernetes-list-map-keys")?;
                marker(format!("list_map({})", literal(keys)))
            }
            other => marker(format!("list_{other}()")),
        },
        "x-kubernetes-list-map-keys" => Some(Vec::new()),
        "x-kubernetes-map-type" if type_ == "object" && value == "atomic" => {
            marker("atomic_struct()".to_owned())
        }
        "x-kubernetes-validations" => {
            let rules: Option<Vec<Mark>> = value.as_array()?.iter().map(rule).collect();
            rules.or_else(keyword)
        }
        "oneOf" | "anyOf" | "allOf" => {
            let judges = value.as_array()?.iter().all(only_judges);
            if judges { keyword() } else { None }
        }
        "not" if only_judges(value) => keyword(),
        "minimum"
        | "maximum"
        | "multipleOf"
        | "minLength"
        | "maxLength"
        | "pattern"
        | "format"
        | "minProperties"
        | "maxProperties"
        | "minItems"
        | "maxItems"
        | "example"
        | "externalDocs"
        | "x-kubernetes-map-type"
        | "x-kubernetes-embedded-resource" => keyword(),
        _ => None,
    }
}

/// A CEL rule with at most a message.
fn rule(rule: &Value) -> Option<Mark> {
    let rule = rule.as_object()?;
    let said = text(rule.get("rule")?.as_str()?);
    match (rule.len(), rule.get("message").and_then(Value::as_str)) {
        (1, _) => Some(Mark::Marker(format!("validation({said})"))),
        (2, Some(message)) => Some(Mark::Marker(format!("validation(({said}, {}))", text(message)))),
        _ => None,
    }
}

/// Whether a subschema only lists required fields.
fn only_judges(schema: &Value) -> bool {
    schema.as_object().is_some_and(|schema| {
        schema.iter().all(|(key, value)| match key.as_str() {
            "required" => true,
            "oneOf" | "anyOf" | "allOf" => value.as_array().is_some_and(|all| all.iter().all(only_judges)),
            "not" => only_judges(value),
            _ => false,
        })
    })
}

/// A Rust literal for the number.
fn number(value: &Value) -> String {
    match value.as_i64() {
        Some(small) if i32::try_from(small).is_ok() => small.to_string(),
        Some(large) => format!("{large}_i64"),
        None => value.as_f64().map_or_else(|| value.to_string(), |float| format!("{float:?}")),
    }
}

/// `1.0` becomes 1, as CRDs are printed.
fn whole(value: &Value) -> Value {
    let exact = value
        .as_f64()
        .filter(|float| value.is_f64() && float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0);
    exact
        .and_then(|float| format!("{float:.0}").parse::<i64>().ok())
        .map_or_else(|| value.clone(), Value::from)
}

/// A string literal, raw if that avoids backslashes.
pub(super) fn text(text: &str) -> String {
    if !text.contains(['\\', '"']) || text.chars().any(char::is_control) {
        return format!("{text:?}");
    }
    let fence = if text.contains('"') { "#" } else { "" };
    if text.contains("\"#") { format!("{text:?}") } else { format!("r{fence}\"{text}\"{fence}") }
}

/// JSON for Rust macros, with strings escaped as in Rust.
pub(super) fn literal(value: &Value) -> String {
    match value {
        Value::String(string) => format!("{string:?}"),
        Value::Array(list) => {
            let list: Vec<String> = list.iter().map(literal).collect();
            format!("[{}]", list.join(", "))
        }
        Value::Object(map) => {
            let map: Vec<String> =
                map.iter().map(|(key, value)| format!("{key:?}: {}", literal(value))).collect();
            format!("{{{}}}", map.join(", "))
        }
        other => other.to_string(),
    }
}

/// The variant of `kubewright::schema::Format`.
fn format(name: &str) -> Option<&'static str> {
    const FORMATS: &[(&str, &str)] = &[
        ("byte", "Byte"),
        ("date", "Date"),
        ("date-time", "DateTime"),
        ("duration", "Duration"),
        ("email", "Email"),
        ("hostname", "Hostname"),
        ("ipv4", "Ipv4"),
        ("ipv6", "Ipv6"),
        ("cidr", "Cidr"),
        ("mac", "Mac"),
        ("uri", "Uri"),
        ("uuid", "Uuid"),
        ("uuid3", "Uuid3"),
        ("uuid4", "Uuid4"),
        ("uuid5", "Uuid5"),
        ("hexcolor", "HexColor"),
        ("rgbcolor", "RgbColor"),
        ("bsonobjectid", "BsonObjectId"),
        ("creditcard", "CreditCard"),
        ("isbn", "Isbn"),
        ("isbn10", "Isbn10"),
        ("isbn13", "Isbn13"),
        ("password", "Password"),
        ("ssn", "Ssn"),
        ("k8s-short-name", "ShortName"),
        ("k8s-long-name", "LongName"),
    ];
    FORMATS.iter().find(|(known, _)| *known == name).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(schema: &Value) -> Vec<String> {
        let made = marks(schema.as_object().expect("a schema"), &["type"]);
        made.marks.iter().map(Mark::line).chain(made.lost.iter().map(|key| format!("lost {key}"))).collect()
    }

    #[test]
    fn keywords_become_markers_if_available() {
        let schema = json!({
            "type": "string",
            "minLength": 1,
            "pattern": "^\\d+\"$",
            "format": "ipv4",
            "x-kubernetes-validations": [{ "rule": "self != 'a'", "message": "no a" }],
            "x-mine": true,
        });
        insta::assert_snapshot!(lines(&schema).join("\n"), @r##"
        #[schemars(transform = schema::format(Format::Ipv4))]
        #[schemars(transform = schema::min_length(1))]
        #[schemars(transform = schema::pattern(r#"^\d+"$"#))]
        #[schemars(transform = schema::validation(("self != 'a'", "no a")))]
        lost x-mine
        "##);
    }

    #[test]
    fn other_keywords_are_kept_verbatim() {
        let schema = json!({
            "type": "object",
            "maxProperties": 3,
            "oneOf": [{ "required": ["a"] }, { "required": ["b"] }],
            "allOf": [{ "properties": { "a": { "minimum": 1 } } }],
            "x-kubernetes-validations": [{ "rule": "self.a", "reason": "FieldValueInvalid" }],
        });
        insta::assert_snapshot!(lines(&schema).join("\n"), @r##"
        #[schemars(transform = schema::max_properties(3))]
        #[schemars(extend("oneOf" = [{"required": ["a"]}, {"required": ["b"]}]))]
        #[schemars(extend("x-kubernetes-validations" = [{"reason": "FieldValueInvalid", "rule": "self.a"}]))]
        lost allOf
        "##);
    }

    #[test]
    fn numbers_are_rust_literals() {
        let schema = json!({
            "type": "number", "minimum": 0.5, "maximum": 9_000_000_000_i64, "exclusiveMaximum": true, "multipleOf": 2.0
        });
        insta::assert_snapshot!(lines(&schema).join("\n"), @r"
        #[schemars(transform = schema::exclusive_maximum(9000000000_i64))]
        #[schemars(transform = schema::minimum(0.5))]
        #[schemars(transform = schema::multiple_of(2))]
        ");
    }
}
