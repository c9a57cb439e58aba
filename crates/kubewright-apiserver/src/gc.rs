//! Garbage collection and the deletion of namespaces, done before the request that caused them returns.
//!
//! A real cluster has controllers for this, which act some time later. Here they are part of the write: when
//! an owner goes, its dependents go in the same breath, unless a finalizer stands in the way. Work that a
//! deletion brings about is queued and done by whoever came first, so that chains and cycles need no stack.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use kubewright_apimachinery::gvk::split_api_version;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::time;
use serde_json::{Value, json};

use crate::delete::{FOREGROUND, ORPHAN};
use crate::options::{DeleteOptions, Propagation};
use crate::output;
use crate::resources::{Registry, Served};
use crate::server::{Controllers, Inner};
use crate::storage::{Expect, Version};

/// What is left to do.
enum Work {
    /// The owner with this uid is gone.
    OwnerGone(Box<str>),
    /// An object waits for its dependents.
    Waiting(Arc<str>, Arc<str>),
    /// An object may have only owners that are not there.
    Dangling(Arc<str>, Arc<str>),
    /// Something in a namespace went away.
    Namespace(String),
    /// A definition of this group was written, or is gone.
    Definitions(String),
    /// An object of the definition with this name is gone.
    Definition(String),
    /// A ClusterRole changed: others may be its sum.
    Roles,
}

thread_local! {
    /// Work of the request that this thread is busy with; none when it is not.
    static QUEUE: RefCell<Option<VecDeque<Work>>> = const { RefCell::new(None) };
}

/// Takes the queue away when its work is done, or when it panicked: the next request on this thread begins anew.
struct QueueEnds;

impl Drop for QueueEnds {
    fn drop(&mut self) {
        QUEUE.with_borrow_mut(Option::take);
    }
}

/// What a write of a definition brings about.
fn followed_definitions(served: &Served, version: &Version) -> Option<Work> {
    let (_, group) = version.key.split_once('.').filter(|_| served.defines_resources())?;
    Some(Work::Definitions(group.to_owned()))
}

/// What a write of a ClusterRole brings about.
fn summed_roles(served: &Served) -> Option<Work> {
    (served.storage.as_ref() == crate::auth::Kind::ClusterRole.storage()).then_some(Work::Roles)
}

impl Inner {
    /// Looks after an object that was written.
    pub(crate) fn after_write(&self, served: &Served, version: &Arc<Version>) {
        let mut work: Vec<Work> = followed_definitions(served, version).into_iter().collect();
        // Written while its definition went, and too late to go with the others.
        if self.definition_goes(served) && !version.attributes.deleting {
            self.take_along(served, version);
            return;
        }
        if self.controllers == Controllers::None {
            return self.work(work);
        }
        work.extend(summed_roles(served));
        if !version.attributes.owners.is_empty() {
            work.push(Work::Dangling(served.storage.clone(), version.key.clone()));
        }
        if version.attributes.deleting {
            let object = version.object();
            let waits = |name: &str| object.list_at("metadata.finalizers").iter().any(|f| f == name);
            if waits(ORPHAN) || waits(FOREGROUND) {
                work.push(Work::Waiting(served.storage.clone(), version.key.clone()));
            }
            if served.storage.as_ref() == "namespaces" {
                work.push(Work::Namespace(version.key.to_string()));
            }
        }
        self.work(work);
    }

    /// Looks after what an object left behind.
    pub(crate) fn after_delete(&self, served: &Served, version: &Arc<Version>) {
        let mut work: Vec<Work> = followed_definitions(served, version).into_iter().collect();
        if let Some(custom) = served.custom().filter(|_| self.definition_goes(served)) {
            work.push(Work::Definition(custom.definition.name.clone()));
        }
        if self.controllers == Controllers::None {
            return self.work(work);
        }
        work.extend(summed_roles(served));
        let registry = self.registry();
        work.push(Work::OwnerGone(version.attributes.uid.clone()));
        if !version.attributes.owners.is_empty() {
            for owner in version.object().list_at("metadata.ownerReferences") {
                if let Some((storage, key)) = locate(&registry, owner, version.namespace_and_name().0) {
                    work.push(Work::Waiting(storage, key));
                }
            }
        }
        if served.namespaced() {
            work.push(Work::Namespace(version.namespace_and_name().0.to_owned()));
        }
        self.work(work);
    }

    fn work(&self, work: Vec<Work>) {
        if work.is_empty() {
            return;
        }
        let first = QUEUE.with_borrow_mut(|queue| {
            let first = queue.is_none();
            queue.get_or_insert_default().extend(work);
            first
        });
        if !first {
            return;
        }
        let _ends = QueueEnds;
        while let Some(work) = QUEUE.with_borrow_mut(|queue| queue.as_mut().and_then(VecDeque::pop_front)) {
            match work {
                Work::OwnerGone(uid) => self.owner_gone(&uid),
                Work::Waiting(storage, key) => self.waiting(&storage, &key),
                Work::Dangling(storage, key) => self.dangling(&storage, &key),
                Work::Namespace(name) => self.empty_namespace(&name),
                Work::Definitions(group) => self.follow_definitions(&group),
                Work::Definition(name) => self.empty_definition(&name),
                Work::Roles => self.aggregate_roles(),
            }
        }
    }

    fn owner_gone(&self, uid: &str) {
        for (storage, version) in self.store.dependents(uid) {
            self.dangling(&storage, &version.key);
        }
    }

    /// Deletes an object none of whose owners is there; takes the missing ones off it if another is.
    fn dangling(&self, storage: &Arc<str>, key: &Arc<str>) {
        let registry = self.registry();
        let Some((served, version)) = self.stored(&registry, storage, key) else { return };
        if version.attributes.owners.is_empty() || version.attributes.deleting {
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
            self.delete_quietly(served, &version, Propagation::Background);
        } else {
            self.edit(served, key, |object| object.set_at("metadata.ownerReferences", present.clone()));
        }
    }

    /// Orphans or deletes the dependents of an object that waits for that, then lets it go.
    fn waiting(&self, storage: &Arc<str>, key: &Arc<str>) {
        let registry = self.registry();
        let Some((served, version)) = self.stored(&registry, storage, key) else { return };
        if !version.attributes.deleting {
            return;
        }
        let object = version.object();
        let waits = |name: &str| object.list_at("metadata.finalizers").iter().any(|f| f == name);
        let uid = &version.attributes.uid;
        if waits(ORPHAN) {
            for (storage, dependent) in self.store.dependents(uid) {
                let Some(served) = registry.stored(&storage) else { continue };
                self.edit(served, &dependent.key, |object| {
                    if let Some(owners) = object.list_mut("metadata.ownerReferences") {
                        owners.retain(|owner| *owner.str_at("uid") != **uid);
                    }
                });
            }
            self.drop_finalizer(served, key, ORPHAN);
        } else if waits(FOREGROUND) {
            for (storage, dependent) in self.store.dependents(uid) {
                let Some(served) = registry.stored(&storage) else { continue };
                if !dependent.attributes.deleting {
                    self.delete_quietly(served, &dependent, Propagation::Foreground);
                }
            }
            let blocked = self.store.dependents(uid).iter().any(|(_, dependent)| {
                let object = dependent.object();
                let owners = object.list_at("metadata.ownerReferences").iter();
                owners
                    .clone()
                    .any(|owner| *owner.str_at("uid") == **uid && owner.bool_at("blockOwnerDeletion"))
            });
            if !blocked {
                self.drop_finalizer(served, key, FOREGROUND);
            }
        }
    }

    /// Deletes what a namespace holds, and lets it go when nothing is left.
    fn empty_namespace(&self, name: &str) {
        let registry = self.registry();
        let Some(namespaces) = registry.stored("namespaces") else { return };
        let Some(version) = self.store.get("namespaces", name) else { return };
        if !version.attributes.deleting {
            return;
        }
        let mut left = Vec::new();
        for storage in self.store.resources() {
            let Some(served) = registry.stored(&storage) else { continue };
            if !served.namespaced() {
                continue;
            }
            let prefix = format!("{name}/");
            let Ok(listing) = self.store.list(&storage, &prefix, None) else { continue };
            for version in &listing.items {
                if !version.attributes.deleting {
                    self.delete_quietly(served, version, Propagation::Background);
                }
            }
            if let Ok(listing) = self.store.list(&storage, &prefix, None)
                && !listing.items.is_empty()
            {
                left.push((served, listing.items));
            }
        }
        if left.is_empty() {
            self.edit(namespaces, &version.key, |object| {
                if let Some(finalizers) = object.list_mut("spec.finalizers") {
                    finalizers.retain(|finalizer| finalizer != "kubernetes");
                }
            });
        } else {
            let conditions = self.namespace_conditions(&left);
            self.edit(namespaces, &version.key, |object| {
                object.set_at("status.conditions", conditions.clone());
            });
        }
    }

    /// What a namespace that cannot go yet says of why.
    fn namespace_conditions(&self, left: &[(&Arc<Served>, Vec<Arc<Version>>)]) -> Value {
        let now = time::format_rfc3339(self.clock.now());
        let condition = |kind: &str, status: &str, reason: &str, message: String| json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": now});
        let mut counts = Vec::new();
        let mut finalizers: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
        for (served, versions) in left {
            let group =
                if served.group().is_empty() { String::new() } else { format!(".{}", served.group()) };
            counts.push(format!("{}{group} has {} resource instances", served.plural(), versions.len()));
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

    fn drop_finalizer(&self, served: &Served, key: &str, finalizer: &str) {
        self.edit(served, key, |object| {
            if let Some(finalizers) = object.list_mut("metadata.finalizers") {
                finalizers.retain(|f| f != finalizer);
            }
        });
    }

    /// Changes an object past admission and validation; removes it if nothing keeps it any more.
    pub(crate) fn edit(&self, served: &Served, key: &str, change: impl Fn(&mut Value)) {
        loop {
            let Some(current) = self.store.get(&served.storage, key) else { return };
            let old = output::object(served, &current);
            let mut new = old.clone();
            change(&mut new);
            if served.normalise(&mut new).is_err() || new == old {
                return;
            }
            let released = new.has("metadata.deletionTimestamp")
                && new.list_at("metadata.finalizers").is_empty()
                && new.list_at("spec.finalizers").is_empty()
                && new.int_at("metadata.deletionGracePeriodSeconds").unwrap_or_default() == 0;
            let done = if released {
                self.remove(served, key, &current).is_ok()
            } else {
                match self.put(served, key, Expect::At(current.revision), new) {
                    Ok(version) => {
                        self.after_write(served, &version);
                        true
                    }
                    Err(_) => false,
                }
            };
            if done {
                return;
            }
        }
    }

    fn delete_quietly(&self, served: &Served, version: &Version, propagation: Propagation) {
        let (namespace, name) = version.namespace_and_name();
        let options = DeleteOptions {
            propagation: Some(propagation),
            uid: Some(version.attributes.uid.to_string()),
            ..DeleteOptions::default()
        };
        if let Err(error) = self.delete_object(served, namespace, name, &options)
            && error.code != 404
            && error.code != 409
        {
            tracing::warn!(%error, resource = served.plural(), name, "garbage could not be collected");
        }
    }

    fn stored<'a>(
        &self,
        registry: &'a Registry,
        storage: &str,
        key: &str,
    ) -> Option<(&'a Arc<Served>, Arc<Version>)> {
        Some((registry.stored(storage)?, self.store.get(storage, key)?))
    }

    /// The owner that a reference names is there, and is the same.
    fn is_there(&self, owner: &Value, namespace: &str) -> bool {
        let Some((storage, key)) = locate(&self.registry(), owner, namespace) else {
            // A kind that nobody serves cannot be looked for: upstream leaves such objects alone.
            return true;
        };
        self.store.get(&storage, &key).is_some_and(|version| *version.attributes.uid == *owner.str_at("uid"))
    }
}

/// Where the owner that a reference names would be stored.
fn locate(registry: &Registry, owner: &Value, namespace: &str) -> Option<(Arc<str>, Arc<str>)> {
    let (group, version) = split_api_version(owner.str_at("apiVersion"));
    let kind = owner.str_at("kind");
    let served = registry.all().find(|served| {
        served.group() == group && served.version() == version && served.kind() == kind && served.is_stored()
    })?;
    Some((served.storage.clone(), served.key(namespace, owner.str_at("name")).into()))
}
