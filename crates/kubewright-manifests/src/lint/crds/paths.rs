//! Paths without a field in the schema: printer columns that stay empty, and scale paths without effect.
//!
//! The API server does not check these paths. Paths that cannot be followed (`..`, values without a schema)
//! are ignored.

use kubewright_apiextensions::crd::jsonpath::JsonPath;
use kubewright_apimachinery::nearest::nearest;
use kubewright_apimachinery::object::Fields as _;
use serde_json::Value;

use crate::declare::Item;
use crate::lint::Finding;

/// Checks the printer columns and the scale subresource of a version.
pub(super) fn check(version: &Value, item: &Item) -> Vec<Finding> {
    let schema = version.at("schema.openAPIV3Schema");
    let columns = version.list_at("additionalPrinterColumns").iter();
    let mut findings: Vec<Finding> = columns.filter_map(|one| column(one, schema, item)).collect();
    let scale = version.at("subresources.scale");
    for name in ["specReplicasPath", "statusReplicasPath", "labelSelectorPath"] {
        let path = scale.str_at(name);
        if let Followed::Missing { name: missing, meant } = follow(path, schema) {
            let message = format!(
                "`{name}` of the scale subresource is `{path}`, but the schema has no `{missing}` there"
            );
            findings.push(Finding::warning("KW211", item, message, help(path, meant.as_deref())));
        }
    }
    findings
}

fn column(column: &Value, schema: &Value, item: &Item) -> Option<Finding> {
    let (name, path, kind) = (column.str_at("name"), column.str_at("jsonPath"), column.str_at("type"));
    // The API server rejects paths without a leading dot.
    if !path.starts_with('.') {
        return None;
    }
    let (message, help) = match (JsonPath::parse(path), follow(path, schema)) {
        (Err(error), _) => (
            format!(
                "the path `{path}` of the column `{name}` is invalid ({error}): kubectl hides it and all columns after it"
            ),
            "use a path such as `.spec.replicas` or `.status.conditions[?(@.type==\"Ready\")].status`"
                .to_owned(),
        ),
        (_, Followed::Missing { name: missing, meant }) => (
            format!(
                "the column `{name}` has the path `{path}`, but the schema has no `{missing}` there: it stays empty"
            ),
            help(path, meant.as_deref()),
        ),
        (_, Followed::Type(found)) if !shows(kind, found) => (
            format!("the column `{name}` has the type {kind}, but `{path}` is {found}: it stays empty"),
            format!("write `type_ = \"{}\"`", if found == "integer" { "integer" } else { "string" }),
        ),
        _ => return None,
    };
    Some(Finding::warning("KW207", item, message, help))
}

fn help(path: &str, meant: Option<&str>) -> String {
    match meant {
        Some(meant) => format!("fix `{path}`; did you mean `{meant}`?"),
        None => {
            format!("fix `{path}`; use names as in YAML, such as `readyReplicas` instead of `ready_replicas`")
        }
    }
}

/// Whether a column type can show values of another type.
fn shows(column: &str, found: &str) -> bool {
    match column {
        "integer" | "number" => matches!(found, "integer" | "number"),
        "boolean" => found == "boolean",
        "date" => found == "string",
        _ => true,
    }
}

/// The target of a path.
enum Followed<'a> {
    /// Values of a type.
    Type(&'a str),
    /// A missing field, and a similar existing one.
    Missing { name: String, meant: Option<String> },
    /// Not described by the schema.
    Unknown,
}

fn follow<'a>(path: &str, schema: &'a Value) -> Followed<'a> {
    let mut schema = schema;
    for (i, step) in steps(path).into_iter().enumerate() {
        let described = schema.has("properties") && !schema.bool_at("x-kubernetes-preserve-unknown-fields");
        schema = match step {
            Step::Field(name) if i == 0 && matches!(name.as_str(), "metadata" | "apiVersion" | "kind") => {
                return Followed::Unknown;
            }
            Step::Field(name) => match schema.map_at("properties").get(&name) {
                Some(property) => property,
                None if schema.at("additionalProperties").is_object() => schema.at("additionalProperties"),
                None if described => {
                    let known = schema.map_at("properties").keys().map(String::as_str);
                    let meant = nearest(&name, known).map(str::to_owned);
                    return Followed::Missing { name, meant };
                }
                None if is_scalar(schema.str_at("type")) => return Followed::Missing { name, meant: None },
                None => return Followed::Unknown,
            },
            Step::Items if schema.at("items").is_object() => schema.at("items"),
            Step::Items | Step::Other => return Followed::Unknown,
        };
    }
    match schema.str_at("type") {
        "" => Followed::Unknown,
        kind => Followed::Type(kind),
    }
}

fn is_scalar(kind: &str) -> bool {
    matches!(kind, "string" | "integer" | "number" | "boolean")
}

enum Step {
    Field(String),
    /// Some or all items of a list.
    Items,
    /// Not followed.
    Other,
}

/// Parses a path as far as it is supported.
fn steps(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let Some((inside, after)) = bracket(after) else { break };
            let quoted = inside.strip_prefix('\'').and_then(|inside| inside.strip_suffix('\''));
            steps.push(match quoted {
                Some(name) => Step::Field(name.replace('\\', "")),
                None => Step::Items,
            });
            rest = after;
            continue;
        }
        let Some(after) = rest.strip_prefix('.').filter(|after| !after.starts_with(['.', '*'])) else {
            steps.push(Step::Other);
            break;
        };
        let mut name = String::new();
        let mut chars = after.char_indices();
        let mut end = after.len();
        while let Some((i, c)) = chars.next() {
            match c {
                '\\' => name.extend(chars.next().map(|(_, escaped)| escaped)),
                '.' | '[' => {
                    end = i;
                    break;
                }
                c => name.push(c),
            }
        }
        rest = &after[end..];
        if !name.is_empty() {
            steps.push(Step::Field(name));
        }
    }
    steps
}

/// Splits at the closing bracket, ignoring those in quotes and filters.
fn bracket(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0;
    let mut quote = None;
    for (i, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some((&text[..i], &text[i + 1..])),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rendered(path: &str, kind: &str) -> String {
        let version = json!({
            "additionalPrinterColumns": [{ "name": "X", "type": kind, "jsonPath": path }],
            "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                "spec": { "type": "object", "properties": {
                    "replicas": { "type": "integer" },
                    "labels": { "type": "object", "additionalProperties": { "type": "string" } },
                    "raw": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                    "dotted.name": { "type": "string" },
                }},
                "status": { "type": "object", "properties": {
                    "conditions": { "type": "array", "items": { "type": "object", "properties": {
                        "type": { "type": "string" }, "status": { "type": "string" },
                    }}},
                }},
            }}},
        });
        check(&version, &Item::default()).iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_column_of_an_existing_field_is_valid() {
        for (path, kind) in [
            (".spec.replicas", "integer"),
            (".spec.replicas", "string"),
            (".metadata.creationTimestamp", "date"),
            (".spec.labels.app", "string"),
            (".spec.labels['app.kubernetes.io/name']", "string"),
            (".spec.raw.any.thing", "string"),
            (r".spec.dotted\.name", "string"),
            (r#".status.conditions[?(@.type=="Ready")].status"#, "string"),
            (".status.conditions[0].status", "string"),
            (".status.conditions[*].type", "string"),
            ("..anything", "string"),
            (".spec.*", "string"),
        ] {
            assert_eq!(rendered(path, kind), "", "{path}");
        }
    }

    #[test]
    fn a_column_of_a_missing_field_is_reported_with_a_suggestion() {
        insta::assert_snapshot!(rendered(".spec.replica", "integer"), @"
        warning[KW207]: the column `X` has the path `.spec.replica`, but the schema has no `replica` there: it stays empty
          help: fix `.spec.replica`; did you mean `replicas`?
        ");
        insta::assert_snapshot!(rendered(r#".status.conditions[?(@.type=="Ready")].state"#, "string"), @r#"
        warning[KW207]: the column `X` has the path `.status.conditions[?(@.type=="Ready")].state`, but the schema has no `state` there: it stays empty
          help: fix `.status.conditions[?(@.type=="Ready")].state`; use names as in YAML, such as `readyReplicas` instead of `ready_replicas`
        "#);
        insta::assert_snapshot!(rendered(".spec.replicas.x", "integer"), @"
        warning[KW207]: the column `X` has the path `.spec.replicas.x`, but the schema has no `x` there: it stays empty
          help: fix `.spec.replicas.x`; use names as in YAML, such as `readyReplicas` instead of `ready_replicas`
        ");
    }

    #[test]
    fn a_column_of_another_type_is_reported() {
        insta::assert_snapshot!(rendered(".status.conditions[0].status", "boolean"), @r#"
        warning[KW207]: the column `X` has the type boolean, but `.status.conditions[0].status` is string: it stays empty
          help: write `type_ = "string"`
        "#);
    }

    #[test]
    fn an_invalid_path_is_reported() {
        insta::assert_snapshot!(rendered(".spec.labels[x", "string"), @r#"
        warning[KW207]: the path `.spec.labels[x` of the column `X` is invalid (unterminated array): kubectl hides it and all columns after it
          help: use a path such as `.spec.replicas` or `.status.conditions[?(@.type=="Ready")].status`
        "#);
    }
}
