//! Recipe: a cluster-scoped kind.

use kubewright::k8s_openapi::api::core::v1::Namespace;
use kubewright::prelude::*;
use kubewright::{Context, Key, Result};
use serde::{Deserialize, Serialize};

/// Without `namespaced`, the kind is cluster-scoped.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Team")]
pub struct TeamSpec {
    #[serde(default)]
    pub environments: Vec<String>,
}

pub struct TeamReconciler;

#[rbac(groups = "", resources = "namespaces", verbs = "create, patch")]
impl Reconciler for TeamReconciler {
    type Object = Team;

    async fn reconcile(&self, team: &Team, cx: &Context) -> Result<Outcome> {
        for environment in &team.spec.environments {
            let name = format!("{}-{environment}", team.name_any());
            let namespace = object! { Namespace {
                metadata: { name: &name, labels: { "example.com/team": team.name_any() } },
            } };
            cx.apply_owned(namespace).await?;
        }
        Ok(Outcome::done())
    }
}

pub fn register(manager: &Manager) -> Result<()> {
    manager.controller(TeamReconciler).owns::<Namespace>().register()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use kubewright_envtest::{Environment, matches_yaml};

    use super::*;

    #[tokio::test]
    async fn a_team_owns_its_namespaces() -> Result<()> {
        let env = Environment::builder().crd::<Team>().start().await?;
        let team = "{apiVersion: example.com/v1, kind: Team, metadata: {name: web}, spec: {environments: [dev, prod]}}";
        env.apply_yaml("", team).await?;
        let manager = env.manager("teams")?;
        register(&manager)?;
        manager.reconcile_once(&TeamReconciler, &Key::cluster("web")).await?;
        for name in ["web-dev", "web-prod"] {
            let namespace = env.runtime_client().get::<Namespace>(&Key::cluster(name)).await?;
            let expected = "metadata: {labels: {example.com/team: web}, ownerReferences: [{kind: Team, name: web, controller: true}]}";
            matches_yaml(&*namespace, expected)?;
        }
        Ok(())
    }
}
