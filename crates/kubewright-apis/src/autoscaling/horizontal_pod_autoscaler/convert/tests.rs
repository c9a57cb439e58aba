//! Round trips of HorizontalPodAutoscaler.

use serde_json::{Value, json};

use crate::convert::convert;
use kubewright_apimachinery::gvk::Gvk;

const V1: Gvk<'_> = Gvk { group: "autoscaling", version: "v1", kind: "HorizontalPodAutoscaler" };
const V2: Gvk<'_> = Gvk { group: "autoscaling", version: "v2", kind: "HorizontalPodAutoscaler" };

fn v2(spec: &Value, status: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
        "spec": {
            "maxReplicas": 5, "minReplicas": 1,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        },
        "status": {"currentMetrics": null, "desiredReplicas": 0},
    });
    for (part, members) in [("spec", spec), ("status", status)] {
        for (name, value) in members.as_object().expect("an object") {
            object[part][name] = value.clone();
        }
    }
    object
}

fn cpu(utilization: i32) -> Value {
    let target = json!({"averageUtilization": utilization, "type": "Utilization"});
    json!({"resource": {"name": "cpu", "target": target}, "type": "Resource"})
}

#[test]
fn cpu_utilization_needs_no_annotation() {
    let object = v2(&json!({"metrics": [cpu(50)]}), &json!({}));
    let v1 = convert(object.clone(), V1);
    assert_eq!(
        v1,
        json!({
            "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
            "spec": {
                "maxReplicas": 5, "minReplicas": 1, "targetCPUUtilizationPercentage": 50,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            },
            "status": {"currentReplicas": 0, "desiredReplicas": 0},
        })
    );
    assert_eq!(convert(v1, V2), object);
}

#[test]
fn other_metrics_and_the_behavior_are_stored_in_annotations() {
    let object = v2(
        &json!({
            "metrics": [
                {"type": "Pods", "pods": {
                    "metric": {"name": "qps", "selector": {"matchLabels": {"a": "b"}}},
                    "target": {"type": "AverageValue", "averageValue": "10"},
                }},
                {"type": "Object", "object": {
                    "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "s"},
                    "metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "3"},
                }},
                {"type": "ContainerResource", "containerResource": {
                    "name": "memory", "container": "c", "target": {"type": "Utilization", "averageUtilization": 60},
                }},
                {"type": "External", "external": {
                    "metric": {"name": "q"}, "target": {"type": "Value", "value": "30"},
                }},
                cpu(70),
            ],
            "behavior": {"scaleDown": {
                "stabilizationWindowSeconds": 60, "selectPolicy": "Min", "tolerance": "100m",
                "policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}],
            }},
        }),
        &json!({}),
    );
    let v1 = convert(object.clone(), V1);
    assert_eq!(v1["spec"]["targetCPUUtilizationPercentage"], 70);
    let annotations = &v1["metadata"]["annotations"];
    assert_eq!(
        annotations["autoscaling.alpha.kubernetes.io/metrics"],
        concat!(
            r#"[{"type":"Pods","pods":{"metricName":"qps","targetAverageValue":"10","#,
            r#""selector":{"matchLabels":{"a":"b"}}}},"#,
            r#"{"type":"Object","object":{"target":{"kind":"Service","name":"s","apiVersion":"v1"},"#,
            r#""metricName":"rps","targetValue":"0","averageValue":"3"}},"#,
            r#"{"type":"ContainerResource","containerResource":{"name":"memory","#,
            r#""targetAverageUtilization":60,"container":"c"}},"#,
            r#"{"type":"External","external":{"metricName":"q","targetValue":"30"}}]"#,
        )
    );
    assert_eq!(
        annotations["autoscaling.alpha.kubernetes.io/behavior"],
        concat!(
            r#"{"ScaleUp":null,"ScaleDown":{"StabilizationWindowSeconds":60,"SelectPolicy":"Min","#,
            r#""Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":60}],"Tolerance":"100m"}}"#,
        )
    );
    assert_eq!(convert(v1, V2), object);
}

#[test]
fn the_status_is_converted() {
    let object = v2(
        &json!({"metrics": [cpu(50)]}),
        &json!({
            "currentReplicas": 2,
            "currentMetrics": [{"type": "Resource", "resource": {
                "name": "cpu", "current": {"averageUtilization": 40, "averageValue": "200m"},
            }}],
            "conditions": [{
                "type": "AbleToScale", "status": "True", "lastTransitionTime": "2024-01-01T00:00:00Z",
                "reason": "R", "message": "m",
            }],
        }),
    );
    let v1 = convert(object.clone(), V1);
    assert_eq!(v1["status"]["currentCPUUtilizationPercentage"], 40);
    let annotations = &v1["metadata"]["annotations"];
    assert_eq!(
        annotations["autoscaling.alpha.kubernetes.io/current-metrics"],
        r#"[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":40,"currentAverageValue":"200m"}}]"#
    );
    assert_eq!(
        annotations["autoscaling.alpha.kubernetes.io/conditions"],
        concat!(
            r#"[{"type":"AbleToScale","status":"True","lastTransitionTime":"2024-01-01T00:00:00Z","#,
            r#""reason":"R","message":"m"}]"#,
        )
    );
    assert_eq!(convert(v1, V2), object);
}

#[test]
fn an_invalid_annotation_is_dropped() {
    let v1 = json!({
        "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h", "annotations": {
            "autoscaling.alpha.kubernetes.io/metrics": "not json", "kept": "x",
        }},
        "spec": {"maxReplicas": 5, "targetCPUUtilizationPercentage": 50},
    });
    let object = convert(v1, V2);
    assert_eq!(object["metadata"]["annotations"], json!({"kept": "x"}));
    assert_eq!(object["spec"]["metrics"], json!([cpu(50)]));
}
