//! The values of `enum`, hashed: lists may be long.
//!
//! Like upstream, a value is first converted to the type of the enum value with Go's rules: 1.5 becomes 1, and the
//! integer 65 becomes "A". Null equals nothing.

use std::collections::HashSet;
use std::sync::Arc;

use kubewright_apimachinery::field::quote;
use kubewright_apimachinery::json;
use serde_json::Value;

use crate::custom::to_int;

/// The allowed values of a schema.
#[derive(Debug, Clone, Default)]
pub struct Allowed {
    values: Box<[Value]>,
    strings: HashSet<String>,
    integers: HashSet<i64>,
    /// The bits of numbers that are no 64-bit integers.
    floats: HashSet<u64>,
    /// Other values, as JSON.
    others: HashSet<Vec<u8>>,
    /// The values in messages. Shared by all errors.
    supported: Arc<str>,
}

impl Allowed {
    pub(super) fn new(values: &[Value]) -> Self {
        let quoted = |value: &Value| match value {
            Value::String(text) => quote(text),
            other => quote(&json::to_string(other)),
        };
        let supported = values.iter().map(quoted).collect::<Vec<_>>().join(", ").into();
        let mut allowed = Self { values: values.into(), supported, ..Self::default() };
        for value in values {
            match value {
                Value::Null => {}
                Value::String(text) => drop(allowed.strings.insert(text.clone())),
                Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                    (Some(integer), _) => drop(allowed.integers.insert(integer)),
                    (None, Some(float)) => drop(allowed.floats.insert(bits(float))),
                    (None, None) => {}
                },
                other => drop(allowed.others.insert(json::to_vec(other))),
            }
        }
        allowed
    }

    /// The values as in the schema.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// Whether the value is allowed.
    pub fn contains(&self, value: &Value) -> bool {
        match value {
            Value::Null => false,
            Value::String(text) => self.strings.contains(text),
            Value::Number(number) => {
                let (integer, float) = (number.as_i64(), number.as_f64().unwrap_or_default());
                self.integers.contains(&integer.unwrap_or_else(|| to_int(float)))
                    || self.floats.contains(&bits(float))
                    || integer.is_some_and(|code| self.strings.contains(&character(code)))
            }
            other => self.others.contains(&json::to_vec(other)),
        }
    }

    /// The values in messages, quoted.
    pub(crate) fn supported(&self) -> &Arc<str> {
        &self.supported
    }
}

impl PartialEq for Allowed {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

/// Equal for equal floats.
fn bits(float: f64) -> u64 {
    // Negative zero equals zero.
    (float + 0.0).to_bits()
}

fn character(code: i64) -> String {
    let c = u32::try_from(code).ok().and_then(char::from_u32);
    c.unwrap_or(char::REPLACEMENT_CHARACTER).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_compared_with_gos_conversions() {
        let allowed = |values: Value| Allowed::new(values.as_array().unwrap());
        let numbers = allowed(json!([1, 2.5, 0.0, "A", true, [1, {"a": null}]]));
        for value in
            [json!(1), json!(1.5), json!(2.5), json!(-0.0), json!(65), json!(true), json!([1, {"a": null}])]
        {
            assert!(numbers.contains(&value), "{value}");
        }
        for value in [json!(2), json!(66), json!("1"), json!(false), json!(null), json!([1])] {
            assert!(!numbers.contains(&value), "{value}");
        }
        assert!(!allowed(json!([null])).contains(&json!(null)));
    }
}
