//! Prints values like upstream's internal types: Go's field names and order, and `null` or zero for absent
//! fields.

use serde_json::Value;

use crate::convert::Ordered;
use kubewright_apimachinery::object::Fields as _;

/// The strategy of a Deployment or a DaemonSet.
pub(crate) fn strategy(strategy: &Value) -> String {
    let rolling_update = or_null(strategy.at("rollingUpdate"), |update| {
        Ordered::new()
            .member("MaxUnavailable", &or_zero(update.at("maxUnavailable")))
            .member("MaxSurge", &or_zero(update.at("maxSurge")))
            .finish()
    });
    Ordered::new()
        .member("Type", &strategy.str_at("type").into())
        .text("RollingUpdate", &rolling_update)
        .finish()
}

pub(crate) fn or_null(value: &Value, print: impl Fn(&Value) -> String) -> String {
    if value.is_null() { "null".to_owned() } else { print(value) }
}

pub(crate) fn or_zero(value: &Value) -> Value {
    if value.is_null() { 0.into() } else { value.clone() }
}
