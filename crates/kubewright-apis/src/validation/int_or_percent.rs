//! Validation of values that are a number of pods or a percentage.

use serde_json::Value;

use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::names;

/// Validates a non-negative number or a percentage.
pub(crate) fn validate(value: &Value, path: &Path) -> ErrorList {
    match value {
        Value::String(text) => {
            let messages = names::percent(text).into_iter();
            messages.map(|message| FieldError::invalid(path, text.as_str(), message)).collect()
        }
        _ if value.as_i64().is_some_and(|number| number < 0) => {
            vec![FieldError::invalid(path, value.clone(), "must be greater than or equal to 0")]
        }
        _ => ErrorList::new(),
    }
}

/// Returns an error if a percentage is greater than 100 %.
pub(crate) fn at_most_all(value: &Value, path: &Path) -> Option<FieldError> {
    (percentage(value)? > 100)
        .then(|| FieldError::invalid(path, value.clone(), "must not be greater than 100%"))
}

/// The number or percentage. Invalid values, which [`validate`] reports, count as zero.
pub(crate) fn amount(value: &Value) -> i64 {
    let number = |text: &str| text.parse().unwrap_or_default();
    percentage(value).or_else(|| value.as_i64()).unwrap_or_else(|| value.as_str().map_or(0, number))
}

fn percentage(value: &Value) -> Option<i64> {
    let text = value.as_str().filter(|text| names::percent(text).is_empty())?;
    text.strip_suffix('%').map(|digits| digits.parse().unwrap_or_default())
}
