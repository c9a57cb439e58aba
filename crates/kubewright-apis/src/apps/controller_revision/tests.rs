//! Tests of ControllerRevision.

use serde_json::json;

use super::RULES;
use crate::testing::{row, update_errors};

#[test]
fn the_data_of_a_controller_revision_is_required_and_immutable() {
    let errors = (RULES.validate)(&json!({"revision": -1}));
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            "revision: Invalid value: -1: must be greater than or equal to 0",
            "data: Required value: data is mandatory"
        ]
    );
    let old = json!({"apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1, "data": {"a": 1}});
    let mut new = old.clone();
    new["revision"] = 2.into();
    assert!(update_errors(&new, &old).is_empty());
    new["data"] = json!({"a": 2});
    assert_eq!(update_errors(&new, &old), ["data: Invalid value: {\"a\":2}: field is immutable"]);
}

#[test]
fn a_controller_revision_shows_its_controller() {
    let owner = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "controller": true});
    let parts = json!({"metadata": {"ownerReferences": [owner]}, "revision": 3});
    assert_eq!(row("apps/v1", "ControllerRevision", parts), json!(["o", "statefulset.apps/s", 3, "60m"]));
}
