//! Defaults of webhook configurations and admission policies.

use serde_json::{Value, json};

use kubewright_apimachinery::object::Fields as _;

pub(super) fn apply(kind: &str, object: &mut Value) {
    match kind {
        "ValidatingWebhookConfiguration" => webhooks(object).for_each(webhook),
        "MutatingWebhookConfiguration" => webhooks(object).for_each(|hook| {
            webhook(hook);
            hook.default_at("reinvocationPolicy", "Never");
        }),
        "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy" => {
            object.default_at("spec.failurePolicy", "Fail");
            match_resources(object, "spec.matchConstraints");
        }
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => {
            match_resources(object, "spec.matchResources");
        }
        _ => {}
    }
}

fn webhooks(object: &mut Value) -> impl Iterator<Item = &mut Value> {
    object.list_mut("webhooks").into_iter().flatten()
}

fn webhook(hook: &mut Value) {
    hook.default_at("failurePolicy", "Fail");
    hook.default_at("matchPolicy", "Equivalent");
    hook.default_at("namespaceSelector", json!({}));
    hook.default_at("objectSelector", json!({}));
    hook.default_at("timeoutSeconds", 10);
    if hook.has("clientConfig.service") {
        hook.default_at("clientConfig.service.port", 443);
    }
    hook.list_mut("rules").into_iter().flatten().for_each(scope);
}

fn match_resources(object: &mut Value, path: &str) {
    let Some(resources) = object.at_mut(path) else { return };
    resources.default_at("matchPolicy", "Equivalent");
    resources.default_at("namespaceSelector", json!({}));
    resources.default_at("objectSelector", json!({}));
    for rules in ["resourceRules", "excludeResourceRules"] {
        resources.list_mut(rules).into_iter().flatten().for_each(scope);
    }
}

fn scope(rule: &mut Value) {
    rule.default_at("scope", "*");
}
