//! The server as admission plugins see it: other objects, time, and authorization.

use std::sync::Arc;

use serde_json::Value;

use super::Webhooks;
use crate::authn::User;
use crate::authz::Action;
use crate::encoding::response;
use crate::registry::resource::Registry;
use crate::server::Inner;
use crate::storage::StoredObject;
use crate::webhook_client::{Handler, WebhookAddress};

/// Access to the server for admission plugins. Reads return the latest state, not a cache.
pub(crate) struct Cluster<'a> {
    server: &'a Inner,
}

impl<'a> Cluster<'a> {
    pub(crate) fn new(server: &'a Inner) -> Self {
        Self { server }
    }

    /// An object by its resource's name in storage (`pods`, `storage.k8s.io/storageclasses`), in its storage
    /// version. The namespace is empty for cluster-scoped objects.
    pub(crate) fn get(&self, storage: &str, namespace: &str, name: &str) -> Option<Value> {
        let registry = self.registry();
        let resource = registry.stored(storage)?;
        let version = self.server.store.get(storage, &resource.key(namespace, name))?;
        Some(response::object(resource, &version))
    }

    /// All objects of a resource, ordered by name; of one namespace if it is not empty.
    pub(crate) fn list(&self, storage: &str, namespace: &str) -> Vec<Value> {
        let registry = self.registry();
        let Some(resource) = registry.stored(storage) else { return Vec::new() };
        self.versions(storage, namespace).iter().map(|version| response::object(resource, version)).collect()
    }

    /// As [`Cluster::list`], not decoded: for labels and revisions.
    pub(crate) fn versions(&self, storage: &str, namespace: &str) -> Vec<Arc<StoredObject>> {
        let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        self.server.store.list(storage, &prefix, None).map(|listing| listing.items).unwrap_or_default()
    }

    /// A stored object, not decoded.
    pub(crate) fn version(&self, storage: &str, key: &str) -> Option<Arc<StoredObject>> {
        self.server.store.get(storage, key)
    }

    /// The registry of served resources.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.server.registry()
    }

    /// Whether the authorizer allows an action to a user.
    pub(crate) fn allows(&self, user: &User, action: Action<'_>) -> bool {
        self.server.authz.allows(user, action)
    }

    /// A new UID.
    pub(crate) fn new_uid(&self) -> String {
        self.server.ids.uid()
    }

    /// The server's webhook state.
    pub(crate) fn webhooks(&self) -> &'a Webhooks {
        &self.server.webhooks
    }

    /// The in-process handler for a webhook address, if there is one.
    pub(crate) fn webhook_handler(&self, address: &WebhookAddress) -> Option<Handler> {
        self.server.webhooks.handlers.get(address)
    }

    /// The current time in seconds since the Unix epoch.
    #[cfg(test)]
    pub(crate) fn now(&self) -> i64 {
        self.server.clock.now()
    }

    /// A random name with this prefix.
    pub(crate) fn generate_name(&self, prefix: &str) -> String {
        self.server.ids.name(prefix)
    }

    /// The server itself: for ResourceQuota, which commits, and for conversion webhooks.
    pub(super) fn server(&self) -> &'a Inner {
        self.server
    }
}
