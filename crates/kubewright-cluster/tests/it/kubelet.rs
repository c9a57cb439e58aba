//! Pods follow their annotations, and nodes become ready, unreachable or removed.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kubewright_cluster::{Nodes, Options};
use kubewright_envtest::{consistently, eventually};
use kubewright_runtime::{Delete, Key, Patch};
use serde_json::{Value, json};

use crate::world::{LIMIT, World, is_ready, pod, shown};

#[tokio::test(start_paused = true)]
async fn pods_run_complete_fail_and_crash_as_annotated() -> Result<()> {
    let world = World::start(Options::default()).await?;
    let never = json!({ "restartPolicy": "Never" });
    world.apply(pod("server", &json!({}), &json!({}))).await?;
    world.apply(pod("done", &json!({}), &never)).await?;
    world.apply(pod("failed", &json!({ "kubewright.dev/exit-code": "3" }), &never)).await?;
    world.apply(pod("crash", &json!({ "kubewright.dev/exit-code": "1" }), &json!({}))).await?;
    world.apply(pod("image", &json!({ "kubewright.dev/bad-images": "*" }), &json!({}))).await?;
    world.apply(pod("slow", &json!({ "kubewright.dev/start-delay": "10m" }), &json!({}))).await?;
    for (name, state) in [
        ("server", "Running"),
        ("done", "Completed"),
        ("failed", "Error"),
        ("crash", "CrashLoopBackOff"),
        ("image", "ImagePullBackOff"),
        ("slow", "ContainerCreating"),
    ] {
        eventually(LIMIT, async || {
            let pod = world.client().get::<Pod>(&world.key(name)).await?;
            ensure!(shown(&pod) == state, "{name}: {}", shown(&pod));
            Ok(())
        })
        .await?;
    }
    let server = world.client().get::<Pod>(&world.key("server")).await?.status.clone().unwrap();
    assert!(server.pod_ip.unwrap().starts_with("10.") && server.host_ip.unwrap().starts_with("172."));
    let phase = async |name: &str| {
        anyhow::Ok(world.client().get::<Pod>(&world.key(name)).await?.status.clone().unwrap().phase.unwrap())
    };
    assert_eq!((phase("done").await?.as_str(), phase("failed").await?.as_str()), ("Succeeded", "Failed"));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_stops_after_its_delay() -> Result<()> {
    let world = World::start(Options::default()).await?;
    world.apply(pod("web", &json!({ "kubewright.dev/stop-delay": "20s" }), &json!({}))).await?;
    world.ready_pods(1).await?;
    world.client().delete_key::<Pod>(&world.key("web"), &Delete::new()).await?;
    consistently(Duration::from_secs(18), async || {
        world.client().get::<Pod>(&world.key("web")).await.map(|_| ())
    })
    .await?;
    eventually(LIMIT, async || {
        ensure!(world.pods().await?.is_empty(), "the pod still exists");
        Ok(())
    })
    .await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_down_becomes_unreachable_and_its_pods_not_ready() -> Result<()> {
    let nodes = Nodes { heartbeat: Some(Duration::from_secs(10)), ..Nodes::count(1) };
    let world = World::start(Options { nodes, ..Options::default() }).await?;
    world.apply(pod("web", &json!({}), &json!({}))).await?;
    world.ready_pods(1).await?;
    let key = Key::cluster("node-1");
    let lease = world.client().get::<Lease>(&Key::namespaced("kube-node-lease", "node-1")).await?;
    assert_eq!(lease.spec.as_ref().unwrap().holder_identity.as_deref(), Some("node-1"));

    let down = Patch::merge(json!({ "metadata": { "annotations": { "kubewright.dev/down": "true" } } }));
    world.client().patch(&*world.client().get::<Node>(&key).await?, &down).await?;
    let health = async || {
        let node = world.client().get::<Node>(&key).await?;
        let ready =
            node.status.iter().flat_map(|it| it.conditions.iter().flatten()).find(|it| it.type_ == "Ready");
        anyhow::Ok(ready.map(|it| it.status.clone()).unwrap_or_default())
    };
    assert_eq!(health().await?, "True");
    eventually(LIMIT, async || {
        ensure!(health().await? == "Unknown", "not yet");
        Ok(())
    })
    .await?;
    let unknown = async || {
        let pod = world.client().get::<Pod>(&world.key("web")).await?;
        ensure!(!is_ready(&pod), "the pod is ready");
        Ok(())
    };
    eventually(LIMIT, unknown).await?;
    let on = |value: Value| json!({ "metadata": { "annotations": { "kubewright.dev/down": value } } });
    let node = async || world.client().get::<Node>(&key).await;
    world.client().patch(&*node().await?, &Patch::merge(on(Value::Null))).await?;
    world.ready_pods(1).await?;
    world.client().patch(&*node().await?, &Patch::merge(on(json!("true")))).await?;
    eventually(LIMIT, unknown).await?;
    let events = world.events("web").await?;
    assert!(events.contains(&"NodeNotReady: Node is not ready".to_owned()), "{events:?}");
    let before = world.client().get::<Lease>(&Key::namespaced("kube-node-lease", "node-1")).await?;
    world.client().delete_key::<Pod>(&world.key("web"), &Delete::new()).await?;
    consistently(Duration::from_mins(2), async || {
        world.client().get::<Pod>(&world.key("web")).await.map(|_| ())
    })
    .await?;
    let after = world.client().get::<Lease>(&Key::namespaced("kube-node-lease", "node-1")).await?;
    assert_eq!(before.spec, after.spec, "the lease is not renewed");

    world.client().delete_key::<Node>(&key, &Delete::new()).await?;
    eventually(LIMIT, async || {
        ensure!(world.pods().await?.is_empty(), "a pod is left on a deleted node");
        Ok(())
    })
    .await?;
    Ok(())
}
