//! The CRD controllers of apiextensions-apiserver, run before the request that wrote a CRD returns: they
//! accept names, serve the resource, and delete the instances of a terminating CRD.
//!
//! Unlike garbage collection this is part of every server, even without controllers.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use kubewright_apiextensions::crd;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::time;
use serde_json::Value;

use crate::after_commit::AfterCommit;
use crate::after_commit::crd_names::{Group, Groups};
use crate::encoding::response;
use crate::fieldmanager::FieldManager;
use crate::registry::conversion::Recorder;
use crate::registry::crd_resource::CrdResource;
use crate::registry::resource::{CRDS, Registry, Resource};
use crate::registry::store::ObjectStore;
use crate::storage::{Expect, StoredObject};

/// The field manager of CRD status.
const MANAGER: &str = "kube-apiserver";

/// Settles the names of CRDs, serves their resources, and deletes the instances of terminating CRDs.
pub(crate) struct CrdController {
    objects: Arc<ObjectStore>,
    /// Held while CRDs are processed, so that two cannot get the same name.
    groups: Mutex<Groups>,
}

impl CrdController {
    pub(crate) fn new(objects: Arc<ObjectStore>) -> Self {
        Self { objects, groups: Mutex::default() }
    }

    /// Updates the status of a written or deleted CRD, and of those that wait for its names, and serves them.
    pub(crate) fn follow(&self, name: &Arc<str>, after: &mut AfterCommit) {
        let Some((_, group)) = name.split_once('.') else { return };
        let settled = {
            let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
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
            if self.objects.storage().get(CRDS, &name).is_some_and(|version| version.attributes.is_deleting())
            {
                self.delete_custom_resources(&name, after);
            }
        }
    }

    /// Completes the work that a previous server may have left unfinished by stopping between a commit and
    /// its steps.
    pub(crate) fn resume(&self) -> AfterCommit {
        self.publish();
        let listing = self.objects.storage().list(CRDS, "", None);
        let all: Vec<_> = listing.into_iter().flat_map(|listing| listing.items).collect();
        let mut after = AfterCommit::default();
        for version in all {
            self.follow(&version.key, &mut after);
        }
        after
    }

    /// Updates the registry from all CRDs.
    pub(crate) fn publish(&self) {
        let before = self.objects.registry();
        let mut crds: Vec<Arc<CrdResource>> = Vec::new();
        let listing = self.objects.storage().list(CRDS, "", None);
        for version in listing.into_iter().flat_map(|listing| listing.items) {
            let known = before.crd(&version.key);
            if let Some(custom) = known.filter(|custom| custom.is_at(version.revision)) {
                crds.push(custom.clone());
                continue;
            }
            match CrdResource::compile(&version.object(), version.revision) {
                Ok(fresh) => crds.push(fresh.in_place_of(known)),
                Err(error) => {
                    tracing::error!(%error, name = &*version.key, "failed to compile CRD");
                }
            }
        }
        let now = before.with(&crds);
        let goes_on = |old: &CrdResource| now.crd(&old.info.name).is_some_and(|new| new.follows(old));
        for old in before.crds().filter(|old| !goes_on(old)) {
            old.retire(self.objects.storage().revision());
        }
        self.objects.resources.replace(now, self.objects.storage().revision());
        // Wake the watches of resources that are no longer served, so that they end.
        self.objects.storage().wake();
    }

    /// Updates the registry from one CRD.
    fn publish_one(&self, name: &str) {
        let before = self.objects.registry();
        let known = before.crd(name);
        let now = self.objects.storage().get(CRDS, name).and_then(|version| {
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
            old.retire(self.objects.storage().revision());
        }
        let ends = ends.is_some();
        self.objects.resources.replace(before.replaced(name, now), self.objects.storage().revision());
        if ends {
            // Wake the watches of resources that are no longer served, so that they end.
            self.objects.storage().wake();
        }
    }

    /// Updates names and conditions of a CRD. Names that it releases may be accepted for others. Returns all CRDs that
    /// were considered.
    fn settle(&self, name: &Arc<str>, group: &mut Group) -> Vec<Arc<str>> {
        let now = time::format_rfc3339(self.objects.clock.now());
        let registry = self.objects.registry();
        let Some(resource) = registry.stored(CRDS) else { return Vec::new() };
        let mut settled: BTreeSet<Arc<str>> = BTreeSet::new();
        let mut queue = VecDeque::from([name.clone()]);
        while let Some(name) = queue.pop_front() {
            let version = self.objects.storage().get(CRDS, &name);
            let mut released = group.read(&name, version.as_deref());
            if let (Some(version), Some(outline)) = (version, group.outline(&name)) {
                let mut new = outline.clone();
                if crd::settle(&mut new, group.rivals(outline), &now)
                    && let Some(version) = self.put_status(resource, &version, &new)
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
        let listing = self.objects.storage().list(CRDS, "", None);
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
        resource: &Resource,
        version: &StoredObject,
        outline: &Value,
    ) -> Option<Arc<StoredObject>> {
        let old = response::object(resource, version);
        let mut new = old.clone();
        new.set_at("status", outline.at("status").clone());
        resource.strategy.canonicalize(&mut new).ok()?;
        let manager = FieldManager::named(MANAGER);
        manager.track(&Recorder::new(&*self.objects.clock, resource), "status", Some(&old), &mut new);
        self.objects.put_without_steps(resource, &version.key, Expect::At(version.revision), new).ok()
    }

    /// Deletes the instances of a terminating CRD, and removes its finalizer when none is left.
    pub(crate) fn delete_custom_resources(&self, name: &str, after: &mut AfterCommit) {
        let registry = self.objects.registry();
        let Some(resource) = registry.stored(CRDS) else { return };
        let Some(current) = self.objects.storage().get(CRDS, name) else { return };
        let object = response::object(resource, &current);
        let waits = object.list_at("metadata.finalizers").iter().any(|f| f == crd::FINALIZER);
        if !current.attributes.is_deleting() || !waits {
            return;
        }
        let own = registry.crd(name).filter(|custom| custom.info.is_served());
        let storage = own.map(|custom| format!("{}/{}", custom.info.group, custom.info.names.plural));
        let left = storage.is_some_and(|storage| self.delete_instances(&registry, &storage, after));
        let now = time::format_rfc3339(self.objects.clock.now());
        self.objects.edit(resource, name, after, |object| {
            crd::instances_deleted(object, !left, &now);
            if !left && let Some(finalizers) = object.list_mut("metadata.finalizers") {
                finalizers.retain(|finalizer| finalizer != crd::FINALIZER);
            }
        });
    }

    /// Returns whether instances remain because of finalizers.
    fn delete_instances(&self, registry: &Registry, storage: &str, after: &mut AfterCommit) -> bool {
        let Some(resource) = registry.stored(storage) else { return false };
        let all = || {
            self.objects.storage().list(storage, "", None).map(|listing| listing.items).unwrap_or_default()
        };
        for version in all().iter().filter(|version| !version.attributes.is_deleting()) {
            self.objects.delete_instance(resource, version, after);
        }
        !all().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use kubewright_apimachinery::object::Fields as _;
    use serde_json::{Value, json};

    use super::CRDS;
    use crate::storage::Expect;
    use crate::{ApiServer, Options};

    /// Commits an object without running the steps after the commit, as a server that crashes in between.
    fn write_only(server: &ApiServer, storage: &str, key: &str, object: Value) {
        let registry = server.stages.objects.registry();
        let resource = registry.stored(storage).unwrap();
        server.stages.objects.put_without_steps(resource, key, Expect::Absent, object).unwrap();
    }

    #[test]
    fn a_restarted_server_completes_unfinished_crd_work() {
        let dir = tempfile::tempdir().unwrap();
        let open = || ApiServer::open(dir.path(), Options::default()).unwrap().0;
        let schema = json!({"openAPIV3Schema": {"type": "object"}});
        let crd = |singular: &str| {
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
        write_only(&server, CRDS, "things.example.org", crd("thing"));
        server.close().unwrap();

        let server = open();
        assert!(server.stages.objects.registry().crds().next().is_some_and(|custom| custom.info.is_served()));
        write_only(
            &server,
            "example.org/things",
            "a",
            json!({"apiVersion": "example.org/v1", "kind": "thing", "metadata": {"name": "a"}}),
        );
        let registry = server.stages.objects.registry();
        let resource = registry.stored(CRDS).unwrap();
        let going = server.stages.store.get(CRDS, "things.example.org").unwrap();
        let mut object = going.object();
        object.set_at("metadata.deletionTimestamp", "2026-01-01T00:00:00Z");
        object.set_at("metadata.finalizers", json!([kubewright_apiextensions::crd::FINALIZER]));
        server
            .stages
            .objects
            .put_without_steps(resource, &going.key, Expect::At(going.revision), object)
            .unwrap();
        server.close().unwrap();

        let server = open();
        assert!(server.stages.store.get(CRDS, "things.example.org").is_none());
        assert!(server.stages.store.get("example.org/things", "a").is_none());
    }
}
