//! The server as admission plugins see it: other objects, authorization, and calls of webhooks.

use std::sync::Arc;

use serde_json::Value;

use super::Webhooks;
use super::resource_quota::QuotaAccessor;
use crate::after_commit::StepRunner;
use crate::authn::User;
use crate::authz::{Action, Authz};
use crate::ids::Ids;
use crate::registry::conversion::Conversion;
use crate::registry::lister::Lister;
use crate::registry::resource::Registry;
use crate::registry::store::ObjectStore;
use crate::storage::StoredObject;
use crate::webhook_client::WebhookClient;

/// Access to the server for admission plugins. Reads return the latest state, not a cache.
pub(crate) struct Cluster {
    lister: Lister,
    authz: Arc<Authz>,
    ids: Arc<Ids>,
    webhooks: Webhooks,
    webhook_client: Arc<WebhookClient>,
    conversion: Arc<Conversion>,
    quotas: QuotaAccessor,
    #[cfg(test)]
    clock: Arc<dyn crate::clock::Clock>,
}

impl Cluster {
    /// Only ResourceQuota uses `objects` and `steps`.
    pub(crate) fn new(
        authz: Arc<Authz>,
        webhook_client: Arc<WebhookClient>,
        conversion: Arc<Conversion>,
        objects: Arc<ObjectStore>,
        steps: Arc<StepRunner>,
    ) -> Self {
        Self {
            lister: Lister::new(objects.resources.clone(), objects.storage().clone()),
            authz,
            ids: objects.ids.clone(),
            webhooks: Webhooks::default(),
            webhook_client,
            conversion,
            #[cfg(test)]
            clock: objects.clock.clone(),
            quotas: QuotaAccessor::new(objects, steps),
        }
    }

    /// An object by its resource's name in storage: see [`Lister::get`].
    pub(crate) fn get(&self, storage: &str, namespace: &str, name: &str) -> Option<Value> {
        self.lister.get(storage, namespace, name)
    }

    /// All objects of a resource: see [`Lister::list`].
    pub(crate) fn list(&self, storage: &str, namespace: &str) -> Vec<Value> {
        self.lister.list(storage, namespace)
    }

    /// As [`Cluster::list`], not decoded: for labels and revisions.
    pub(crate) fn versions(&self, storage: &str, namespace: &str) -> Vec<Arc<StoredObject>> {
        self.lister.versions(storage, namespace)
    }

    /// A stored object, not decoded.
    pub(crate) fn version(&self, storage: &str, key: &str) -> Option<Arc<StoredObject>> {
        self.lister.version(storage, key)
    }

    /// The registry of served resources.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.lister.registry()
    }

    /// The authorizer.
    pub(crate) fn authz(&self) -> &Authz {
        &self.authz
    }

    /// Whether the authorizer allows an action to a user.
    pub(crate) fn allows(&self, user: &User, action: Action<'_>) -> bool {
        self.authz.allows(user, action)
    }

    /// A new UID.
    pub(crate) fn new_uid(&self) -> String {
        self.ids.uid()
    }

    /// A random name with this prefix.
    pub(crate) fn generate_name(&self, prefix: &str) -> String {
        self.ids.name(prefix)
    }

    /// The compiled webhook configurations and policies.
    pub(crate) fn webhooks(&self) -> &Webhooks {
        &self.webhooks
    }

    pub(crate) fn webhook_client(&self) -> &WebhookClient {
        &self.webhook_client
    }

    /// Conversion of custom resources by webhooks.
    pub(crate) fn conversion(&self) -> &Conversion {
        &self.conversion
    }

    /// The current time in seconds since the Unix epoch.
    #[cfg(test)]
    pub(crate) fn now(&self) -> i64 {
        self.clock.now()
    }

    /// Charges quotas, for ResourceQuota.
    pub(super) fn quotas(&self) -> &QuotaAccessor {
        &self.quotas
    }
}
