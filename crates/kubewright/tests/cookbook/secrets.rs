//! Recipe: Secrets that an object refers to.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use kubewright::k8s_openapi::api::core::v1::Secret;
use kubewright::prelude::*;
use kubewright::{Cache, Context, Key, ListOptions, Result};
use serde::{Deserialize, Serialize};

const SECRET: &str = "spec.secretName";

#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Site", namespaced, status = "SiteStatus")]
#[serde(rename_all = "camelCase")]
pub struct SiteSpec {
    pub secret_name: String,
}

#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase")]
pub struct SiteStatus {
    /// Changes with the content of the Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_hash: Option<String>,
}

pub struct SiteReconciler;

impl Reconciler for SiteReconciler {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context) -> Result<Outcome> {
        let key = Key::new(cx.key().namespace(), &site.spec.secret_name);
        let secret = cx.client().get_opt::<Secret>(&key).await?;
        let secret_hash = secret.map(|secret| {
            let mut hasher = DefaultHasher::new();
            for (key, value) in secret.data.iter().flatten() {
                (key, &value.0).hash(&mut hasher);
            }
            format!("{:016x}", hasher.finish())
        });
        cx.set_status(SiteStatus { secret_hash }).await?;
        Ok(Outcome::done())
    }
}

/// The Sites in the Secret's namespace that refer to it.
fn sites_of(secret: &Secret, cache: &Cache) -> Vec<Key> {
    let namespace = secret.namespace().unwrap_or_default();
    let sites = cache.list::<Site>(&ListOptions::namespace(namespace).field(SECRET, secret.name_any()));
    sites.unwrap_or_default().iter().map(|site| Key::of(&**site)).collect()
}

pub fn register(manager: &Manager) -> Result<()> {
    manager.cache().index::<Site>(SECRET, |site| vec![site.spec.secret_name.clone()])?;
    manager.controller(SiteReconciler).watches::<Secret>(sites_of).register()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anyhow::ensure;
    use kubewright_envtest::{Environment, eventually};

    use super::*;

    #[tokio::test]
    async fn a_changed_secret_reconciles_the_sites_that_refer_to_it() -> Result<()> {
        let env = Environment::builder().crd::<Site>().start().await?;
        let client = env.runtime_client();
        let manager = env.manager("sites")?;
        register(&manager)?;
        let running = env.run(manager);
        let site =
            "{apiVersion: example.com/v1, kind: Site, metadata: {name: shop}, spec: {secretName: tls}}";
        env.apply_yaml("default", site).await?;
        let hash = async || {
            let site = client.get::<Site>(&Key::namespaced("default", "shop")).await?;
            anyhow::Ok(site.status.clone().unwrap_or_default().secret_hash)
        };
        let mut seen = Vec::new();
        for value in ["one", "two"] {
            let secret = format!(
                "{{apiVersion: v1, kind: Secret, metadata: {{name: tls}}, stringData: {{key: {value}}}}}"
            );
            env.apply_yaml("default", &secret).await?;
            let now = eventually(Duration::from_secs(30), async || {
                let now = hash().await?;
                ensure!(now.is_some() && !seen.contains(&now), "{now:?}");
                Ok(now)
            })
            .await?;
            seen.push(now);
        }
        client.delete(&*client.get::<Secret>(&Key::namespaced("default", "tls")).await?).await?;
        eventually(Duration::from_secs(30), async || {
            ensure!(hash().await?.is_none(), "the hash of a deleted Secret");
            Ok(())
        })
        .await?;
        Ok(running.stop().await?)
    }
}
