//! Tests of PodDisruptionBudget.

use serde_json::{Value, json};

use crate::testing::spec_errors;

#[test]
fn a_disruption_budget_has_either_min_available_or_max_unavailable() {
    let budget = |spec: Value| spec_errors("policy/v1", "PodDisruptionBudget", &spec);
    assert_eq!(
        budget(json!({"minAvailable": 1, "maxUnavailable": 1})),
        ["spec: Invalid value: {\"MinAvailable\":1,\"Selector\":null,\"MaxUnavailable\":1,\
          \"UnhealthyPodEvictionPolicy\":null}: minAvailable and maxUnavailable cannot be both set"]
    );
    assert_eq!(
        budget(json!({"unhealthyPodEvictionPolicy": "X"})),
        ["spec.unhealthyPodEvictionPolicy: Unsupported value: \"X\": supported values: \"AlwaysAllow\", \
          \"IfHealthyBudget\""]
    );
}
