//! The operator's RBAC rules in the loop: applied before it starts, and compared with its calls.

use anyhow::{Result, anyhow};
use kubewright_apimachinery::permission::{Permission, attributes};
use kubewright_manifests::files;
use kubewright_manifests::inventory::Inventory;

use super::role_changes;
use crate::dev::cluster::Cluster;
use crate::dev::operator::Operator;
use crate::dev::permissions::{Permissions, as_launched};
use crate::dev::report::Report;
use crate::error::Hint as _;
use crate::project::Manifests;

pub(super) struct Role {
    /// `None` if the operator runs as the kubeconfig user.
    permissions: Option<Permissions>,
    /// Whether the user of the operator was reported.
    is_reported: bool,
}

impl Role {
    pub(super) fn new(permissions: Option<Permissions>) -> Self {
        Self { permissions, is_reported: false }
    }

    /// Applies the generated roles and lets the next operator impersonate its ServiceAccount. If an existing
    /// cluster does not allow that, reports it and runs the operator as the kubeconfig user. Returns whether
    /// the roles changed.
    pub(super) async fn grant(
        &mut self,
        inventory: &Inventory,
        cluster: &Cluster,
        operator: &mut Operator,
        report: &Report,
    ) -> Result<bool> {
        let Some(permissions) = &mut self.permissions else {
            operator.act_as(None);
            return Ok(false);
        };
        let inventory = as_launched(inventory.clone(), operator.arguments());
        let client = cluster.client();
        let granted = match permissions.grant(client, &inventory).await {
            Ok(changed) if !cluster.is_existing() || permissions.may_impersonate(client).await? => {
                Ok(changed)
            }
            Ok(_) => {
                Err("you may not impersonate this user; ask for the verb impersonate on its ServiceAccount"
                    .to_owned())
            }
            // On the embedded cluster this is a bug, not a missing permission.
            Err(error) if cluster.is_existing() => Err(format!("{error:#}")),
            Err(error) => return Err(error),
        };
        let user = permissions.user();
        match granted {
            Ok(changed) => {
                if !self.is_reported {
                    let message = format!("the operator runs as {user} with its generated RBAC rules");
                    report.step("role", &message)?;
                    self.is_reported = true;
                }
                operator.act_as(Some(user));
                Ok(changed)
            }
            Err(why) => {
                self.permissions = None;
                operator.act_as(None);
                let message = format!(
                    "the operator runs as the kubeconfig user instead of {user}, without its generated RBAC rules: {why}"
                );
                report.failed("role", &message)?;
                Ok(false)
            }
        }
    }

    /// Waits for forbidden calls. Cancel-safe.
    pub(super) async fn forbidden(&self) -> Vec<Permission> {
        match &self.permissions {
            Some(permissions) => permissions.refused().await,
            None => std::future::pending().await,
        }
    }

    /// Reports forbidden calls with the attributes that grant them.
    pub(super) fn report_forbidden(forbidden: &[Permission], report: &Report) -> Result<()> {
        for (permission, attribute) in forbidden.iter().map(|it| (it, it.attribute())) {
            report.failed("role", &format!("forbidden: {permission}; to grant it, add {attribute}"))?;
        }
        Ok(())
    }

    /// Fails if there were forbidden calls.
    pub(super) fn check(&self) -> Result<()> {
        let forbidden = self.permissions.as_ref().map(Permissions::all_refused).unwrap_or_default();
        if forbidden.is_empty() {
            return Ok(());
        }
        let missing = anyhow!(
            "calls were forbidden by the generated RBAC rules; add\n{}",
            attributes(&forbidden).join("\n")
        );
        Err(missing.hint("declare finalizers with .finalizer(\"...\") on the controller; --as-admin disables RBAC for the operator"))
    }

    /// Lists unused permissions.
    pub(super) fn report_unused(&self, report: &Report) -> Result<()> {
        for unused in self.permissions.as_ref().map(Permissions::unused).unwrap_or_default() {
            report.step("role", &unused.to_string())?;
        }
        Ok(())
    }
}

/// Reports the permissions that role.yaml gained or lost, also if the operator runs without them.
pub(super) fn report_changes(manifests: &Manifests, report: &Report) -> Result<()> {
    let Some(roles) = manifests.changes.write.get(files::ROLES) else { return Ok(()) };
    let changes = role_changes::describe(&manifests.previous_roles, roles);
    let what = if changes.is_empty() { "changed without effect".to_owned() } else { changes };
    report.step("role", &format!("{}: {what}", files::ROLES))
}
