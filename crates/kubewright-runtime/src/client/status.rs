//! Setting the status of an object.
//!
//! Owns [`Client::set_status`]: which request a new status becomes, and what happens if the object changed meanwhile.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::patch::difference;
use super::{Client, Error, Patch, Writable};

/// How often a status is sent while other fields of the object change.
const TRIES: usize = 5;

impl Client {
    /// Sets the status of an object to exactly this, through the status subresource. Returns the object as the server
    /// stored it, or `None` if nothing was written: the status already is this, or the object was deleted.
    ///
    /// The request is a JSON merge patch of what differs between the status in `object` and the new one:
    ///
    /// - A field that the new status does not have is removed, also if its type skips it when it is empty.
    /// - Nothing is sent if nothing differs.
    /// - Fields that the Rust type does not know, such as those of another controller, stay.
    /// - The patch has the `resourceVersion` of `object`, because a merge patch replaces lists: without it, a
    ///   condition that another client added meanwhile would be lost. If only other parts of the object changed, the
    ///   patch is sent again for the new version. If the status changed, the error is a conflict; a reconcile that
    ///   returns it runs again with backoff.
    ///
    /// An update would send the whole object and fail for every change of it. Server-side apply would not remove
    /// fields that an update or a patch of an earlier version of the operator has set.
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
        unreachable!("the tries are counted")
    }
}

/// A status as JSON, without the nulls of fields that are not set.
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

/// Removes what a merge patch cannot store. No status and an empty one are the same.
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
    fn a_field_without_a_value_is_no_field() {
        let status = json!({ "phase": null, "size": { "ready": 1, "lost": null }, "names": [null] });
        assert_eq!(without_nulls(status), json!({ "size": { "ready": 1 }, "names": [null] }));
        assert_eq!(without_nulls(Value::Null), json!({}));
    }
}
