//! Tests of ConfigMap.

use serde_json::json;

use crate::testing::{create_errors, update_errors};

#[test]
fn immutable_config_maps_cannot_change() {
    let old = json!({"apiVersion": "v1", "kind": "ConfigMap", "immutable": true, "data": {"a": "b"}});
    let mut new = old.clone();
    new["data"]["a"] = "c".into();
    assert_eq!(update_errors(&new, &old), ["data: Forbidden: field is immutable when `immutable` is set"]);
    let mut new = old.clone();
    new["immutable"] = false.into();
    assert_eq!(
        update_errors(&new, &old),
        ["immutable: Forbidden: field is immutable when `immutable` is set"]
    );
}

#[test]
fn the_size_of_a_config_map_is_limited() {
    let data = json!({"a": "x".repeat(1024 * 1024 + 1)});
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data});
    assert_eq!(create_errors(&object), ["[]: Too long: may not be more than 1048576 bytes"]);
}
