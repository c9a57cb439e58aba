//! Commits: all objects are written to the store here, except for bootstrap objects.
//!
//! An object is given in the version of its resource and stored in the storage version. A commit adds its
//! steps to [`AfterCommit`].

use std::sync::Arc;

use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apis::selectable;
use serde_json::Value;

use crate::after_commit::AfterCommit;
use crate::registry::resource::Resource;
use crate::server::Inner;
use crate::storage::{Attributes, Change, Conflict, Expect, StoredObject, Write};

impl Inner {
    /// Commits an object, given in the version of `served`.
    pub(crate) fn put(
        &self,
        served: &Resource,
        key: &str,
        expect: Expect,
        object: Value,
        after: &mut AfterCommit,
    ) -> Result<Arc<StoredObject>, Conflict> {
        let version = self.commit_object(served, key, expect, object)?;
        after.written(self, served, &version);
        Ok(version)
    }

    /// As [`Inner::put`], without steps: for callers that are such steps themselves.
    pub(crate) fn commit_object(
        &self,
        served: &Resource,
        key: &str,
        expect: Expect,
        object: Value,
    ) -> Result<Arc<StoredObject>, Conflict> {
        let (object, attributes) = served.strategy.to_storage(object);
        self.commit(served, key, expect, Change::Put { object, attributes })
    }

    /// Commits the deletion of an object. Watches get the last stored version.
    pub(crate) fn remove(
        &self,
        served: &Resource,
        key: &str,
        current: &Arc<StoredObject>,
        after: &mut AfterCommit,
    ) -> Result<Arc<StoredObject>, Conflict> {
        let change = Change::Delete { object: current.object(), attributes: current.attributes.clone() };
        let version = self.commit(served, key, Expect::At(current.revision), change)?;
        after.service_addresses(served, key, Some(current), None);
        after.removed(self, served, &version);
        Ok(version)
    }

    fn commit(
        &self,
        served: &Resource,
        key: &str,
        expect: Expect,
        change: Change,
    ) -> Result<Arc<StoredObject>, Conflict> {
        let write = Write { resource: served.storage.clone(), key: Arc::from(key), expect, change };
        let mut versions = self.store.commit(vec![write])?;
        Ok(versions.remove(0))
    }
}

/// The indexed attributes of an object in the storage version. Fields are those of built-in kinds only.
pub(crate) fn attributes(stored: Option<Gvk<'_>>, object: &Value) -> Attributes {
    let labels = object.map_at("metadata.labels").iter();
    Attributes {
        uid: object.str_at("metadata.uid").into(),
        labels: labels.map(|(k, v)| (k.as_str().into(), v.as_str().unwrap_or_default().into())).collect(),
        fields: stored
            .into_iter()
            .flat_map(|stored| selectable::fields(stored, object))
            .filter(|(field, _)| !field.starts_with("metadata."))
            .map(|(field, value)| (field, value.into_boxed_str()))
            .collect(),
        deleting: object.has("metadata.deletionTimestamp"),
        owners: object
            .list_at("metadata.ownerReferences")
            .iter()
            .map(|owner| owner.str_at("uid").into())
            .collect(),
    }
}
