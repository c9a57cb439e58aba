//! EndpointSlices and Endpoints of Services.

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Endpoints, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kubewright_cluster::Options;
use kubewright_envtest::eventually;
use kubewright_runtime::{Delete, List};
use serde_json::json;

use crate::world::{LIMIT, World, deployment};

#[tokio::test(start_paused = true)]
async fn endpoints_follow_the_pods_and_are_deleted_with_the_service() -> Result<()> {
    let world = World::start(Options::default()).await?;
    world
        .apply(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" },
            "spec": { "selector": { "app": "web" }, "ports": [{ "port": 80, "targetPort": 8080 }] },
        }))
        .await?;
    world.apply(deployment("web", 3, "web:1")).await?;
    let known = async |count: usize| {
        eventually(LIMIT, async || {
            let mut pods: Vec<String> =
                world.pods().await?.iter().filter_map(|pod| pod.status.as_ref()?.pod_ip.clone()).collect();
            pods.sort();
            ensure!(pods.len() == count, "{pods:?}");
            let slices = world.client().list::<EndpointSlice>(&List::namespace(&world.namespace)).await?;
            let ready = slices.iter().flat_map(|slice| slice.endpoints.iter().flatten()).filter(|endpoint| {
                endpoint.conditions.as_ref().is_some_and(|conditions| conditions.ready == Some(true))
            });
            let mut sliced: Vec<String> = ready.flat_map(|endpoint| endpoint.addresses.clone()).collect();
            sliced.sort();
            ensure!(sliced == pods, "{sliced:?}, not {pods:?}");
            let endpoints = world.client().get::<Endpoints>(&world.key("web")).await?;
            let addresses = endpoints.subsets.iter().flatten().flat_map(|it| it.addresses.iter().flatten());
            let mut addresses: Vec<String> = addresses.map(|it| it.ip.clone()).collect();
            addresses.sort();
            ensure!(addresses == pods, "{addresses:?}, not {pods:?}");
            anyhow::Ok(())
        })
        .await
    };
    known(3).await?;
    world
        .client()
        .modify::<Deployment>(&world.key("web"), |it| it.spec.as_mut().unwrap().replicas = Some(1))
        .await?;
    known(1).await?;
    world.client().delete_key::<Service>(&world.key("web"), &Delete::new()).await?;
    eventually(LIMIT, async || {
        let slices = world.client().list::<EndpointSlice>(&List::namespace(&world.namespace)).await?;
        let endpoints = world.client().get_opt::<Endpoints>(&world.key("web")).await?;
        ensure!(slices.is_empty() && endpoints.is_none(), "slices or endpoints are left");
        Ok(())
    })
    .await?;
    Ok(())
}
