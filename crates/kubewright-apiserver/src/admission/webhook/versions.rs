//! Converts objects to the version that a webhook or policy requests.

use kubewright_apiextensions::custom;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apis::convert;
use serde_json::Value;

use super::matching::Invocation;
use crate::admission::{Attributes, Cluster};

/// The objects of a request in the version that a webhook or policy requests.
pub(crate) struct Versioned {
    pub(crate) object: Value,
    pub(crate) old_object: Value,
}

impl Versioned {
    /// Converts the objects of a request.
    pub(crate) async fn new(
        cluster: &Cluster,
        attributes: &Attributes<'_>,
        invocation: &Invocation,
    ) -> Result<Self, String> {
        let kind = invocation.kind(attributes);
        Ok(Self {
            object: in_version(cluster, attributes, attributes.unpacked(), kind).await?,
            old_object: in_version(cluster, attributes, attributes.unpacked_old(), kind).await?,
        })
    }
}

/// Converts an object of the request to another version of its kind. Waits only for conversion webhooks.
pub(crate) async fn in_version(
    cluster: &Cluster,
    attributes: &Attributes<'_>,
    mut object: Value,
    kind: Gvk<'_>,
) -> Result<Value, String> {
    let api_version = kind.api_version();
    if object.is_null() || object.get("apiVersion").and_then(Value::as_str) == Some(&*api_version) {
        return Ok(object);
    }
    match attributes.strategy.crd() {
        None => Ok(convert::convert(object, kind)),
        Some(crd) if crd.converter().is_some() => {
            let converted = cluster.conversion().convert_custom(crd, object, &api_version).await;
            converted.map_err(|error| error.message)
        }
        Some(crd) => {
            custom::convert(&crd.validation, &mut object, kind.version).map_err(|error| error.to_string())?;
            Ok(object)
        }
    }
}
