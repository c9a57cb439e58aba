//! Work after a commit that runs before the request returns: an explicit list of steps.
//!
//! In a real cluster, controllers do this asynchronously. Here a commit adds its steps to an [`AfterCommit`],
//! and the write path runs the list at its end ([`Inner::finish`]). Steps commit as well and add to the same
//! list, so chains and cycles of owners need no recursion. The steps are implemented in `gc`,
//! `crd_controller`, `cluster_roles`, `certificate_signing`, `registry/service_ips` and
//! `admission/policy/type_checking`.

pub(crate) mod certificate_signing;
pub(crate) mod cluster_roles;
pub(crate) mod crd_controller;
pub(crate) mod crd_names;
pub(crate) mod gc;

use std::collections::VecDeque;
use std::sync::Arc;

use kubewright_apimachinery::object::Fields as _;

use crate::admission::VALIDATING_POLICIES;
use crate::after_commit::gc::locate;
use crate::endpoints::delete::{FOREGROUND, ORPHAN};
use crate::registry::resource::Resource;
use crate::server::{Controllers, Inner};
use crate::storage::StoredObject;

/// One step.
enum Step {
    /// The addresses of a Service changed.
    ServiceAddresses { key: Arc<str>, before: Option<Arc<StoredObject>>, after: Option<Arc<StoredObject>> },
    /// The owner with this UID was deleted.
    OwnerGone(Box<str>),
    /// An object is being deleted and waits for its dependents.
    WaitsForDependents(Arc<str>, Arc<str>),
    /// All owners of an object may be missing.
    Dangling(Arc<str>, Arc<str>),
    /// An object in a terminating namespace was deleted.
    EmptyNamespace(String),
    /// This CRD was written or deleted.
    SettleDefinition(Arc<str>),
    /// An instance of the CRD with this name was deleted.
    EmptyDefinition(String),
    /// A ClusterRole changed: aggregated roles may need an update.
    AggregateRoles,
    /// A CertificateSigningRequest was written.
    SigningRequest(Arc<str>),
    /// A ValidatingAdmissionPolicy was written.
    TypeCheckPolicy(Arc<str>),
}

/// The pending steps.
#[derive(Default)]
#[must_use = "steps run in `Inner::finish`"]
pub(crate) struct AfterCommit {
    steps: VecDeque<Step>,
}

impl AfterCommit {
    /// Adds the steps after an object was written.
    pub(crate) fn written(&mut self, server: &Inner, served: &Resource, version: &Arc<StoredObject>) {
        self.extension_step(served, version);
        // The object was committed after the other instances of its terminating CRD were deleted.
        if server.is_crd_terminating(served) && !version.attributes.deleting {
            server.delete_instance(served, version, self);
            return;
        }
        if server.controllers == Controllers::None {
            return;
        }
        self.role_step(served);
        self.object_steps(served, version);
    }

    /// Adds the steps that depend only on the state of an object. They do nothing if they have already run.
    fn object_steps(&mut self, served: &Resource, version: &Arc<StoredObject>) {
        if *served.storage == *crate::after_commit::certificate_signing::STORAGE {
            self.steps.push_back(Step::SigningRequest(version.key.clone()));
        }
        if *served.storage == *VALIDATING_POLICIES {
            self.steps.push_back(Step::TypeCheckPolicy(version.key.clone()));
        }
        if !version.attributes.owners.is_empty() {
            self.steps.push_back(Step::Dangling(served.storage.clone(), version.key.clone()));
        }
        if version.attributes.deleting {
            let object = version.object();
            let waits = |name: &str| object.list_at("metadata.finalizers").iter().any(|f| f == name);
            if waits(ORPHAN) || waits(FOREGROUND) {
                self.steps.push_back(Step::WaitsForDependents(served.storage.clone(), version.key.clone()));
            }
            if served.storage.as_ref() == "namespaces" {
                self.steps.push_back(Step::EmptyNamespace(version.key.to_string()));
            }
        }
    }

    /// Adds the steps after an object was deleted.
    pub(crate) fn removed(&mut self, server: &Inner, served: &Resource, version: &Arc<StoredObject>) {
        self.extension_step(served, version);
        if let Some(custom) = served.crd().filter(|_| server.is_crd_terminating(served)) {
            self.steps.push_back(Step::EmptyDefinition(custom.info.name.clone()));
        }
        if server.controllers == Controllers::None {
            return;
        }
        self.role_step(served);
        self.steps.push_back(Step::OwnerGone(version.attributes.uid.clone()));
        if !version.attributes.owners.is_empty() {
            let registry = server.registry();
            for owner in version.object().list_at("metadata.ownerReferences") {
                if let Some((storage, key)) = locate(&registry, owner, version.namespace_and_name().0) {
                    self.steps.push_back(Step::WaitsForDependents(storage, key));
                }
            }
        }
        if served.namespaced() {
            self.steps.push_back(Step::EmptyNamespace(version.namespace_and_name().0.to_owned()));
        }
    }

    /// Adds the update of a Service's IPAddress objects.
    pub(crate) fn service_addresses(
        &mut self,
        served: &Resource,
        key: &str,
        before: Option<&Arc<StoredObject>>,
        after: Option<&Arc<StoredObject>>,
    ) {
        if served.storage.as_ref() == "services" {
            let (before, after) = (before.cloned(), after.cloned());
            self.steps.push_back(Step::ServiceAddresses { key: key.into(), before, after });
        }
    }

    fn extension_step(&mut self, served: &Resource, version: &StoredObject) {
        if served.defines_resources() {
            self.steps.push_back(Step::SettleDefinition(version.key.clone()));
        }
    }

    fn role_step(&mut self, served: &Resource) {
        if served.storage.as_ref() == crate::authz::Kind::ClusterRole.storage() {
            self.steps.push_back(Step::AggregateRoles);
        }
    }
}

impl Inner {
    /// Runs the steps of all stored objects again. Steps are not stored, so a crash can interrupt them.
    pub(crate) fn resume_steps(&self) {
        if self.controllers == Controllers::None {
            return;
        }
        let registry = self.registry();
        let mut after = AfterCommit::default();
        for storage in self.store.resources() {
            let Some(served) = registry.stored(&storage) else { continue };
            let Ok(listing) = self.store.list(&storage, "", None) else { continue };
            for version in &listing.items {
                after.object_steps(served, version);
            }
        }
        self.finish(after);
    }

    /// Runs the steps, and those that they add, in order.
    pub(crate) fn finish(&self, mut after: AfterCommit) {
        while let Some(step) = after.steps.pop_front() {
            let after = &mut after;
            match step {
                Step::ServiceAddresses { key, before, after: now } => {
                    self.follow_addresses(&key, before.as_ref(), now.as_ref(), after);
                }
                Step::OwnerGone(uid) => self.owner_gone(&uid, after),
                Step::WaitsForDependents(storage, key) => self.waiting(&storage, &key, after),
                Step::Dangling(storage, key) => self.dangling(&storage, &key, after),
                Step::EmptyNamespace(name) => self.empty_namespace(&name, after),
                Step::SettleDefinition(name) => self.follow_definition(&name, after),
                Step::EmptyDefinition(name) => self.empty_definition(&name, after),
                Step::AggregateRoles => self.aggregate_roles(),
                Step::SigningRequest(name) => self.follow_signing_request(&name),
                Step::TypeCheckPolicy(name) => self.type_check_policy(&name),
            }
        }
    }
}
