//! ResourceQuota: rejects requests that would exceed a quota of their namespace.
//!
//! The enforced limits are in a quota's status, which a controller writes; without that controller no request
//! is rejected. An admitted request is added to `status.used` immediately, so concurrent requests cannot
//! exceed the quota. The controller recalculates the usage.

use std::sync::Arc;

use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::{ApiError, Qualified};
use kubewright_apis::quota::{self, Amounts};
use serde_json::Value;

use super::{Admission, Attributes, Cluster, Notes, Operation, Plugin};
use crate::after_commit::{AfterCommit, StepRunner};
use crate::encoding::response;
use crate::fieldmanager::FieldManager;
use crate::registry::conversion::Recorder;
use crate::registry::resource::Resource;
use crate::registry::store::ObjectStore;
use crate::storage::{Expect, StoredObject};

pub(super) struct ResourceQuota;

impl Plugin for ResourceQuota {
    fn name(&self) -> &'static str {
        "ResourceQuota"
    }

    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update)
    }

    fn validate<'a>(
        &'a self,
        cluster: &'a Cluster,
        attributes: &'a Attributes<'_>,
        _notes: &'a mut Notes,
    ) -> Admission<'a> {
        let is_namespaced = !attributes.namespace.is_empty() && attributes.resource.namespaced();
        if !is_namespaced || !is_charged(attributes) {
            return Admission::ALLOWED;
        }
        let charge = Charge {
            resource: attributes.resource,
            namespace: attributes.namespace,
            old: attributes.old_object,
            new: &attributes.object,
            dry_run: attributes.dry_run,
        };
        cluster.quotas().charge(&charge).into()
    }
}

/// Whether a request may increase the usage of a quota.
fn is_charged(attributes: &Attributes<'_>) -> bool {
    let Some(old) = attributes.old_object else { return attributes.subresource.is_empty() };
    match (attributes.resource.group(), attributes.resource.plural(), attributes.subresource) {
        ("", "services" | "persistentvolumeclaims", "") | ("", "pods", "resize") => true,
        // The pod leaves or enters the scope Terminating.
        ("", "pods", "") => {
            let terminates = |pod: &Value| pod.int_at("spec.activeDeadlineSeconds").is_some_and(|s| s >= 0);
            terminates(old) != terminates(&attributes.object)
        }
        _ => false,
    }
}

/// A change that may increase the usage of a quota.
#[derive(Clone, Copy)]
struct Charge<'a> {
    resource: &'a Resource,
    namespace: &'a str,
    old: Option<&'a Value>,
    new: &'a Value,
    dry_run: bool,
}

/// Reads and updates quotas. No other part of admission writes.
pub(super) struct QuotaAccessor {
    objects: Arc<ObjectStore>,
    steps: Arc<StepRunner>,
}

impl QuotaAccessor {
    pub(super) fn new(objects: Arc<ObjectStore>, steps: Arc<StepRunner>) -> Self {
        Self { objects, steps }
    }

    /// Adds a change to the usage of all quotas of its namespace, or fails if it would exceed one.
    fn charge(&self, charge: &Charge<'_>) -> Result<(), ApiError> {
        let Ok(listing) =
            self.objects.storage().list("resourcequotas", &format!("{}/", charge.namespace), None)
        else {
            return Ok(());
        };
        if listing.items.is_empty() {
            return Ok(());
        }
        let registry = self.objects.registry();
        let Some(quotas) = registry.find("", "v1", "resourcequotas") else { return Ok(()) };
        // Check all quotas before updating any.
        for version in &listing.items {
            self.used_after(charge, &response::object(quotas, version))?;
        }
        if charge.dry_run {
            return Ok(());
        }
        for version in listing.items {
            self.charge_one(charge, quotas, version)?;
        }
        Ok(())
    }

    fn charge_one(
        &self,
        charge: &Charge<'_>,
        quotas: &Resource,
        mut version: Arc<StoredObject>,
    ) -> Result<(), ApiError> {
        loop {
            let old = response::packed(quotas, &version);
            let mut quota = response::object(quotas, &version);
            let Some(used) = self.used_after(charge, &quota)? else { return Ok(()) };
            for (name, much) in used {
                quota.object_mut("status.used").insert(name, much.to_string().into());
            }
            let key = quotas.key(charge.namespace, quota.str_at("metadata.name"));
            let manager = FieldManager::named("kube-apiserver");
            let recorder = Recorder::new(&*self.objects.clock, quotas);
            manager.track(&recorder, "status", Some(&old), &mut quota);
            let mut after = AfterCommit::default();
            if self.objects.put(quotas, &key, Expect::At(version.revision), quota, &mut after).is_ok() {
                self.steps.run(after);
                return Ok(());
            }
            // Another request updated the quota first.
            let Some(current) = self.objects.storage().get(&quotas.storage, &key) else { return Ok(()) };
            version = current;
        }
    }

    /// A quota's usage after a change; `None` if the quota does not apply.
    fn used_after(&self, charge: &Charge<'_>, quota: &Value) -> Result<Option<Amounts>, ApiError> {
        let Qualified { group, name: plural } = charge.resource.qualified();
        let kind = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
        let hard = quota::amounts(quota.at("status.hard"));
        let mut names =
            hard.keys().map(String::as_str).filter(|name| quota::kind_of(name) == Some(&kind)).peekable();
        if names.peek().is_none() || !quota::is_in_scope(quota, &kind, charge.new) {
            return Ok(None);
        }
        let names: Vec<&str> = names.collect();
        let (object, quota_name) = (charge.new.str_at("metadata.name"), quota.str_at("metadata.name"));
        let refuse = |why: String| Err(ApiError::forbidden(charge.resource.qualified(), object, &why));
        if kind == "pods" {
            let missing = quota::missing_requests(names.iter().copied(), charge.new);
            if !missing.is_empty() {
                return refuse(format!("failed quota: {quota_name}: must specify {}", missing.join(",")));
            }
        }
        let used = quota::amounts(quota.at("status.used"));
        if names.iter().any(|name| !used.contains_key(*name)) {
            return refuse(format!("status unknown for quota: {quota_name}, resources: {}", names.join(",")));
        }
        let now = self.objects.clock.now();
        let mut more = quota::usage(&kind, charge.new, now);
        if let Some(old) = charge.old.filter(|old| quota::is_in_scope(quota, &kind, old)) {
            let before = quota::usage(&kind, old, now);
            for (name, much) in &mut more {
                if let Some(before) = before.get(name) {
                    *much = &*much - before;
                }
            }
        }
        more.retain(|name, much| much.sign() > 0 && hard.contains_key(name));
        if more.is_empty() {
            return Ok(None);
        }
        let mut after: Amounts = used
            .iter()
            .filter(|(name, _)| more.contains_key(*name))
            .map(|(n, u)| (n.clone(), u.clone()))
            .collect();
        quota::add(&mut after, &more);
        let exceeded: Vec<&str> =
            after.iter().filter(|(name, much)| **much > hard[*name]).map(|(name, _)| name.as_str()).collect();
        if exceeded.is_empty() {
            return Ok(Some(after));
        }
        let shown = |amounts: &Amounts| {
            let shown: Vec<String> = exceeded
                .iter()
                .filter_map(|name| amounts.get(*name).map(|much| format!("{name}={much}")))
                .collect();
            shown.join(",")
        };
        refuse(format!(
            "exceeded quota: {quota_name}, requested: {}, used: {}, limited: {}",
            shown(&more),
            shown(&used),
            shown(&hard)
        ))
    }
}
