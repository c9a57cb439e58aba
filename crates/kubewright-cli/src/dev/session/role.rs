//! The operator's RBAC rules in the loop: applied before it starts, and compared with its calls.

use anyhow::Result;
use kubewright_apimachinery::permission::{Permission, attributes};
use kubewright_manifests::declarations::Declarations;
use kubewright_manifests::files;

use super::{Session, role_changes};
use crate::dev::permissions::{Permissions, as_launched};
use crate::error::Hint as _;
use crate::project::Manifests;

impl Session {
    /// Applies the generated roles and lets the next operator impersonate its ServiceAccount. If an existing
    /// cluster does not allow that, reports it and runs the operator as the kubeconfig user. Returns whether
    /// the roles changed.
    pub(super) async fn grant(&mut self, declarations: &Declarations) -> Result<bool> {
        let is_first = !self.is_deployed;
        let Some(permissions) = &mut self.permissions else {
            self.operator.act_as(None);
            return Ok(false);
        };
        let declarations = as_launched(declarations.clone(), self.operator.arguments());
        let client = self.cluster.client();
        let granted = match permissions.grant(client, &declarations).await {
            Ok(changed) if !self.cluster.is_existing() || permissions.may_impersonate(client).await? => {
                Ok(changed)
            }
            Ok(_) => Err("you may not impersonate this user".to_owned()),
            // On the embedded cluster this is a bug, not a missing permission.
            Err(error) if self.cluster.is_existing() => Err(format!("{error:#}")),
            Err(error) => return Err(error),
        };
        let user = permissions.user();
        match granted {
            Ok(changed) => {
                if is_first {
                    self.report.step(
                        "role",
                        &format!("the operator runs as {user} with its generated RBAC rules"),
                    )?;
                }
                self.operator.act_as(Some(user));
                Ok(changed)
            }
            Err(why) => {
                self.permissions = None;
                self.operator.act_as(None);
                let message = format!(
                    "the operator runs as the kubeconfig user instead of {user}, without its generated RBAC rules: {why}"
                );
                self.report.failed("role", &message)?;
                Ok(false)
            }
        }
    }

    /// Reports the permissions that role.yaml gained or lost, also if the operator runs without them.
    pub(super) fn report_role_changes(&self, manifests: &Manifests) -> Result<()> {
        let Some(roles) = manifests.changes.write.get(files::ROLES) else { return Ok(()) };
        let changes = role_changes::describe(&manifests.previous_roles, roles);
        let what = if changes.is_empty() { "changed without effect".to_owned() } else { changes };
        self.report.step("role", &format!("{}: {what}", files::ROLES))
    }

    /// Reports forbidden calls.
    pub(super) fn report_refused(&self, refused: &[Permission]) -> Result<()> {
        for (permission, attribute) in refused.iter().map(|it| (it, it.attribute())) {
            self.report.failed("role", &format!("forbidden: {permission}; to grant it, add {attribute}"))?;
        }
        Ok(())
    }

    /// Fails if there were forbidden calls.
    pub(super) fn checked_permissions(&self) -> Result<()> {
        let refused = self.permissions.as_ref().map(Permissions::all_refused).unwrap_or_default();
        if refused.is_empty() {
            return Ok(());
        }
        let missing = anyhow::anyhow!(
            "calls were forbidden by the generated RBAC rules; add\n{}",
            attributes(&refused).join("\n")
        );
        Err(missing.hint("declare finalizers with .finalizer(\"...\") on the controller; --as-admin disables RBAC for the operator"))
    }

    /// Lists unused permissions.
    pub(super) fn report_unused(&self) -> Result<()> {
        for unused in self.permissions.as_ref().map(Permissions::unused).unwrap_or_default() {
            self.report.step("role", &unused.to_string())?;
        }
        Ok(())
    }
}
