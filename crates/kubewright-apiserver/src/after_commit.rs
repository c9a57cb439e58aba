//! Work after a commit that runs before the request returns: an explicit list of steps.
//!
//! In a real cluster, controllers do this asynchronously. Here a commit adds its steps to an [`AfterCommit`],
//! and the write path runs the list at its end ([`StepRunner::run`]). Steps commit as well and add to the same
//! list, so chains and cycles of owners need no recursion. The steps are implemented in `gc`,
//! `crd_controller`, `cluster_roles`, `certificate_signing`, `type_checking` and
//! `registry/service_ips`.

pub(crate) mod certificate_signing;
pub(crate) mod cluster_roles;
pub(crate) mod crd_controller;
pub(crate) mod crd_names;
pub(crate) mod gc;
mod type_checking;

use std::collections::VecDeque;
use std::sync::Arc;

use kubewright_apimachinery::object::Fields as _;

use crate::authz::Authz;
use crate::certs::ClientCa;
use crate::registry::delete::{FOREGROUND, ORPHAN};
use crate::registry::resource::Resource;
use crate::registry::service_ips;
use crate::registry::store::ObjectStore;
use crate::server::Controllers;
use crate::storage::StoredObject;
use certificate_signing::CertificateSigner;
use cluster_roles::ClusterRoleAggregator;
use crd_controller::CrdController;
use gc::{GarbageCollector, locate};
use type_checking::PolicyTypeChecker;

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
    /// This CRD was written or deleted: its names may need to be settled, and its resources served.
    FollowCrd(Arc<str>),
    /// A custom resource of the terminating CRD with this name was deleted.
    DeleteCustomResources(String),
    /// A ClusterRole changed: aggregated roles may need an update.
    AggregateRoles,
    /// A CertificateSigningRequest was written.
    SigningRequest(Arc<str>),
    /// A ValidatingAdmissionPolicy was written.
    TypeCheckPolicy(Arc<str>),
}

/// The pending steps.
#[derive(Default)]
#[must_use = "steps run in `StepRunner::run`"]
pub(crate) struct AfterCommit {
    steps: VecDeque<Step>,
}

impl AfterCommit {
    /// Adds the steps after an object was written.
    pub(crate) fn written(
        &mut self,
        objects: &ObjectStore,
        resource: &Resource,
        version: &Arc<StoredObject>,
    ) {
        self.extension_step(resource, version);
        // The object was committed after the other instances of its terminating CRD were deleted.
        if objects.is_crd_terminating(resource) && !version.attributes.deleting {
            objects.delete_instance(resource, version, self);
            return;
        }
        if objects.controllers == Controllers::None {
            return;
        }
        self.role_step(resource);
        self.object_steps(resource, version);
    }

    /// Adds the steps that depend only on the state of an object. They do nothing if they have already run.
    fn object_steps(&mut self, resource: &Resource, version: &Arc<StoredObject>) {
        if *resource.storage == *certificate_signing::STORAGE {
            self.steps.push_back(Step::SigningRequest(version.key.clone()));
        }
        if *resource.storage == *type_checking::STORAGE {
            self.steps.push_back(Step::TypeCheckPolicy(version.key.clone()));
        }
        if !version.attributes.owners.is_empty() {
            self.steps.push_back(Step::Dangling(resource.storage.clone(), version.key.clone()));
        }
        if version.attributes.deleting {
            let object = version.object();
            let waits = |name: &str| object.list_at("metadata.finalizers").iter().any(|f| f == name);
            if waits(ORPHAN) || waits(FOREGROUND) {
                self.steps.push_back(Step::WaitsForDependents(resource.storage.clone(), version.key.clone()));
            }
            if resource.is_namespaces() {
                self.steps.push_back(Step::EmptyNamespace(version.key.to_string()));
            }
        }
    }

    /// Adds the steps after an object was deleted.
    pub(crate) fn removed(
        &mut self,
        objects: &ObjectStore,
        resource: &Resource,
        version: &Arc<StoredObject>,
    ) {
        self.extension_step(resource, version);
        if let Some(custom) = resource.crd().filter(|_| objects.is_crd_terminating(resource)) {
            self.steps.push_back(Step::DeleteCustomResources(custom.info.name.clone()));
        }
        if objects.controllers == Controllers::None {
            return;
        }
        self.role_step(resource);
        self.steps.push_back(Step::OwnerGone(version.attributes.uid.clone()));
        if !version.attributes.owners.is_empty() {
            let registry = objects.registry();
            for owner in version.object().list_at("metadata.ownerReferences") {
                if let Some((storage, key)) = locate(&registry, owner, version.namespace_and_name().0) {
                    self.steps.push_back(Step::WaitsForDependents(storage, key));
                }
            }
        }
        if resource.namespaced() {
            self.steps.push_back(Step::EmptyNamespace(version.namespace_and_name().0.to_owned()));
        }
    }

    /// Adds the update of a Service's IPAddress objects.
    pub(crate) fn service_addresses(
        &mut self,
        resource: &Resource,
        key: &str,
        before: Option<&Arc<StoredObject>>,
        after: Option<&Arc<StoredObject>>,
    ) {
        if resource.storage.as_ref() == "services" {
            let (before, after) = (before.cloned(), after.cloned());
            self.steps.push_back(Step::ServiceAddresses { key: key.into(), before, after });
        }
    }

    fn extension_step(&mut self, resource: &Resource, version: &StoredObject) {
        if resource.defines_resources() {
            self.steps.push_back(Step::FollowCrd(version.key.clone()));
        }
    }

    fn role_step(&mut self, resource: &Resource) {
        if resource.storage.as_ref() == crate::authz::Kind::ClusterRole.storage() {
            self.steps.push_back(Step::AggregateRoles);
        }
    }
}

/// Runs the steps: the controllers of a server.
pub(crate) struct StepRunner {
    objects: Arc<ObjectStore>,
    garbage_collector: GarbageCollector,
    pub(crate) crds: CrdController,
    cluster_roles: ClusterRoleAggregator,
    certificates: CertificateSigner,
    policies: PolicyTypeChecker,
}

impl StepRunner {
    pub(crate) fn new(objects: Arc<ObjectStore>, authz: Arc<Authz>, ca: ClientCa) -> Self {
        Self {
            garbage_collector: GarbageCollector::new(objects.clone()),
            crds: CrdController::new(objects.clone()),
            cluster_roles: ClusterRoleAggregator::new(objects.clone(), authz.clone()),
            certificates: CertificateSigner::new(objects.clone(), authz, ca),
            policies: PolicyTypeChecker::new(objects.clone()),
            objects,
        }
    }

    /// Runs the steps of all stored objects again. Steps are not stored, so a crash can interrupt them.
    pub(crate) fn resume(&self) {
        self.run(self.crds.resume());
        if self.objects.controllers == Controllers::None {
            return;
        }
        // A previous server without controllers may not have updated aggregated roles.
        self.cluster_roles.aggregate();
        let registry = self.objects.registry();
        let mut after = AfterCommit::default();
        for storage in self.objects.storage().resources() {
            let Some(resource) = registry.stored(&storage) else { continue };
            let Ok(listing) = self.objects.storage().list(&storage, "", None) else { continue };
            for version in &listing.items {
                after.object_steps(resource, version);
            }
        }
        self.run(after);
    }

    /// Runs the steps, and those that they add, in order.
    pub(crate) fn run(&self, mut after: AfterCommit) {
        while let Some(step) = after.steps.pop_front() {
            let after = &mut after;
            match step {
                Step::ServiceAddresses { key, before, after: now } => {
                    service_ips::follow_addresses(&self.objects, &key, before.as_ref(), now.as_ref(), after);
                }
                Step::OwnerGone(uid) => self.garbage_collector.owner_gone(&uid, after),
                Step::WaitsForDependents(storage, key) => {
                    self.garbage_collector.waiting(&storage, &key, after);
                }
                Step::Dangling(storage, key) => self.garbage_collector.dangling(&storage, &key, after),
                Step::EmptyNamespace(name) => self.garbage_collector.empty_namespace(&name, after),
                Step::FollowCrd(name) => self.crds.follow(&name, after),
                Step::DeleteCustomResources(name) => self.crds.delete_custom_resources(&name, after),
                Step::AggregateRoles => self.cluster_roles.aggregate(),
                Step::SigningRequest(name) => self.certificates.follow(&name),
                Step::TypeCheckPolicy(name) => self.policies.check(&name),
            }
        }
    }
}
