//! Tests of each kind's strategy.

use serde_json::{Value, json};

use crate::strategy::{prepare_create, prepare_subresource, prepare_update, warnings};
use kubewright_apimachinery::gvk::Gvk;

const DEPLOYMENT: Gvk<'_> = Gvk { group: "apps", version: "v1", kind: "Deployment" };
const DAEMON_SET: Gvk<'_> = Gvk { group: "apps", version: "v1", kind: "DaemonSet" };
const STATEFUL_SET: Gvk<'_> = Gvk { group: "apps", version: "v1", kind: "StatefulSet" };
const JOB: Gvk<'_> = Gvk { group: "batch", version: "v1", kind: "Job" };
const HPA_V1: Gvk<'_> = Gvk { group: "autoscaling", version: "v1", kind: "HorizontalPodAutoscaler" };

fn updated(gvk: Gvk<'_>, old: &Value, change: impl FnOnce(&mut Value)) -> Value {
    let mut new = old.clone();
    change(&mut new);
    prepare_update(gvk, &mut new, old);
    new
}

#[test]
fn a_new_object_has_no_status_and_generation_one() {
    let mut object = json!({"metadata": {"generation": 7}, "spec": {}, "status": {"replicas": 9}});
    prepare_create(DEPLOYMENT, &mut object);
    assert_eq!(object, json!({"metadata": {"generation": 1}, "spec": {}, "status": {}}));
}

#[test]
fn a_job_selects_its_pods_by_uid() {
    let mut job = json!({
        "metadata": {"name": "j", "uid": "u"}, "spec": {"manualSelector": false, "template": {"spec": {}}},
    });
    prepare_create(JOB, &mut job);
    let labels = json!({
        "batch.kubernetes.io/controller-uid": "u", "batch.kubernetes.io/job-name": "j", "controller-uid": "u",
        "job-name": "j",
    });
    assert_eq!(job["spec"]["template"]["metadata"]["labels"], labels);
    assert_eq!(job["metadata"]["labels"], labels);
    assert_eq!(job["spec"]["selector"], json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}));
}

#[test]
fn labels_copied_from_the_template_get_the_generated_ones() {
    let labels = json!({"app": "a"});
    let mut job = json!({
        "metadata": {"name": "j", "uid": "u", "labels": labels}, "spec": {"template": {"metadata": {"labels": labels}}},
    });
    prepare_create(JOB, &mut job);
    assert_eq!(job["metadata"]["labels"]["job-name"], "j");
    let mut job = json!({
        "metadata": {"name": "j", "uid": "u", "labels": {"b": "c"}}, "spec": {"template": {"metadata": {"labels": labels}}},
    });
    prepare_create(JOB, &mut job);
    assert_eq!(job["metadata"]["labels"], json!({"b": "c"}));
}

#[test]
fn a_job_with_manual_selector_is_unchanged() {
    let mut job = json!({"metadata": {"name": "j", "uid": "u"}, "spec": {"manualSelector": true}});
    prepare_create(JOB, &mut job);
    assert_eq!(job["spec"], json!({"manualSelector": true}));
}

#[test]
fn only_a_change_of_the_spec_increments_the_generation() {
    let old = json!({
        "metadata": {"generation": 3, "labels": {"a": "b"}}, "spec": {"replicas": 1}, "status": {"replicas": 1},
    });
    let generation =
        |gvk, change: fn(&mut Value)| updated(gvk, &old, change)["metadata"]["generation"].clone();
    assert_eq!(generation(DEPLOYMENT, |_| {}), 3);
    assert_eq!(generation(DEPLOYMENT, |new| new["spec"]["replicas"] = 2.into()), 4);
    assert_eq!(generation(DEPLOYMENT, |new| new["metadata"]["labels"] = json!({})), 3);
    assert_eq!(generation(DEPLOYMENT, |new| new["metadata"]["annotations"] = json!({"a": "b"})), 4);
    assert_eq!(generation(STATEFUL_SET, |new| new["metadata"]["annotations"] = json!({"a": "b"})), 3);
    assert_eq!(generation(DEPLOYMENT, |new| new["metadata"]["generation"] = 77.into()), 3);
    let new = updated(DEPLOYMENT, &old, |new| new["status"]["replicas"] = 5.into());
    assert_eq!(new, old);
}

#[test]
fn a_daemon_set_has_a_template_generation() {
    let count = |object: &Value| {
        object["metadata"]["annotations"]["deprecated.daemonset.template.generation"].clone()
    };
    let mut old = json!({"metadata": {}, "spec": {"template": {"spec": {}}}});
    prepare_create(DAEMON_SET, &mut old);
    assert_eq!(count(&old), "1");
    let forged = updated(DAEMON_SET, &old, |new| new["metadata"]["annotations"] = json!({"x": "y"}));
    assert_eq!(count(&forged), "1");
    assert_eq!(forged["metadata"]["annotations"]["x"], "y");
    let changed = updated(DAEMON_SET, &old, |new| new["spec"]["template"]["spec"]["hostname"] = "h".into());
    assert_eq!(count(&changed), "2");
    assert_eq!(changed["metadata"]["generation"], 2);
}

#[test]
fn a_field_with_a_disabled_feature_gate_is_dropped() {
    let strategy = json!({"rollingUpdate": {"maxUnavailable": 2, "partition": 0}});
    let mut object = json!({"metadata": {}, "spec": {"updateStrategy": strategy}});
    prepare_create(STATEFUL_SET, &mut object);
    assert_eq!(object["spec"]["updateStrategy"], json!({"rollingUpdate": {"partition": 0}}));
}

#[test]
fn the_status_of_a_deployment_cannot_change_spec_or_labels() {
    let old = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 1}, "status": {}});
    let mut new = json!({
        "metadata": {"labels": {"c": "d"}, "annotations": {"e": "f"}}, "spec": {"replicas": 2},
        "status": {"replicas": 1},
    });
    prepare_subresource(DEPLOYMENT, "status", &mut new, &old);
    assert_eq!(
        new,
        json!({
            "metadata": {"labels": {"a": "b"}, "annotations": {"e": "f"}}, "spec": {"replicas": 1},
            "status": {"replicas": 1},
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
    let new = updated(HPA_V1, &old, |new| {
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
fn a_name_that_is_not_a_dns_label_causes_one_warning() {
    let object = json!({"metadata": {"name": "a.b", "generation": 1}, "spec": {}});
    let created = warnings(DEPLOYMENT, &object, None);
    assert_eq!(created.len(), 1);
    assert!(created[0].starts_with("metadata.name: this is used in Pod names and hostnames"), "{created:?}");
    assert!(warnings(DEPLOYMENT, &object, Some(&object)).is_empty());
}

#[test]
fn fractional_bytes_in_claims_cause_a_warning() {
    let claim = json!({"spec": {"resources": {"requests": {"storage": "1500m"}}}});
    let object = json!({
        "metadata": {"name": "s", "generation": 1}, "spec": {"volumeClaimTemplates": [claim], "revisionHistoryLimit": -1},
    });
    assert_eq!(
        warnings(STATEFUL_SET, &object, None),
        [
            "spec.volumeClaimTemplates[0].resources.requests[storage]: fractional byte value \"1500m\" is invalid, \
             must be an integer",
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is \
             recommended",
        ]
    );
}
