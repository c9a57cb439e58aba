//! The operator's role in the loop: applied before the operator starts, and compared with what the operator calls.

use anyhow::Result;
use kubewright_apimachinery::permission::{Permission, attributes};
use kubewright_manifests::declarations::Declarations;

use super::Session;
use crate::dev::permissions::{Permissions, as_launched};
use crate::error::Hint as _;

impl Session {
    /// Applies the generated roles, and has the next operator impersonate its ServiceAccount. If that is not possible on
    /// an existing cluster, reports it, and the operator runs as the user of the kubeconfig. Returns whether the roles
    /// changed.
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
            Ok(_) => Err("you may not impersonate it".to_owned()),
            // On the embedded cluster this is a bug, not a missing permission.
            Err(error) if self.cluster.is_existing() => Err(format!("{error:#}")),
            Err(error) => return Err(error),
        };
        let user = permissions.user();
        match granted {
            Ok(changed) => {
                if is_first {
                    self.report
                        .step("role", &format!("the operator runs as {user}, with its generated role"))?;
                }
                self.operator.act_as(Some(user));
                Ok(changed)
            }
            Err(why) => {
                self.permissions = None;
                self.operator.act_as(None);
                let message =
                    format!("the operator runs as you, and not as {user} with its generated role: {why}");
                self.report.failed("role", &message)?;
                Ok(false)
            }
        }
    }

    /// Reports what the operator was refused.
    pub(super) fn report_refused(&self, refused: &[Permission]) -> Result<()> {
        for (permission, attribute) in refused.iter().map(|it| (it, it.attribute())) {
            self.report.failed("role", &format!("refused: {permission}; to grant it, add {attribute}"))?;
        }
        Ok(())
    }

    /// Fails if the operator was refused something.
    pub(super) fn checked_permissions(&self) -> Result<()> {
        let refused = self.permissions.as_ref().map(Permissions::all_refused).unwrap_or_default();
        if refused.is_empty() {
            return Ok(());
        }
        let missing = anyhow::anyhow!(
            "the operator was refused calls under its generated role; add\n{}",
            attributes(&refused).join("\n")
        );
        Err(missing.hint("a finalizer is declared with .finalizer(\"...\") on its controller; --as-admin runs without the role"))
    }

    /// Lists the permissions that no call has used.
    pub(super) fn report_unused(&self) -> Result<()> {
        for unused in self.permissions.as_ref().map(Permissions::unused).unwrap_or_default() {
            self.report.step("role", &unused.to_string())?;
        }
        Ok(())
    }
}
