//! Defaults of HorizontalPodAutoscaler in v1 and v2.

use serde_json::{Value, json};

use super::convert::other_metrics;
use kubewright_apimachinery::object::Fields as _;

/// Default target utilization of CPU, in percent of the request.
const CPU_UTILIZATION: i32 = 80;

pub(super) fn v1(object: &mut Value) {
    object.default_at("spec.minReplicas", 1);
    // Other metrics of a v1 object are in an annotation.
    if other_metrics(object).is_empty() {
        object.default_at("spec.targetCPUUtilizationPercentage", CPU_UTILIZATION);
    }
}

pub(super) fn v2(object: &mut Value) {
    object.default_at("spec.minReplicas", 1);
    if object.list_at("spec.metrics").is_empty() {
        let target = json!({"type": "Utilization", "averageUtilization": CPU_UTILIZATION});
        let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
        object.set_at("spec.metrics", vec![metric]);
    }
    if let Some(behavior) = object.at_mut("spec.behavior") {
        let quickly = json!([
            {"type": "Pods", "value": 4, "periodSeconds": 15},
            {"type": "Percent", "value": 100, "periodSeconds": 15},
        ]);
        behavior.default_at("scaleUp.stabilizationWindowSeconds", 0);
        behavior.default_at("scaleUp.selectPolicy", "Max");
        behavior.default_at("scaleUp.policies", quickly);
        behavior.default_at("scaleDown.selectPolicy", "Max");
        behavior.default_at(
            "scaleDown.policies",
            json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]),
        );
    }
}
