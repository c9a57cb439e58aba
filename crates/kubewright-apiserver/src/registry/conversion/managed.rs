//! Conversions for managedFields: the object in the version of another field manager.
//!
//! A change is resolved synchronously. If that needs a conversion webhook, the [`Recorder`] of the resolution
//! records the conversion as missing; the caller calls the webhook and resolves the change again
//! ([`Conversion::convert_missing`]).

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use kubewright_apimachinery::gvk::split_api_version;
use kubewright_apimachinery::json;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::ApiError;
use kubewright_structured_merge::{ConvertError, Schema, Versions};
use serde_json::Value;

use super::{Conversion, with_converter};
use crate::clock::Clock;
use crate::registry::resource::Resource;

/// Maximum number of cached conversions.
const MAX_REMEMBERED: usize = 256;

/// The clock and the API versions of one resource, for one resolution of a change.
pub(crate) struct Recorder<'a> {
    pub(crate) clock: &'a dyn Clock,
    pub(crate) resource: &'a Resource,
    /// Missing conversions: object and `apiVersion`.
    missing: RefCell<Vec<(Value, String)>>,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(clock: &'a dyn Clock, resource: &'a Resource) -> Self {
        Self { clock, resource, missing: RefCell::default() }
    }

    /// The recorded conversions that need a webhook.
    pub(crate) fn into_missing(self) -> Vec<(Value, String)> {
        self.missing.into_inner()
    }
}

impl Versions for Recorder<'_> {
    fn schema(&self, api_version: &str) -> Result<Schema<'_>, ConvertError> {
        self.resource.strategy.versions().schema(api_version)
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        let (_, version) = split_api_version(api_version);
        if let Some((custom, converter)) = with_converter(self.resource)
            && object.str_at("apiVersion") != api_version
            && !is_empty(object)
            && custom.validation.versions.contains_key(version)
        {
            if let Some(converted) = converter.memo.get(object, api_version) {
                return Ok(converted);
            }
            self.missing.borrow_mut().push((object.clone(), api_version.to_owned()));
        }
        self.resource.strategy.versions().convert(object, api_version)
    }
}

/// Whether an object has no fields but `apiVersion` and `kind`. Webhooks do not convert such objects.
fn is_empty(object: &Value) -> bool {
    object.as_object().is_some_and(|fields| fields.keys().all(|name| name == "apiVersion" || name == "kind"))
}

/// Cached conversions for one state of a CRD.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    known: Mutex<HashMap<(Vec<u8>, String), Value>>,
}

impl Memo {
    /// The object in another version, if it is cached.
    fn get(&self, object: &Value, api_version: &str) -> Option<Value> {
        let key = (json::to_vec(object), api_version.to_owned());
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
    }

    fn put(&self, object: &Value, api_version: String, converted: Value) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_REMEMBERED {
            known.clear();
        }
        known.insert((json::to_vec(object), api_version), converted);
    }
}

impl Conversion {
    /// Calls the webhook for missing conversions.
    pub(crate) async fn convert_missing(
        &self,
        resource: &Resource,
        missing: Vec<(Value, String)>,
    ) -> Result<(), ApiError> {
        let Some((custom, converter)) = with_converter(resource) else { return Ok(()) };
        for (object, api_version) in missing {
            let mut converted =
                self.convert_objects(custom, converter, std::slice::from_ref(&object), &api_version).await?;
            converter.memo.put(&object, api_version, converted.pop().unwrap_or_default());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::clock::SystemClock;
    use crate::fieldmanager::FieldManager;
    use crate::registry::crd_resource::CrdResource;
    use crate::registry::resource::Registry;

    #[test]
    fn missing_conversions_are_recorded_per_write() {
        let version = |name: &str| {
            let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            json!({
                "name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema": schema},
            })
        };
        let crd = json!({
            "metadata": {"name": "orders.example.com"},
            "spec": {
                "group": "example.com",
                "names": {"plural": "orders", "singular": "order", "kind": "Order", "listKind": "OrderList"},
                "scope": "Namespaced",
                "versions": [version("v1"), version("v2")],
                "conversion": {
                    "strategy": "Webhook",
                    "webhook": {
                        "conversionReviewVersions": ["v1"],
                        "clientConfig": {"url": "https://localhost/convert"},
                    },
                },
            },
            "status": {"conditions": [{"type": "Established", "status": "True"}]},
        });
        let registry = Registry::default().with(&[Arc::new(CrdResource::compile(&crd, 1).unwrap())]);
        let resource = registry.find("example.com", "v1", "orders").unwrap();
        let other_version = json!([{
            "manager": "other", "operation": "Update", "apiVersion": "example.com/v2",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:foo": {}}},
        }]);
        let create = |managed_fields: &Value| {
            let mut object = json!({
                "apiVersion": "example.com/v1", "kind": "Order",
                "metadata": {"name": "a", "managedFields": managed_fields}, "spec": {"foo": 1},
            });
            let recorder = Recorder::new(&SystemClock, resource);
            FieldManager::named("me").track(&recorder, "", None, &mut object);
            recorder.into_missing()
        };
        assert!(!create(&other_version).is_empty());
        assert_eq!(create(&json!([])), []);
    }
}
