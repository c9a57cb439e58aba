//! Defaulting.

use serde_json::Value;

use crate::structural::Structural;

/// Sets absent fields, and nulls that are not nullable, to their defaults. Also defaults the fields of a
/// default. Idempotent.
pub fn apply_defaults(schema: &Structural, value: &mut Value) {
    if !schema.contains.defaults {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, property) in &schema.properties {
                let Some(default) = &property.default else { continue };
                match fields.get_mut(name) {
                    Some(field) if field.is_null() && !property.nullable => *field = default.clone(),
                    Some(_) => {}
                    None => {
                        fields.insert(name.clone(), default.clone());
                    }
                }
            }
            for (name, field) in fields.iter_mut() {
                if let Some(property) = schema.properties.get(name) {
                    apply_defaults(property, field);
                } else if let Some(further) = schema.additional_schema() {
                    default_null(further, field);
                    apply_defaults(further, field);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for item in items {
                    default_null(schema, item);
                    apply_defaults(schema, item);
                }
            }
        }
        _ => {}
    }
}

fn default_null(schema: &Structural, value: &mut Value) {
    if value.is_null()
        && !schema.nullable
        && let Some(default) = &schema.default
    {
        *value = default.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn absent_fields_and_non_nullable_nulls_are_defaulted() {
        let schema = Structural::parse(&json!({"type": "object", "properties": {
            "spec": {"type": "object", "default": {}, "properties": {
                "a": {"type": "string", "default": "A"},
                "n": {"type": "string", "default": "N", "nullable": true},
                "l": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "integer", "default": 1}}}},
                "m": {"type": "object", "additionalProperties": {"type": "object", "default": {"y": 2}}},
            }},
        }}))
        .unwrap();
        let defaulted = |mut value: Value| {
            apply_defaults(&schema, &mut value);
            let once = value.clone();
            apply_defaults(&schema, &mut value);
            assert_eq!(once, value);
            value
        };
        assert_eq!(defaulted(json!({})), json!({"spec": {"a": "A", "n": "N"}}));
        assert_eq!(
            defaulted(json!({"spec": {"a": null, "n": null, "l": [{}, null], "m": {"k": null, "q": {}}}})),
            json!({"spec": {"a": "A", "n": null, "l": [{"x": 1}, null], "m": {"k": {"y": 2}, "q": {}}}})
        );
        assert_eq!(defaulted(json!({"spec": null})), json!({"spec": {"a": "A", "n": "N"}}));
    }
}
