//! Constraints on numbers. Upstream stores bounds as floats and compares integers with Go's conversion of the
//! bound.

use serde_json::Number;

use super::found::{At, Found, Outcome};
use crate::custom::print::float;
use crate::structural::FormatKind;
use crate::structural::{Structural, Type};

/// The largest integer that a float represents exactly.
const MAX_JSON_INTEGER: f64 = 9_007_199_254_740_991.0;

const EPSILON: f64 = 1e-9;

/// Validates a number against its format and bounds.
pub(super) fn check(schema: &Structural, given: &Number, at: &At<'_>, outcome: &mut Outcome) {
    let value = match given.as_i64() {
        Some(int) => Given::Int(int),
        None => Given::Float(given.as_f64().unwrap_or_default()),
    };
    outcome.extend(range_error(schema, value, "Checked", at));
    let Some(bounds) = schema.number.as_deref() else { return };
    let bound = |bound: &Option<Number>| bound.as_ref().and_then(Number::as_f64);
    if let Some(factor) = bound(&bounds.multiple_of) {
        let native = native(schema, value, factor, "MultipleOf", at, outcome);
        outcome.extend(multiple_error(value, factor, native, at));
    }
    if let Some(min) = bound(&bounds.minimum) {
        let native = native(schema, value, min, "Minimum boundary", at, outcome);
        let exclusive = bounds.exclusive_minimum;
        let (broken, bound) = match native {
            Some(int) => (int < to_int(min) || (exclusive && int == to_int(min)), to_int(min).to_string()),
            None => (value.float() < min || (exclusive && value.float() <= min), float(min)),
        };
        if broken {
            let than = if exclusive { "greater than" } else { "greater than or equal to" };
            outcome.add(Found::invalid(at, value.shown(native), &format!("should be {than} {bound}")));
        }
    }
    if let Some(max) = bound(&bounds.maximum) {
        let native = native(schema, value, max, "Maximum boundary", at, outcome);
        let exclusive = bounds.exclusive_maximum;
        let (broken, bound) = match native {
            Some(int) => (int > to_int(max) || (exclusive && int == to_int(max)), to_int(max).to_string()),
            None => (value.float() > max || (exclusive && value.float() >= max), float(max)),
        };
        if broken {
            let than = if exclusive { "less than" } else { "less than or equal to" };
            outcome.add(Found::invalid(at, value.shown(native), &format!("should be {than} {bound}")));
        }
    }
}

/// A number as in the input.
#[derive(Clone, Copy)]
enum Given {
    Int(i64),
    Float(f64),
}

impl Given {
    #[expect(clippy::cast_precision_loss, reason = "upstream loses the same precision")]
    fn float(self) -> f64 {
        match self {
            Self::Int(int) => int as f64,
            Self::Float(float) => float,
        }
    }

    /// The number in messages: an integer only if it was compared as one.
    fn shown(self, native: Option<i64>) -> String {
        native.map_or_else(|| float(self.float()), |int| int.to_string())
    }
}

/// The value as an integer if it is compared as one; `None` if floats are compared. A bound out of range is
/// an error and is compared as a float.
fn native(
    schema: &Structural,
    value: Given,
    bound: f64,
    what: &str,
    at: &At<'_>,
    outcome: &mut Outcome,
) -> Option<i64> {
    let error = range_error(schema, Given::Float(bound), what, at);
    let fits = error.is_none();
    outcome.extend(error);
    match value {
        Given::Int(int) if fits => Some(int),
        _ => None,
    }
}

fn multiple_error(value: Given, factor: f64, native: Option<i64>, at: &At<'_>) -> Option<Found> {
    let (holds, shown_factor) = if let Some(int) = native {
        let factor = to_int(factor);
        if factor <= 0 {
            return Some(Found::bad_factor(at, factor.to_string()));
        }
        (int % factor == 0, factor.to_string())
    } else {
        if factor <= 0.0 {
            return Some(Found::bad_factor(at, float(factor)));
        }
        let times = if factor < 1.0 { 1.0 / factor * value.float() } else { value.float() / factor };
        (is_json_integer(times), float(factor))
    };
    let rule = format!("should be a multiple of {shown_factor}");
    (!holds).then(|| Found::invalid(at, value.shown(native), &rule))
}

/// The error if the number is out of range for type and format.
fn range_error(schema: &Structural, value: Given, what: &str, at: &At<'_>) -> Option<Found> {
    let ty = schema.types().single();
    let format = schema.enforced_format();
    let kind = format.map(|(_, kind)| kind);
    let fits = match ty {
        Some(Type::Integer) => {
            let int = match value {
                Given::Int(int) => Some(int),
                Given::Float(float) => whole(float),
            };
            int.is_some_and(|int| !matches!(kind, Some(FormatKind::Int32)) || i32::try_from(int).is_ok())
        }
        #[expect(clippy::cast_possible_truncation, reason = "values out of range become infinite")]
        Some(Type::Number) => !matches!(kind, Some(FormatKind::Float)) || (value.float() as f32).is_finite(),
        _ => true,
    };
    if fits {
        return None;
    }
    let ty = ty.map_or("", Type::name);
    Some(Found::nameless(match format {
        Some((format, _)) => format!("{what} value must be of type {ty} with format {format} in {at}"),
        None => format!("{what} value must be of type {ty} (default format) in {at}"),
    }))
}

/// The float as an `i64`, if it is an integer in range.
fn whole(value: f64) -> Option<i64> {
    let int = to_int(value);
    #[expect(clippy::cast_precision_loss, clippy::float_cmp, reason = "only an exact result counts")]
    let exact = int as f64 == value;
    exact.then_some(int)
}

/// Converts a float to an integer like Go on amd64: truncates, and returns the minimum if out of range.
pub(crate) fn to_int(value: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked above")]
    if (-LIMIT..LIMIT).contains(&value) { value as i64 } else { i64::MIN }
}

/// Whether upstream treats the float as an integer: close to one and not too large.
pub(super) fn is_json_integer(value: f64) -> bool {
    if !(-MAX_JSON_INTEGER..=MAX_JSON_INTEGER).contains(&value) {
        return false;
    }
    let truncated = value.trunc();
    #[expect(clippy::float_cmp, reason = "an exact integer needs no tolerance")]
    if value == truncated {
        return true;
    }
    // Upstream converts through an unsigned integer, so only positive values have the tolerance.
    if truncated <= 0.0 {
        return false;
    }
    (value - truncated).abs() / (value.abs() + truncated.abs()) < EPSILON
}
