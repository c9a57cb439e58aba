//! Quotas: what would use more of a namespace than they allow is refused.
//!
//! What they allow is what their status says, which a controller writes: without one, nothing is refused. What is let in
//! is charged to the status at once, so that no two requests use the same room; the controller gives it back.

use std::sync::Arc;

use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::quota::{self, Amounts};
use kubewright_apimachinery::status::{ApiError, Qualified};
use serde_json::Value;

use crate::output;
use crate::resources::Served;
use crate::server::Inner;
use crate::storage::{Expect, Version};

/// A change that may use more of a namespace.
#[derive(Clone, Copy)]
pub(crate) struct Charge<'a> {
    pub(crate) served: &'a Served,
    pub(crate) namespace: &'a str,
    pub(crate) old: Option<&'a Value>,
    pub(crate) new: &'a Value,
    pub(crate) dry_run: bool,
}

impl Inner {
    /// Charges a change to the quotas of its namespace, or says which it would exceed.
    pub(crate) fn charge(&self, charge: &Charge<'_>) -> Result<(), ApiError> {
        if charge.namespace.is_empty() || !charge.served.namespaced() {
            return Ok(());
        }
        let Ok(listing) = self.store.list("resourcequotas", &format!("{}/", charge.namespace), None) else {
            return Ok(());
        };
        if listing.items.is_empty() {
            return Ok(());
        }
        let registry = self.registry();
        let Some(quotas) = registry.find("", "v1", "resourcequotas") else { return Ok(()) };
        // All must have room before one is charged.
        for version in &listing.items {
            self.used_after(charge, &output::object(quotas, version))?;
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
        quotas: &Served,
        mut version: Arc<Version>,
    ) -> Result<(), ApiError> {
        loop {
            let mut quota = output::object(quotas, &version);
            let Some(used) = self.used_after(charge, &quota)? else { return Ok(()) };
            for (name, much) in used {
                quota.object_mut("status.used").insert(name, much.to_string().into());
            }
            let key = quotas.key(charge.namespace, quota.str_at("metadata.name"));
            if let Ok(version) = self.put(quotas, &key, Expect::At(version.revision), quota) {
                self.after_write(quotas, &version);
                return Ok(());
            }
            // Somebody else has charged it.
            let Some(current) = self.store.get(&quotas.storage, &key) else { return Ok(()) };
            version = current;
        }
    }

    /// What of a quota is used after a change; nothing if it does not concern the quota.
    fn used_after(&self, charge: &Charge<'_>, quota: &Value) -> Result<Option<Amounts>, ApiError> {
        let Qualified { group, name: plural } = charge.served.qualified();
        let kind = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
        let hard = quota::amounts(quota.at("status.hard"));
        let mut names =
            hard.keys().map(String::as_str).filter(|name| quota::kind_of(name) == Some(&kind)).peekable();
        if names.peek().is_none() || !quota::is_in_scope(quota, &kind, charge.new) {
            return Ok(None);
        }
        let names: Vec<&str> = names.collect();
        let (object, quota_name) = (charge.new.str_at("metadata.name"), quota.str_at("metadata.name"));
        let refuse = |why: String| Err(ApiError::forbidden(charge.served.qualified(), object, &why));
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
        let now = self.clock.now();
        let mut more = quota::usage(&kind, charge.new, now);
        if let Some(old) = charge.old {
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
