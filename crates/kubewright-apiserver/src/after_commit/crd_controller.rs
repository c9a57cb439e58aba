//! The CRD controllers of apiextensions-apiserver, run before the request that wrote a CRD returns: they
//! accept names, serve the resource, and delete the instances of a terminating CRD.
//!
//! Unlike garbage collection this is part of every server, even without controllers.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, PoisonError};

use kubewright_apiextensions::crd;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::time;
use serde_json::Value;

use crate::after_commit::AfterCommit;
use crate::after_commit::crd_names::Group;
use crate::encoding::response;
use crate::fieldmanager::FieldManager;
use crate::registry::crd_resource::CrdResource;
use crate::registry::resource::{DEFINITIONS, Registry, Resource};
use crate::request::options::DeleteOptions;
use crate::server::Inner;
use crate::storage::{Expect, StoredObject};

/// The field manager of CRD status.
const MANAGER: &str = "kube-apiserver";

impl Inner {
    /// The current registry.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.registry.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Updates the status of a written or deleted CRD, and of those that wait for its names, and serves them.
    pub(crate) fn follow_definition(&self, name: &Arc<str>, after: &mut AfterCommit) {
        let Some((_, group)) = name.split_once('.') else { return };
        let settled = {
            let mut groups = self.definitions.lock().unwrap_or_else(PoisonError::into_inner);
            if !groups.contains_key(group) {
                groups.insert(group.to_owned(), self.group_of(group));
            }
            let settled = match groups.get_mut(group) {
                Some(group) => self.settle(name, group),
                None => Vec::new(),
            };
            for name in &settled {
                self.publish_one(name);
            }
            settled
        };
        for name in settled {
            if self.store.get(DEFINITIONS, &name).is_some_and(|version| version.attributes.deleting) {
                self.empty_definition(&name, after);
            }
        }
    }

    /// Completes the work that a previous server may have left unfinished by stopping between a commit and
    /// its steps.
    pub(crate) fn resume_definitions(&self) {
        self.publish();
        let listing = self.store.list(DEFINITIONS, "", None);
        let all: Vec<_> = listing.into_iter().flat_map(|listing| listing.items).collect();
        let mut after = AfterCommit::default();
        for version in all {
            self.follow_definition(&version.key, &mut after);
        }
        self.finish(after);
    }

    /// Updates the registry from all CRDs.
    pub(crate) fn publish(&self) {
        let before = self.registry();
        let mut definitions: Vec<Arc<CrdResource>> = Vec::new();
        let listing = self.store.list(DEFINITIONS, "", None);
        for version in listing.into_iter().flat_map(|listing| listing.items) {
            let known = before.definition(&version.key);
            if let Some(custom) = known.filter(|custom| custom.is_at(version.revision)) {
                definitions.push(custom.clone());
                continue;
            }
            match CrdResource::compile(&version.object(), version.revision) {
                Ok(fresh) => definitions.push(fresh.in_place_of(known)),
                Err(error) => {
                    tracing::error!(%error, name = &*version.key, "failed to compile CRD");
                }
            }
        }
        let now = before.with(&definitions);
        let goes_on = |old: &CrdResource| now.definition(&old.info.name).is_some_and(|new| new.follows(old));
        for old in before.definitions().filter(|old| !goes_on(old)) {
            old.retire(self.store.revision());
        }
        *self.registry.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(now);
        // Wake the watches of resources that are no longer served, so that they end.
        self.store.wake();
    }

    /// Updates the registry from one CRD.
    fn publish_one(&self, name: &str) {
        let before = self.registry();
        let known = before.definition(name);
        let now = self.store.get(DEFINITIONS, name).and_then(|version| {
            if let Some(custom) = known.filter(|custom| custom.is_at(version.revision)) {
                return Some(custom.clone());
            }
            let compiled = CrdResource::compile(&version.object(), version.revision);
            let compiled = compiled.inspect_err(|error| {
                tracing::error!(%error, name, "failed to compile CRD");
            });
            Some(compiled.ok()?.in_place_of(known))
        });
        let is_same = match (known, &now) {
            (Some(known), Some(now)) => Arc::ptr_eq(known, now),
            (known, now) => known.is_none() && now.is_none(),
        };
        if is_same {
            return;
        }
        let ends = known.filter(|old| now.as_ref().is_none_or(|now| !now.follows(old)));
        if let Some(old) = ends {
            old.retire(self.store.revision());
        }
        let ends = ends.is_some();
        let registry = Arc::new(before.replaced(name, now));
        *self.registry.write().unwrap_or_else(PoisonError::into_inner) = registry;
        if ends {
            // Wake the watches of resources that are no longer served, so that they end.
            self.store.wake();
        }
    }

    /// Updates names and conditions of a CRD. Names that it releases may be accepted for others. Returns all CRDs that
    /// were considered.
    fn settle(&self, name: &Arc<str>, group: &mut Group) -> Vec<Arc<str>> {
        let now = time::format_rfc3339(self.clock.now());
        let registry = self.registry();
        let Some(served) = registry.stored(DEFINITIONS) else { return Vec::new() };
        let mut settled: BTreeSet<Arc<str>> = BTreeSet::new();
        let mut queue = VecDeque::from([name.clone()]);
        while let Some(name) = queue.pop_front() {
            let version = self.store.get(DEFINITIONS, &name);
            let mut released = group.read(&name, version.as_deref());
            if let (Some(version), Some(outline)) = (version, group.outline(&name)) {
                let mut new = outline.clone();
                if crd::settle(&mut new, group.rivals(outline), &now)
                    && let Some(version) = self.put_status(served, &version, &new)
                {
                    released |= group.set(&name, version.revision, new);
                }
            }
            settled.insert(name);
            if released {
                let more: Vec<Arc<str>> =
                    group.waiting().filter(|name| !queue.contains(*name)).cloned().collect();
                queue.extend(more);
            }
        }
        settled.into_iter().collect()
    }

    /// The CRDs of a group; their names end with it.
    fn group_of(&self, group: &str) -> Group {
        let mut found = Group::default();
        let listing = self.store.list(DEFINITIONS, "", None);
        for version in listing.into_iter().flat_map(|listing| listing.items) {
            if version.key.split_once('.').is_some_and(|(_, of)| of == group) {
                found.read(&version.key, Some(&version));
            }
        }
        found
    }

    /// Updates the status of a CRD. `None` on a conflict; the concurrent write then updates it.
    fn put_status(
        &self,
        served: &Resource,
        version: &StoredObject,
        outline: &Value,
    ) -> Option<Arc<StoredObject>> {
        let old = response::object(served, version);
        let mut new = old.clone();
        new.set_at("status", outline.at("status").clone());
        served.strategy.canonicalize(&mut new).ok()?;
        self.track(served, "status", &FieldManager::named(MANAGER), Some(&old), &mut new);
        self.commit_object(served, &version.key, Expect::At(version.revision), new).ok()
    }

    /// Deletes the instances of a terminating CRD, and removes its finalizer when none is left.
    pub(crate) fn empty_definition(&self, name: &str, after: &mut AfterCommit) {
        let registry = self.registry();
        let Some(served) = registry.stored(DEFINITIONS) else { return };
        let Some(current) = self.store.get(DEFINITIONS, name) else { return };
        let object = response::object(served, &current);
        let waits = object.list_at("metadata.finalizers").iter().any(|f| f == crd::FINALIZER);
        if !current.attributes.deleting || !waits {
            return;
        }
        let own = registry.definition(name).filter(|custom| custom.info.is_served());
        let storage = own.map(|custom| format!("{}/{}", custom.info.group, custom.info.names.plural));
        let left = storage.is_some_and(|storage| self.delete_instances(&registry, &storage, after));
        let now = time::format_rfc3339(self.clock.now());
        self.edit(served, name, after, |object| {
            crd::instances_deleted(object, !left, &now);
            if !left && let Some(finalizers) = object.list_mut("metadata.finalizers") {
                finalizers.retain(|finalizer| finalizer != crd::FINALIZER);
            }
        });
    }

    /// Whether the CRD of a resource is being deleted or is gone, according to the current registry.
    pub(crate) fn is_crd_terminating(&self, served: &Resource) -> bool {
        let Some(custom) = served.crd() else { return false };
        let registry = self.registry();
        let now = registry.definition(&custom.info.name);
        now.is_none_or(|now| now.info.terminating)
    }

    /// Deletes an instance of a terminating CRD.
    pub(crate) fn delete_instance(
        &self,
        served: &Resource,
        version: &Arc<StoredObject>,
        after: &mut AfterCommit,
    ) {
        let (namespace, name) = version.namespace_and_name();
        if let Err(error) = self.delete_object(served, namespace, name, &DeleteOptions::default(), after)
            && error.code != 404
        {
            tracing::warn!(
                %error,
                resource = served.plural(),
                namespace,
                name,
                "failed to delete custom resource of terminating CRD"
            );
        }
    }

    /// Returns whether instances remain because of finalizers.
    fn delete_instances(&self, registry: &Registry, storage: &str, after: &mut AfterCommit) -> bool {
        let Some(served) = registry.stored(storage) else { return false };
        let all = || self.store.list(storage, "", None).map(|listing| listing.items).unwrap_or_default();
        for version in all().iter().filter(|version| !version.attributes.deleting) {
            self.delete_instance(served, version, after);
        }
        !all().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use kubewright_apimachinery::object::Fields as _;
    use serde_json::{Value, json};

    use super::DEFINITIONS;
    use crate::storage::Expect;
    use crate::{ApiServer, Options};

    /// Commits an object without running the steps after the commit, as a server that crashes in between.
    fn write_only(server: &ApiServer, storage: &str, key: &str, object: Value) {
        let registry = server.inner.registry();
        let served = registry.stored(storage).unwrap();
        server.inner.commit_object(served, key, Expect::Absent, object).unwrap();
    }

    #[test]
    fn a_restarted_server_completes_unfinished_crd_work() {
        let dir = tempfile::tempdir().unwrap();
        let open = || ApiServer::open(dir.path(), Options::default()).unwrap().0;
        let schema = json!({"openAPIV3Schema": {"type": "object"}});
        let definition = |singular: &str| {
            json!({
                "metadata": {"name": format!("{singular}s.example.org"), "uid": singular},
                "spec": {
                    "group": "example.org", "scope": "Cluster",
                    "names": {"kind": singular, "listKind": format!("{singular}list"), "plural": format!("{singular}s"), "singular": singular},
                    "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
                },
                "status": {"storedVersions": ["v1"]},
            })
        };
        let server = open();
        write_only(&server, DEFINITIONS, "things.example.org", definition("thing"));
        server.close().unwrap();

        let server = open();
        assert!(server.inner.registry().definitions().next().is_some_and(|custom| custom.info.is_served()));
        write_only(
            &server,
            "example.org/things",
            "a",
            json!({"apiVersion": "example.org/v1", "kind": "thing", "metadata": {"name": "a"}}),
        );
        let registry = server.inner.registry();
        let served = registry.stored(DEFINITIONS).unwrap();
        let going = server.inner.store.get(DEFINITIONS, "things.example.org").unwrap();
        let mut object = going.object();
        object.set_at("metadata.deletionTimestamp", "2026-01-01T00:00:00Z");
        object.set_at("metadata.finalizers", json!([kubewright_apiextensions::crd::FINALIZER]));
        server.inner.commit_object(served, &going.key, Expect::At(going.revision), object).unwrap();
        server.close().unwrap();

        let server = open();
        assert!(server.inner.store.get(DEFINITIONS, "things.example.org").is_none());
        assert!(server.inner.store.get("example.org/things", "a").is_none());
    }
}
