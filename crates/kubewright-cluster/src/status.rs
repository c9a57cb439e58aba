//! Writes of statuses.

use std::collections::BTreeMap;

use kubewright_runtime::client;
use kubewright_runtime::{Client, Object, Patch};
use serde::Serialize;

/// Patches the status of an object from `old` to `new`. Nothing is sent if they are equal.
///
/// Serializes only the statuses: an unchanged spec is the larger part of most objects. Returns the written object.
pub(crate) async fn write<K: Object, S: Serialize + PartialEq>(
    client: &Client,
    object: &K,
    old: Option<&S>,
    new: &S,
) -> Result<Option<K>, client::Error> {
    if old == Some(new) {
        return Ok(None);
    }
    let patch = patch(old, new)?;
    if patch.is_empty() {
        return Ok(None);
    }
    client.status().patch(object, &patch).await.map(Some)
}

/// The patch of an object whose status changes from `old` to `new`.
pub(crate) fn patch<S: Serialize>(old: Option<&S>, new: &S) -> Result<Patch, client::Error> {
    let old: BTreeMap<&str, &S> = old.map(|old| ("status", old)).into_iter().collect();
    Patch::between(&old, &BTreeMap::from([("status", new)]))
}
