//! Generates `openapi.txt`: schema properties that `types.txt` does not contain.
//!
//! Defaults and enums come from a running server, as in `types.txt`. Properties that follow from other facts
//! of a field are omitted.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::golang::{GoField, Structs};
use super::types::{is_structure, is_zero, served_schemas, short};

const HEADER: &str = "\
# Schema properties that types.txt does not contain; derived by `cargo xtask facts` from the schemas of kube-apiserver
# v1.36 and read by src/openapi/schema.rs. A type, a field, and either `zero` (the default is the zero value, which does
# not follow from the field's marks) or `enum` with the values of list or map elements, or of a field named `kind`.
";

pub(crate) fn derive(definitions: &Value, served: &Value, go: &Structs) -> Result<String> {
    let served = served_schemas(served);
    let mut marks = BTreeMap::new();
    for (openapi, schema) in definitions.as_object().context("$defs is not an object")? {
        let Some(served) = served.get(openapi.as_str()) else { continue };
        let name = short(openapi)?;
        let fields = go.fields(&name);
        for (field, served) in served["properties"].as_object().into_iter().flatten() {
            let go = fields.iter().find(|go| go.json == *field);
            let structure = is_structure(&schema["properties"][field]);
            if let Some(mark) = mark(field, served, go, structure) {
                marks.insert((name.clone(), field.clone()), mark);
            }
        }
    }
    let mut text = String::from(HEADER);
    for ((name, field), mark) in marks {
        writeln!(text, "{name}\t{field}\t{mark}")?;
    }
    Ok(text)
}

/// The entry of a field, from its served schema and its Go declaration.
fn mark(field: &str, served: &Value, go: Option<&GoField>, structure: bool) -> Option<String> {
    let own = if field == "kind" { &served["enum"] } else { &Value::Null };
    let elements = [&served["items"]["enum"], &served["additionalProperties"]["enum"], own];
    let values: Vec<&str> =
        elements.into_iter().filter_map(Value::as_array).flatten().filter_map(Value::as_str).collect();
    if !values.is_empty() {
        return Some(format!("enum\t{}", values.join("|")));
    }
    let follows = go.is_some_and(|go| go.always(structure) && !go.pointer);
    let zero = served.get("default").is_some_and(is_zero);
    (zero && !follows).then(|| "zero".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn go(pointer: bool, omit_empty: bool) -> GoField {
        GoField { json: "f".into(), ty: "string".into(), pointer, omit_empty, omit_zero: false, number: None }
    }

    #[test]
    fn a_zero_default_is_recorded_if_go_may_omit_the_field() {
        let served = json!({ "type": "string", "default": "" });
        assert_eq!(mark("f", &served, Some(&go(false, true)), false).as_deref(), Some("zero"));
        assert_eq!(mark("f", &served, Some(&go(true, false)), false).as_deref(), Some("zero"));
        assert_eq!(mark("f", &served, Some(&go(false, false)), false), None);
        assert_eq!(mark("f", &served, Some(&go(false, true)), true), None, "structs are always written");
        assert_eq!(mark("f", &json!({ "default": "x" }), Some(&go(false, true)), false), None);
    }

    #[test]
    fn enums_missing_from_types_txt_are_recorded() {
        let list = json!({ "type": "array", "items": { "enum": ["A", "B"], "default": "" } });
        assert_eq!(mark("f", &list, None, false).as_deref(), Some("enum\tA|B"));
        let map = json!({ "type": "object", "additionalProperties": { "enum": ["A"] } });
        assert_eq!(mark("f", &map, None, false).as_deref(), Some("enum\tA"));
        let own = json!({ "enum": ["A"] });
        assert_eq!(mark("kind", &own, None, false).as_deref(), Some("enum\tA"));
        assert_eq!(mark("f", &own, None, false), None);
    }
}
