//! Creates an object or moves an existing one to the desired state.

use super::{Client, Error, Patch};
use crate::reconcile::Result;
use crate::{Key, Object};

/// The result of [`Client::create_or_update`] and [`Client::create_or_patch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Upsert {
    /// The object existed in the desired state.
    Unchanged,
    /// The object was created.
    Created,
    /// The object existed and was changed.
    Updated,
}

impl Client {
    /// Creates or updates an object, after `change` has set the desired state.
    ///
    /// `change` gets the existing object, or `object` if there is none. It must not change name or namespace. Nothing
    /// is sent if `change` changes nothing.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Client, Result, owner::set_controller_reference};
    /// # async fn example(client: &Client, owner: &ConfigMap, child: ConfigMap) -> Result<()> {
    /// let (done, child) = client
    ///     .create_or_update(child, |child| {
    ///         child.data = owner.data.clone();
    ///         set_controller_reference(owner, child)?;
    ///         Ok(())
    ///     })
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create_or_update<K: Object>(
        &self,
        object: K,
        change: impl FnOnce(&mut K) -> Result<()>,
    ) -> Result<(Upsert, K)> {
        self.upsert(object, change, async |client: &Self, _, now: &K| client.update(now).await).await
    }

    /// Creates an object, or patches the existing one with exactly what `change` changed.
    ///
    /// Changes of the status are patched, too, if the kind has a status subresource.
    pub async fn create_or_patch<K: Object>(
        &self,
        object: K,
        change: impl FnOnce(&mut K) -> Result<()>,
    ) -> Result<(Upsert, K)> {
        let patch = async |client: &Self, before: &K, now: &K| {
            let whole = client.patch(now, &Patch::between(before, now)?).await?;
            // Only the changes of `change`: another controller may write other fields of the status.
            let (old, new) = (status(before)?, status(now)?);
            let change = Patch::between(&old, &new)?;
            if change.is_empty() || status(&whole)? == new {
                Ok(whole)
            } else {
                client.status().patch(now, &change).await
            }
        };
        self.upsert(object, change, patch).await
    }

    async fn upsert<K: Object>(
        &self,
        mut object: K,
        change: impl FnOnce(&mut K) -> Result<()>,
        write: impl AsyncFnOnce(&Self, &K, &K) -> Result<K, Error>,
    ) -> Result<(Upsert, K)> {
        let key = Key::of(&object);
        let Some(before) = self.get_opt::<K>(&key).await? else {
            change(&mut object)?;
            same_place(&key, &object)?;
            return Ok((Upsert::Created, self.create(&object).await?));
        };
        let mut now = (*before).clone();
        change(&mut now)?;
        same_place(&key, &now)?;
        if Patch::between(&*before, &now)?.is_empty() {
            return Ok((Upsert::Unchanged, now));
        }
        Ok((Upsert::Updated, write(self, &before, &now).await?))
    }
}

fn same_place<K: Object>(key: &Key, object: &K) -> Result<(), Error> {
    let now = Key::of(object);
    if now == *key { Ok(()) } else { Err(Error::Moved { from: key.to_string(), to: now.to_string() }) }
}

/// The object reduced to its status.
fn status<K: Object>(object: &K) -> Result<serde_json::Value, Error> {
    let mut value = serde_json::to_value(object)
        .map_err(|source| Error::Encode { what: K::kind(&()).into_owned(), source })?;
    let status = value.get_mut("status").map(serde_json::Value::take).unwrap_or_default();
    Ok(serde_json::json!({ "status": status }))
}
