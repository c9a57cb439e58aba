//! ReplicationControllers have as many pods as they want.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ReplicationController;
use kubewright_cluster::Options;
use kubewright_envtest::eventually;
use kubewright_runtime::Delete;
use kubewright_runtime::owner::controller_of;
use serde_json::{Value, json};

use crate::world::{LIMIT, World, pod};

fn controller(replicas: i32) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ReplicationController",
        "metadata": { "name": "web" },
        "spec": {
            "replicas": replicas,
            "selector": { "app": "web" },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
            },
        },
    })
}

#[tokio::test(start_paused = true)]
async fn a_replication_controller_makes_adopts_and_deletes_pods() -> Result<()> {
    let world = World::start(Options::default()).await?;
    world.apply(pod("web", &json!({}), &json!({}))).await?;
    world.apply(controller(3)).await?;
    let pods = world.ready_pods(3).await?;
    assert!(pods.iter().any(|pod| pod.metadata.name.as_deref() == Some("web")), "the first one was adopted");
    assert!(pods.iter().all(|pod| {
        controller_of(pod).is_some_and(|owner| owner.kind == "ReplicationController" && owner.name == "web")
    }));
    eventually(LIMIT, async || {
        let controller = world.client().get::<ReplicationController>(&world.key("web")).await?;
        let status = serde_json::to_value(&controller.status)?;
        let all = json!({ "replicas": 3, "fullyLabeledReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
            "observedGeneration": 1 });
        ensure!(status == all, "{status}");
        Ok(())
    })
    .await?;
    world.apply(controller(1)).await?;
    world.ready_pods(1).await?;
    world.client().delete_key::<ReplicationController>(&world.key("web"), &Delete::foreground()).await?;
    world.ready_pods(0).await?;
    Ok(())
}
