//! Objects from JSON, as leniently as Go reads them.
//!
//! Go reads `null` as the zero value. The Rust type of `metav1.Condition` requires `lastTransitionTime`, and one object
//! that it cannot read would stop every controller of its kind. So a `null` there is read as Go's zero time.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{
    ConfigMap, Namespace, Node, PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount,
};
use k8s_openapi::api::networking::v1::Ingress;
use serde::de::DeserializeOwned;
use serde_json::Value;

const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

/// An object of a Rust type.
pub(crate) fn decode<T: DeserializeOwned>(json: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(json).or_else(|error| {
        // As text: another deserializer would be compiled for each type, in each operator.
        repaired(json).and_then(|object| serde_json::from_str(&object).ok()).ok_or(error)
    })
}

/// The decoders of common kinds. A debug build compiles them once, in this crate, and shares them. Without this list, the
/// crate of an operator contains the decoder of each type below a Deployment, and a save compiles and links them again.
pub static COMMON: &[fn(&str) -> bool] = &[
    is_readable::<ConfigMap>,
    is_readable::<CronJob>,
    is_readable::<DaemonSet>,
    is_readable::<Deployment>,
    is_readable::<Ingress>,
    is_readable::<Job>,
    is_readable::<Namespace>,
    is_readable::<Node>,
    is_readable::<PersistentVolumeClaim>,
    is_readable::<Pod>,
    is_readable::<ReplicaSet>,
    is_readable::<Secret>,
    is_readable::<Service>,
    is_readable::<ServiceAccount>,
    is_readable::<StatefulSet>,
];

fn is_readable<T: DeserializeOwned>(json: &str) -> bool {
    decode::<T>(json).is_ok()
}

/// The object with a time in each condition of its status, if one is missing.
fn repaired(json: &str) -> Option<String> {
    let mut object: Value = serde_json::from_str(json).ok()?;
    let conditions = object.pointer_mut("/status/conditions")?.as_array_mut()?;
    let mut missing = false;
    for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
        let time = condition.entry("lastTransitionTime").or_insert(Value::Null);
        if time.is_null() {
            *time = ZERO_TIME.into();
            missing = true;
        }
    }
    missing.then(|| object.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_without_a_time_has_gos_zero_time() {
        for time in ["", r#","lastTransitionTime":null"#] {
            let json = format!(
                r#"{{"metadata":{{"name":"a"}},"status":{{"conditions":[{{"type":"Ready","status":"True","reason":"R","message":""{time}}}]}}}}"#
            );
            let service: Service = decode(&json).unwrap();
            let conditions = service.status.unwrap().conditions.unwrap();
            assert_eq!(conditions[0].last_transition_time.0.to_string(), ZERO_TIME);
        }
    }

    #[test]
    fn common_kinds_are_decoded() {
        for is_readable in COMMON {
            assert!(is_readable(r#"{"metadata":{"name":"a"}}"#) && !is_readable(r#"{"metadata":1}"#));
        }
    }

    #[test]
    fn other_mistakes_are_still_errors() {
        let error = decode::<Service>(r#"{"metadata":{"name":1}}"#).unwrap_err();
        assert!(error.to_string().contains("invalid type"), "{error}");
    }
}
