//! The QoS class of a pod.

use serde_json::Value;

use crate::core::pod::defaults::resources::{Amounts, amounts};
use kubewright_apimachinery::object::Fields as _;

/// The QoS class in the status, or the computed one.
pub(crate) fn of_pod(pod: &Value) -> &str {
    match pod.str_at("status.qosClass") {
        "" => computed(pod.at("spec")),
        class => class,
    }
}

/// The QoS class of a pod spec.
///
/// `BestEffort` without requests and limits. `Guaranteed` if every container has limits for cpu and memory
/// and requests equal limits. Pod-level resources replace those of the containers.
pub(crate) fn computed(spec: &Value) -> &'static str {
    let (requests, limits, all_limited) = if is_pod_level(spec) {
        let (requests, limits) = (of("requests", spec), of("limits", spec));
        let all_limited = limits.len() == 2;
        (requests, limits, all_limited)
    } else {
        of_containers(spec)
    };
    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if all_limited && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

fn is_pod_level(spec: &Value) -> bool {
    ["requests", "limits"].into_iter().any(|kind| !spec.at("resources").map_at(kind).is_empty())
}

fn of_containers(spec: &Value) -> (Amounts, Amounts, bool) {
    let (mut requests, mut limits) = (Amounts::new(), Amounts::new());
    let mut all_limited = true;
    for container in spec.list_at("containers").iter().chain(spec.list_at("initContainers")) {
        add(&mut requests, of("requests", container));
        let own = of("limits", container);
        all_limited &= own.len() == 2;
        add(&mut limits, own);
    }
    (requests, limits, all_limited)
}

/// The cpu and memory requests or limits.
fn of(kind: &str, holder: &Value) -> Amounts {
    let mut amounts = amounts(holder.at("resources").at(kind));
    amounts.retain(|name, amount| matches!(name.as_str(), "cpu" | "memory") && amount.sign() > 0);
    amounts
}

fn add(sum: &mut Amounts, more: Amounts) {
    for (name, amount) in more {
        let total = sum.get(&name).map_or_else(|| amount.clone(), |sum| sum + &amount);
        sum.insert(name, total);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_class_is_derived_from_requests_and_limits() {
        let class = |resources: Value| computed(&json!({"containers": [{"resources": resources}]}));
        assert_eq!(class(json!({})), "BestEffort");
        assert_eq!(class(json!({"requests": {"cpu": "0"}})), "BestEffort");
        assert_eq!(class(json!({"requests": {"cpu": "1"}})), "Burstable");
        let all = json!({"cpu": "1", "memory": "1Gi"});
        assert_eq!(class(json!({"requests": all, "limits": all})), "Guaranteed");
        assert_eq!(class(json!({"requests": {"cpu": "1", "memory": "1"}, "limits": all})), "Burstable");
    }

    #[test]
    fn a_container_without_limits_makes_the_pod_burstable() {
        let all = json!({"cpu": "1", "memory": "1Gi"});
        let spec =
            json!({"containers": [{"resources": {"requests": all, "limits": all}}, {"resources": {}}]});
        assert_eq!(computed(&spec), "Burstable");
    }

    #[test]
    fn pod_level_resources_replace_those_of_containers() {
        let all = json!({"cpu": "1", "memory": "1Gi"});
        let spec = json!({"resources": {"requests": all, "limits": all}, "containers": [{"resources": {}}]});
        assert_eq!(computed(&spec), "Guaranteed");
    }
}
