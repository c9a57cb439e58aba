//! Tests of Deployment.

use serde_json::{Value, json};

use crate::strategy::{prepare_create, prepare_subresource, warnings};
use crate::testing::{
    DEPLOYMENT, STATEFUL_SET, changed, defaulted_spec, prepared, spec_errors, spec_without_template,
    status_errors, template, update_errors, workload,
};

#[test]
fn a_deployment_defaults_to_25_percent_surge_and_unavailable() {
    let spec = json!({"selector": {"matchLabels": {"app": "a"}}, "template": template()});
    assert_eq!(
        spec_without_template(&defaulted_spec("apps/v1", "Deployment", &spec)),
        json!({
            "progressDeadlineSeconds": 600, "replicas": 1, "revisionHistoryLimit": 10,
            "selector": {"matchLabels": {"app": "a"}},
            "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}, "type": "RollingUpdate"},
        })
    );
    let spec = json!({"template": template(), "strategy": {"type": "Recreate"}, "replicas": 0});
    let object = defaulted_spec("apps/v1", "Deployment", &spec);
    assert_eq!(object["spec"]["strategy"], json!({"type": "Recreate"}));
    assert_eq!(object["spec"]["replicas"], 0);
}

#[test]
fn a_new_object_has_no_status_and_generation_one() {
    let mut object = json!({"metadata": {"generation": 7}, "spec": {}, "status": {"replicas": 9}});
    prepare_create(DEPLOYMENT, &mut object);
    assert_eq!(object, json!({"metadata": {"generation": 1}, "spec": {}, "status": {}}));
}

#[test]
fn only_a_change_of_the_spec_increments_the_generation() {
    let old = json!({
        "metadata": {"generation": 3, "labels": {"a": "b"}}, "spec": {"replicas": 1}, "status": {"replicas": 1},
    });
    let generation =
        |gvk, change: fn(&mut Value)| changed(gvk, &old, change)["metadata"]["generation"].clone();
    assert_eq!(generation(DEPLOYMENT, |_| {}), 3);
    assert_eq!(generation(DEPLOYMENT, |new| new["spec"]["replicas"] = 2.into()), 4);
    assert_eq!(generation(DEPLOYMENT, |new| new["metadata"]["labels"] = json!({})), 3);
    assert_eq!(generation(DEPLOYMENT, |new| new["metadata"]["annotations"] = json!({"a": "b"})), 4);
    assert_eq!(generation(STATEFUL_SET, |new| new["metadata"]["annotations"] = json!({"a": "b"})), 3);
    assert_eq!(generation(DEPLOYMENT, |new| new["metadata"]["generation"] = 77.into()), 3);
    let new = changed(DEPLOYMENT, &old, |new| new["status"]["replicas"] = 5.into());
    assert_eq!(new, old);
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
fn a_name_that_is_not_a_dns_label_causes_one_warning() {
    let object = json!({"metadata": {"name": "a.b", "generation": 1}, "spec": {}});
    let created = warnings(DEPLOYMENT, &object, None);
    assert_eq!(created.len(), 1);
    assert!(created[0].starts_with("metadata.name: this is used in Pod names and hostnames"), "{created:?}");
    assert!(warnings(DEPLOYMENT, &object, Some(&object)).is_empty());
}

#[test]
fn the_selector_of_a_deployment_must_match_its_template() {
    let deployment = |others: Value| spec_errors("apps/v1", "Deployment", &workload(&others));
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
        |strategy: Value| spec_errors("apps/v1", "Deployment", &workload(&json!({"strategy": strategy})));
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
        update_errors(&new, &old),
        ["spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"b\"}}: field is immutable"]
    );
}

#[test]
fn replica_counts_must_not_exceed_the_total() {
    let old = prepared("apps/v1", "Deployment", &json!({"spec": workload(&json!({}))}));
    let mut new = old.clone();
    new["status"] = json!({"replicas": -1});
    assert_eq!(
        status_errors(&new, &old),
        [
            "status.replicas: Invalid value: -1: must be greater than or equal to 0",
            "status.updatedReplicas: Invalid value: 0: cannot be greater than status.replicas",
            "status.readyReplicas: Invalid value: 0: cannot be greater than status.replicas",
            "status.availableReplicas: Invalid value: 0: cannot be greater than status.replicas",
        ]
    );
}
