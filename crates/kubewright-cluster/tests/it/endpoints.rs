//! EndpointSlices and Endpoints of Services.

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Endpoints, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kubewright_cluster::Options;
use kubewright_envtest::eventually;
use kubewright_runtime::{Delete, ListOptions};
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
            let slices =
                world.client().list::<EndpointSlice>(&ListOptions::namespace(&world.namespace)).await?;
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
        let slices = world.client().list::<EndpointSlice>(&ListOptions::namespace(&world.namespace)).await?;
        let endpoints = world.client().get_opt::<Endpoints>(&world.key("web")).await?;
        ensure!(slices.is_empty() && endpoints.is_none(), "slices or endpoints are left");
        Ok(())
    })
    .await?;
    Ok(())
}

async fn slices_say(world: &World, wanted: &[(&str, bool)]) -> Result<()> {
    eventually(LIMIT, async || {
        let slices = world.client().list::<EndpointSlice>(&ListOptions::namespace(&world.namespace)).await?;
        let mut said: Vec<(String, bool)> = slices
            .iter()
            .flat_map(|slice| slice.endpoints.iter().flatten())
            .flat_map(|endpoint| {
                let ready = endpoint.conditions.as_ref().and_then(|it| it.ready).unwrap_or_default();
                endpoint.addresses.iter().map(move |address| (address.clone(), ready))
            })
            .collect();
        said.sort();
        let wanted: Vec<(String, bool)> =
            wanted.iter().map(|(ip, ready)| ((*ip).to_owned(), *ready)).collect();
        ensure!(said == wanted, "{said:?}");
        Ok(())
    })
    .await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn endpoints_of_a_service_without_a_selector_are_mirrored() -> Result<()> {
    let world = World::start(Options::default()).await?;
    let endpoints = |addresses: &[&str]| {
        let addresses: Vec<_> = addresses.iter().map(|ip| json!({ "ip": ip })).collect();
        json!({
            "apiVersion": "v1", "kind": "Endpoints", "metadata": { "name": "db", "labels": { "tier": "data" } },
            "subsets": [{ "addresses": addresses, "notReadyAddresses": [{ "ip": "192.0.2.9" }], "ports": [{ "port": 5432 }] }],
        })
    };
    world.apply(endpoints(&["192.0.2.1"])).await?;
    slices_say(&world, &[]).await?;
    world
        .apply(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "db" },
            "spec": { "ports": [{ "port": 5432 }] },
        }))
        .await?;
    slices_say(&world, &[("192.0.2.1", true), ("192.0.2.9", false)]).await?;
    let slices = world.client().list::<EndpointSlice>(&ListOptions::namespace(&world.namespace)).await?;
    let labels = slices[0].metadata.labels.clone().unwrap_or_default();
    assert_eq!(labels["endpointslice.kubernetes.io/managed-by"], "endpointslicemirroring-controller.k8s.io");
    assert_eq!((&*labels["kubernetes.io/service-name"], &*labels["tier"]), ("db", "data"));

    world.apply(endpoints(&["192.0.2.2", "192.0.2.1"])).await?;
    slices_say(&world, &[("192.0.2.1", true), ("192.0.2.2", true), ("192.0.2.9", false)]).await?;
    world.client().delete_key::<Endpoints>(&world.key("db"), &Delete::new()).await?;
    slices_say(&world, &[]).await
}

#[tokio::test(start_paused = true)]
async fn a_service_whose_condition_has_no_time_keeps_its_endpoints() -> Result<()> {
    let world = World::start(Options::default()).await?;
    world
        .apply(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" },
            "spec": { "selector": { "app": "web" }, "ports": [{ "port": 80 }] },
        }))
        .await?;
    let status = json!({ "status": { "conditions": [{
        "type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": null,
    }] } });
    let services = ApiResource::erase::<Service>(&());
    let services: Api<DynamicObject> = Api::namespaced_with(world.env.client(), &world.namespace, &services);
    services.patch_status("web", &PatchParams::default(), &Patch::Merge(status)).await?;
    world.apply(deployment("web", 2, "web:1")).await?;
    world.ready_pods(2).await?;
    eventually(LIMIT, async || {
        let endpoints = world.client().get::<Endpoints>(&world.key("web")).await?;
        let addresses = endpoints.subsets.iter().flatten().flat_map(|it| it.addresses.iter().flatten());
        ensure!(addresses.count() == 2, "{:?}", endpoints.subsets);
        Ok(())
    })
    .await?;
    Ok(())
}
