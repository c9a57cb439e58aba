//! Tests of ResourceQuota.

use serde_json::{Value, json};

use crate::testing::{create_errors, row};

#[test]
fn a_quota_needs_known_resources_and_integer_counts() {
    let quota = |hard: Value| json!({"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": hard}, "status": {}});
    assert_eq!(
        create_errors(&quota(json!({"bogus": "1"}))),
        [
            "spec.hard[bogus]: Invalid value: \"bogus\": must be a standard resource type or fully qualified",
            "spec.hard[bogus]: Invalid value: \"bogus\": must be a standard resource for quota",
        ]
    );
    assert_eq!(
        create_errors(&quota(json!({"pods": "1500m"}))),
        ["spec.hard[pods]: Invalid value: \"1500m\": must be an integer"]
    );
    assert!(
        create_errors(&quota(json!({"requests.cpu": "1500m", "count/widgets.example.com": "3"}))).is_empty()
    );
}

#[test]
fn a_quota_shows_its_usage() {
    let status = json!({"hard": {"pods": "5", "limits.cpu": "2", "cpu": "1"}, "used": {"pods": "3"}});
    assert_eq!(
        row("v1", "ResourceQuota", json!({"status": status})),
        json!(["o", "cpu: 0/1, pods: 3/5", "limits.cpu: 0/2", "60m"])
    );
}
