//! The object store: the only part of the server that commits to storage.
//!
//! An object is given in the version of its resource and stored in the storage version. A commit adds its steps to
//! [`AfterCommit`]; the caller runs them. Nothing here calls admission or authorization, and nothing waits.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::ApiError;
use kubewright_apis::selectable;
use kubewright_structured_merge::packed;
use serde_json::Value;

use super::delete::is_removable;
use super::resource::{Registry, Resource};
use super::resources::Resources;
use super::service_ips::ServiceIps;
use super::write::WriteRequest;
use crate::after_commit::AfterCommit;
use crate::clock::Clock;
use crate::encoding::response;
use crate::ids::Ids;
use crate::server::Controllers;
use crate::storage::{
    Attributes, Change, Conflict, Encoder, Expect, Store, StoredObject, Write, WriteHandle,
};

/// Creates, updates and deletes objects.
pub(crate) struct ObjectStore {
    /// Private, so that nothing else commits.
    handle: WriteHandle,
    pub(crate) resources: Arc<Resources>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<Ids>,
    pub(crate) service_ips: ServiceIps,
    pub(crate) controllers: Controllers,
}

impl ObjectStore {
    pub(crate) fn new(
        handle: WriteHandle,
        resources: Arc<Resources>,
        clock: Arc<dyn Clock>,
        ids: Arc<Ids>,
        controllers: Controllers,
    ) -> Self {
        let service_ips = ServiceIps::new(handle.store().clone(), ids.clone());
        Self { handle, resources, clock, ids, service_ips, controllers }
    }

    /// The storage, for reading.
    pub(crate) fn storage(&self) -> &Arc<Store> {
        self.handle.store()
    }

    /// The current registry.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.resources.current()
    }

    /// The latest version of an object, or a NotFound error.
    pub(crate) fn latest(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<StoredObject>, ApiError> {
        self.storage()
            .get(&resource.storage, &resource.key(namespace, name))
            .ok_or_else(|| ApiError::not_found(resource.qualified(), name))
    }

    /// Commits an object, given in the version of `resource`.
    pub(crate) fn put(
        &self,
        resource: &Resource,
        key: &str,
        expect: Expect,
        object: Value,
        after: &mut AfterCommit,
    ) -> Result<Arc<StoredObject>, Conflict> {
        let version = self.put_without_steps(resource, key, expect, object)?;
        after.written(self, resource, &version);
        Ok(version)
    }

    /// As [`ObjectStore::put`], for callers that are steps after a commit themselves.
    pub(crate) fn put_without_steps(
        &self,
        resource: &Resource,
        key: &str,
        expect: Expect,
        object: Value,
    ) -> Result<Arc<StoredObject>, Conflict> {
        let (object, attributes) = resource.strategy.to_storage(object);
        self.commit(resource, key, expect, Change::Put { object: encoder(object), attributes })
    }

    /// Commits the deletion of an object. Watches get the last stored version.
    pub(crate) fn remove(
        &self,
        resource: &Resource,
        key: &str,
        current: &Arc<StoredObject>,
        after: &mut AfterCommit,
    ) -> Result<Arc<StoredObject>, Conflict> {
        let change =
            Change::Delete { object: encoder(current.object()), attributes: current.attributes.clone() };
        let version = self.commit(resource, key, Expect::At(current.revision), change)?;
        after.service_addresses(resource, key, Some(current), None);
        after.removed(self, resource, &version);
        Ok(version)
    }

    /// Creates a cluster-scoped object on behalf of the server, without admission.
    pub(crate) fn create_unadmitted(
        &self,
        resource: &Resource,
        mut object: Value,
        after: &mut AfterCommit,
    ) -> Result<(), ApiError> {
        let write = WriteRequest::by_server(resource);
        let _reserved = self.prepare_create(&write, &mut object, &mut Vec::new())?;
        let name = object.str_at("metadata.name").to_owned();
        match self.put(resource, &resource.key("", &name), Expect::Absent, object, after) {
            Ok(_) => Ok(()),
            Err(_) => Err(ApiError::already_exists(resource.qualified(), &name)),
        }
    }

    /// Updates an object without admission and validation; removes it if it is terminating and has no
    /// finalizers left.
    pub(crate) fn edit(
        &self,
        resource: &Resource,
        key: &str,
        after: &mut AfterCommit,
        change: impl Fn(&mut Value),
    ) {
        loop {
            let Some(current) = self.storage().get(&resource.storage, key) else { return };
            let old = response::object(resource, &current);
            let mut new = old.clone();
            change(&mut new);
            if resource.strategy.canonicalize(&mut new).is_err() || new == old {
                return;
            }
            let removable = new.has("metadata.deletionTimestamp") && is_removable(resource, &new, &new);
            let done = if removable {
                self.remove(resource, key, &current, after).is_ok()
            } else {
                self.put(resource, key, Expect::At(current.revision), new, after).is_ok()
            };
            if done {
                return;
            }
        }
    }

    /// Writes the bootstrap objects into an empty store, and makes earlier revisions unavailable, as after a
    /// restart.
    pub(crate) fn bootstrap(&self, objects: Vec<Write>) {
        if let Err(error) = self.handle.commit(objects) {
            tracing::error!(%error, "failed to write bootstrap objects");
        }
        self.handle.forget_past();
    }

    /// Whether the CRD of a resource is being deleted or is gone, according to the current registry.
    pub(crate) fn is_crd_terminating(&self, resource: &Resource) -> bool {
        let Some(custom) = resource.crd() else { return false };
        let registry = self.registry();
        let now = registry.crd(&custom.info.name);
        now.is_none_or(|now| now.info.terminating)
    }

    fn commit(
        &self,
        resource: &Resource,
        key: &str,
        expect: Expect,
        change: Change,
    ) -> Result<Arc<StoredObject>, Conflict> {
        let write = Write { resource: resource.storage.clone(), key: Arc::from(key), expect, change };
        let mut versions = self.handle.commit(vec![write])?;
        Ok(versions.remove(0))
    }
}

/// The encoder of an object in storage form, which may be packed.
pub(crate) fn encoder(mut object: Value) -> Encoder {
    thread_local! {
        /// Encode into a reused buffer first, so that the stored copy has no spare capacity.
        static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    Encoder::new(move |revision| {
        object["metadata"]["resourceVersion"] = Value::String(revision.to_string());
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.clear();
            packed::write_to(scratch, &object);
            Bytes::copy_from_slice(scratch)
        })
    })
}

/// The indexed attributes of an object in the storage version. Fields are those of built-in kinds only.
pub(crate) fn attributes(stored: Option<Gvk<'_>>, object: &Value) -> Attributes {
    Attributes::of(stored.and_then(selectable::own), object)
}
