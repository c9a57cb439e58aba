//! Prints the update strategy of a StatefulSet like upstream's internal type.

use serde_json::Value;

use crate::convert::Ordered;
use crate::validation::printed::{or_null, or_zero};
use kubewright_apimachinery::object::Fields as _;

/// The strategy of a StatefulSet.
pub(super) fn strategy(strategy: &Value) -> String {
    let rolling_update = or_null(strategy.at("rollingUpdate"), rolling_update);
    Ordered::new()
        .member("Type", &strategy.str_at("type").into())
        .text("RollingUpdate", &rolling_update)
        .finish()
}

/// `rollingUpdate` in the strategy of a StatefulSet.
pub(super) fn rolling_update(update: &Value) -> String {
    Ordered::new()
        .member("Partition", &or_zero(update.at("partition")))
        .member("MaxUnavailable", update.at("maxUnavailable"))
        .finish()
}
