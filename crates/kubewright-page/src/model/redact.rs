//! Redacts the values of Secrets.
//!
//! Applied to every object before it is stored.

use serde_json::Value;

/// Contains a copy of the applied object, including values.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Redacts a core Secret; other objects are unchanged.
pub fn redact(group: &str, kind: &str, object: &mut Value) {
    if !group.is_empty() || kind != "Secret" {
        return;
    }
    for field in ["data", "stringData"] {
        let Some(values) = object.get_mut(field).and_then(Value::as_object_mut) else { continue };
        for value in values.values_mut() {
            *value = Value::from("(redacted)");
        }
    }
    if let Some(applied) =
        object.pointer_mut("/metadata/annotations").and_then(|all| all.get_mut(LAST_APPLIED))
    {
        *applied = Value::from("(redacted)");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secret_values_are_redacted_and_keys_are_kept() {
        let mut secret = json!({
            "metadata": { "name": "s", "annotations": { LAST_APPLIED: "{\"data\":{\"password\":\"aHVudGVyMg==\"}}", "team": "blue" } },
            "data": { "password": "aHVudGVyMg==", "user": "YWRtaW4=" },
            "stringData": { "password": "hunter2" },
        });
        redact("", "Secret", &mut secret);
        assert_eq!(
            secret,
            json!({
                "metadata": { "name": "s", "annotations": { LAST_APPLIED: "(redacted)", "team": "blue" } },
                "data": { "password": "(redacted)", "user": "(redacted)" },
                "stringData": { "password": "(redacted)" },
            })
        );
    }

    #[test]
    fn other_kinds_keep_their_data() {
        let map = json!({ "data": { "page": "text" } });
        for (group, kind) in [("", "ConfigMap"), ("example.com", "Secret")] {
            let mut same = map.clone();
            redact(group, kind, &mut same);
            assert_eq!(same, map);
        }
    }
}
