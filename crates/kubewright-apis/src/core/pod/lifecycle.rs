//! The times of a Pod's conditions, and its grace period.

use kubewright_apimachinery::object::Fields as _;
use serde_json::Value;

use crate::registry::Stamp;

/// Maximum grace period: a hundred years, so that the end of the period can be formatted.
const MAX_GRACE: i64 = 100 * 365 * 86_400;

/// Sets the missing times of a new object's conditions.
pub(super) fn stamp(new: &mut Value, old: Option<&Value>, write: &Stamp<'_>) {
    if old.is_some() {
        return;
    }
    for condition in new.list_mut("status.conditions").into_iter().flatten() {
        condition.default_at("lastTransitionTime", write.time());
    }
}

/// The grace period of a deletion. Pods without a node and finished Pods are removed immediately.
pub(super) fn grace_period(pod: &Value, requested: Option<i64>) -> i64 {
    let has_ended = matches!(pod.str_at("status.phase"), "Succeeded" | "Failed");
    if pod.str_at("spec.nodeName").is_empty() || has_ended {
        return 0;
    }
    let grace = requested.or_else(|| pod.int_at("spec.terminationGracePeriodSeconds")).unwrap_or(30);
    // As upstream, a negative period means one second.
    if grace < 0 { 1 } else { grace.min(MAX_GRACE) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_negative_grace_period_is_one_second() {
        let pod = json!({"spec": {"nodeName": "n", "terminationGracePeriodSeconds": -5}});
        assert_eq!(grace_period(&pod, None), 1);
        assert_eq!(grace_period(&pod, Some(-1)), 1);
        assert_eq!(grace_period(&pod, Some(7)), 7);
        assert_eq!(grace_period(&pod, Some(i64::MAX)), MAX_GRACE);
    }
}
