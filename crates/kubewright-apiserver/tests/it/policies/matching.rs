//! Which requests a policy applies to.

use serde_json::{Value, json};

use super::{REGISTRATION, enforce, post};
use crate::webhooks::{create_config_map, send};
use crate::world::server;

/// Otherwise clients could not check permissions, and the policy could not be deleted.
#[tokio::test]
async fn a_policy_for_everything_does_not_apply_to_reviews_and_policies() {
    let server = server();
    let all = json!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]});
    let policy =
        json!({"matchConstraints": {"resourceRules": [all]}, "validations": [{"expression": "false"}]});
    enforce(&server, policy, json!({})).await;
    assert_eq!(create_config_map(&server, "a").await.0, 422);
    let check = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let check_of_user =
        json!({"spec": {"user": "u", "resourceAttributes": {"verb": "get", "resource": "pods"}}});
    for (path, review) in [
        ("authorization.k8s.io/v1/selfsubjectaccessreviews", check),
        ("authorization.k8s.io/v1/subjectaccessreviews", check_of_user),
        ("authorization.k8s.io/v1/selfsubjectrulesreviews", json!({"spec": {"namespace": "default"}})),
        ("authentication.k8s.io/v1/tokenreviews", json!({"spec": {"token": "t"}})),
        ("authentication.k8s.io/v1/selfsubjectreviews", json!({})),
    ] {
        let (status, _, body) = send(&server, "POST", &format!("/apis/{path}"), &review).await;
        assert_eq!(status, 201, "{path}: {body}");
    }
    for kind in ["validating", "mutating"] {
        let configuration = json!({"metadata": {"name": "c"}});
        let (status, body) = post(&server, &format!("{kind}webhookconfigurations"), &configuration).await;
        assert_eq!(status, 422, "{body}");
    }
    for object in ["validatingadmissionpolicies/p", "validatingadmissionpolicybindings/b"] {
        let path = format!("{REGISTRATION}/{object}");
        assert_eq!(send(&server, "DELETE", &path, &Value::Null).await.0, 200, "{object}");
    }
}

/// Excluded rules come first, and with matchPolicy Equivalent they also match other versions.
#[tokio::test]
async fn an_equivalent_resource_can_be_excluded() {
    let rule = |version: &str| {
        json!({"apiGroups": ["autoscaling"], "apiVersions": [version], "operations": ["*"],
            "resources": ["horizontalpodautoscalers"]})
    };
    let autoscaler = json!({"metadata": {"name": "h"}, "spec": {
        "maxReplicas": 2, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}});
    let path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
    for (match_policy, expected) in [("Equivalent", 201), ("Exact", 422)] {
        let excluded = json!({"excludeResourceRules": [rule("v1")], "matchPolicy": match_policy});
        let mut constraints = excluded.clone();
        constraints["resourceRules"] = json!([rule("v2")]);
        let everything = json!({"resourceRules": [rule("v2")]});
        for (constraints, binding) in
            [(constraints, json!({})), (everything, json!({"matchResources": excluded}))]
        {
            let server = server();
            let policy = json!({"matchConstraints": constraints, "validations": [{"expression": "false"}]});
            enforce(&server, policy, binding).await;
            let (status, _, body) = send(&server, "POST", path, &autoscaler).await;
            assert_eq!(status, expected, "{match_policy} {constraints}: {body}");
        }
    }
}

#[tokio::test]
async fn the_failure_policy_decides_for_errors_and_not_for_failed_validations() {
    for (failure_policy, on_error) in [("Fail", 422), ("Ignore", 201)] {
        for (expression, expected) in
            [("object.data.nosuch == '1'", on_error), ("object.data.key == '2'", 422)]
        {
            let server = server();
            let policy =
                json!({"failurePolicy": failure_policy, "validations": [{"expression": expression}]});
            enforce(&server, policy, json!({})).await;
            let (status, _, body) = create_config_map(&server, "a").await;
            assert_eq!(status, expected, "{failure_policy} {expression}: {body}");
        }
    }
}
