//! Sets the status of an object.
//!
//! Owns [`Client::set_status`]: the patch of a new status, and the retry if the object has changed.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::patch::difference;
use super::{Client, Error, Patch, Writable};

/// How often a status is sent while other fields of the object change.
const TRIES: usize = 5;

impl Client {
    /// Sets the status of an object to exactly this value, through the status subresource. Returns the stored object,
    /// or `None` if nothing was written: the status already has this value, or the object was deleted.
    ///
    /// The request is a JSON merge patch of the difference between the status in `object` and the new one:
    ///
    /// - A field that the new status does not have is removed, even if its type omits it when empty.
    /// - Nothing is sent if nothing differs.
    /// - Fields that the Rust type does not have, such as those of another controller, are kept.
    /// - The patch contains the `resourceVersion` of `object`, because a merge patch replaces lists: without it, a
    ///   condition that another client added would be lost. If only other parts of the object have changed, the patch
    ///   is sent again with the new version. If the status has changed, the error is a conflict; a reconcile that
    ///   returns it is retried with backoff.
    ///
    /// An update would send the whole object and conflict with every change of it. Server-side apply would not remove
    /// fields that an earlier version of the operator set with an update or a patch.
    pub async fn set_status<K: Writable>(
        &self,
        object: &K,
        status: impl Serialize,
    ) -> Result<Option<K>, Error> {
        let (wanted, before) = (encoded_status(&status)?, status_of(object)?);
        let Some(change) = difference(&before, &wanted) else { return Ok(None) };
        let mut version = object.metadata().resource_version.clone();
        for tries in 1.. {
            let mut patch = Patch::merge(json!({ "status": change }));
            if let Some(version) = &version {
                patch = patch.optimistic(version);
            }
            let error = match self.status().patch(object, &patch).await {
                Ok(written) => return Ok(Some(written)),
                Err(error) if error.is_conflict() || error.is_not_found() => error,
                Err(error) => return Err(error),
            };
            let Some(now) = self.fresh(object).await? else { return Ok(None) };
            if error.is_not_found() {
                let kind = self.kind_of(object).await?;
                return Err(Error::NoStatusSubresource(kind.gvk().to_string()));
            }
            let same = now.metadata().uid == object.metadata().uid && status_of(&now)? == before;
            if !same || tries >= TRIES {
                return Err(error);
            }
            version.clone_from(&now.metadata().resource_version);
        }
        unreachable!("the last attempt returns")
    }
}

/// Encodes a status as JSON, without nulls of unset fields.
pub(crate) fn encoded_status(status: &impl Serialize) -> Result<Value, Error> {
    let status = serde_json::to_value(status)
        .map_err(|source| Error::Encode { what: "the status".to_owned(), source })?;
    Ok(without_nulls(status))
}

fn status_of<K: Writable>(object: &K) -> Result<Value, Error> {
    #[derive(serde::Deserialize)]
    struct WithStatus {
        #[serde(default)]
        status: Value,
    }
    let encode = |source| Error::Encode { what: "the object".to_owned(), source };
    let object = serde_json::to_value(object).map_err(encode)?;
    let object: WithStatus = serde_json::from_value(object).map_err(encode)?;
    Ok(without_nulls(object.status))
}

/// Removes nulls, which a merge patch cannot store. An empty status equals no status.
fn without_nulls(value: Value) -> Value {
    fn strip(value: Value) -> Value {
        match value {
            Value::Object(fields) => {
                let set = fields.into_iter().filter(|(_, value)| !value.is_null());
                Value::Object(set.map(|(name, value)| (name, strip(value))).collect())
            }
            other => other,
        }
    }
    if value.is_null() { Value::Object(Map::new()) } else { strip(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_null_field_equals_a_missing_field() {
        let status = json!({ "phase": null, "size": { "ready": 1, "lost": null }, "names": [null] });
        assert_eq!(without_nulls(status), json!({ "size": { "ready": 1 }, "names": [null] }));
        assert_eq!(without_nulls(Value::Null), json!({}));
    }
}
