//! The scale subresource: replicas and selector at the paths of the CRD.

use serde_json::{Map, Value, json};

use super::print::{go_type, plain};
use kubewright_apimachinery::decode;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path, quote};
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::ApiError;
use kubewright_apimachinery::types::type_named;

/// Placeholder for absent replicas in a Scale, to detect whether a patch sets them.
const NO_REPLICAS: i64 = i32::MIN as i64;

/// The JSON paths of the scale subresource, with a leading dot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScalePaths {
    /// `specReplicasPath`
    pub spec_replicas: String,
    /// `statusReplicasPath`
    pub status_replicas: String,
    /// `labelSelectorPath`
    pub label_selector: Option<String>,
}

impl ScalePaths {
    /// Parses `subresources.scale` of a version.
    pub fn compile(scale: &Value) -> Self {
        Self {
            spec_replicas: scale.str_at("specReplicasPath").to_owned(),
            status_replicas: scale.str_at("statusReplicasPath").to_owned(),
            label_selector: scale.at("labelSelectorPath").as_str().map(str::to_owned),
        }
    }

    /// The Scale of an object, for reading. Fails if the object has no replicas.
    pub fn get(&self, object: &Value) -> Result<Value, ApiError> {
        let (scale, found) = self.scale(object).map_err(failed)?;
        if found {
            return Ok(scale);
        }
        let path = quote(&self.spec_replicas);
        Err(ApiError::internal(format!("the spec replicas field {path} does not exist")))
    }

    /// The Scale of an object, for patching or replacing.
    pub fn get_for_update(&self, object: &Value) -> Result<Value, ApiError> {
        let (mut scale, found) = self.scale(object).map_err(failed)?;
        if !found {
            scale.set_at("spec.replicas", NO_REPLICAS);
        }
        Ok(scale)
    }

    /// The Scale of an object after a write.
    pub fn written(&self, object: &Value) -> Result<Value, ApiError> {
        self.scale(object).map(|(scale, _)| scale).map_err(ApiError::bad_request)
    }

    /// Copies the replicas of a Scale to the object, and its resourceVersion if set.
    pub fn set(&self, object: &mut Value, scale: &Value) -> Result<(), ApiError> {
        let replicas = scale.int_at("spec.replicas").unwrap_or_default();
        if replicas == NO_REPLICAS {
            let path = quote(&self.spec_replicas);
            return Err(ApiError::bad_request(format!("the spec replicas field {path} cannot be empty")));
        }
        set_nested(object, &fields(&self.spec_replicas), replicas.into()).map_err(failed)?;
        let version = scale.str_at("metadata.resourceVersion");
        if !version.is_empty() {
            object.set_at("metadata.resourceVersion", version);
        }
        Ok(())
    }

    /// Validates the desired replicas.
    pub fn validate_spec(&self, object: &Value) -> ErrorList {
        replicas_error(object, &self.spec_replicas).into_iter().collect()
    }

    /// Validates the observed replicas and the selector.
    pub fn validate_status(&self, object: &Value) -> ErrorList {
        let mut errors: ErrorList = replicas_error(object, &self.status_replicas).into_iter().collect();
        if let Some(path) = &self.label_selector
            && let Err(error) = nested_string(object, path)
        {
            errors.push(FieldError::invalid(&Path::new(path), "", error));
        }
        errors
    }

    fn scale(&self, object: &Value) -> Result<(Value, bool), String> {
        let replicas = nested_int(object, &self.spec_replicas)?;
        let current = nested_int(object, &self.status_replicas)?.unwrap_or_default();
        let selector = match self.label_selector.as_deref() {
            None | Some("") => String::new(),
            Some(path) => nested_string(object, path)?,
        };
        let kept = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"];
        let metadata: Map<String, Value> = kept
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), object.at("metadata").get(name)?.clone())))
            .collect();
        let mut scale = json!({
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": metadata,
            "spec": {"replicas": to_int32(replicas.unwrap_or_default())},
            "status": {"replicas": to_int32(current), "selector": selector},
        });
        let ty = type_named("autoscaling.v1.Scale").expect("the type is in the table");
        decode::normalise(ty, &mut scale).map_err(|error| error.to_string())?;
        Ok((scale, replicas.is_some()))
    }
}

/// Upstream sets no reason for these errors.
fn failed(message: String) -> ApiError {
    ApiError::new(500, "", message)
}

#[expect(clippy::cast_possible_truncation, reason = "upstream truncates it as well")]
fn to_int32(value: i64) -> i32 {
    value as i32
}

fn replicas_error(object: &Value, path: &str) -> Option<FieldError> {
    let (replicas, detail) = match nested_int(object, path) {
        Err(error) => (0, error),
        Ok(None | Some(0..=0x7fff_ffff)) => return None,
        Ok(Some(replicas @ ..0)) => (replicas, "should be a non-negative integer".to_owned()),
        Ok(Some(replicas)) => (replicas, format!("should be less than or equal to {}", i32::MAX)),
    };
    Some(FieldError::invalid(&Path::new(path), replicas, detail))
}

fn fields(path: &str) -> Vec<&str> {
    path.strip_prefix('.').unwrap_or(path).split('.').collect()
}

fn nested_int(object: &Value, path: &str) -> Result<Option<i64>, String> {
    let fields = fields(path);
    match nested(object, &fields)? {
        None => Ok(None),
        Some(value) => match value {
            Value::Number(number) if number.is_i64() => Ok(number.as_i64()),
            other => Err(accessor_error(&fields, other, "int64")),
        },
    }
}

fn nested_string(object: &Value, path: &str) -> Result<String, String> {
    let fields = fields(path);
    match nested(object, &fields)? {
        None => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(accessor_error(&fields, other, "string")),
    }
}

fn nested<'a>(object: &'a Value, fields: &[&str]) -> Result<Option<&'a Value>, String> {
    let mut value = object;
    for (depth, name) in fields.iter().enumerate() {
        match value {
            Value::Null => return Ok(None),
            Value::Object(map) => match map.get(*name) {
                None => return Ok(None),
                Some(next) => value = next,
            },
            other => return Err(accessor_error(&fields[..=depth], other, "map[string]interface{}")),
        }
    }
    Ok(Some(value))
}

fn accessor_error(fields: &[&str], value: &Value, wanted: &str) -> String {
    let (path, value, ty) = (fields.join("."), plain(value), go_type(value));
    format!(".{path} accessor error: {value} is of the type {ty}, expected {wanted}")
}

fn set_nested(object: &mut Value, fields: &[&str], value: Value) -> Result<(), String> {
    let mut at = object;
    for (depth, name) in fields.iter().enumerate() {
        let Value::Object(map) = at else {
            let path = fields[..depth].join(".");
            return Err(format!("value cannot be set because .{path} is not a map[string]interface{{}}"));
        };
        at = map.entry(*name).or_insert_with(|| Value::Object(Map::new()));
    }
    *at = value;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths() -> ScalePaths {
        ScalePaths::compile(&json!({
            "specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n", "labelSelectorPath": ".status.sel",
        }))
    }

    #[test]
    fn a_scale_contains_the_values_at_its_paths() {
        let object = json!({"metadata": {"name": "w", "labels": {"a": "b"}}, "spec": {"n": 2}, "status": {"n": 7, "sel": "a=b"}});
        assert_eq!(
            paths().get(&object).unwrap(),
            json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "w"},
                "spec": {"replicas": 2}, "status": {"replicas": 7, "selector": "a=b"}})
        );
    }

    #[test]
    fn an_object_without_replicas_has_no_scale_but_can_be_scaled() {
        let mut object = json!({"metadata": {"name": "w"}});
        assert_eq!(
            paths().get(&object).unwrap_err().message,
            "Internal error occurred: the spec replicas field \".spec.n\" does not exist"
        );
        let scale = paths().get_for_update(&object).unwrap();
        assert_eq!(
            paths().set(&mut object, &scale).unwrap_err().message,
            "the spec replicas field \".spec.n\" cannot be empty"
        );
        paths()
            .set(&mut object, &json!({"spec": {"replicas": 3}, "metadata": {"resourceVersion": "5"}}))
            .unwrap();
        assert_eq!(object, json!({"metadata": {"name": "w", "resourceVersion": "5"}, "spec": {"n": 3}}));
    }

    #[test]
    fn replicas_must_be_a_non_negative_int32() {
        let errors = |object: Value| -> Vec<String> {
            let mut errors = paths().validate_spec(&object);
            errors.extend(paths().validate_status(&object));
            errors.iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            errors(json!({"spec": {"n": -1}, "status": {"n": 3_000_000_000_i64, "sel": {"a": 1}}})),
            [
                ".spec.n: Invalid value: -1: should be a non-negative integer",
                ".status.n: Invalid value: 3000000000: should be less than or equal to 2147483647",
                r#".status.sel: Invalid value: "": .status.sel accessor error: map[a:1] is of the type map[string]interface {}, expected string"#
            ]
        );
        assert_eq!(
            errors(json!({"spec": "x"})),
            [
                ".spec.n: Invalid value: 0: .spec.n accessor error: x is of the type string, expected map[string]interface{}"
            ]
        );
        assert!(errors(json!({"spec": null})).is_empty());
    }
}
