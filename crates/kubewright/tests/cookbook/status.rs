//! Recipe: a status with conditions.

use kubewright::condition::{ConditionUpdate, set_condition};
use kubewright::k8s_openapi::api::core::v1::Secret;
use kubewright::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kubewright::prelude::*;
use kubewright::{Context, Key, Result};
use serde::{Deserialize, Serialize};

#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Database", namespaced, status = "DatabaseStatus")]
#[serde(rename_all = "camelCase")]
pub struct DatabaseSpec {
    pub secret_name: String,
}

#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default)]
pub struct DatabaseStatus {
    /// The user of the Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

pub struct DatabaseReconciler;

impl Reconciler for DatabaseReconciler {
    type Object = Database;

    async fn reconcile(&self, database: &Database, cx: &Context) -> Result<Outcome> {
        let key = Key::new(cx.key().namespace(), &database.spec.secret_name);
        let secret = cx.client().get_opt::<Secret>(&key).await?;

        let mut status = database.status.clone().unwrap_or_default();
        status.user = secret.as_ref().and_then(|secret| {
            let user = secret.data.as_ref()?.get("user")?;
            String::from_utf8(user.0.clone()).ok()
        });
        let ready = match &status.user {
            Some(user) => ConditionUpdate::true_("Ready", "Configured", format!("The user is {user}")),
            None => ConditionUpdate::false_("Ready", "NoUser", format!("Secret {key} has no user")),
        };
        set_condition(&mut status.conditions, ready.observed(database.metadata.generation), cx.now());
        cx.set_status(&status).await?;
        Ok(Outcome::done())
    }
}

pub fn register(manager: &Manager) -> Result<()> {
    manager.controller(DatabaseReconciler).reads::<Secret>().register()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use kubewright_envtest::{Environment, matches_yaml};

    use super::*;

    #[tokio::test]
    async fn a_field_that_is_no_longer_set_is_removed() -> Result<()> {
        let env = Environment::builder().crd::<Database>().start().await?;
        let client = env.runtime_client();
        let database =
            "{apiVersion: example.com/v1, kind: Database, metadata: {name: a}, spec: {secretName: login}}";
        let secret = "{apiVersion: v1, kind: Secret, metadata: {name: login}, stringData: {user: ada}}";
        env.apply_yaml("default", &format!("{database}\n---\n{secret}")).await?;
        let key = Key::namespaced("default", "a");
        let manager = env.manager("databases")?;
        register(&manager)?;

        manager.reconcile_once(&DatabaseReconciler, &key).await?;
        let ready = "status: {user: ada, conditions: [{type: Ready, status: 'True', observedGeneration: 1}]}";
        matches_yaml(&*client.get::<Database>(&key).await?, ready)?;
        let version = client.get::<Database>(&key).await?.resource_version();
        manager.reconcile_once(&DatabaseReconciler, &key).await?;
        assert_eq!(client.get::<Database>(&key).await?.resource_version(), version, "nothing changed");

        let login = Key::namespaced("default", "login");
        client.delete(&*client.get::<Secret>(&login).await?).await?;
        manager.reconcile_once(&DatabaseReconciler, &key).await?;
        let database = client.get::<Database>(&key).await?;
        matches_yaml(
            &*database,
            "status: {conditions: [{reason: NoUser, message: Secret default/login has no user}]}",
        )?;
        assert_eq!(database.status.clone().unwrap_or_default().user, None);
        Ok(())
    }
}
