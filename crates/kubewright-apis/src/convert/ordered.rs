//! Builds JSON objects with the members in Go's order, for JSON that is stored as text.

use serde_json::Value;

use kubewright_apimachinery::json;

pub(crate) struct Ordered(String);

impl Ordered {
    /// Creates an object without members.
    pub(crate) fn new() -> Self {
        Self("{".to_owned())
    }

    /// Adds a member, also if it is `null`.
    pub(crate) fn member(self, name: &str, value: &Value) -> Self {
        self.text(name, &json::to_string(value))
    }

    /// Adds a member unless it is absent.
    pub(crate) fn optional(self, name: &str, value: &Value) -> Self {
        if value.is_null() { self } else { self.member(name, value) }
    }

    /// Adds a member whose value is JSON text.
    pub(crate) fn text(mut self, name: &str, value: &str) -> Self {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push('"');
        self.0.push_str(name);
        self.0.push_str("\":");
        self.0.push_str(value);
        self
    }

    /// The object as text.
    pub(crate) fn finish(self) -> String {
        self.0 + "}"
    }

    /// A list with each value written by `each`. Absent values are `null`.
    pub(crate) fn list(values: &Value, each: impl Fn(&Value) -> String) -> String {
        match values.as_array() {
            Some(values) => format!("[{}]", values.iter().map(each).collect::<Vec<_>>().join(",")),
            None => "null".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn members_keep_their_insertion_order() {
        let text =
            Ordered::new().member("b", &json!("<")).optional("x", &Value::Null).text("a", "[1]").finish();
        assert_eq!(text, r#"{"b":"\u003c","a":[1]}"#);
        assert_eq!(Ordered::new().finish(), "{}");
        assert_eq!(Ordered::list(&json!([1, 2]), ToString::to_string), "[1,2]");
        assert_eq!(Ordered::list(&Value::Null, ToString::to_string), "null");
    }
}
