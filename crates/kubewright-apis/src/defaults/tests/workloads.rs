//! Compares defaults with recorded responses. Defaults of pod templates are tested with pods.

use serde_json::{Value, json};

use crate::defaults::apply;
use crate::facts::type_of_kind;
use kubewright_apimachinery::decode::normalise;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;

/// A decoded object with this spec and its defaults. Checks that defaulting is idempotent.
fn defaulted(api_version: &str, kind: &str, spec: &Value) -> Value {
    let mut object =
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "o"}, "spec": spec});
    let head = object.clone();
    let gvk = Gvk::of(&head);
    let ty = type_of_kind(gvk.group, gvk.version, gvk.kind).expect("known kind");
    let default = |object: &mut Value| {
        normalise(ty, object).expect("right types");
        apply(gvk, object);
        normalise(ty, object).expect("right types");
    };
    default(&mut object);
    let once = object.clone();
    default(&mut object);
    assert_eq!(object, once);
    object
}

fn spec_without_template(object: &Value) -> Value {
    let mut spec = object.at("spec").clone();
    spec.remove_at("template");
    spec
}

fn template() -> Value {
    json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}})
}

#[test]
fn a_deployment_defaults_to_25_percent_surge_and_unavailable() {
    let spec = json!({"selector": {"matchLabels": {"app": "a"}}, "template": template()});
    assert_eq!(
        spec_without_template(&defaulted("apps/v1", "Deployment", &spec)),
        json!({
            "progressDeadlineSeconds": 600, "replicas": 1, "revisionHistoryLimit": 10,
            "selector": {"matchLabels": {"app": "a"}},
            "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}, "type": "RollingUpdate"},
        })
    );
    let spec = json!({"template": template(), "strategy": {"type": "Recreate"}, "replicas": 0});
    let object = defaulted("apps/v1", "Deployment", &spec);
    assert_eq!(object["spec"]["strategy"], json!({"type": "Recreate"}));
    assert_eq!(object["spec"]["replicas"], 0);
}

#[test]
fn a_stateful_set_sets_the_type_meta_of_its_claims() {
    let spec = json!({
        "selector": {"matchLabels": {"app": "a"}}, "serviceName": "s", "template": template(),
        "volumeClaimTemplates": [{
            "metadata": {"name": "d"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }],
    });
    assert_eq!(
        spec_without_template(&defaulted("apps/v1", "StatefulSet", &spec)),
        json!({
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
            "podManagementPolicy": "OrderedReady", "replicas": 1, "revisionHistoryLimit": 10,
            "selector": {"matchLabels": {"app": "a"}}, "serviceName": "s",
            "updateStrategy": {"rollingUpdate": {"partition": 0}, "type": "RollingUpdate"},
            "volumeClaimTemplates": [{
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "d"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
                    "volumeMode": "Filesystem",
                },
                "status": {"phase": "Pending"},
            }],
        })
    );
}

#[test]
fn a_daemon_set_replaces_one_pod_at_a_time() {
    let object = defaulted("apps/v1", "DaemonSet", &json!({"template": template()}));
    assert_eq!(object["spec"]["revisionHistoryLimit"], 10);
    assert_eq!(
        object["spec"]["updateStrategy"],
        json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}, "type": "RollingUpdate"})
    );
}

#[test]
fn a_job_defaults_to_one_completion() {
    let job = |spec: Value| defaulted("batch/v1", "Job", &spec);
    assert_eq!(
        spec_without_template(&job(json!({"template": {"spec": {"containers": []}}}))),
        json!({
            "backoffLimit": 6, "completionMode": "NonIndexed", "completions": 1, "manualSelector": false,
            "parallelism": 1, "podReplacementPolicy": "TerminatingOrFailed", "suspend": false,
        })
    );
    assert_eq!(job(json!({"parallelism": 3}))["spec"].get("completions"), None);
    assert_eq!(job(json!({"backoffLimitPerIndex": 1}))["spec"]["backoffLimit"], i32::MAX);
    let policy = json!({"rules": [{"action": "Ignore", "onPodConditions": [{"type": "T"}]}]});
    let object = job(json!({"podFailurePolicy": policy, "template": template()}));
    assert_eq!(object["spec"]["podReplacementPolicy"], "Failed");
    assert_eq!(object["spec"]["podFailurePolicy"]["rules"][0]["onPodConditions"][0]["status"], "True");
    assert_eq!(object["metadata"]["labels"], json!({"app": "a"}));
}

#[test]
fn a_cron_job_does_not_default_its_job_template() {
    let spec = json!({"schedule": "@daily", "jobTemplate": {"spec": {}}});
    let object = defaulted("batch/v1", "CronJob", &spec);
    let mut spec = object["spec"].clone();
    let job = spec.remove_at("jobTemplate.spec").unwrap_or_default();
    assert!(!job.has("backoffLimit"));
    assert_eq!(
        spec,
        json!({
            "concurrencyPolicy": "Allow", "failedJobsHistoryLimit": 1, "jobTemplate": {"metadata": {}},
            "schedule": "@daily", "successfulJobsHistoryLimit": 3, "suspend": false,
        })
    );
}

#[test]
fn an_autoscaler_defaults_to_cpu_utilization_in_both_versions() {
    let spec = json!({"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 3});
    let v1 = defaulted("autoscaling/v1", "HorizontalPodAutoscaler", &spec);
    assert_eq!(v1["spec"]["targetCPUUtilizationPercentage"], 80);
    assert_eq!(v1["spec"]["minReplicas"], 1);
    let v2 = defaulted("autoscaling/v2", "HorizontalPodAutoscaler", &spec);
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
    let object = defaulted("autoscaling/v2", "HorizontalPodAutoscaler", &spec);
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
fn a_replication_controller_takes_labels_and_selector_from_its_template() {
    let object = defaulted("v1", "ReplicationController", &json!({"template": template()}));
    assert_eq!(object["metadata"]["labels"], json!({"app": "a"}));
    assert_eq!(object["spec"]["selector"], json!({"app": "a"}));
    assert_eq!(object["spec"]["replicas"], 1);
}
