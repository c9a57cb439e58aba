//! Compares validation with recorded responses. Pod templates are tested with pods.

use serde_json::{Value, json};

use crate::defaults;
use crate::facts::type_of_kind;
use crate::kinds::rules;
use crate::strategy;
use kubewright_apimachinery::decode::normalise;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;

/// An object after decoding, defaulting and preparation.
fn prepared(api_version: &str, kind: &str, body: &Value) -> Value {
    let mut object = body.clone();
    object.set_at("apiVersion", api_version);
    object.set_at("kind", kind);
    object.default_at("metadata.name", "x");
    object.set_at("metadata.uid", "u");
    let head = object.clone();
    let gvk = Gvk::of(&head);
    let ty = type_of_kind(gvk.group, gvk.version, gvk.kind).expect("known kind");
    normalise(ty, &mut object).expect("right types");
    defaults::apply(gvk, &mut object);
    strategy::prepare_create(gvk, &mut object);
    normalise(ty, &mut object).expect("right types");
    object
}

fn created(api_version: &str, kind: &str, spec: &Value) -> Vec<String> {
    let object = prepared(api_version, kind, &json!({"spec": spec}));
    let errors = (rules(Gvk::of(&object)).validate)(&object);
    errors.iter().map(ToString::to_string).collect()
}

fn updated(new: &Value, old: &Value) -> Vec<String> {
    (rules(Gvk::of(new)).validate_update)(new, old).iter().map(ToString::to_string).collect()
}

fn status_updated(new: &Value, old: &Value) -> Vec<String> {
    let errors = (rules(Gvk::of(new)).validate_subresource)("status", new, old);
    errors.iter().map(ToString::to_string).collect()
}

/// A valid workload with additional fields in its spec.
fn workload(others: &Value) -> Value {
    let mut spec = json!({
        "selector": {"matchLabels": {"app": "a"}},
        "template": {
            "metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]},
        },
    });
    for (name, value) in others.as_object().expect("an object") {
        spec[name] = value.clone();
    }
    spec
}

/// A valid Job with additional fields in its spec.
fn job(others: &Value) -> Value {
    let pod = json!({"containers": [{"name": "c", "image": "nginx"}], "restartPolicy": "Never"});
    let mut spec = json!({"template": {"spec": pod}});
    for (name, value) in others.as_object().expect("an object") {
        spec[name] = value.clone();
    }
    spec
}

#[test]
fn the_selector_of_a_deployment_must_match_its_template() {
    let deployment = |others: Value| created("apps/v1", "Deployment", &workload(&others));
    assert!(deployment(json!({})).is_empty());
    assert_eq!(
        deployment(json!({"selector": null})),
        [
            "spec.selector: Required value",
            "spec.template.metadata.labels: Invalid value: {\"app\":\"a\"}: `selector` does not match template \
             `labels`",
        ]
    );
    assert_eq!(
        deployment(json!({"selector": {}})),
        ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"]
    );
    assert_eq!(
        deployment(json!({"selector": {"matchExpressions": [{"key": "app", "operator": "In"}]}})),
        [
            "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or \
             'NotIn'",
            "spec.selector: Invalid value: {\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"In\"}]}: invalid \
             label selector",
        ]
    );
}

#[test]
fn the_strategy_of_a_deployment_is_validated() {
    let strategy =
        |strategy: Value| created("apps/v1", "Deployment", &workload(&json!({"strategy": strategy})));
    assert_eq!(
        strategy(json!({"type": "Bogus"})),
        ["spec.strategy: Unsupported value: {\"Type\":\"Bogus\",\"RollingUpdate\":null}: supported values: \
          \"Recreate\", \"RollingUpdate\""]
    );
    assert_eq!(
        strategy(json!({"type": "Recreate", "rollingUpdate": {"maxSurge": 1}})),
        ["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"]
    );
    assert_eq!(
        strategy(json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}})),
        ["spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"]
    );
    assert_eq!(
        strategy(json!({"rollingUpdate": {"maxUnavailable": "101%"}})),
        [
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"101%\": must not be greater than 100%"
        ]
    );
    assert_eq!(
        strategy(json!({"rollingUpdate": {"maxSurge": -1}})),
        ["spec.strategy.rollingUpdate.maxSurge: Invalid value: -1: must be greater than or equal to 0"]
    );
}

#[test]
fn the_selector_of_a_deployment_is_immutable() {
    let old = prepared("apps/v1", "Deployment", &json!({"spec": workload(&json!({}))}));
    let mut new = old.clone();
    new["spec"]["selector"] = json!({"matchLabels": {"app": "b"}});
    new["spec"]["template"]["metadata"]["labels"] = json!({"app": "b"});
    assert_eq!(
        updated(&new, &old),
        ["spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"b\"}}: field is immutable"]
    );
}

#[test]
fn the_update_strategy_of_a_stateful_set_is_validated() {
    let stateful_set = |others: Value| created("apps/v1", "StatefulSet", &workload(&others));
    assert!(stateful_set(json!({"serviceName": "s"})).is_empty());
    assert_eq!(
        stateful_set(json!({"updateStrategy": {"type": "X"}})),
        [
            "spec.updateStrategy: Invalid value: {\"Type\":\"X\",\"RollingUpdate\":null}: must be 'RollingUpdate' or \
          'OnDelete'"
        ]
    );
    assert_eq!(
        stateful_set(json!({"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 1}}})),
        [
            "spec.updateStrategy.rollingUpdate: Invalid value: {\"Partition\":1,\"MaxUnavailable\":null}: only allowed \
          for updateStrategy 'RollingUpdate'"
        ]
    );
    assert_eq!(
        stateful_set(json!({"podManagementPolicy": "X"})),
        ["spec.podManagementPolicy: Invalid value: \"X\": must be 'OrderedReady' or 'Parallel'"]
    );
}

#[test]
fn most_fields_of_a_stateful_set_are_immutable() {
    let old = prepared("apps/v1", "StatefulSet", &json!({"spec": workload(&json!({"serviceName": "s"}))}));
    let mut new = old.clone();
    new["spec"]["replicas"] = 3.into();
    assert!(updated(&new, &old).is_empty());
    new["spec"]["serviceName"] = "t".into();
    assert_eq!(
        updated(&new, &old),
        [
            "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
          'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' \
          are forbidden"
        ]
    );
}

#[test]
fn claim_templates_count_as_volumes() {
    let container =
        json!({"name": "c", "image": "nginx", "volumeMounts": [{"name": "d", "mountPath": "/d"}]});
    let claim = json!({
        "metadata": {"name": "d"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [container]}});
    let spec = workload(&json!({"template": template, "volumeClaimTemplates": [claim]}));
    assert_eq!(created("apps/v1", "StatefulSet", &spec), Vec::<String>::new());
}

#[test]
fn a_daemon_set_has_either_surge_or_unavailable() {
    let rolling = |update: Value| {
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": update});
        created("apps/v1", "DaemonSet", &workload(&json!({"updateStrategy": strategy})))
    };
    assert_eq!(
        rolling(json!({"maxUnavailable": 0})),
        ["spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"]
    );
    assert_eq!(
        rolling(json!({"maxSurge": "10%"})),
        [
            "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: \"10%\": may not be set when maxUnavailable is \
          non-zero"
        ]
    );
}

#[test]
fn the_data_of_a_controller_revision_is_required_and_immutable() {
    let gvk = Gvk { group: "apps", version: "v1", kind: "ControllerRevision" };
    let errors = (rules(gvk).validate)(&json!({"revision": -1}));
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            "revision: Invalid value: -1: must be greater than or equal to 0",
            "data: Required value: data is mandatory"
        ]
    );
    let old = json!({"apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1, "data": {"a": 1}});
    let mut new = old.clone();
    new["revision"] = 2.into();
    assert!(updated(&new, &old).is_empty());
    new["data"] = json!({"a": 2});
    assert_eq!(updated(&new, &old), ["data: Invalid value: {\"a\":2}: field is immutable"]);
}

#[test]
fn a_job_must_have_the_generated_selector() {
    let job = |others: Value| created("batch/v1", "Job", &job(&others));
    assert!(job(json!({})).is_empty());
    assert_eq!(
        job(json!({"selector": {"matchLabels": {"app": "a"}}})),
        [
            "spec.selector: Invalid value: \
             {\"matchLabels\":{\"app\":\"a\",\"batch.kubernetes.io/controller-uid\":\"u\"}}: `selector` not \
             auto-generated",
            "spec.template.metadata.labels: Invalid value: \
             {\"batch.kubernetes.io/controller-uid\":\"u\",\"batch.kubernetes.io/job-name\":\"x\",\
             \"controller-uid\":\"u\",\"job-name\":\"x\"}: `selector` does not match template `labels`",
        ]
    );
    assert_eq!(
        job(json!({"manualSelector": true})),
        [
            "spec.selector: Required value",
            "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`",
        ]
    );
}

#[test]
fn backoff_limit_per_index_requires_indexed_completion_mode() {
    let job = |others: Value| created("batch/v1", "Job", &job(&others));
    assert_eq!(
        job(json!({"backoffLimitPerIndex": 1})),
        ["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"]
    );
    assert_eq!(
        job(json!({"completionMode": "X"})),
        ["spec.completionMode: Unsupported value: \"X\": supported values: \"NonIndexed\", \"Indexed\""]
    );
    assert_eq!(
        job(json!({"successPolicy": {"rules": [{"succeededCount": 1}]}})),
        [
            "spec.successPolicy: Invalid value: {\"Rules\":[{\"SucceededIndexes\":null,\"SucceededCount\":1}]}: \
          requires indexed completion mode"
        ]
    );
    let rules = json!({"rules": [{"succeededIndexes": "0-9", "succeededCount": 4}]});
    assert_eq!(
        job(json!({"completionMode": "Indexed", "completions": 3, "successPolicy": rules})),
        [
            "spec.successPolicy.rules[0].succeededIndexes: Invalid value: \"0-9\": error parsing succeededIndexes: \
             too large index: \"9\"",
            "spec.successPolicy.rules[0].succeededCount: Invalid value: 4: must be less than or equal to 3 (the \
             number of specified completions)",
            "spec.successPolicy.rules[0].succeededCount: Invalid value: 4: must be less than or equal to 0 (the \
             number of indexes in the specified succeededIndexes field)",
        ]
    );
}

#[test]
fn rules_of_a_pod_failure_policy_are_validated() {
    let rule =
        |rule: Value| created("batch/v1", "Job", &job(&json!({"podFailurePolicy": {"rules": [rule]}})));
    assert_eq!(
        rule(json!({"action": "X"})),
        [
            "spec.podFailurePolicy.rules[0].action: Unsupported value: \"X\": supported values: \"Count\", \
             \"FailIndex\", \"FailJob\", \"Ignore\"",
            "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is \
             required",
        ]
    );
    assert_eq!(
        rule(json!({"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3, 0, 3]}})),
        [
            "spec.podFailurePolicy.rules[0].onExitCodes.values[1]: Invalid value: 0: must not be 0 for the In \
             operator",
            "spec.podFailurePolicy.rules[0].onExitCodes.values[2]: Duplicate value: 3",
            "spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [3,0,3]: must be ordered",
        ]
    );
}

#[test]
fn the_template_of_a_running_job_is_immutable() {
    let old = prepared("batch/v1", "Job", &json!({"spec": job(&json!({}))}));
    let mut new = old.clone();
    new["spec"]["completions"] = 5.into();
    assert_eq!(updated(&new, &old), ["spec.completions: Invalid value: 5: field is immutable"]);
    let mut new = old.clone();
    new["spec"]["template"]["spec"]["nodeSelector"] = json!({"a": "b"});
    let errors = updated(&new, &old);
    assert_eq!(errors.len(), 1);
    assert!(errors[0].starts_with("spec.template: Invalid value: {\"labels\":{"), "{errors:?}");
    assert!(errors[0].ends_with("}}: field is immutable"), "{errors:?}");
}

#[test]
fn a_suspended_job_can_change_scheduling_directives() {
    let old = prepared("batch/v1", "Job", &json!({"spec": job(&json!({"suspend": true}))}));
    let mut new = old.clone();
    new["spec"]["template"]["spec"]["nodeSelector"] = json!({"a": "b"});
    new["spec"]["template"]["metadata"]["annotations"] = json!({"a": "b"});
    new["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    assert_eq!(updated(&new, &old), Vec::<String>::new());
    new["spec"]["template"]["spec"]["containers"][0]["image"] = "other".into();
    let errors = updated(&new, &old);
    assert_eq!(errors.len(), 1);
    assert!(errors[0].starts_with("spec.template.spec: Invalid value: {\"Volumes\":null"), "{errors:?}");
}

#[test]
fn a_complete_job_needs_a_consistent_status() {
    let mut old = prepared("batch/v1", "Job", &json!({"spec": job(&json!({}))}));
    old["status"] = json!({"active": 1, "startTime": "2024-01-01T00:00:00Z"});
    let mut new = old.clone();
    new["status"]["active"] = (-1).into();
    assert_eq!(
        status_updated(&new, &old),
        ["status.active: Invalid value: -1: must be greater than or equal to 0"]
    );
    let mut new = old.clone();
    new["status"]["conditions"] = json!([{"type": "Complete", "status": "True"}]);
    assert_eq!(
        status_updated(&new, &old),
        [
            "status.completionTime: Required value: completionTime is required for Complete jobs",
            "status.conditions: Invalid value: cannot set Complete=True condition without the \
             SuccessCriteriaMet=true condition",
            "status.active: Invalid value: 1: active>0 is invalid for finished job",
        ]
    );
}

#[test]
fn schedule_and_time_zone_of_a_cron_job_are_validated() {
    let cron_job = |others: Value| {
        let mut spec = json!({"schedule": "* * * * *", "jobTemplate": {"spec": job(&json!({}))}});
        for (name, value) in others.as_object().expect("an object") {
            spec[name] = value.clone();
        }
        created("batch/v1", "CronJob", &spec)
    };
    assert!(cron_job(json!({"timeZone": "Europe/Zurich"})).is_empty());
    assert_eq!(cron_job(json!({"schedule": ""})), ["spec.schedule: Required value"]);
    assert_eq!(
        cron_job(json!({"schedule": "TZ=UTC * * * * *"})),
        [
            "spec.schedule: Invalid value: \"TZ=UTC * * * * *\": cannot use TZ or CRON_TZ in schedule, use timeZone \
          field instead"
        ]
    );
    assert_eq!(
        cron_job(json!({"timeZone": "No/Where"})),
        ["spec.timeZone: Invalid value: \"No/Where\": unknown time zone No/Where"]
    );
    assert_eq!(
        cron_job(json!({"concurrencyPolicy": "X"})),
        [
            "spec.concurrencyPolicy: Unsupported value: \"X\": supported values: \"Allow\", \"Forbid\", \"Replace\""
        ]
    );
}

#[test]
fn target_and_metrics_of_an_autoscaler_are_validated() {
    let spec = json!({
        "scaleTargetRef": {"kind": "D", "name": "d"}, "maxReplicas": 1, "minReplicas": 0,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}],
    });
    assert_eq!(
        created("autoscaling/v2", "HorizontalPodAutoscaler", &spec),
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
        created("autoscaling/v1", "HorizontalPodAutoscaler", &spec),
        ["spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0"]
    );
}

#[test]
fn a_disruption_budget_has_either_min_available_or_max_unavailable() {
    let budget = |spec: Value| created("policy/v1", "PodDisruptionBudget", &spec);
    assert_eq!(
        budget(json!({"minAvailable": 1, "maxUnavailable": 1})),
        ["spec: Invalid value: {\"MinAvailable\":1,\"Selector\":null,\"MaxUnavailable\":1,\
          \"UnhealthyPodEvictionPolicy\":null}: minAvailable and maxUnavailable cannot be both set"]
    );
    assert_eq!(
        budget(json!({"unhealthyPodEvictionPolicy": "X"})),
        ["spec.unhealthyPodEvictionPolicy: Unsupported value: \"X\": supported values: \"AlwaysAllow\", \
          \"IfHealthyBudget\""]
    );
}

#[test]
fn a_replication_controller_needs_a_template() {
    assert_eq!(
        created("v1", "ReplicationController", &json!({"replicas": -1})),
        [
            "spec.selector: Required value",
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
            "spec.template: Required value",
        ]
    );
}

#[test]
fn replica_counts_must_not_exceed_the_total() {
    let old = prepared("apps/v1", "Deployment", &json!({"spec": workload(&json!({}))}));
    let mut new = old.clone();
    new["status"] = json!({"replicas": -1});
    assert_eq!(
        status_updated(&new, &old),
        [
            "status.replicas: Invalid value: -1: must be greater than or equal to 0",
            "status.updatedReplicas: Invalid value: 0: cannot be greater than status.replicas",
            "status.readyReplicas: Invalid value: 0: cannot be greater than status.replicas",
            "status.availableReplicas: Invalid value: 0: cannot be greater than status.replicas",
        ]
    );
}
