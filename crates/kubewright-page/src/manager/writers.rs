//! The `managedFields` of recent objects, which the cache does not store.
//!
//! They name the field manager of a write. Bounded: the newest [`OBJECTS`] of at most [`SIZE`] bytes each. An object is
//! removed when its change is shown.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use kubewright_runtime::cache::Entry;
use kubewright_runtime::{Gvk, Key, Kind};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Number of objects.
const OBJECTS: usize = 256;
/// Maximum size of the `managedFields` of an object, in bytes.
const SIZE: usize = 16 * 1024;

type Id = (Gvk, Key, u64);

#[derive(Default)]
pub(super) struct Writers(Mutex<Recent>);

#[derive(Default)]
struct Recent {
    fields: HashMap<Id, Box<str>>,
    order: VecDeque<Id>,
}

#[derive(Deserialize)]
struct Object<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    managed_fields: Option<&'a RawValue>,
}

impl Writers {
    /// Keeps the `managedFields` of an object as the server sent it.
    pub(super) fn saw(&self, kind: &Kind, entry: &Entry, object: &str) {
        let Ok(Object { metadata: Metadata { managed_fields: Some(fields) } }) = serde_json::from_str(object)
        else {
            return;
        };
        if fields.get().len() > SIZE {
            return;
        }
        let id = (kind.gvk().clone(), entry.key().clone(), entry.version());
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.fields.insert(id.clone(), fields.get().into()).is_none() {
            recent.order.push_back(id);
        }
        while recent.order.len() > OBJECTS {
            let Some(oldest) = recent.order.pop_front() else { break };
            recent.fields.remove(&oldest);
        }
    }

    /// Takes the `managedFields` of a version of an object, if they are known.
    pub(super) fn take(&self, kind: &Kind, entry: &Entry) -> Option<Value> {
        let id = (kind.gvk().clone(), entry.key().clone(), entry.version());
        let fields = self.0.lock().unwrap_or_else(PoisonError::into_inner).fields.remove(&id)?;
        serde_json::from_str(&fields).ok()
    }
}
