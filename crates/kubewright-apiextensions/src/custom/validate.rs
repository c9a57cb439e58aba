//! Validation of values against a schema, with the messages and order of kube-openapi.
//!
//! Upstream iterates over maps in random order; here names are sorted, so that errors are deterministic. On
//! update, unchanged invalid values are accepted (ratcheting); see [`ratchet`]. Valid values cause no
//! allocations.

mod found;
mod number;
mod ratchet;

use serde_json::{Map, Value};

use super::print::shown;
use crate::structural::FormatKind;
use crate::structural::{Additional, Junctors, SizeBounds, Structural, Type};
use found::{At, Found, Outcome};
use kubewright_apimachinery::field::{ErrorList, Path};
use kubewright_apimachinery::keyed::has_duplicates;
pub(crate) use number::to_int;
use ratchet::Pair;

/// Validates an object.
pub fn validate(schema: &Structural, object: &Value) -> ErrorList {
    validate_at(schema, object, &Path::root())
}

/// Validates a value at a path. Fields in messages are relative to the value.
pub fn validate_at(schema: &Structural, value: &Value, path: &Path) -> ErrorList {
    check(schema, value, &At::Root, None).into_errors(path)
}

/// Validates an object on update. Ignores errors of unchanged values.
pub fn validate_update(schema: &Structural, new: &Value, old: &Value) -> ErrorList {
    validate_update_at(schema, new, old, &Path::root())
}

/// Like [`validate_update`], for a value at a path. Fields in messages are relative to the value.
pub fn validate_update_at(schema: &Structural, new: &Value, old: &Value, path: &Path) -> ErrorList {
    check(schema, new, &At::Root, Some(Pair { new, old, schema })).into_errors(path)
}

/// Validates a value. With an old value, drops the errors of unchanged parts.
fn check(schema: &Structural, value: &Value, at: &At<'_>, pair: Option<Pair<'_>>) -> Outcome {
    let mut outcome = check_value(schema, value, at, pair.as_ref());
    if !outcome.errors.is_empty() && pair.is_some_and(|pair| pair.is_equal()) {
        outcome.clear();
    }
    outcome
}

/// Counts matches like upstream: they decide which alternative of `anyOf` is reported.
fn check_value(schema: &Structural, value: &Value, at: &At<'_>, pair: Option<&Pair<'_>>) -> Outcome {
    let mut outcome = Outcome::default();
    if value.is_null() {
        match null_error(schema, at) {
            Some(error) => outcome.add(error),
            None => outcome.matches += 1,
        }
        outcome.extend(enum_error(schema, value, at));
        return outcome;
    }
    if !schema.types().is_any() || schema.enforced_format().is_some() {
        match type_error(schema, value, at) {
            Some(error) => outcome.add(error),
            None => outcome.matches += 1,
        }
        outcome.matches += 1;
    }
    if let Some(joined) = &schema.junctors {
        outcome.merge(junctors(joined, value, at));
    }
    // The junctor validators count even if there are no junctors.
    outcome.matches += 2;
    match value {
        Value::String(text) => {
            outcome.extend(string_error(schema, text, at));
            outcome.matches += 1;
            if let Some((format, FormatKind::String(passes))) = schema.enforced_format() {
                if !passes(text) {
                    outcome.add(Found::wrong_type(at, format, text));
                }
                outcome.matches += 1;
            }
        }
        Value::Number(given) => {
            number::check(schema, given, at, &mut outcome);
            outcome.matches += 2;
        }
        Value::Array(items) => {
            list(schema, items, at, pair, &mut outcome);
            outcome.matches += 2;
        }
        _ => {}
    }
    outcome.extend(enum_error(schema, value, at));
    outcome.matches += 1;
    if let Value::Object(fields) = value {
        object(schema, fields, at, pair, &mut outcome);
        outcome.matches += 1;
    }
    outcome.matches += 1;
    outcome
}

fn null_error(schema: &Structural, at: &At<'_>) -> Option<Found> {
    let types = schema.types();
    let allowed = types.is_any() || types.contains(Type::Null) || schema.nullable;
    (!allowed).then(|| Found::wrong_type(at, &types.to_string(), "null"))
}

fn type_error(schema: &Structural, value: &Value, at: &At<'_>) -> Option<Found> {
    let types = schema.types();
    let ty = Type::of(value);
    let is_number = ty == Type::Number;
    let whole =
        is_number && types.contains(Type::Integer) && value.as_f64().is_some_and(number::is_json_integer);
    let widened = ty == Type::Integer && types.contains(Type::Number);
    let named = types.contains(ty);
    let is_text = matches!(value, Value::String(_) | Value::Array(_));
    if let Some((format, _)) = schema.enforced_format() {
        // The format that upstream infers from the type of a value.
        let native = match ty {
            Type::Integer => "int64",
            Type::Number => "float64",
            _ => "",
        };
        if !(is_text || named || native == format || whole || widened) {
            return Some(Found::wrong_type(at, format, native));
        }
        // As upstream, a list also passes here.
        if is_text && !types.contains(Type::Number) && !types.contains(Type::Integer) {
            return None;
        }
    }
    (!(named || whole || widened)).then(|| Found::wrong_type(at, &types.to_string(), ty.name()))
}

/// Reports only the first violated constraint.
fn string_error(schema: &Structural, text: &str, at: &At<'_>) -> Option<Found> {
    let bounds = schema.string.as_deref()?;
    if bounds.min_length.is_some() || bounds.max_length.is_some() {
        let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        if let Some(max) = bounds.max_length.filter(|max| length > *max) {
            return Some(Found::too_long(at, max));
        }
        if let Some(min) = bounds.min_length.filter(|min| length < *min) {
            let rule = format!("should be at least {min} chars long");
            return Some(Found::invalid(at, shown(&text.into()), &rule));
        }
    }
    let pattern = bounds.pattern.as_ref()?;
    let rule = match pattern.matcher().map(|matcher| matcher.is_match(text)) {
        Ok(Ok(true)) => return None,
        Ok(Ok(false)) => format!("should match '{}'", pattern.as_str()),
        Ok(Err(error)) => format!("should match '{}', but {error}", pattern.as_str()),
        Err(error) => format!("should match '{}, but pattern is invalid: {error}'", pattern.as_str()),
    };
    Some(Found::invalid(at, shown(&text.into()), &rule))
}

fn enum_error(schema: &Structural, value: &Value, at: &At<'_>) -> Option<Found> {
    let allowed = schema.allowed.as_deref()?;
    (!allowed.contains(value)).then(|| Found::not_supported(at, value, allowed))
}

fn list(schema: &Structural, items: &[Value], at: &At<'_>, pair: Option<&Pair<'_>>, outcome: &mut Outcome) {
    if let Some(of) = schema.items.as_deref() {
        let pairs = pair.map(Pair::elements).unwrap_or_default();
        for (index, item) in items.iter().enumerate() {
            let old = pairs.get(index).copied().flatten();
            outcome.merge(check(of, item, &At::Index(at, index), old));
        }
    }
    let Some(bounds) = schema.size.as_deref() else { return };
    let size = i64::try_from(items.len()).unwrap_or(i64::MAX);
    if let Some(min) = bounds.min_items.filter(|min| size < *min) {
        outcome.add(Found::invalid(at, size.to_string(), &format!("should have at least {min} items")));
    }
    if let Some(max) = bounds.max_items.filter(|max| size > *max) {
        outcome.add(Found::too_many(at, "items", size, max));
    }
    if bounds.unique_items && has_duplicates(items) {
        outcome.add(Found::invalid(at, "\"\"".to_owned(), "shouldn't contain duplicates"));
    }
}

fn object(
    schema: &Structural,
    fields: &Map<String, Value>,
    at: &At<'_>,
    pair: Option<&Pair<'_>>,
    outcome: &mut Outcome,
) {
    if let Some(bounds) = schema.size.as_deref() {
        properties_count(bounds, fields.len(), at, outcome);
    }
    // Ignore changes of apiVersion: both objects were converted to the same one.
    let old = |name: &str| {
        let type_meta = matches!(at, At::Root) && matches!(name, "apiVersion" | "kind");
        pair.filter(|_| !type_meta).and_then(|pair| pair.key(name))
    };
    match &schema.additional {
        Some(Additional::Allowed(false)) => {
            for name in fields.keys().filter(|name| !schema.properties.contains_key(*name)) {
                outcome.add(Found::forbidden_property(at, name));
            }
        }
        Some(Additional::Schema(of)) => {
            for (name, field) in fields {
                if !schema.properties.contains_key(name) {
                    outcome.merge(check(of, field, &At::Further(at, name), old(name)));
                }
            }
        }
        Some(Additional::Allowed(true)) | None => {}
    }
    for (name, property) in &schema.properties {
        if let Some(field) = fields.get(name) {
            outcome.merge(check(property, field, &At::Field(at, name), old(name)));
        }
    }
    for name in &schema.required {
        if !fields.contains_key(name) {
            outcome.add(Found::required(&At::Further(at, name)));
        }
    }
}

fn properties_count(bounds: &SizeBounds, count: usize, at: &At<'_>, outcome: &mut Outcome) {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    if let Some(min) = bounds.min_properties.filter(|min| count < *min) {
        outcome.add(Found::invalid(at, count.to_string(), &format!("should have at least {min} properties")));
    }
    if let Some(max) = bounds.max_properties.filter(|max| count > *max) {
        outcome.add(Found::too_many(at, "properties", count, max));
    }
}

/// Junctors have no old value, so ratcheting does not apply.
fn junctors(joined: &Junctors, value: &Value, at: &At<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    if !joined.any_of.is_empty() {
        any_of(&joined.any_of, value, at, &mut outcome);
    }
    if !joined.one_of.is_empty() {
        one_of(&joined.one_of, value, at, &mut outcome);
    }
    if !joined.all_of.is_empty() {
        let mut valid = 0;
        for part in &joined.all_of {
            let result = check(part, value, at, None);
            valid += usize::from(result.errors.is_empty());
            outcome.merge(result);
        }
        if valid < joined.all_of.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            outcome.add(Found::whole(at, &format!("must validate all the schemas (allOf){none}")));
        }
    }
    if let Some(not) = &joined.not
        && check(not, value, at, None).errors.is_empty()
    {
        outcome.add(Found::whole(at, "must not validate the schema (not)"));
    }
    outcome
}

/// Reports the errors of the alternative with the most matches.
fn any_of(parts: &[Structural], value: &Value, at: &At<'_>, outcome: &mut Outcome) {
    let mut best: Option<Outcome> = None;
    for part in parts {
        let result = check(part, value, at, None);
        if result.errors.is_empty() {
            return outcome.merge(result);
        }
        if best.as_ref().is_none_or(|best| result.matches > best.matches) {
            best = Some(result);
        }
    }
    outcome.add(Found::whole(at, "must validate at least one schema (anyOf)"));
    if let Some(best) = best {
        outcome.merge(best);
    }
}

fn one_of(parts: &[Structural], value: &Value, at: &At<'_>, outcome: &mut Outcome) {
    let mut best: Option<Outcome> = None;
    let mut first: Option<Outcome> = None;
    let mut valid = 0;
    for part in parts {
        let result = check(part, value, at, None);
        if result.errors.is_empty() {
            valid += 1;
            best = None;
            first = first.or(Some(result));
        } else if valid == 0 && best.as_ref().is_none_or(|best| result.matches > best.matches) {
            best = Some(result);
        }
    }
    if let (1, Some(first)) = (valid, first) {
        return outcome.merge(first);
    }
    let count = match valid {
        0 => "Found none valid".to_owned(),
        _ => format!("Found {valid} valid alternatives"),
    };
    outcome.add(Found::whole(at, &format!("must validate one and only one schema (oneOf). {count}")));
    if let Some(best) = best {
        outcome.merge(best);
    }
}

#[cfg(test)]
mod tests;
