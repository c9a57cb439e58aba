//! The cluster as an environment of a test has it.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kubewright_envtest::{Environment, eventually};
use kubewright_runtime::List;

use crate::world::{LIMIT, deployment, is_ready};

#[tokio::test(start_paused = true)]
async fn an_environment_with_a_cluster_runs_pods() -> Result<()> {
    let env = Environment::builder().with_cluster().seed(1).start().await?;
    let namespace = env.namespace().await?;
    env.apply_yaml(&namespace, &deployment("web", 2, "web:1").to_string()).await?;
    eventually(LIMIT, async || {
        let pods = env.runtime_client().list::<Pod>(&List::namespace(&namespace)).await?;
        ensure!(pods.len() == 2 && pods.iter().all(|pod| is_ready(pod)), "{} pods", pods.len());
        Ok(())
    })
    .await?;
    Ok(())
}
