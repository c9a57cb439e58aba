//! Structural schemas of enums with data.
//!
//! A structural schema declares each property once, outside of `oneOf`, `anyOf` and `allOf`, which may only
//! contain value validations. [`hoist`] moves the properties of variants up and keeps only what distinguishes
//! them. If that is impossible, it returns a [`Problem`] and leaves the schema unchanged.

use serde_json::{Map, Value, json};

use super::note;

/// Why an enum has no structural schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Problem {
    #[error("its variants have different types ({})", .0.join(", "))]
    Mixed(Vec<String>),
    #[error("the field {0:?} differs between variants")]
    Conflict(String),
    #[error("its variants are lists with different item types")]
    Items,
    #[error("one of its variants is a map")]
    Map,
    #[error("one of its variants has validation rules, which are not allowed inside `oneOf`")]
    Rules,
}

impl Problem {
    pub(crate) fn remedy(&self) -> &'static str {
        match self {
            Self::Mixed(_) => {
                "give each variant without data empty braces (`None {}`), so that all of them are objects; for an integer \
                 or a string use `IntOrString`; for anything at all put `#[schemars(transform = schema::any())]` on the field"
            }
            Self::Conflict(_) => {
                "give the field one type in all variants, or another name in each; or remove `#[serde(tag)]` and \
                 `#[serde(content)]`: then each variant is a field of its own"
            }
            Self::Items | Self::Map => {
                "remove `#[serde(untagged)]`, so that each variant is a separate field"
            }
            Self::Rules => {
                "put the rules on the enum, with `#[schemars(transform = schema::validation(...))]`"
            }
        }
    }
}

pub(crate) const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
pub(crate) const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const RULES: &str = "x-kubernetes-validations";

/// Value validations, which are allowed inside `oneOf`, `anyOf` and `allOf`.
const JUDGES: [&str; 17] = [
    "required",
    "oneOf",
    "anyOf",
    "allOf",
    "not",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
];

/// controller-gen's schema of an integer or string.
pub(crate) fn int_or_string() -> Value {
    json!({ "anyOf": [{ "type": "integer" }, { "type": "string" }], INT_OR_STRING: true })
}

/// The key with the original schema of an enum with the marker `union`.
pub(crate) const ORIGINAL: &str = "x-kubewright-union";

/// Moves up the properties of `allOf`, `oneOf` and `anyOf`. Returns the tags that distinguish variants.
pub(crate) fn hoist(map: &mut Map<String, Value>) -> Result<Vec<String>, Problem> {
    let mut tags = Vec::new();
    if map.get(INT_OR_STRING) == Some(&Value::Bool(true)) {
        return Ok(tags);
    }
    let mut done = map.clone();
    for choice in ["allOf", "oneOf", "anyOf"] {
        if let Some(Value::Array(variants)) = done.remove(choice) {
            let variants = variants.into_iter().map(|variant| match variant {
                Value::Object(variant) => variant,
                _ => Map::new(),
            });
            tags.extend(unite(&mut done, choice, variants.collect())?);
        }
    }
    *map = done;
    Ok(tags)
}

/// Like [`hoist`], for kube's generator, which fails on tags inside of variants. Removes the variants and
/// keeps the original schema for our generator.
pub(crate) fn flatten(map: &mut Map<String, Value>) {
    let original = map.clone();
    // Problems are reported when the CRD is generated.
    if !has_references(map) && hoist(map).is_ok_and(|tags| !tags.is_empty()) {
        map.remove("oneOf");
        map.insert(ORIGINAL.to_owned(), original.into());
    }
}

/// Whether a variant is a reference that is not resolved yet.
fn has_references(map: &Map<String, Value>) -> bool {
    ["allOf", "oneOf", "anyOf"]
        .iter()
        .filter_map(|choice| map.get(*choice))
        .filter_map(Value::as_array)
        .flatten()
        .any(|variant| variant.get("$ref").is_some() || variant.as_object().is_some_and(has_references))
}

fn unite(
    map: &mut Map<String, Value>,
    choice: &str,
    variants: Vec<Map<String, Value>>,
) -> Result<Vec<String>, Problem> {
    let mut types: Vec<String> = Vec::new();
    for kind in variants.iter().filter_map(|variant| variant.get("type")).filter_map(Value::as_str) {
        if !types.iter().any(|known| known == kind) {
            types.push(kind.to_owned());
        }
    }
    types.sort();
    let open = |variant: &Map<String, Value>| {
        variant.contains_key(INT_OR_STRING) || variant.contains_key(PRESERVE) && !variant.contains_key("type")
    };
    if types.is_empty() && !variants.iter().any(open) {
        // Only value validations, so it is already structural.
        map.insert(choice.to_owned(), variants.into_iter().map(Value::Object).collect());
        return Ok(Vec::new());
    }
    if types == ["integer", "string"] && !map.contains_key("type") && variants.iter().all(is_bare) {
        if let Value::Object(of) = int_or_string() {
            map.extend(of);
        }
        return Ok(Vec::new());
    }
    let kind = match (types.as_slice(), map.get("type").and_then(Value::as_str)) {
        ([kind], None) if !variants.iter().any(open) => kind.clone(),
        ([kind], Some(own)) if kind == own && !variants.iter().any(open) => kind.clone(),
        _ => {
            let own = map.get("type").and_then(Value::as_str).map(str::to_owned);
            return Err(Problem::Mixed(types.into_iter().chain(own).collect()));
        }
    };
    map.insert("type".to_owned(), kind.as_str().into());
    let mut branches: Vec<Map<String, Value>> = variants
        .iter()
        .map(|variant| {
            let kept = variant.iter().filter(|(key, _)| JUDGES.contains(&key.as_str()));
            kept.map(|(key, value)| (key.clone(), value.clone())).collect()
        })
        .collect();
    let mut tags = Vec::new();
    match kind.as_str() {
        "object" => tags = unite_objects(map, choice, variants, &mut branches)?,
        "array" => unite_lists(map, &variants)?,
        _ => unite_scalars(map, &variants, &mut branches),
    }
    settle(map, choice, branches);
    Ok(tags)
}

fn is_bare(variant: &Map<String, Value>) -> bool {
    variant.keys().all(|key| matches!(key.as_str(), "type" | "format" | "description" | "title"))
}

fn unite_objects(
    map: &mut Map<String, Value>,
    choice: &str,
    variants: Vec<Map<String, Value>>,
    branches: &mut [Map<String, Value>],
) -> Result<Vec<String>, Problem> {
    let mut properties = match map.remove("properties") {
        Some(Value::Object(own)) => own,
        _ => Map::new(),
    };
    let mut own: Vec<Map<String, Value>> = Vec::new();
    let mut tags: Vec<String> = Vec::new();
    for mut variant in variants {
        if variant.contains_key(RULES) {
            return Err(Problem::Rules);
        }
        let mut fields = match variant.remove("properties") {
            Some(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        match variant.get("additionalProperties") {
            None | Some(Value::Bool(false)) => {}
            Some(_) if fields.is_empty() => return Err(Problem::Map),
            Some(_) => _ = map.insert(PRESERVE.to_owned(), true.into()),
        }
        if variant.get(PRESERVE) == Some(&Value::Bool(true)) {
            map.insert(PRESERVE.to_owned(), true.into());
        }
        // In an externally tagged enum, the variant is the only field.
        if choice == "oneOf"
            && let Some(description) = variant.remove("description")
            && let (1, Some(Value::Object(field))) = (fields.len(), fields.values_mut().next())
            && values_of(field).is_none()
        {
            field.insert("description".to_owned(), description);
        }
        for note in note::take(&mut variant) {
            if let Value::Array(notes) = map.entry(note::KEY).or_insert_with(|| json!([])) {
                notes.push(note);
            }
        }
        for (name, field) in &fields {
            match properties.get_mut(name) {
                None => _ = properties.insert(name.clone(), field.clone()),
                Some(known) if known == field => {}
                Some(known) => {
                    join_tags(known, field).ok_or_else(|| Problem::Conflict(name.clone()))?;
                    if !tags.contains(name) {
                        tags.push(name.clone());
                    }
                }
            }
        }
        own.push(fields);
    }
    // The value of the tag distinguishes the variant from others.
    for (branch, fields) in branches.iter_mut().zip(&own) {
        let tag_values: Map<String, Value> = tags
            .iter()
            .filter_map(|tag| {
                Some((tag.clone(), json!({ "enum": values_of(fields.get(tag)?.as_object()?)? })))
            })
            .collect();
        if !tag_values.is_empty() {
            branch.insert("properties".to_owned(), tag_values.into());
        }
    }
    if !properties.is_empty() {
        map.insert("properties".to_owned(), properties.into());
    }
    Ok(tags)
}

/// Merges two string fields with enum values.
fn join_tags(known: &mut Value, other: &Value) -> Option<()> {
    let known = known.as_object_mut()?;
    let (mut values, more) = (values_of(known)?, values_of(other.as_object()?)?);
    let strings = |values: &[Value]| values.iter().all(Value::is_string);
    if !strings(&values) || !strings(&more) {
        return None;
    }
    for value in more {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    known.remove("const");
    // It would describe only one variant.
    known.remove("description");
    known.insert("enum".to_owned(), values.into());
    Some(())
}

fn values_of(field: &Map<String, Value>) -> Option<Vec<Value>> {
    match (field.get("const"), field.get("enum")) {
        (Some(only), _) => Some(vec![only.clone()]),
        (None, Some(Value::Array(values))) => Some(values.clone()),
        _ => None,
    }
}

fn unite_lists(map: &mut Map<String, Value>, variants: &[Map<String, Value>]) -> Result<(), Problem> {
    for items in variants.iter().filter_map(|variant| variant.get("items")) {
        if map.entry("items").or_insert_with(|| items.clone()) != items {
            return Err(Problem::Items);
        }
    }
    Ok(())
}

fn unite_scalars(
    map: &mut Map<String, Value>,
    variants: &[Map<String, Value>],
    branches: &mut [Map<String, Value>],
) {
    let values: Option<Vec<Vec<Value>>> = variants.iter().map(values_of).collect();
    if let Some(values) = values {
        map.insert("enum".to_owned(), values.concat().into());
    } else {
        for (branch, variant) in branches.iter_mut().zip(variants) {
            if let Some(values) = values_of(variant) {
                branch.insert("enum".to_owned(), values.into());
            }
        }
    }
    let format = variants.first().and_then(|first| first.get("format"));
    if let Some(format) =
        format.filter(|format| variants.iter().all(|other| other.get("format") == Some(format)))
    {
        map.insert("format".to_owned(), format.clone());
    }
}

/// Inserts the remaining variants, if they still contain validations.
fn settle(map: &mut Map<String, Value>, choice: &str, mut branches: Vec<Map<String, Value>>) {
    if choice == "allOf" {
        for branch in &mut branches {
            if let Some(Value::Array(more)) = branch.remove("required")
                && let Value::Array(required) = map.entry("required").or_insert_with(|| json!([]))
            {
                required.extend(more);
            }
            for key in JUDGES {
                if !map.contains_key(key)
                    && let Some(value) = branch.remove(key)
                {
                    map.insert(key.to_owned(), value);
                }
            }
        }
        branches.retain(|branch| !branch.is_empty());
    }
    let nothing = match choice {
        "anyOf" => branches.iter().any(Map::is_empty),
        _ => branches.iter().all(Map::is_empty),
    };
    if !nothing {
        map.insert(choice.to_owned(), branches.into_iter().map(Value::Object).collect());
    }
}
