//! The cluster as part of envtest.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kubewright_envtest::{Environment, eventually};
use kubewright_runtime::{Key, ListOptions};

use crate::world::{LIMIT, deployment, is_ready};

#[tokio::test(start_paused = true)]
async fn an_environment_with_a_cluster_runs_pods() -> Result<()> {
    let env = Environment::builder().with_cluster().seed(1).start().await?;
    let namespace = env.namespace().await?;
    env.apply_yaml(&namespace, &deployment("web", 2, "web:1").to_string()).await?;
    eventually(LIMIT, async || {
        let pods = env.runtime_client().list::<Pod>(&ListOptions::namespace(&namespace)).await?;
        ensure!(pods.len() == 2 && pods.iter().all(|pod| is_ready(pod)), "{} pods", pods.len());
        Ok(())
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn the_root_ca_config_map_contains_the_servers_ca() -> Result<()> {
    let env = Environment::builder().with_cluster().https().start().await?;
    let namespace = env.namespace().await?;
    let map = eventually(LIMIT, async || {
        let key = Key::namespaced(&namespace, "kube-root-ca.crt");
        Ok::<_, anyhow::Error>(env.runtime_client().get::<ConfigMap>(&key).await?)
    })
    .await?;
    let ca = map.data.clone().unwrap_or_default().remove("ca.crt").unwrap_or_default();
    let encoded = serde_json::to_string(&k8s_openapi::ByteString(ca.clone().into_bytes()))?;
    let kubeconfig = std::fs::read_to_string(env.kubeconfig().expect("it listens"))?;
    ensure!(!ca.is_empty() && kubeconfig.contains(encoded.trim_matches('"')), "different CA: {ca}");
    Ok(())
}
