//! Resource requests of pods and allocatable resources of nodes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Node, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubewright_apimachinery::quantity;

/// Amounts by resource: CPU in millicores, everything else in units.
pub(super) type Amounts = BTreeMap<String, i64>;

/// The requests of a pod. Init containers run before the others, sidecars beside them.
pub(super) fn of_pod(pod: &Pod) -> Amounts {
    let Some(spec) = &pod.spec else { return Amounts::new() };
    let mut together = Amounts::new();
    for container in &spec.containers {
        add(&mut together, &of_container(container));
    }
    let (mut sidecars, mut peak) = (Amounts::new(), Amounts::new());
    for container in spec.init_containers.iter().flatten() {
        let own = of_container(container);
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut sidecars, &own);
            most(&mut peak, &sidecars);
        } else {
            let mut now = sidecars.clone();
            add(&mut now, &own);
            most(&mut peak, &now);
        }
    }
    add(&mut together, &sidecars);
    most(&mut together, &peak);
    // Pod-level requests override those of containers.
    let whole = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    together.extend(whole.map(amounts).unwrap_or_default());
    add(&mut together, &spec.overhead.as_ref().map(amounts).unwrap_or_default());
    together
}

/// The allocatable resources of a node.
pub(super) fn of_node(node: &Node) -> Amounts {
    let status = node.status.as_ref();
    status
        .and_then(|status| status.allocatable.as_ref().or(status.capacity.as_ref()))
        .map(amounts)
        .unwrap_or_default()
}

/// Adds amounts.
pub(super) fn add(sum: &mut Amounts, more: &Amounts) {
    for (resource, amount) in more {
        let sum = sum.entry(resource.clone()).or_default();
        *sum = sum.saturating_add(*amount);
    }
}

/// Takes amounts away again.
pub(super) fn subtract(sum: &mut Amounts, less: &Amounts) {
    for (resource, amount) in less {
        if let Some(sum) = sum.get_mut(resource) {
            *sum = sum.saturating_sub(*amount);
        }
    }
}

fn most(peak: &mut Amounts, other: &Amounts) {
    for (resource, amount) in other {
        let peak = peak.entry(resource.clone()).or_default();
        *peak = (*peak).max(*amount);
    }
}

fn of_container(container: &Container) -> Amounts {
    let requests = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    requests.map(amounts).unwrap_or_default()
}

fn amounts(list: &BTreeMap<String, Quantity>) -> Amounts {
    list.iter().map(|(resource, amount)| (resource.clone(), amount_of(resource, amount))).collect()
}

fn amount_of(resource: &str, amount: &Quantity) -> i64 {
    let Ok(amount) = quantity::Quantity::parse(&amount.0) else { return 0 };
    if resource == "cpu" { amount.milli_value() } else { amount.value() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pod_requests_are_those_of_containers_or_of_the_largest_init_container() {
        let asks = |cpu: &str| json!({ "requests": { "cpu": cpu, "memory": "1Gi" } });
        let pod: Pod = serde_json::from_value(json!({ "spec": {
            "overhead": { "cpu": "10m" },
            "initContainers": [
                { "name": "proxy", "restartPolicy": "Always", "resources": asks("100m") },
                { "name": "setup", "resources": asks("2") },
            ],
            "containers": [{ "name": "a", "resources": asks("500m") }, { "name": "b", "resources": asks("0.25") }],
        }}))
        .unwrap();
        let amounts = of_pod(&pod);
        assert_eq!(amounts["cpu"], 2110);
        assert_eq!(amounts["memory"], 3 << 30);
    }
}
