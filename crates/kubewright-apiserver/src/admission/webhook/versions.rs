//! Objects in the version that a webhook or policy asked for.

use kubewright_apimachinery::convert;
use kubewright_apimachinery::custom;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::status::ApiError;
use serde_json::Value;

use crate::admission::Attributes;
use crate::resources::Shape;

/// An object of the request in another version of its kind.
pub(crate) fn in_version(
    attributes: &Attributes<'_>,
    mut object: Value,
    kind: Gvk<'_>,
) -> Result<Value, ApiError> {
    if object.is_null() || object.get("apiVersion").and_then(Value::as_str) == Some(&*kind.api_version()) {
        return Ok(object);
    }
    match attributes.shape {
        Shape::BuiltIn(_) => Ok(convert::convert(object, kind)),
        Shape::Custom(custom) => {
            custom::convert(&custom.rules, &mut object, kind.version).map_err(ApiError::internal)?;
            Ok(object)
        }
    }
}
