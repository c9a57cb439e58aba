//! Metric evaluation, one rule per test.

use serde_json::{Value, json};

use super::*;

fn pod(number: usize, ready: bool, cpu: &str) -> Arc<Pod> {
    let status = if ready { "True" } else { "False" };
    let pod = json!({
        "metadata": { "name": format!("p{number}") },
        "spec": { "containers": [{ "name": "web", "resources": { "requests": { "cpu": cpu } } }] },
        "status": {
            "phase": "Running", "startTime": "1970-01-01T00:00:00Z",
            "conditions": [{ "type": "Ready", "status": status, "lastTransitionTime": "1970-01-01T00:00:00Z" }],
        },
    });
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn pods(ready: usize, unready: usize) -> Vec<Arc<Pod>> {
    (0..ready + unready).map(|number| pod(number, number < ready, "100m")).collect()
}

fn ask(metric: &Value, measured: &str, pods: &[Arc<Pod>]) -> Result<Proposal, Failure> {
    let autoscaler = json!({ "metadata": { "annotations": { METRICS: measured } } });
    let measured = super::measured(&serde_json::from_value(autoscaler).unwrap()).unwrap();
    let count = i32::try_from(pods.len()).unwrap();
    let now = Timestamp::from_second(60).unwrap();
    let target = Target { wanted: count, there: count, pods, namespace: "ns", now };
    propose(&serde_json::from_value(metric.clone()).unwrap(), &measured, &target)
}

fn cpu(percent: i32) -> Value {
    json!({ "type": "Resource", "resource": {
        "name": "cpu", "target": { "type": "Utilization", "averageUtilization": percent },
    } })
}

#[test]
fn utilization_is_relative_to_requests() {
    let asked = ask(&cpu(50), "cpu=300m", &pods(3, 0)).unwrap();
    assert_eq!(
        (asked.replicas, asked.name.as_str()),
        (6, "cpu resource utilization (percentage of request)")
    );
    let current = asked.status.resource.unwrap().current;
    assert_eq!(
        (current.average_utilization, current.average_value),
        (Some(100), Some(Text("100m".to_owned())))
    );
    assert_eq!(ask(&cpu(50), "cpu=160m", &pods(3, 0)).unwrap().replicas, 3, "53 % is near 50 %");
    assert_eq!(ask(&cpu(50), "cpu=60m", &pods(3, 0)).unwrap().replicas, 2);
}

#[test]
fn unready_pods_dampen_scaling_up() {
    assert_eq!(ask(&cpu(50), "cpu=300m", &pods(3, 3)).unwrap().replicas, 6, "those that come are enough");
    assert_eq!(ask(&cpu(50), "cpu=600m", &pods(3, 3)).unwrap().replicas, 12);
}

#[test]
fn other_metrics_are_averages_or_totals() {
    let pods_metric = json!({ "type": "Pods", "pods": {
        "metric": { "name": "requests" }, "target": { "type": "AverageValue", "averageValue": "10" },
    } });
    let asked = ask(&pods_metric, "requests=45", &pods(3, 0)).unwrap();
    assert_eq!((asked.replicas, asked.name.as_str()), (5, "pods metric requests"));
    let external = |target: Value| json!({ "type": "External", "external": { "metric": { "name": "queue" }, "target": target } });
    let by_value = external(json!({ "type": "Value", "value": "20" }));
    assert_eq!(ask(&by_value, "queue=30", &pods(2, 0)).unwrap().replicas, 3);
    let by_average = external(json!({ "type": "AverageValue", "averageValue": "20" }));
    let asked = ask(&by_average, "queue=90", &pods(2, 0)).unwrap();
    assert_eq!(asked.replicas, 5);
    assert_eq!(asked.status.external.unwrap().current.average_value, Some(Text("45".to_owned())));
}

#[test]
fn failed_metrics_have_a_reason() {
    let none = ask(&cpu(50), "", &pods(1, 0)).unwrap_err();
    assert_eq!(none.reason, "FailedGetResourceMetric");
    assert_eq!(
        none.why,
        "failed to get cpu utilization: unable to get metrics for resource cpu: no metrics returned from resource \
         metrics API"
    );
    let mut plain = (*pod(0, true, "1")).clone();
    plain.spec.as_mut().unwrap().containers[0].resources = None;
    assert_eq!(
        ask(&cpu(50), "cpu=1", &[Arc::new(plain)]).unwrap_err().why,
        "failed to get cpu utilization: missing request for cpu in container web of Pod p0"
    );
    assert_eq!(
        ask(&cpu(50), "cpu=1", &pods(0, 2)).unwrap_err().why,
        "failed to get cpu utilization: did not receive metrics for any ready pods"
    );
    let autoscaler = json!({ "metadata": { "annotations": { METRICS: "cpu: 80%" } } });
    assert_eq!(
        measured(&serde_json::from_value(autoscaler).unwrap()).unwrap_err(),
        "annotation kubewright.dev/metrics: \"cpu: 80%\" is not a metric; write it like \"cpu=1500m,requests=200\""
    );
}
