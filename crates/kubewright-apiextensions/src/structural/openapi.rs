//! The published OpenAPI v3 form of a schema.
//!
//! Keywords with zero values are omitted, like in a round trip through upstream's types.

use kubewright_cel::rules::Rule;
use serde_json::{Map, Value, json};

use super::{
    Additional, Docs, Junctors, ListType, MapType, NumberBounds, SizeBounds, StringBounds, Structural,
};

impl Structural {
    /// The schema in OpenAPI v3, without `apiVersion`, `kind` and `metadata` of resources.
    pub fn to_openapi(&self) -> Map<String, Value> {
        schema(self, false)
    }
}

/// Upstream drops `additionalProperties` inside `allOf`, `anyOf`, `oneOf` and `not` (`nested`).
fn schema(schema: &Structural, nested: bool) -> Map<String, Value> {
    let below = |of: &Structural| Value::Object(self::schema(of, nested));
    let mut out = Published::default();
    out.set("type", schema.type_name());
    out.set("nullable", schema.nullable);
    out.set("format", schema.format.as_ref().map_or("", |format| &format.name));
    out.set("enum", schema.allowed.as_ref().map_or(&[][..], |allowed| allowed.values()));
    out.set(
        "properties",
        schema.properties.iter().map(|(name, of)| (name.clone(), below(of))).collect::<Map<_, _>>(),
    );
    match &schema.additional {
        Some(Additional::Allowed(allowed)) if !nested => out.keep("additionalProperties", Some(*allowed)),
        Some(Additional::Schema(of)) if !nested => out.keep("additionalProperties", Some(below(of))),
        _ => {}
    }
    out.keep("items", schema.items.as_deref().map(below));
    out.set("required", schema.required.as_slice());
    if let Some(bounds) = &schema.number {
        out.number(bounds);
    }
    if let Some(bounds) = &schema.string {
        out.string(bounds);
    }
    if let Some(bounds) = &schema.size {
        out.size(bounds);
    }
    if let Some(junctors) = &schema.junctors {
        out.junctors(junctors);
    }
    if let Some(docs) = &schema.docs {
        out.docs(docs);
    }
    out.keep("default", schema.default.clone());
    out.set("x-kubernetes-preserve-unknown-fields", schema.preserve_unknown_fields);
    out.set("x-kubernetes-int-or-string", schema.int_or_string);
    out.set("x-kubernetes-embedded-resource", schema.embedded_resource);
    out.keep("x-kubernetes-list-type", schema.list_type.map(ListType::name));
    out.set("x-kubernetes-list-map-keys", schema.list_map_keys.as_slice());
    out.keep("x-kubernetes-map-type", schema.map_type.map(MapType::name));
    out.set("x-kubernetes-validations", schema.validations.iter().map(rule).collect::<Vec<_>>());
    if schema.int_or_string && !nested {
        out.unfold();
    }
    out.0
}

fn rule(rule: &Rule) -> Value {
    let mut out = Published::default();
    out.keep("rule", Some(rule.expression.as_str()));
    out.set("message", rule.message.as_str());
    out.set("messageExpression", rule.message_expression.as_str());
    out.keep("reason", rule.reason.as_deref());
    out.set("fieldPath", rule.field_path.as_str());
    out.keep("optionalOldSelf", rule.optional_old_self);
    Value::Object(out.0)
}

#[derive(Default)]
struct Published(Map<String, Value>);

impl Published {
    /// Sets a keyword unless its value is false or empty.
    fn set(&mut self, name: &str, value: impl Into<Value>) {
        let value = value.into();
        let is_zero = match &value {
            Value::Null | Value::Bool(false) => true,
            Value::Bool(true) | Value::Number(_) => false,
            Value::String(text) => text.is_empty(),
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => map.is_empty(),
        };
        if !is_zero {
            self.0.insert(name.to_owned(), value);
        }
    }

    /// Sets a keyword whose zero value is valid.
    fn keep(&mut self, name: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.0.insert(name.to_owned(), value.into());
        }
    }

    fn number(&mut self, bounds: &NumberBounds) {
        let bound = |bound: &Option<_>| bound.clone().map(Value::Number);
        self.keep("minimum", bound(&bounds.minimum));
        self.set("exclusiveMinimum", bounds.exclusive_minimum);
        self.keep("maximum", bound(&bounds.maximum));
        self.set("exclusiveMaximum", bounds.exclusive_maximum);
        self.keep("multipleOf", bound(&bounds.multiple_of));
    }

    fn string(&mut self, bounds: &StringBounds) {
        self.keep("minLength", bounds.min_length);
        self.keep("maxLength", bounds.max_length);
        self.keep("pattern", bounds.pattern.as_ref().map(super::Pattern::as_str));
    }

    fn size(&mut self, bounds: &SizeBounds) {
        self.keep("minItems", bounds.min_items);
        self.keep("maxItems", bounds.max_items);
        self.set("uniqueItems", bounds.unique_items);
        self.keep("minProperties", bounds.min_properties);
        self.keep("maxProperties", bounds.max_properties);
    }

    fn junctors(&mut self, junctors: &Junctors) {
        let clause = |of: &Structural| Value::Object(schema(of, true));
        for (name, clauses) in
            [("allOf", &junctors.all_of), ("anyOf", &junctors.any_of), ("oneOf", &junctors.one_of)]
        {
            self.set(name, clauses.iter().map(clause).collect::<Vec<_>>());
        }
        self.keep("not", junctors.not.as_ref().map(clause));
    }

    fn docs(&mut self, docs: &Docs) {
        self.set("title", docs.title.as_str());
        self.set("description", docs.description.as_str());
        self.keep("externalDocs", docs.external_docs.clone());
        self.keep("example", docs.example.clone());
    }

    /// Expresses `x-kubernetes-int-or-string` in standard OpenAPI, unless the schema already does.
    fn unfold(&mut self) {
        let either = json!([{ "type": "integer" }, { "type": "string" }]);
        let first_of_all =
            self.0.get("allOf").and_then(|all| all.get(0)).and_then(|first| first.get("anyOf"));
        if self.0.get("anyOf") == Some(&either) || first_of_all == Some(&either) {
            return;
        }
        if self.0.contains_key("anyOf") {
            let all = self.0.entry("allOf").or_insert_with(|| json!([]));
            if let Value::Array(all) = all {
                all.insert(0, json!({ "anyOf": either }));
            }
        } else {
            self.0.insert("anyOf".to_owned(), either);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_keywords_of_a_structural_schema_are_published() {
        let schema = json!({
            "type": "object", "title": "T", "description": "D", "example": "", "required": ["a"],
            "externalDocs": { "url": "https://example.com" },
            "minProperties": 0, "maxProperties": 9, "x-kubernetes-map-type": "granular",
            "properties": {
                "a": { "type": "string", "format": "bogus", "minLength": 0, "maxLength": 5, "pattern": "^(a)+$",
                    "enum": ["a", "aa"], "nullable": true, "x-kubernetes-validations": [{
                        "rule": "self == oldSelf", "message": "m", "messageExpression": "'m'", "reason": "FieldValueInvalid",
                        "fieldPath": ".a", "optionalOldSelf": false,
                    }] },
                "n": { "type": "number", "minimum": 0.5, "exclusiveMinimum": true, "maximum": 7, "exclusiveMaximum": true,
                    "multipleOf": 0.5, "not": { "maximum": 3 }, "oneOf": [{ "minimum": 1 }] },
                "l": { "type": "array", "minItems": 1, "maxItems": 2, "uniqueItems": true, "items": { "type": "object" },
                    "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"] },
                "m": { "type": "object", "additionalProperties": false },
                "e": { "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true },
            },
        });
        assert_eq!(Value::Object(Structural::parse(&schema).unwrap().to_openapi()), schema);
    }
}
