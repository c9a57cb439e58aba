//! What plugins may ask the server: other objects, the time, and who may do what.

use std::sync::Arc;

use serde_json::Value;

use super::Webhooks;
use crate::auth::{Action, User};
use crate::output;
use crate::resources::Registry;
use crate::server::Inner;
use crate::storage::StoredObject;
use crate::webhook_client::{Handler, WebhookAddress};

/// The server as admission plugins see it. Reads are of the newest state, not of a cache.
pub(crate) struct Cluster<'a> {
    server: &'a Inner,
}

impl<'a> Cluster<'a> {
    pub(crate) fn new(server: &'a Inner) -> Self {
        Self { server }
    }

    /// An object by the name of its resource in storage (`pods`, `storage.k8s.io/storageclasses`), in the version
    /// in which it is stored. The namespace is empty for objects of the cluster.
    pub(crate) fn get(&self, storage: &str, namespace: &str, name: &str) -> Option<Value> {
        let registry = self.registry();
        let resource = registry.stored(storage)?;
        let version = self.server.store.get(storage, &resource.key(namespace, name))?;
        Some(output::object(resource, &version))
    }

    /// All objects of a resource, in one namespace if it is given, in the order of their names.
    pub(crate) fn list(&self, storage: &str, namespace: &str) -> Vec<Value> {
        let registry = self.registry();
        let Some(resource) = registry.stored(storage) else { return Vec::new() };
        self.versions(storage, namespace).iter().map(|version| output::object(resource, version)).collect()
    }

    /// As [`Cluster::list`], undecoded: for looking at labels and revisions only.
    pub(crate) fn versions(&self, storage: &str, namespace: &str) -> Vec<Arc<StoredObject>> {
        let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        self.server.store.list(storage, &prefix, None).map(|listing| listing.items).unwrap_or_default()
    }

    /// An object's stored version, undecoded.
    pub(crate) fn version(&self, storage: &str, key: &str) -> Option<Arc<StoredObject>> {
        self.server.store.get(storage, key)
    }

    /// The resources that the server serves.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.server.registry()
    }

    /// Whether the authorizer allows a user an action.
    pub(crate) fn allows(&self, user: &User, action: Action<'_>) -> bool {
        self.server.allows(user, action)
    }

    /// A new uid.
    pub(crate) fn new_uid(&self) -> String {
        self.server.ids.uid()
    }

    /// The webhooks of the server.
    pub(crate) fn webhooks(&self) -> &'a Webhooks {
        &self.server.webhooks
    }

    /// The handler of this process for a webhook's address, if there is one.
    pub(crate) fn webhook_handler(&self, address: &WebhookAddress) -> Option<Handler> {
        self.server.webhooks.handlers.get(address)
    }

    /// Seconds since 1970.
    #[cfg(test)]
    pub(crate) fn now(&self) -> i64 {
        self.server.clock.now()
    }

    /// A random name that begins with `prefix`.
    pub(crate) fn generate_name(&self, prefix: &str) -> String {
        self.server.ids.name(prefix)
    }

    /// The server itself: for ResourceQuota, the one plugin that commits, and for conversion webhooks.
    pub(super) fn server(&self) -> &'a Inner {
        self.server
    }
}
