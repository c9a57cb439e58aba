//! Reads of objects of any resource, for parts that do not write: admission plugins and the webhook client.

use std::sync::Arc;

use serde_json::Value;

use super::resource::Registry;
use super::resources::Resources;
use crate::encoding::response;
use crate::storage::{Store, StoredObject};

/// Reads objects by the name of their resource in storage (`pods`, `storage.k8s.io/storageclasses`). Reads return the
/// latest state, not a cache.
#[derive(Clone)]
pub(crate) struct Lister {
    resources: Arc<Resources>,
    store: Arc<Store>,
}

impl Lister {
    pub(crate) fn new(resources: Arc<Resources>, store: Arc<Store>) -> Self {
        Self { resources, store }
    }

    /// An object in its storage version. The namespace is empty for cluster-scoped objects.
    pub(crate) fn get(&self, storage: &str, namespace: &str, name: &str) -> Option<Value> {
        let registry = self.registry();
        let resource = registry.stored(storage)?;
        let version = self.store.get(storage, &resource.key(namespace, name))?;
        Some(response::object(resource, &version))
    }

    /// All objects of a resource, ordered by name; of one namespace if it is not empty.
    pub(crate) fn list(&self, storage: &str, namespace: &str) -> Vec<Value> {
        let registry = self.registry();
        let Some(resource) = registry.stored(storage) else { return Vec::new() };
        self.versions(storage, namespace).iter().map(|version| response::object(resource, version)).collect()
    }

    /// As [`Lister::list`], not decoded: for labels and revisions.
    pub(crate) fn versions(&self, storage: &str, namespace: &str) -> Vec<Arc<StoredObject>> {
        let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        self.store.list(storage, &prefix, None).map(|listing| listing.items).unwrap_or_default()
    }

    /// A stored object, not decoded.
    pub(crate) fn version(&self, storage: &str, key: &str) -> Option<Arc<StoredObject>> {
        self.store.get(storage, key)
    }

    /// The current registry.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.resources.current()
    }
}
