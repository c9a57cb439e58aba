//! Controllers converge to the same state when requests fail.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kubewright_cluster::{Nodes, Options};
use kubewright_envtest::{consistently, eventually};
use kubewright_runtime::{ListOptions, Object};
use serde_json::{Value, json};

use crate::world::{LIMIT, World, deployment};

const SEEDS: u64 = 12;

#[tokio::test(start_paused = true)]
async fn the_result_is_the_same_despite_failed_requests() -> Result<()> {
    let undisturbed = start().await?;
    change(&undisturbed, || {}).await?;
    let wanted = settled(&undisturbed).await?;
    assert_eq!(wanted.as_array().map(Vec::len), Some(1 + 2 + 1 + 6 + 1), "{wanted:#}");
    for seed in 0..SEEDS {
        let world = start().await?;
        change(&world, || world.disturb(seed)).await.with_context(|| format!("seed {seed}"))?;
        let same = async || {
            let found = state(&world).await?;
            ensure!(found == wanted, "{found:#}\nand not\n{wanted:#}");
            Ok(())
        };
        eventually(LIMIT, same).await.with_context(|| format!("seed {seed}"))?;
        let pods = world.pods().await?;
        let addresses: BTreeSet<_> =
            pods.iter().filter_map(|pod| pod.status.as_ref()?.pod_ip.clone()).collect();
        assert_eq!(addresses.len(), pods.len(), "seed {seed}: pod addresses are unique");
    }
    Ok(())
}

async fn start() -> Result<World> {
    World::start(Options { nodes: Nodes::count(2), ..Options::default() }).await
}

/// Rolls out, changes and scales a Deployment and creates a Job. The requests of the test itself succeed;
/// those of the controllers may fail.
async fn change(world: &World, disturb: impl Fn()) -> Result<()> {
    let mut wanted = deployment("web", 5, "web:1");
    world.apply(wanted.clone()).await?;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" },
        "spec": { "selector": { "app": "web" }, "ports": [{ "port": 80 }] },
    });
    world.apply(service).await?;
    disturb();
    world.rolled_out("web", 5).await?;
    world.env.faults().heal();
    wanted["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:2");
    wanted["spec"]["replicas"] = json!(3);
    world.apply(wanted).await?;
    disturb();
    world.rolled_out("web", 3).await?;
    world.env.faults().heal();
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "work" },
        "spec": { "completions": 3, "parallelism": 2, "template": { "spec": {
            "restartPolicy": "Never", "containers": [{ "name": "work", "image": "work:1" }],
        } } },
    });
    world.apply(job).await?;
    disturb();
    Ok(())
}

/// The state after all changes have settled.
async fn settled(world: &World) -> Result<Value> {
    let rested = async || {
        let before = state(world).await?;
        let same = async || {
            let now = state(world).await?;
            ensure!(now == before, "it moves");
            Ok(())
        };
        consistently(Duration::from_secs(30), same).await?;
        anyhow::Ok(before)
    };
    Ok(eventually(LIMIT * 2, rested).await?)
}

/// All objects without the values that differ between runs: names, addresses and nodes of pods, and times.
async fn state(world: &World) -> Result<Value> {
    let mut found = Vec::new();
    found.extend(all::<Deployment>(world, &[]).await?);
    // The number of steps may differ.
    found.extend(all::<ReplicaSet>(world, &["generation", "observedGeneration"]).await?);
    found.extend(all::<Job>(world, &[]).await?);
    found.extend(all::<Pod>(world, &["name", "nodeName", "hostIP", "hostIPs", "podIP", "podIPs"]).await?);
    found.extend(
        all::<EndpointSlice>(world, &["name", "addresses", "nodeName", "targetRef", "generation"]).await?,
    );
    Ok(found.into())
}

async fn all<K: Object>(world: &World, without: &[&str]) -> Result<Vec<Value>> {
    let objects = world.client().list::<K>(&ListOptions::namespace(&world.namespace)).await?;
    let mut found = Vec::new();
    for object in &objects {
        let mut object = serde_json::to_value(&**object)?;
        strip(&mut object, without);
        found.push(object);
    }
    found.sort_by_cached_key(ToString::to_string);
    Ok(found)
}

fn strip(value: &mut Value, without: &[&str]) {
    match value {
        Value::Object(members) => {
            members.retain(|name, value| {
                let own = matches!(
                    &**name,
                    "uid"
                        | "resourceVersion"
                        | "managedFields"
                        | "containerID"
                        | "batch.kubernetes.io/controller-uid"
                        | "controller-uid"
                );
                // Keep the names of containers.
                let name_of_object =
                    name == "name" && !value.as_str().is_some_and(|it| matches!(it, "web" | "work"));
                let told = without.contains(&&**name) && (name != "name" || name_of_object);
                !own && !told
                    && !name.ends_with("Time")
                    && !name.ends_with("Timestamp")
                    && !name.ends_with("At")
                    && !name.ends_with("last-change-trigger-time")
            });
            members.values_mut().for_each(|value| strip(value, without));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| strip(item, without)),
        _ => {}
    }
}
