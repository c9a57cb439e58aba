//! The values of the chart: values.yaml and its JSON schema, from one list of settings.

use std::fmt::Write as _;

use kubewright_manifests::yaml;
use serde_json::{Map, Value, json};

/// The draft that Helm's validator implements for every version of Helm 3.
const DRAFT: &str = "http://json-schema.org/draft-07/schema#";

/// A setting with its documentation.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    name: &'static str,
    about: String,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Value { value: Value, schema: Value },
    Group(Vec<Setting>),
}

impl Setting {
    pub(super) fn new(name: &'static str, about: &str, value: Value, schema: Value) -> Self {
        Self { name, about: about.to_owned(), content: Content::Value { value, schema } }
    }

    pub(super) fn group(name: &'static str, about: &str, settings: Vec<Self>) -> Self {
        Self { name, about: about.to_owned(), content: Content::Group(settings) }
    }

    pub(super) fn switch(name: &'static str, about: &str, value: bool) -> Self {
        Self::new(name, about, value.into(), json!({ "type": "boolean" }))
    }

    pub(super) fn text(name: &'static str, about: &str, value: &str) -> Self {
        Self::new(name, about, value.into(), json!({ "type": "string" }))
    }

    pub(super) fn number(name: &'static str, about: &str, value: Value) -> Self {
        Self::new(name, about, value, json!({ "type": "integer", "minimum": 0 }))
    }

    pub(super) fn port(name: &'static str, about: &str, value: u64) -> Self {
        let schema = json!({ "type": "integer", "minimum": 1, "maximum": 65535 });
        Self::new(name, about, value.into(), schema)
    }

    /// A map with any content, such as a security context.
    pub(super) fn map(name: &'static str, about: &str, value: Value) -> Self {
        Self::new(name, about, if value.is_null() { json!({}) } else { value }, json!({ "type": "object" }))
    }

    /// A map of strings.
    pub(super) fn strings(name: &'static str, about: &str, value: Value) -> Self {
        let schema = json!({ "type": "object", "additionalProperties": { "type": "string" } });
        Self::new(name, about, if value.is_null() { json!({}) } else { value }, schema)
    }

    /// A list of objects.
    pub(super) fn objects(name: &'static str, about: &str, value: Value, required: &[&str]) -> Self {
        let mut items = json!({ "type": "object" });
        if !required.is_empty() {
            items["required"] = json!(required);
        }
        let value = if value.is_null() { json!([]) } else { value };
        Self::new(name, about, value, json!({ "type": "array", "items": items }))
    }

    fn schema(&self) -> Value {
        let mut schema = match &self.content {
            Content::Value { schema, .. } => schema.clone(),
            Content::Group(settings) => object(settings),
        };
        schema["description"] = self.about.as_str().into();
        schema
    }

    fn print(&self, text: &mut String, indent: usize) {
        let pad = " ".repeat(indent);
        for line in self.about.lines() {
            let _ = writeln!(text, "{pad}# {line}");
        }
        match &self.content {
            Content::Group(settings) => {
                let _ = writeln!(text, "{pad}{}:", self.name);
                for setting in settings {
                    setting.print(text, indent + 2);
                }
            }
            Content::Value { value, .. } => {
                let field = Map::from_iter([(self.name.to_owned(), value.clone())]);
                for line in yaml::document(&field.into()).trim_start_matches("---\n").lines() {
                    let pad = if line.is_empty() { "" } else { &pad };
                    let _ = writeln!(text, "{pad}{line}");
                }
            }
        }
    }
}

/// The schema of a map with these settings and no others, so that a misspelled value is an error.
fn object(settings: &[Setting]) -> Value {
    let properties: Map<String, Value> =
        settings.iter().map(|setting| (setting.name.to_owned(), setting.schema())).collect();
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

/// values.yaml.
pub(super) fn file(chart: &str, settings: &[Setting]) -> String {
    let mut text = format!("# Values of the chart {chart}. values.schema.json describes the types.\n");
    for setting in settings {
        text.push('\n');
        setting.print(&mut text, 0);
    }
    text
}

/// values.schema.json.
pub(super) fn schema(chart: &str, settings: &[Setting]) -> String {
    let mut schema = object(settings);
    schema["$schema"] = DRAFT.into();
    schema["title"] = format!("Values of the chart {chart}").into();
    // Helm adds the global values of a parent chart, and `enabled` is the usual condition of a dependency.
    schema["properties"]["global"] =
        json!({ "type": "object", "description": "Values of all charts of a release." });
    schema["properties"]["enabled"] = json!({
        "type": "boolean",
        "description": "For the condition of a parent chart. This chart does not use it.",
    });
    let mut text = serde_json::to_string_pretty(&schema).expect("a JSON value can be serialized");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_types_come_from_the_same_settings() {
        let settings = [
            Setting::text("nameOverride", "Replaces the name.", ""),
            Setting::group(
                "metrics",
                "Metrics of the manager.\nServed over HTTPS.",
                vec![
                    Setting::switch("enable", "Serve metrics.", true),
                    Setting::port("port", "The port.", 8443),
                ],
            ),
        ];
        insta::assert_snapshot!(file("shop", &settings), @r#"
        # Values of the chart shop. values.schema.json describes the types.

        # Replaces the name.
        nameOverride: ""

        # Metrics of the manager.
        # Served over HTTPS.
        metrics:
          # Serve metrics.
          enable: true
          # The port.
          port: 8443
        "#);
        let schema: Value = serde_json::from_str(&schema("shop", &settings)).unwrap();
        let metrics = &schema["properties"]["metrics"];
        assert_eq!(metrics["additionalProperties"], false);
        assert_eq!(metrics["properties"]["port"]["maximum"], 65535);
    }
}
