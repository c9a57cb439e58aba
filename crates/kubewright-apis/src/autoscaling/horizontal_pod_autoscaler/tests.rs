//! Tests of HorizontalPodAutoscaler.

use serde_json::{Value, json};

use crate::strategy::prepare_subresource;
use crate::testing::{HPA_V1, changed, defaulted_spec, row, spec_errors};

#[test]
fn an_autoscaler_defaults_to_cpu_utilization_in_both_versions() {
    let spec = json!({"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 3});
    let v1 = defaulted_spec("autoscaling/v1", "HorizontalPodAutoscaler", &spec);
    assert_eq!(v1["spec"]["targetCPUUtilizationPercentage"], 80);
    assert_eq!(v1["spec"]["minReplicas"], 1);
    let v2 = defaulted_spec("autoscaling/v2", "HorizontalPodAutoscaler", &spec);
    let target = json!({"averageUtilization": 80, "type": "Utilization"});
    assert_eq!(
        v2["spec"]["metrics"],
        json!([{"resource": {"name": "cpu", "target": target}, "type": "Resource"}])
    );
    assert_eq!(v2["spec"].get("behavior"), None);
}

#[test]
fn a_partial_behavior_is_completed() {
    let spec = json!({"maxReplicas": 3, "behavior": {"scaleDown": {"selectPolicy": "Disabled"}}});
    let object = defaulted_spec("autoscaling/v2", "HorizontalPodAutoscaler", &spec);
    assert_eq!(
        object["spec"]["behavior"],
        json!({
            "scaleDown": {
                "policies": [{"periodSeconds": 15, "type": "Percent", "value": 100}], "selectPolicy": "Disabled",
            },
            "scaleUp": {
                "policies": [
                    {"periodSeconds": 15, "type": "Pods", "value": 4},
                    {"periodSeconds": 15, "type": "Percent", "value": 100},
                ],
                "selectPolicy": "Max", "stabilizationWindowSeconds": 0,
            },
        })
    );
}

#[test]
fn annotations_of_v1_belong_to_spec_or_status() {
    let conditions = "autoscaling.alpha.kubernetes.io/conditions";
    let metrics = "autoscaling.alpha.kubernetes.io/metrics";
    let condition =
        json!(r#"[{"type":"AbleToScale","status":"True","lastTransitionTime":"2024-01-01T00:00:00Z"}]"#);
    let metric = json!(r#"[{"type":"Pods","pods":{"metricName":"q","targetAverageValue":"1"}}]"#);
    let old = json!({
        "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
        "metadata": {"annotations": {conditions: condition, metrics: metric}},
        "spec": {"maxReplicas": 3}, "status": {"currentReplicas": 2, "desiredReplicas": 2},
    });
    let new = changed(HPA_V1, &old, |new| {
        new["metadata"]["annotations"] = json!({});
        new["status"] = json!({});
    });
    assert_eq!(new["metadata"]["annotations"], json!({conditions: condition}));
    assert_eq!(new["status"], old["status"]);

    let mut new = old.clone();
    new["metadata"]["annotations"] = json!({});
    prepare_subresource(HPA_V1, "status", &mut new, &old);
    assert_eq!(new["metadata"]["annotations"], json!({metrics: metric}));
}

#[test]
fn target_and_metrics_of_an_autoscaler_are_validated() {
    let spec = json!({
        "scaleTargetRef": {"kind": "D", "name": "d"}, "maxReplicas": 1, "minReplicas": 0,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}],
    });
    assert_eq!(
        spec_errors("autoscaling/v2", "HorizontalPodAutoscaler", &spec),
        [
            "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
            "spec.scaleTargetRef.apiVersion: Invalid value: \"\": apiVersion must specify API group",
            "spec.metrics[0].resource.target.averageUtilization: Required value: must set either a target raw value \
             or a target utilization",
            "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero \
             replicas",
        ]
    );
}

#[test]
fn an_autoscaler_of_v1_is_validated_as_v2() {
    let spec = json!({
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "D", "name": "d"}, "maxReplicas": 1,
        "targetCPUUtilizationPercentage": 0,
    });
    assert_eq!(
        spec_errors("autoscaling/v1", "HorizontalPodAutoscaler", &spec),
        ["spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0"]
    );
}

#[test]
fn autoscalers_show_current_and_target_metrics() {
    let targets = |metrics: Value, current: Value| {
        let parts =
            json!({"spec": {"metrics": metrics, "maxReplicas": 3}, "status": {"currentMetrics": current}});
        row("autoscaling/v2", "HorizontalPodAutoscaler", parts)[2].as_str().unwrap().to_owned()
    };
    assert_eq!(targets(json!([]), json!([])), "<none>");
    let cpu = json!({"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 50}}});
    let cpu_now =
        json!({"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 7}}});
    assert_eq!(targets(json!([cpu]), json!([])), "cpu: <unknown>/50%");
    assert_eq!(targets(json!([cpu]), json!([cpu_now])), "cpu: 7%/50%");
    let pods = json!({"type": "Pods", "pods": {"target": {"averageValue": "1k"}}});
    let pods_now = json!({"type": "Pods", "pods": {"current": {"averageValue": "5"}}});
    assert_eq!(targets(json!([pods, cpu]), json!([pods_now, cpu_now])), "5/1k, cpu: 7%/50%");
    assert_eq!(targets(json!([pods, cpu, cpu]), json!([])), "<unknown>/1k, cpu: <unknown>/50% + 1 more...");
    let external = json!({"type": "External", "external": {"target": {"averageValue": "2"}}});
    assert_eq!(targets(json!([external]), json!([])), "<unknown>/2 (avg)");
    let object = json!({"type": "Object", "object": {"target": {"value": "2"}}});
    let object_now = json!({"type": "Object", "object": {"current": {"value": "1"}}});
    assert_eq!(targets(json!([object]), json!([object_now])), "1/2");
    assert_eq!(targets(json!([{"type": "New"}]), json!([])), "<unknown type>");
}

#[test]
fn an_autoscaler_in_v1_has_the_same_row() {
    let spec = json!({
        "scaleTargetRef": {"kind": "Deployment", "name": "d"},
        "minReplicas": 1, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50,
    });
    assert_eq!(
        row(
            "autoscaling/v1",
            "HorizontalPodAutoscaler",
            json!({"spec": spec, "status": {"currentReplicas": 2}})
        ),
        json!(["o", "Deployment/d", "cpu: <unknown>/50%", "1", 3, 2, "60m"])
    );
}
