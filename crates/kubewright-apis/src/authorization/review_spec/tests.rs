//! Tests of access reviews.

use serde_json::{Value, json};

use crate::testing::create_errors;

#[test]
fn a_review_needs_exactly_one_kind_of_attributes() {
    let review = |spec: Value| json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec});
    assert_eq!(
        create_errors(&review(json!({}))),
        [
            "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or \
             resourceAttributes must be specified",
            "spec.user: Invalid value: \"\": at least one of user or group must be specified",
        ]
    );
    assert_eq!(
        create_errors(&review(json!({"user": "x", "resourceAttributes": {}, "nonResourceAttributes": {}}))),
        ["spec.nonResourceAttributes: Invalid value: {\"Path\":\"\",\"Verb\":\"\"}: cannot be specified in \
          combination with resourceAttributes"]
    );
}
