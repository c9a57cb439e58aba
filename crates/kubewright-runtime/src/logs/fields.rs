//! The fields of spans and events, until a line is written.

use std::error::Error;
use std::fmt::{self, Write};

use tracing::field::{Field, Visit};

/// Fields in recording order; each name once, with its last value.
#[derive(Debug, Default)]
pub(super) struct Fields(Vec<(&'static str, Value)>);

#[derive(Debug)]
pub(super) enum Value {
    Text(String),
    /// A number or boolean, which has the same form in text and JSON.
    Literal(String),
}

/// The field in which `tracing` stores the message.
const MESSAGE: &str = "message";

impl Fields {
    /// All but the message.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.0.iter().filter(|(name, _)| *name != MESSAGE).map(|(name, value)| (*name, value))
    }

    pub(super) fn message(&self) -> &str {
        match self.0.iter().find(|(name, _)| *name == MESSAGE) {
            Some((_, Value::Text(text) | Value::Literal(text))) => text,
            None => "",
        }
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.iter().any(|(existing, _)| *existing == name)
    }

    fn set(&mut self, field: &Field, value: Value) {
        // A raw identifier such as `r#type`.
        let name = field.name();
        let name = name.strip_prefix("r#").unwrap_or(name);
        // These configure the trace exporter.
        if name.starts_with("otel.") {
            return;
        }
        match self.0.iter_mut().find(|(existing, _)| *existing == name) {
            Some((_, existing)) => *existing = value,
            None => self.0.push((name, value)),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, Value::Text(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, Value::Text(value.to_owned()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, Value::Literal(value.to_string()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, Value::Literal(value.to_string()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, Value::Literal(value.to_string()));
    }

    // Many JSON readers lose digits beyond 64 bits, so these are strings.
    fn record_i128(&mut self, field: &Field, value: i128) {
        self.set(field, Value::Text(value.to_string()));
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.set(field, Value::Text(value.to_string()));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has no NaN and no infinity.
        let make = if value.is_finite() { Value::Literal } else { Value::Text };
        self.set(field, make(value.to_string()));
    }

    /// With all its causes.
    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        let mut text = value.to_string();
        let mut cause = value.source();
        while let Some(error) = cause {
            // Writing to a string cannot fail.
            let _ = write!(text, ": {error}");
            cause = error.source();
        }
        self.set(field, Value::Text(text));
    }
}
