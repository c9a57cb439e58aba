//! PodDisruptionBudgets limit evictions.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use kube::api::{Api, EvictParams};
use kubewright_cluster::{Nodes, Options};
use kubewright_envtest::eventually;
use serde_json::{Value, json};

use crate::world::{LIMIT, World, deployment, pod};

fn budget(name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": name }, "spec": spec })
}

/// Waits until a budget counts this many healthy pods and allows this many evictions.
async fn allows(world: &World, name: &str, healthy: i32, allowed: i32) -> Result<PodDisruptionBudgetStatus> {
    let status = async || {
        let budget = world.client().get::<PodDisruptionBudget>(&world.key(name)).await?;
        let status = budget.status.clone().unwrap_or_default();
        ensure!(status.observed_generation == budget.metadata.generation, "{status:?}");
        ensure!(
            (status.current_healthy, status.disruptions_allowed) == (Some(healthy), Some(allowed)),
            "{status:?}"
        );
        Ok(status)
    };
    Ok(eventually(LIMIT, status).await?)
}

async fn evict(world: &World, pod: &Pod) -> Result<(), (u16, String, String)> {
    let pods: Api<Pod> = Api::namespaced(world.env.client(), &world.namespace);
    let name = pod.metadata.name.as_deref().unwrap();
    match pods.evict(name, &EvictParams::default()).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => {
            let cause = status.details.as_ref().and_then(|it| it.causes.first().map(|it| it.message.clone()));
            Err((status.code, status.message, cause.unwrap_or_default()))
        }
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn evictions_wait_for_ready_replacements() -> Result<()> {
    let world = World::start(Options { nodes: Nodes::count(2), ..Options::default() }).await?;
    let mut web = deployment("web", 3, "web:1");
    web["spec"]["template"]["metadata"]["annotations"] = json!({ "kubewright.dev/ready-delay": "10s" });
    world.apply(web).await?;
    world.rolled_out("web", 3).await?;
    let selector = json!({ "matchLabels": { "app": "web" } });
    world.apply(budget("web", &json!({ "maxUnavailable": "34%", "selector": selector }))).await?;
    // A third of 3, rounded up, must stay: two may be evicted.
    let status = allows(&world, "web", 3, 2).await?;
    assert_eq!((status.expected_pods, status.desired_healthy), (Some(3), Some(1)));
    assert_eq!(status.conditions.unwrap()[0].reason, "SufficientPods");

    world.apply(budget("web", &json!({ "maxUnavailable": 1, "selector": selector }))).await?;
    allows(&world, "web", 3, 1).await?;
    for _ in 0..2 {
        let pods = world.ready_pods(3).await?;
        assert_eq!(evict(&world, &pods[0]).await, Ok(()));
        let (code, message, cause) = evict(&world, &pods[1]).await.unwrap_err();
        assert_eq!(
            (code, message.as_str()),
            (429, "Cannot evict pod as it would violate the pod's disruption budget.")
        );
        assert!(cause.starts_with("The disruption budget web needs 2 healthy pods and has "), "{cause}");
        let status = allows(&world, "web", 2, 0).await?;
        assert_eq!(status.conditions.unwrap()[0].reason, "InsufficientPods");
        let status = allows(&world, "web", 3, 1).await?;
        assert_eq!(status.disrupted_pods, None);
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_percentage_needs_owners_with_a_scale() -> Result<()> {
    let world = World::start(Options::default()).await?;
    world
        .apply(json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "long" },
            "spec": { "template": {
                "metadata": { "labels": { "app": "long" }, "annotations": { "kubewright.dev/run-time": "1h" } },
                "spec": { "restartPolicy": "Never", "containers": [{ "name": "web", "image": "web:1" }] },
            } },
        }))
        .await?;
    let pods = world.ready_pods(1).await?;
    let selector = json!({ "matchLabels": { "app": "long" } });
    world.apply(budget("long", &json!({ "minAvailable": "50%", "selector": selector }))).await?;
    let why = "jobs.batch does not implement the scale subresource";
    eventually(LIMIT, async || {
        let budget = world.client().get::<PodDisruptionBudget>(&world.key("long")).await?;
        let conditions = budget.status.clone().unwrap_or_default().conditions.unwrap_or_default();
        ensure!(conditions.iter().any(|it| it.reason == "SyncFailed" && it.message == why), "{conditions:?}");
        Ok(())
    })
    .await?;
    assert_eq!(evict(&world, &pods[0]).await.unwrap_err().0, 429);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn unhealthy_pods_can_be_evicted_while_enough_others_are_healthy() -> Result<()> {
    let world = World::start(Options::default()).await?;
    let labels = json!({ "team": "a" });
    for (name, annotations) in
        [("good", json!({})), ("other", json!({})), ("bad", json!({ "kubewright.dev/ready-delay": "1h" }))]
    {
        let mut pod = pod(name, &annotations, &json!({}));
        pod["metadata"]["labels"] = labels.clone();
        world.apply(pod).await?;
    }
    world.apply(budget("a", &json!({ "minAvailable": 2, "selector": { "matchLabels": labels } }))).await?;
    let status = allows(&world, "a", 2, 0).await?;
    assert_eq!((status.expected_pods, status.desired_healthy), (Some(3), Some(2)));
    let pods = world.pods().await?;
    let named = |name: &str| pods.iter().find(|pod| pod.metadata.name.as_deref() == Some(name)).unwrap();
    eventually(LIMIT, async || {
        let bad = world.client().get::<Pod>(&world.key("bad")).await?;
        ensure!(bad.status.as_ref().and_then(|it| it.phase.as_deref()) == Some("Running"), "it waits");
        Ok(())
    })
    .await?;
    assert_eq!(evict(&world, named("good")).await.unwrap_err().0, 429);
    assert_eq!(evict(&world, named("bad")).await, Ok(()));
    Ok(())
}
