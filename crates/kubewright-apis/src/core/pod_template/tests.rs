//! Tests of PodTemplate.

use serde_json::{Value, json};

use super::RULES;

fn set_defaults(mut object: Value) -> Value {
    (RULES.defaults)(&mut object);
    object
}

#[test]
fn an_absent_template_is_created_and_defaulted() {
    let template = set_defaults(json!({}));
    assert_eq!(template["template"]["spec"]["restartPolicy"], "Always");
}

#[test]
fn fields_of_disabled_features_are_dropped() {
    let mut object = json!({"template": {"spec": {
        "schedulingGroup": {"podGroupName": "g"}, "containers": [{"name": "c", "lifecycle": {"stopSignal": "SIGINT"}}],
        "volumes": [{"name": "v", "projected": {"sources": [{"podCertificate": {}}]}}],
    }}});
    (RULES.prepare_create)(&mut object);
    assert_eq!(
        object["template"]["spec"],
        json!({
            "containers": [{"name": "c", "lifecycle": {}}],
            "volumes": [{"name": "v", "projected": {"sources": [{}]}}],
        })
    );
    assert_eq!(object["metadata"]["generation"], 1);
}
