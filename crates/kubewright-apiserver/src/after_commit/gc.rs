//! Garbage collection and namespace deletion, as steps after a commit.
//!
//! In a real cluster, controllers do this asynchronously. Here the dependents of a deleted owner are deleted
//! before the request returns, unless they have finalizers. Admission is not called.

use std::sync::Arc;

use kubewright_apimachinery::gvk::split_api_version;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::time;
use serde_json::{Value, json};

use crate::after_commit::AfterCommit;
use crate::registry::delete::{FOREGROUND, ORPHAN};
use crate::registry::resource::{Registry, Resource};
use crate::registry::store::ObjectStore;
use crate::request::options::{DeleteOptions, Propagation};
use crate::storage::StoredObject;

/// Deletes dependents of deleted owners, and the content of terminating namespaces.
pub(crate) struct GarbageCollector {
    objects: Arc<ObjectStore>,
}

impl GarbageCollector {
    pub(crate) fn new(objects: Arc<ObjectStore>) -> Self {
        Self { objects }
    }

    /// Handles the dependents of a deleted owner.
    pub(crate) fn owner_gone(&self, uid: &str, after: &mut AfterCommit) {
        for (storage, version) in self.objects.storage().dependents(uid) {
            self.dangling(&storage, &version.key, after);
        }
    }

    /// Deletes an object if all its owners are missing; otherwise removes the references to missing owners.
    pub(crate) fn dangling(&self, storage: &Arc<str>, key: &Arc<str>, after: &mut AfterCommit) {
        let registry = self.objects.registry();
        let Some((resource, version)) = self.stored(&registry, storage, key) else { return };
        if !version.attributes.has_owners() || version.attributes.is_deleting() {
            return;
        }
        let object = version.object();
        let owners = object.list_at("metadata.ownerReferences");
        let namespace = version.namespace_and_name().0;
        let present: Vec<Value> =
            owners.iter().filter(|owner| self.is_there(owner, namespace)).cloned().collect();
        if present.len() == owners.len() {
            return;
        }
        if present.is_empty() {
            self.delete_quietly(resource, &version, Propagation::Background, after);
        } else {
            self.objects.edit(resource, key, after, |object| {
                object.set_at("metadata.ownerReferences", present.clone());
            });
        }
    }

    /// Orphans or deletes the dependents of an object that waits for them, then removes its finalizer.
    pub(crate) fn waiting(&self, storage: &Arc<str>, key: &Arc<str>, after: &mut AfterCommit) {
        let registry = self.objects.registry();
        let Some((resource, version)) = self.stored(&registry, storage, key) else { return };
        if !version.attributes.is_deleting() {
            return;
        }
        let object = version.object();
        let waits = |name: &str| object.list_at("metadata.finalizers").iter().any(|f| f == name);
        let uid = version.attributes.uid();
        if waits(ORPHAN) {
            for (storage, dependent) in self.objects.storage().dependents(uid) {
                let Some(resource) = registry.stored(&storage) else { continue };
                self.objects.edit(resource, &dependent.key, after, |object| {
                    if let Some(owners) = object.list_mut("metadata.ownerReferences") {
                        owners.retain(|owner| owner.str_at("uid") != uid);
                    }
                });
            }
            self.drop_finalizer(resource, key, ORPHAN, after);
        } else if waits(FOREGROUND) {
            for (storage, dependent) in self.objects.storage().dependents(uid) {
                let Some(resource) = registry.stored(&storage) else { continue };
                if !dependent.attributes.is_deleting() {
                    self.delete_dependent(resource, &dependent, after);
                }
            }
            let blocked = self.objects.storage().dependents(uid).iter().any(|(_, dependent)| {
                let object = dependent.object();
                let owners = object.list_at("metadata.ownerReferences").iter();
                // An object that owns itself does not wait for itself.
                dependent.attributes.uid() != uid
                    && owners
                        .clone()
                        .any(|owner| owner.str_at("uid") == uid && owner.bool_at("blockOwnerDeletion"))
            });
            if !blocked {
                self.drop_finalizer(resource, key, FOREGROUND, after);
            }
        }
    }

    /// Deletes a dependent of an object that waits for it. A dependent with another owner stays, and loses
    /// the references to the owners that are deleted. A dependent that waits for its own dependents is part
    /// of a cycle: it no longer blocks its owners.
    fn delete_dependent(&self, resource: &Resource, dependent: &StoredObject, after: &mut AfterCommit) {
        let object = dependent.object();
        let namespace = dependent.namespace_and_name().0;
        let owners = object.list_at("metadata.ownerReferences");
        let stays = |owner: &&Value| {
            self.is_there(owner, namespace)
                && !self.owner(owner, namespace).is_some_and(|owner| waits(&owner))
        };
        let staying: Vec<Value> = owners.iter().filter(stays).cloned().collect();
        if !staying.is_empty() {
            self.objects.edit(resource, &dependent.key, after, |object| {
                object.set_at("metadata.ownerReferences", staying.clone());
            });
            return;
        }
        let below = self.objects.storage().dependents(dependent.attributes.uid());
        if below.iter().any(|(_, below)| waits(below)) {
            self.objects.edit(resource, &dependent.key, after, |object| {
                for owner in object.list_mut("metadata.ownerReferences").into_iter().flatten() {
                    owner.set_at("blockOwnerDeletion", false);
                }
            });
        }
        let has = |name: &str| object.list_at("metadata.finalizers").iter().any(|f| f == name);
        let propagation = if !below.is_empty() || has(FOREGROUND) {
            Propagation::Foreground
        } else if has(ORPHAN) {
            Propagation::Orphan
        } else {
            Propagation::Background
        };
        self.delete_quietly(resource, dependent, propagation, after);
    }

    /// Deletes the content of a terminating namespace, and the namespace when it is empty.
    pub(crate) fn empty_namespace(&self, name: &str, after: &mut AfterCommit) {
        let registry = self.objects.registry();
        let Some(namespaces) = registry.stored("namespaces") else { return };
        let Some(version) = self.objects.storage().get("namespaces", name) else { return };
        if !version.attributes.is_deleting() {
            return;
        }
        let mut left = Vec::new();
        for storage in self.objects.storage().resources() {
            let Some(resource) = registry.stored(&storage) else { continue };
            if !resource.namespaced() {
                continue;
            }
            let prefix = format!("{name}/");
            let Ok(listing) = self.objects.storage().list(&storage, &prefix, None) else { continue };
            for version in &listing.items {
                if !version.attributes.is_deleting() {
                    self.delete_quietly(resource, version, Propagation::Background, after);
                }
            }
            if let Ok(listing) = self.objects.storage().list(&storage, &prefix, None)
                && !listing.items.is_empty()
            {
                left.push((resource, listing.items));
            }
        }
        if left.is_empty() {
            self.objects.edit(namespaces, &version.key, after, |object| {
                if let Some(finalizers) = object.list_mut("spec.finalizers") {
                    finalizers.retain(|finalizer| finalizer != "kubernetes");
                }
            });
        } else {
            let conditions = self.namespace_conditions(&left);
            self.objects.edit(namespaces, &version.key, after, |object| {
                object.set_at("status.conditions", conditions.clone());
            });
        }
    }

    /// The conditions of a namespace that still has content.
    fn namespace_conditions(&self, left: &[(&Arc<Resource>, Vec<Arc<StoredObject>>)]) -> Value {
        let now = time::format_rfc3339(self.objects.clock.now());
        let condition = |kind: &str, status: &str, reason: &str, message: String| json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": now});
        let mut counts = Vec::new();
        let mut finalizers: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
        for (resource, versions) in left {
            let group =
                if resource.group().is_empty() { String::new() } else { format!(".{}", resource.group()) };
            counts.push(format!("{}{group} has {} resource instances", resource.plural(), versions.len()));
            for version in versions {
                for finalizer in version.object().list_at("metadata.finalizers") {
                    *finalizers.entry(finalizer.as_str().unwrap_or_default().to_owned()).or_default() += 1;
                }
            }
        }
        let waiting: Vec<String> =
            finalizers.iter().map(|(name, count)| format!("{name} in {count} resource instances")).collect();
        json!([
            condition(
                "NamespaceDeletionDiscoveryFailure",
                "False",
                "ResourcesDiscovered",
                "All resources successfully discovered".to_owned()
            ),
            condition(
                "NamespaceDeletionGroupVersionParsingFailure",
                "False",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed".to_owned()
            ),
            condition(
                "NamespaceDeletionContentFailure",
                "False",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization".to_owned()
            ),
            condition(
                "NamespaceContentRemaining",
                "True",
                "SomeResourcesRemain",
                format!("Some resources are remaining: {}", counts.join(", "))
            ),
            condition(
                "NamespaceFinalizersRemaining",
                "True",
                "SomeFinalizersRemain",
                format!("Some content in the namespace has finalizers remaining: {}", waiting.join(", "))
            ),
        ])
    }

    fn drop_finalizer(&self, resource: &Resource, key: &str, finalizer: &str, after: &mut AfterCommit) {
        self.objects.edit(resource, key, after, |object| {
            if let Some(finalizers) = object.list_mut("metadata.finalizers") {
                finalizers.retain(|f| f != finalizer);
            }
        });
    }

    fn delete_quietly(
        &self,
        resource: &Resource,
        version: &StoredObject,
        propagation: Propagation,
        after: &mut AfterCommit,
    ) {
        let (namespace, name) = version.namespace_and_name();
        let options = DeleteOptions {
            propagation: Some(propagation),
            uid: Some(version.attributes.uid().to_owned()),
            ..DeleteOptions::default()
        };
        if let Err(error) = self.objects.delete_object(resource, namespace, name, &options, after)
            && error.code != 404
            && error.code != 409
        {
            let resource = resource.plural();
            tracing::warn!(%error, resource, namespace, name, "failed to garbage collect object");
        }
    }

    fn stored<'a>(
        &self,
        registry: &'a Registry,
        storage: &str,
        key: &str,
    ) -> Option<(&'a Arc<Resource>, Arc<StoredObject>)> {
        Some((registry.stored(storage)?, self.objects.storage().get(storage, key)?))
    }

    /// Whether the owner exists and has the UID of the reference.
    fn is_there(&self, owner: &Value, namespace: &str) -> bool {
        let Some((storage, key)) = locate(&self.objects.registry(), owner, namespace) else {
            // As upstream, objects with owners of unknown kinds are not collected.
            return true;
        };
        self.objects
            .storage()
            .get(&storage, &key)
            .is_some_and(|version| version.attributes.uid() == owner.str_at("uid"))
    }

    /// The owner of a reference, if it is stored.
    fn owner(&self, owner: &Value, namespace: &str) -> Option<Arc<StoredObject>> {
        let (storage, key) = locate(&self.objects.registry(), owner, namespace)?;
        self.objects.storage().get(&storage, &key)
    }
}

/// Whether an object is being deleted and waits for its dependents.
fn waits(version: &StoredObject) -> bool {
    version.attributes.is_deleting()
        && version.object().list_at("metadata.finalizers").iter().any(|finalizer| finalizer == FOREGROUND)
}

/// The storage location of a reference's owner.
pub(crate) fn locate(registry: &Registry, owner: &Value, namespace: &str) -> Option<(Arc<str>, Arc<str>)> {
    let (group, version) = split_api_version(owner.str_at("apiVersion"));
    let kind = owner.str_at("kind");
    let resource = registry.all().find(|resource| {
        resource.group() == group
            && resource.version() == version
            && resource.kind() == kind
            && resource.is_stored()
    })?;
    Some((resource.storage.clone(), resource.key(namespace, owner.str_at("name")).into()))
}
