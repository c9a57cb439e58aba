//! Tests of DaemonSet.

use serde_json::{Value, json};

use crate::strategy::prepare_create;
use crate::testing::{DAEMON_SET, changed, defaulted_spec, spec_errors, template, workload};

#[test]
fn a_daemon_set_replaces_one_pod_at_a_time() {
    let object = defaulted_spec("apps/v1", "DaemonSet", &json!({"template": template()}));
    assert_eq!(object["spec"]["revisionHistoryLimit"], 10);
    assert_eq!(
        object["spec"]["updateStrategy"],
        json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}, "type": "RollingUpdate"})
    );
}

#[test]
fn a_daemon_set_has_a_template_generation() {
    let count = |object: &Value| {
        object["metadata"]["annotations"]["deprecated.daemonset.template.generation"].clone()
    };
    let mut old = json!({"metadata": {}, "spec": {"template": {"spec": {}}}});
    prepare_create(DAEMON_SET, &mut old);
    assert_eq!(count(&old), "1");
    let forged = changed(DAEMON_SET, &old, |new| new["metadata"]["annotations"] = json!({"x": "y"}));
    assert_eq!(count(&forged), "1");
    assert_eq!(forged["metadata"]["annotations"]["x"], "y");
    let changed = changed(DAEMON_SET, &old, |new| new["spec"]["template"]["spec"]["hostname"] = "h".into());
    assert_eq!(count(&changed), "2");
    assert_eq!(changed["metadata"]["generation"], 2);
}

#[test]
fn a_daemon_set_has_either_surge_or_unavailable() {
    let rolling = |update: Value| {
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": update});
        spec_errors("apps/v1", "DaemonSet", &workload(&json!({"updateStrategy": strategy})))
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
