//! Resource requests of pods and allocatable resources of nodes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Node, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubewright_apimachinery::quantity;

/// Amounts by resource: CPU in millicores, everything else in units.
///
/// A sorted list, because a decision looks up a few resources of hundreds of nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Amounts(Vec<(Box<str>, i64)>);

impl Amounts {
    pub(super) fn get(&self, resource: &str) -> Option<&i64> {
        self.0.iter().find(|(name, _)| **name == *resource).map(|(_, amount)| amount)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().map(|(resource, amount)| (&**resource, *amount))
    }

    /// Adds amounts.
    pub(super) fn add(&mut self, more: &Self) {
        for (resource, amount) in more.iter() {
            let sum = self.entry(resource);
            *sum = sum.saturating_add(amount);
        }
    }

    /// Subtracts amounts that were added before.
    pub(super) fn subtract(&mut self, less: &Self) {
        for (resource, amount) in less.iter() {
            let sum = self.entry(resource);
            *sum = sum.saturating_sub(amount);
        }
    }

    /// Raises each amount to that of `other` if it is higher.
    fn raise(&mut self, other: &Self) {
        for (resource, amount) in other.iter() {
            let highest = self.entry(resource);
            *highest = (*highest).max(amount);
        }
    }

    fn entry(&mut self, resource: &str) -> &mut i64 {
        let at = self.0.binary_search_by(|(name, _)| (**name).cmp(resource)).unwrap_or_else(|at| {
            self.0.insert(at, (resource.into(), 0));
            at
        });
        &mut self.0[at].1
    }
}

/// The requests of a pod. Init containers run before the others, sidecars beside them.
pub(super) fn of_pod(pod: &Pod) -> Amounts {
    let Some(spec) = &pod.spec else { return Amounts::default() };
    let mut together = Amounts::default();
    for container in &spec.containers {
        together.add(&of_container(container));
    }
    let (mut sidecars, mut peak) = (Amounts::default(), Amounts::default());
    for container in spec.init_containers.iter().flatten() {
        let own = of_container(container);
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars.add(&own);
            peak.raise(&sidecars);
        } else {
            let mut now = sidecars.clone();
            now.add(&own);
            peak.raise(&now);
        }
    }
    together.add(&sidecars);
    together.raise(&peak);
    // Pod-level requests override those of containers.
    let whole = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    for (resource, amount) in whole.map(amounts).unwrap_or_default().iter() {
        *together.entry(resource) = amount;
    }
    together.add(&spec.overhead.as_ref().map(amounts).unwrap_or_default());
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

fn of_container(container: &Container) -> Amounts {
    let requests = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    requests.map(amounts).unwrap_or_default()
}

fn amounts(list: &BTreeMap<String, Quantity>) -> Amounts {
    let amounts =
        list.iter().map(|(resource, amount)| (resource.as_str().into(), amount_of(resource, amount)));
    Amounts(amounts.collect())
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
        assert_eq!(amounts.get("cpu"), Some(&2110));
        assert_eq!(amounts.get("memory"), Some(&(3 << 30)));
    }
}
