//! Cost limits of policies.

use serde_json::{Value, json};

use super::enforce;
use crate::webhooks::{CONFIG_MAPS, send};
use crate::world::server;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// Costs 900,000: a tenth of the length of the string times a tenth of the length of the substring. One
/// expression may cost 1,000,000, all expressions of a policy 10,000,000, and its match conditions 2,500,000.
const COSTLY: &str = "object.data.text.contains(object.data.part)";

fn times(count: usize, entry: impl Fn(usize) -> Value) -> Value {
    (0..count).map(entry).collect()
}

/// Creates a ConfigMap under a policy. Returns status, warnings and message.
async fn create(policy: Value, failure_policy: &str, actions: Value) -> (u16, Vec<String>, String) {
    let server = server();
    let mut policy = policy;
    policy["failurePolicy"] = failure_policy.into();
    enforce(&server, policy, json!({"validationActions": actions})).await;
    let data = json!({"text": "a".repeat(100_000), "part": "b".repeat(900)});
    let object = json!({"metadata": {"name": "a"}, "data": data});
    let (status, warnings, body) = send(&server, "POST", CONFIG_MAPS, &object).await;
    (status, warnings, body["message"].as_str().unwrap_or_default().to_owned())
}

async fn denied_only_with_fail(policy: Value, why: &str) {
    let (status, _, message) = create(policy.clone(), "Fail", json!(["Deny"])).await;
    assert_eq!(status, 422, "{message}");
    assert!(message.ends_with(&format!("denied request: {why}")), "{message}");
    let (status, _, message) = create(policy, "Ignore", json!(["Deny"])).await;
    assert_eq!(status, 201, "{message}");
}

#[tokio::test]
async fn the_cost_of_all_validations_is_limited() {
    let validations = |count| times(count, |_| json!({"expression": format!("!{COSTLY}")}));
    let (status, _, message) = create(json!({"validations": validations(11)}), "Fail", json!(["Deny"])).await;
    assert_eq!(status, 201, "{message}");
    denied_only_with_fail(json!({"validations": validations(12)}), OUT_OF_BUDGET).await;
}

/// Messages are evaluated for all validations, also for those that hold.
#[tokio::test]
async fn the_cost_of_message_expressions_is_limited() {
    for expression in ["true", "false"] {
        let validation = json!({"expression": expression, "messageExpression": format!("string({COSTLY})")});
        let policy = json!({"validations": times(12, |_| validation.clone())});
        denied_only_with_fail(policy, &format!("failed messageExpression: {OUT_OF_BUDGET}")).await;
    }
}

#[tokio::test]
async fn the_cost_of_match_conditions_is_limited() {
    let condition = |at| json!({"name": format!("c{at}"), "expression": format!("!{COSTLY}")});
    let policy =
        |count| json!({"matchConditions": times(count, condition), "validations": [{"expression": "false"}]});
    let (_, _, message) = create(policy(2), "Fail", json!(["Deny"])).await;
    assert!(message.ends_with("denied request: failed expression: false"), "{message}");
    denied_only_with_fail(policy(3), OUT_OF_BUDGET).await;
}

/// An audit annotation that exceeds the budget replaces all other results. The binding's actions apply.
#[tokio::test]
async fn the_cost_of_audit_annotations_is_limited() {
    let annotation = |at| json!({"key": format!("k{at}"), "valueExpression": format!("string({COSTLY})")});
    let policy = json!({
        "validations": [{"expression": "false", "message": "never"}],
        "auditAnnotations": times(12, annotation),
    });
    denied_only_with_fail(policy.clone(), OUT_OF_BUDGET).await;
    let (status, warnings, message) = create(policy.clone(), "Fail", json!(["Warn"])).await;
    assert_eq!(status, 201, "{message}");
    let expected = format!(
        "299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': {OUT_OF_BUDGET}\""
    );
    assert_eq!(warnings, [expected]);
    let (status, warnings, _) = create(policy, "Ignore", json!(["Warn"])).await;
    assert_eq!((status, warnings), (201, Vec::new()));
}
