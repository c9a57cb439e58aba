//! Node port and load balancer usage of Services for ResourceQuota.

use serde_json::Value;

use crate::quota::{Amounts, Quota, whole};
use kubewright_apimachinery::object::Fields as _;

pub(super) const QUOTA: Quota = Quota {
    measures: |name| matches!(name, "services.nodeports" | "services.loadbalancers"),
    usage: Some(usage),
    ..Quota::counted("services")
};

fn usage(object: &Value, _: i64) -> Amounts {
    let ports = i64::try_from(object.list_at("spec.ports").len()).unwrap_or(i64::MAX);
    let (balancers, ports) = match object.str_at("spec.type") {
        "LoadBalancer" if object.at("spec.allocateLoadBalancerNodePorts") == false => (1, 0),
        "LoadBalancer" => (1, ports),
        "NodePort" => (0, ports),
        _ => (0, 0),
    };
    Amounts::from([
        ("services".to_owned(), whole(1)),
        ("services.loadbalancers".to_owned(), whole(balancers)),
        ("services.nodeports".to_owned(), whole(ports)),
    ])
}
