//! Prints values like upstream's internal types: Go's field names and order, and `null` or zero for absent
//! fields.

use serde_json::Value;

use crate::convert::Ordered;
use crate::validation::label_selector;
use crate::validation::pods::internal;
use kubewright_apimachinery::object::Fields as _;

/// The strategy of a Deployment or a DaemonSet.
pub(super) fn strategy(strategy: &Value) -> String {
    let rolling_update = or_null(strategy.at("rollingUpdate"), |update| {
        Ordered::new()
            .member("MaxUnavailable", &or_zero(update.at("maxUnavailable")))
            .member("MaxSurge", &or_zero(update.at("maxSurge")))
            .finish()
    });
    Ordered::new()
        .member("Type", &strategy.str_at("type").into())
        .text("RollingUpdate", &rolling_update)
        .finish()
}

/// The strategy of a StatefulSet.
pub(super) fn stateful_set_strategy(strategy: &Value) -> String {
    let rolling_update = or_null(strategy.at("rollingUpdate"), stateful_set_rolling_update);
    Ordered::new()
        .member("Type", &strategy.str_at("type").into())
        .text("RollingUpdate", &rolling_update)
        .finish()
}

/// `rollingUpdate` in the strategy of a StatefulSet.
pub(super) fn stateful_set_rolling_update(update: &Value) -> String {
    Ordered::new()
        .member("Partition", &or_zero(update.at("partition")))
        .member("MaxUnavailable", update.at("maxUnavailable"))
        .finish()
}

/// The spec of a PodDisruptionBudget.
pub(super) fn disruption_budget_spec(spec: &Value) -> String {
    Ordered::new()
        .member("MinAvailable", spec.at("minAvailable"))
        .text("Selector", &label_selector::printed(spec.at("selector")))
        .member("MaxUnavailable", spec.at("maxUnavailable"))
        .member("UnhealthyPodEvictionPolicy", spec.at("unhealthyPodEvictionPolicy"))
        .finish()
}

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

fn or_null(value: &Value, print: impl Fn(&Value) -> String) -> String {
    if value.is_null() { "null".to_owned() } else { print(value) }
}

fn or_zero(value: &Value) -> Value {
    if value.is_null() { 0.into() } else { value.clone() }
}
