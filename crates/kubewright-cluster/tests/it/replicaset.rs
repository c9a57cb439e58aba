//! ReplicaSets create, adopt and delete pods.

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use kubewright_cluster::Options;
use kubewright_envtest::eventually;
use kubewright_runtime::owner::controller_of;
use kubewright_runtime::{Delete, Patch};
use serde_json::{Value, json};

use crate::world::{LIMIT, World, pod};

fn set(replicas: i32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": { "name": "web" },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
            },
        },
    })
}

#[tokio::test(start_paused = true)]
async fn matching_pods_are_adopted_and_others_released() -> Result<()> {
    let world = World::start(Options::default()).await?;
    world.apply(pod("web", &json!({}), &json!({}))).await?;
    world.apply(set(2)).await?;
    let pods = world.ready_pods(2).await?;
    assert!(
        pods.iter().any(|pod| pod.metadata.name.as_deref() == Some("web")),
        "the existing pod is adopted"
    );
    assert!(pods.iter().all(|pod| controller_of(pod).is_some_and(|owner| owner.name == "web")));

    let adopted = world.client().get::<Pod>(&world.key("web")).await?;
    let other = Patch::merge(json!({ "metadata": { "labels": { "app": "other" } } }));
    world.client().patch(&*adopted, &other).await?;
    world.ready_pods(3).await?;
    let released = world.client().get::<Pod>(&world.key("web")).await?;
    assert!(controller_of(&*released).is_none());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn deleted_pods_are_replaced_and_the_status_counts_pods() -> Result<()> {
    let world = World::start(Options::default()).await?;
    world.apply(set(3)).await?;
    let pods = world.ready_pods(3).await?;
    world.client().delete(&pods[0]).await?;
    let again = world.ready_pods(3).await?;
    assert!(again.iter().all(|pod| pod.metadata.uid != pods[0].metadata.uid));
    eventually(LIMIT, async || {
        let set = world.client().get::<ReplicaSet>(&world.key("web")).await?;
        let status = serde_json::to_value(&set.status)?;
        let all = json!({ "replicas": 3, "fullyLabeledReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
            "terminatingReplicas": 0, "observedGeneration": 1 });
        ensure!(status == all, "{status}");
        Ok(())
    })
    .await?;
    let events = world.events("web").await?;
    let name = again[0].metadata.name.as_deref().unwrap();
    ensure!(
        events.iter().any(|it| it.starts_with("SuccessfulCreate: Created pod: web-")),
        "{name}: {events:?}"
    );
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn pods_are_deleted_with_their_set_or_orphaned() -> Result<()> {
    let world = World::start(Options::default()).await?;
    for (how, left) in [(Delete::orphan(), 2), (Delete::foreground(), 0)] {
        world.apply(set(2)).await?;
        world.ready_pods(2).await?;
        world.client().delete_key::<ReplicaSet>(&world.key("web"), &how).await?;
        eventually(LIMIT, async || {
            let set = world.client().get_opt::<ReplicaSet>(&world.key("web")).await?;
            let pods = world.pods().await?;
            ensure!(set.is_none() && pods.len() == left, "{} pods", pods.len());
            ensure!(pods.iter().all(|pod| controller_of(pod).is_none()), "a pod is not orphaned");
            Ok(())
        })
        .await?;
    }
    Ok(())
}
