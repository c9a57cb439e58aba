//! Objects from JSON, as leniently as Go reads them.
//!
//! Go reads `null` as the zero value. The Rust type of `metav1.Condition` requires `lastTransitionTime`, and one object
//! that it cannot read would stop every controller of its kind. So a `null` there is read as Go's zero time.

use serde::de::DeserializeOwned;
use serde_json::Value;

const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

/// An object of a Rust type.
pub(crate) fn decode<T: DeserializeOwned>(json: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(json).or_else(|error| {
        let repaired = serde_json::from_str(json).ok().and_then(repaired);
        repaired.and_then(|object| serde_json::from_value(object).ok()).ok_or(error)
    })
}

/// The object with a time in each condition of its status, if one is missing.
fn repaired(mut object: Value) -> Option<Value> {
    let conditions = object.pointer_mut("/status/conditions")?.as_array_mut()?;
    let mut missing = false;
    for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
        let time = condition.entry("lastTransitionTime").or_insert(Value::Null);
        if time.is_null() {
            *time = ZERO_TIME.into();
            missing = true;
        }
    }
    missing.then_some(object)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Service;

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
    fn other_mistakes_are_still_errors() {
        let error = decode::<Service>(r#"{"metadata":{"name":1}}"#).unwrap_err();
        assert!(error.to_string().contains("invalid type"), "{error}");
    }
}
