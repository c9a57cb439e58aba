//! Converts objects to the version that a webhook or policy requests.

use kubewright_apiextensions::custom;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::status::ApiError;
use kubewright_apis::convert;
use serde_json::Value;

use crate::admission::{Attributes, Cluster};

/// Converts an object of the request to another version of its kind. Waits only for conversion webhooks.
pub(crate) async fn in_version(
    cluster: &Cluster,
    attributes: &Attributes<'_>,
    mut object: Value,
    kind: Gvk<'_>,
) -> Result<Value, ApiError> {
    let api_version = kind.api_version();
    if object.is_null() || object.get("apiVersion").and_then(Value::as_str) == Some(&*api_version) {
        return Ok(object);
    }
    match attributes.strategy.crd() {
        None => Ok(convert::convert(object, kind)),
        Some(crd) if crd.converter().is_some() => {
            cluster.conversion().convert_custom(crd, object, &api_version).await.map_err(ApiError::internal)
        }
        Some(crd) => {
            custom::convert(&crd.validation, &mut object, kind.version).map_err(ApiError::internal)?;
            Ok(object)
        }
    }
}
