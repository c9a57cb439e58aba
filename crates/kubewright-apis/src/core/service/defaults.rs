//! Defaults of Service.
//!
//! Allocated values (cluster IPs, node ports) and IP families are not set here.

use serde_json::{Value, json};

use super::strategy::externally_accessible;
use kubewright_apimachinery::object::Fields as _;

/// Default timeout of session affinity in seconds.
const AFFINITY_TIMEOUT: i64 = 10_800;

pub(super) fn service(object: &mut Value) {
    object.default_at("spec.sessionAffinity", "None");
    session_affinity_config(object);
    object.default_at("spec.type", "ClusterIP");
    for port in object.list_mut("spec.ports").into_iter().flatten() {
        port.default_at("protocol", "TCP");
        let target = port.at("targetPort");
        if target.is_null() || target == 0 || target == "" {
            let number = port.at("port").clone();
            port.set_at("targetPort", number);
        }
    }
    if externally_accessible(object) {
        object.default_at("spec.externalTrafficPolicy", "Cluster");
    }
    if matches!(object.str_at("spec.type"), "ClusterIP" | "NodePort" | "LoadBalancer") {
        object.default_at("spec.internalTrafficPolicy", "Cluster");
    }
    if object.str_at("spec.type") == "LoadBalancer" {
        object.default_at("spec.allocateLoadBalancerNodePorts", true);
        for ingress in object.list_mut("status.loadBalancer.ingress").into_iter().flatten() {
            if !ingress.str_at("ip").is_empty() {
                ingress.default_at("ipMode", "VIP");
            }
        }
    }
}

/// Sets or removes the configuration. Without session affinity it is removed.
fn session_affinity_config(object: &mut Value) {
    match object.str_at("spec.sessionAffinity") {
        "None" => {
            object.remove_at("spec.sessionAffinityConfig");
        }
        "ClientIP" if !object.has("spec.sessionAffinityConfig.clientIP.timeoutSeconds") => {
            let config = json!({"clientIP": {"timeoutSeconds": AFFINITY_TIMEOUT}});
            object.set_at("spec.sessionAffinityConfig", config);
        }
        _ => {}
    }
}
