//! Default objects of namespaces.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kubewright_cluster::Options;
use kubewright_envtest::eventually;
use kubewright_runtime::{Delete, Patch};
use serde_json::json;

use crate::world::{LIMIT, World};

#[tokio::test(start_paused = true)]
async fn default_objects_are_created_and_restored() -> Result<()> {
    let world = World::start(Options { root_ca: "pem".to_owned(), ..Options::default() }).await?;
    let complete = async || {
        world.client().get::<ServiceAccount>(&world.key("default")).await?;
        let map = world.client().get::<ConfigMap>(&world.key("kube-root-ca.crt")).await?;
        ensure!(map.data.clone().unwrap_or_default()["ca.crt"] == "pem", "{:?}", map.data);
        Ok(map)
    };
    let map = eventually(LIMIT, complete).await?;
    world.client().delete_key::<ServiceAccount>(&world.key("default"), &Delete::new()).await?;
    world.client().patch(&*map, &Patch::merge(json!({ "data": { "ca.crt": "forged" } }))).await?;
    eventually(LIMIT, complete).await?;
    Ok(())
}
