//! Compares objects with YAML.

use std::fmt::{self, Write as _};

use serde::Serialize;
use serde_json::Value;

/// The differences between an object and the expected YAML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    differences: Vec<String>,
}

impl Mismatch {
    /// One line per difference.
    pub fn differences(&self) -> &[String] {
        &self.differences
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the object does not match the YAML:\n  {}", self.differences.join("\n  "))
    }
}

impl std::error::Error for Mismatch {}

/// Compares an object with the expected YAML. Only fields in the YAML are compared, so that defaults and fields set by
/// the server can be omitted. Lists must have the same length.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kubewright_envtest::matches_yaml;
///
/// let map: ConfigMap = serde_json::from_str(r#"{"metadata": {"name": "a", "uid": "1"}, "data": {"x": "1"}}"#)?;
/// matches_yaml(&map, "{kind: ConfigMap, metadata: {name: a}, data: {x: '1'}}")?;
/// let wrong = matches_yaml(&map, "{data: {x: '2', y: '3'}}").unwrap_err().to_string();
/// assert!(wrong.contains(r#"data.x: got "1", expected "2""#) && wrong.contains("data.y is missing"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn matches_yaml<K: Serialize>(object: &K, yaml: &str) -> Result<(), Mismatch> {
    let mut differences = Vec::new();
    match (serde_saphyr::from_str::<Value>(yaml), serde_json::to_value(object)) {
        (Ok(wanted), Ok(found)) => compare(&found, &wanted, &mut String::new(), &mut differences),
        (Err(error), _) => differences.push(format!("invalid YAML: {error}")),
        (_, Err(error)) => differences.push(format!("failed to serialize the object: {error}")),
    }
    if differences.is_empty() { Ok(()) } else { Err(Mismatch { differences }) }
}

fn compare(found: &Value, wanted: &Value, path: &mut String, differences: &mut Vec<String>) {
    let length = path.len();
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            for (name, value) in wanted {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
                match found.get(name) {
                    Some(found) => compare(found, value, path, differences),
                    None if value.is_null() => {}
                    None => differences.push(format!("{path} is missing")),
                }
                path.truncate(length);
            }
        }
        (Value::Array(found), Value::Array(wanted)) if found.len() == wanted.len() => {
            for (at, (found, wanted)) in found.iter().zip(wanted).enumerate() {
                let _ = write!(path, "[{at}]");
                compare(found, wanted, path, differences);
                path.truncate(length);
            }
        }
        (Value::Array(found), Value::Array(wanted)) => {
            differences.push(format!("{path}: got {} elements, expected {}", found.len(), wanted.len()));
        }
        // 1 and 1.0 are equal.
        (Value::Number(found), Value::Number(wanted)) if found.as_f64() == wanted.as_f64() => {}
        _ if found == wanted => {}
        _ => differences.push(format!("{path}: got {found}, expected {wanted}")),
    }
}
