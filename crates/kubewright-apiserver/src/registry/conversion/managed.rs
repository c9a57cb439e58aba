//! Conversions for managedFields: the object in the version of another field manager.
//!
//! A change is resolved synchronously. If that needs a conversion webhook, the conversion is recorded as
//! missing; the caller calls the webhook and resolves the change again ([`Conversion::convert_missing`]).

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use kubewright_apimachinery::json;
use kubewright_apimachinery::status::ApiError;
use serde_json::Value;

use super::{Conversion, with_converter};
use crate::registry::resource::Resource;

/// Maximum number of cached conversions.
const MAX_REMEMBERED: usize = 256;

thread_local! {
    /// Missing conversions of the current resolution: object and `apiVersion`.
    static MISSING: RefCell<Vec<(Value, String)>> = const { RefCell::new(Vec::new()) };
}

/// Cached conversions for one state of a CRD.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    known: Mutex<HashMap<(Vec<u8>, String), Value>>,
}

impl Memo {
    /// The object in another version. If it is not cached, records it as missing.
    pub(crate) fn get(&self, object: &Value, api_version: &str) -> Option<Value> {
        let key = (json::to_vec(object), api_version.to_owned());
        let found = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if found.is_none() {
            MISSING.with_borrow_mut(|missing| missing.push((object.clone(), api_version.to_owned())));
        }
        found
    }

    fn put(&self, object: &Value, api_version: String, converted: Value) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_REMEMBERED {
            known.clear();
        }
        known.insert((json::to_vec(object), api_version), converted);
    }
}

/// Takes the conversions recorded as missing on this thread.
pub(crate) fn take_missing() -> Vec<(Value, String)> {
    MISSING.with_borrow_mut(std::mem::take)
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
