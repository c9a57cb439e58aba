//! Validation of Secret.

use serde_json::{Map, Value};

use crate::core::config_map::{MAX_SIZE, immutable};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::json;
use kubewright_apimachinery::meta::{self, bytes};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

pub(super) fn create(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("data");
    let data = object.map_at("data");
    let mut size = 0;
    for (key, value) in data {
        errors.extend(meta::invalid(&path.key(key), key, names::config_map_key(key)));
        size += bytes::length(value.as_str().unwrap_or_default());
    }
    if size > MAX_SIZE {
        errors.push(FieldError::too_long(&path, MAX_SIZE));
    }
    errors.extend(typed(object, data, &path));
    errors
}

pub(super) fn update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    if new.str_at("type") != old.str_at("type") {
        errors.push(FieldError::invalid(&Path::new("type"), new.str_at("type"), meta::IMMUTABLE));
    }
    errors.extend(immutable(new, old, &["data"]));
    errors.extend(create(new));
    errors
}

/// Checks the keys that the type of a Secret requires.
fn typed(object: &Value, data: &Map<String, Value>, path: &Path) -> ErrorList {
    let missing = |keys: &[&str]| -> ErrorList {
        let absent = keys.iter().filter(|key| !data.contains_key(**key));
        absent.map(|key| FieldError::required(&path.key(key), "")).collect()
    };
    match object.str_at("type") {
        "kubernetes.io/service-account-token" => {
            const NAME: &str = "kubernetes.io/service-account.name";
            let annotations = object.map_at("metadata.annotations");
            let named = annotations.get(NAME).and_then(Value::as_str).is_some_and(|name| !name.is_empty());
            let path = Path::new("metadata").child("annotations").key(NAME);
            if named { ErrorList::new() } else { vec![FieldError::required(&path, "")] }
        }
        "kubernetes.io/dockercfg" => json_at(data, ".dockercfg", path),
        "kubernetes.io/dockerconfigjson" => json_at(data, ".dockerconfigjson", path),
        // One of the two is sufficient.
        "kubernetes.io/basic-auth" => match missing(&["username", "password"]) {
            errors if errors.len() == 2 => errors,
            _ => ErrorList::new(),
        },
        "kubernetes.io/ssh-auth" => {
            let key = data.get("ssh-privatekey").and_then(Value::as_str).unwrap_or_default();
            let path = path.key("ssh-privatekey");
            if key.is_empty() { vec![FieldError::required(&path, "")] } else { ErrorList::new() }
        }
        "kubernetes.io/tls" => missing(&["tls.crt", "tls.key"]),
        _ => ErrorList::new(),
    }
}

/// Checks that a key contains a JSON object. Its content is not printed.
fn json_at(data: &Map<String, Value>, key: &str, path: &Path) -> ErrorList {
    let path = path.key(key);
    let Some(text) = data.get(key).and_then(Value::as_str) else {
        return vec![FieldError::required(&path, "")];
    };
    let problem = match json::parse(&bytes::decode(text), json::ParseOptions::default()) {
        Ok(parsed) => match parsed.value {
            Value::Object(_) | Value::Null => return ErrorList::new(),
            Value::Array(_) => "array",
            Value::String(_) => "string",
            Value::Number(_) => "number",
            Value::Bool(_) => "bool",
        },
        Err(error) => {
            return vec![FieldError::invalid(&path, "<secret contents redacted>", error.to_string())];
        }
    };
    let detail = format!("json: cannot unmarshal {problem} into Go value of type map[string]interface {{}}");
    vec![FieldError::invalid(&path, "<secret contents redacted>", detail)]
}
