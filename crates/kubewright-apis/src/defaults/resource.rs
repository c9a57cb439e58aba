//! Defaults of ResourceClaim and ResourceClaimTemplate.

use serde_json::Value;

use super::zero_to;
use kubewright_apimachinery::object::Fields as _;

/// Device requests in a ResourceClaim or its template.
pub(super) fn device_claim(object: &mut Value, path: &str) {
    for request in object.list_mut(&format!("{path}.requests")).into_iter().flatten() {
        if let Some(exactly) = request.at_mut("exactly") {
            device_request(exactly);
        }
        request.list_mut("firstAvailable").into_iter().flatten().for_each(device_request);
    }
}

fn device_request(request: &mut Value) {
    if request.str_at("allocationMode").is_empty() {
        request.set_at("allocationMode", "ExactCount");
    }
    if request.str_at("allocationMode") == "ExactCount" {
        zero_to(request, "count", 1);
    }
    for toleration in request.list_mut("tolerations").into_iter().flatten() {
        if toleration.str_at("operator").is_empty() {
            toleration.set_at("operator", "Equal");
        }
    }
}
