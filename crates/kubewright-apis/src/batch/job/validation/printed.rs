//! Prints parts of a Job like upstream's internal types.

use serde_json::Value;

use crate::convert::Ordered;
use crate::core::pod::validation::internal;
use crate::validation::printed::or_null;
use kubewright_apimachinery::object::Fields as _;

/// The pod failure policy of a Job.
pub(super) fn pod_failure_policy(policy: &Value) -> String {
    let on_exit_codes = |codes: &Value| {
        Ordered::new()
            .member("ContainerName", codes.at("containerName"))
            .member("Operator", &codes.str_at("operator").into())
            .member("Values", codes.at("values"))
            .finish()
    };
    let pattern = |pattern: &Value| {
        let text = |name: &str| pattern.str_at(name).into();
        Ordered::new().member("Type", &text("type")).member("Status", &text("status")).finish()
    };
    let rule = |rule: &Value| {
        Ordered::new()
            .member("Action", &rule.str_at("action").into())
            .text("OnExitCodes", &or_null(rule.at("onExitCodes"), on_exit_codes))
            .text("OnPodConditions", &Ordered::list(rule.at("onPodConditions"), pattern))
            .finish()
    };
    or_null(policy, |policy| Ordered::new().text("Rules", &Ordered::list(policy.at("rules"), rule)).finish())
}

/// The success policy of a Job.
pub(super) fn success_policy(policy: &Value) -> String {
    let rule = |rule: &Value| {
        Ordered::new()
            .member("SucceededIndexes", rule.at("succeededIndexes"))
            .member("SucceededCount", rule.at("succeededCount"))
            .finish()
    };
    or_null(policy, |policy| Ordered::new().text("Rules", &Ordered::list(policy.at("rules"), rule)).finish())
}

/// A pod template. Its metadata has JSON names.
pub(super) fn pod_template(template: &Value) -> String {
    let metadata = template.at("metadata");
    let mut text = Ordered::new();
    for name in
        ["name", "generateName", "namespace", "labels", "annotations", "ownerReferences", "finalizers"]
    {
        text = text.optional(name, metadata.at(name));
    }
    text.text("Spec", &pod_spec(template.at("spec"))).finish()
}

/// The spec of a pod.
pub(super) fn pod_spec(spec: &Value) -> String {
    internal::compact("PodSpec", spec)
}

/// The uncounted terminated pods of a Job.
pub(super) fn uncounted_terminated_pods(pods: &Value) -> String {
    Ordered::new().member("Succeeded", pods.at("succeeded")).member("Failed", pods.at("failed")).finish()
}
