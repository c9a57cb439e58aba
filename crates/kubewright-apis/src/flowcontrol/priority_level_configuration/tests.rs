//! Tests of PriorityLevelConfiguration.

use serde_json::json;

use crate::testing::{defaulted, row};

#[test]
fn a_priority_level_gets_queuing_defaults() {
    let object = defaulted(json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration",
        "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {}}}}
    }));
    assert_eq!(
        object["spec"]["limited"],
        json!({
            "nominalConcurrencyShares": 30, "lendablePercent": 0,
            "limitResponse": {"type": "Queue", "queuing": {"handSize": 8, "queues": 64, "queueLengthLimit": 50}}
        })
    );
}

#[test]
fn priority_levels_show_numbers_if_set() {
    let parts = json!({"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}}}});
    assert_eq!(
        row("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", parts),
        json!(["o", "Limited", 5, "<none>", "<none>", "<none>", "60m"])
    );
}
