//! Conversions that managedFields need: an object in the version of another field manager.
//!
//! A change is resolved without waiting. Where that needs a webhook, the conversion is noted as missing; the caller
//! asks the webhook and resolves the change again ([`Inner::convert_missing`]).

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use kubewright_apimachinery::json;
use kubewright_apimachinery::status::ApiError;
use serde_json::Value;

use super::with_converter;
use crate::resources::Resource;
use crate::server::Inner;

/// How many conversions are remembered at most.
const MAX_REMEMBERED: usize = 256;

thread_local! {
    /// Conversions that the current resolution lacks: object and `apiVersion`.
    static MISSING: RefCell<Vec<(Value, String)>> = const { RefCell::new(Vec::new()) };
}

/// Conversions of one state of a CustomResourceDefinition.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    known: Mutex<HashMap<(Vec<u8>, String), Value>>,
}

impl Memo {
    /// The object in another version. None is noted as missing.
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

/// The conversions that were missing since the last call, on this thread.
pub(crate) fn take_missing() -> Vec<(Value, String)> {
    MISSING.with_borrow_mut(std::mem::take)
}

impl Inner {
    /// Asks the webhook for conversions that were missing.
    pub(crate) async fn convert_missing(
        &self,
        served: &Resource,
        missing: Vec<(Value, String)>,
    ) -> Result<(), ApiError> {
        let Some((custom, converter)) = with_converter(served) else { return Ok(()) };
        for (object, api_version) in missing {
            let mut converted =
                self.convert_objects(custom, converter, std::slice::from_ref(&object), &api_version).await?;
            converter.memo.put(&object, api_version, converted.pop().unwrap_or_default());
        }
        Ok(())
    }
}
