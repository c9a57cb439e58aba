//! Tests of StatefulSet.

use serde_json::{Value, json};

use crate::strategy::{prepare_create, warnings};
use crate::testing::{
    STATEFUL_SET, defaulted_spec, prepared, spec_errors, spec_without_template, template, update_errors,
    workload,
};

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
        spec_without_template(&defaulted_spec("apps/v1", "StatefulSet", &spec)),
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
fn a_field_with_a_disabled_feature_gate_is_dropped() {
    let strategy = json!({"rollingUpdate": {"maxUnavailable": 2, "partition": 0}});
    let mut object = json!({"metadata": {}, "spec": {"updateStrategy": strategy}});
    prepare_create(STATEFUL_SET, &mut object);
    assert_eq!(object["spec"]["updateStrategy"], json!({"rollingUpdate": {"partition": 0}}));
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

#[test]
fn the_update_strategy_of_a_stateful_set_is_validated() {
    let stateful_set = |others: Value| spec_errors("apps/v1", "StatefulSet", &workload(&others));
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
    assert!(update_errors(&new, &old).is_empty());
    new["spec"]["serviceName"] = "t".into();
    assert_eq!(
        update_errors(&new, &old),
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
    assert_eq!(spec_errors("apps/v1", "StatefulSet", &spec), Vec::<String>::new());
}
