//! Taint-based eviction and pod garbage collection.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod};
use kubewright_cluster::{Nodes, Options};
use kubewright_envtest::{consistently, eventually};
use kubewright_runtime::{Delete, Key, Patch};
use serde_json::{Value, json};

use crate::world::{LIMIT, World, deployment, is_ready, pod};

async fn change(world: &World, node: &str, patch: Value) -> Result<()> {
    let node = world.client().get::<Node>(&Key::cluster(node)).await?;
    world.client().patch(&*node, &Patch::merge(patch)).await?;
    Ok(())
}

fn taint(key: &str) -> Value {
    json!({ "spec": { "taints": [{ "key": key, "effect": "NoExecute" }] } })
}

async fn gone(world: &World, name: &str) -> Result<()> {
    eventually(LIMIT, async || {
        let pod = world.client().get_opt::<Pod>(&world.key(name)).await?;
        ensure!(pod.is_none(), "it still exists");
        Ok(())
    })
    .await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn pods_are_evicted_when_their_toleration_expires_unless_the_taint_is_removed() -> Result<()> {
    let world = World::start(Options::default()).await?;
    let tolerating = |seconds: Value| {
        json!({ "tolerations": [
            { "key": "broken", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds },
        ] })
    };
    world.apply(pod("never", &json!({}), &json!({}))).await?;
    world.apply(pod("short", &json!({}), &tolerating(json!(30)))).await?;
    world.apply(pod("long", &json!({}), &tolerating(json!(60)))).await?;
    world.apply(pod("ever", &json!({}), &tolerating(Value::Null))).await?;
    world.ready_pods(4).await?;
    change(&world, "node-1", taint("broken")).await?;
    gone(&world, "never").await?;
    consistently(Duration::from_secs(28), async || {
        let pods = world.pods().await?;
        ensure!(pods.len() == 3, "{} pods", pods.len());
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    gone(&world, "short").await?;
    change(&world, "node-1", json!({ "spec": { "taints": null } })).await?;
    consistently(Duration::from_secs(40), async || {
        let pods = world.pods().await?;
        ensure!(pods.len() == 2, "{} pods", pods.len());
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    let note = |what: &str, name: &str| format!("TaintManagerEviction: {what} {}/{name}", world.namespace);
    for (name, what) in [("short", "Marking for deletion Pod"), ("long", "Cancelling deletion of Pod")] {
        let told = world.events(name).await?;
        assert!(told.contains(&note(what, name)), "{told:?}");
    }
    let told = world.events("ever").await?;
    assert!(!told.iter().any(|it| it.starts_with("TaintManagerEviction")), "{told:?}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn pods_of_an_unreachable_node_are_replaced_and_deleted_when_it_is_out_of_service() -> Result<()> {
    let world = World::start(Options { nodes: Nodes::count(2), ..Options::default() }).await?;
    let mut wanted = deployment("web", 4, "web:1");
    wanted["spec"]["template"]["spec"]["tolerations"] = json!([
        { "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 10 },
    ]);
    world.apply(wanted).await?;
    let pods = world.ready_pods(4).await?;
    let on = |pods: &[Pod], node: &str| -> Vec<Pod> {
        let is_there = |pod: &&Pod| pod.spec.as_ref().and_then(|it| it.node_name.as_deref()) == Some(node);
        pods.iter().filter(is_there).cloned().collect()
    };
    let there = on(&pods, "node-1").len();
    assert!(there > 0, "pods are spread");
    change(&world, "node-1", json!({ "metadata": { "annotations": { "kubewright.dev/down": "true" } } }))
        .await?;
    // 50 seconds until the node is unreachable, and 10 more of toleration.
    consistently(Duration::from_secs(58), async || {
        let pods = world.pods().await?;
        ensure!(pods.len() == 4, "{} pods", pods.len());
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    eventually(LIMIT, async || {
        let pods = world.pods().await?;
        let well = on(&pods, "node-2").iter().filter(|pod| is_ready(pod)).count();
        ensure!(well == 4, "{well} pods");
        Ok(())
    })
    .await?;
    let left = on(&world.pods().await?, "node-1");
    assert_eq!(left.len(), there, "the unreachable kubelet does not delete them");
    for pod in &left {
        assert!(pod.metadata.deletion_timestamp.is_some());
        let conditions = serde_json::to_value(&pod.status.as_ref().unwrap().conditions)?;
        let reasons: Vec<&Value> =
            conditions.as_array().unwrap().iter().map(|condition| &condition["reason"]).collect();
        assert!(reasons.contains(&&json!("DeletionByTaintManager")), "{reasons:?}");
    }
    let node = world.client().get::<Node>(&Key::cluster("node-1")).await?;
    let mut taints = node.spec.clone().unwrap().taints.unwrap();
    taints.push(serde_json::from_value(
        json!({ "key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute" }),
    )?);
    change(&world, "node-1", json!({ "spec": { "taints": taints } })).await?;
    world.ready_pods(4).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_pod_on_a_missing_node_is_garbage_collected() -> Result<()> {
    let world = World::start(Options::default()).await?;
    world.apply(pod("lost", &json!({}), &json!({ "nodeName": "nowhere" }))).await?;
    consistently(Duration::from_secs(38), async || {
        world.client().get::<Pod>(&world.key("lost")).await.map(|_| ())
    })
    .await?;
    gone(&world, "lost").await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_deleted_claim_is_removed_when_no_pod_uses_it() -> Result<()> {
    let world = World::start(Options::default()).await?;
    world
        .apply(json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "data" },
            "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
        }))
        .await?;
    let volumes =
        json!({ "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }] });
    world.apply(pod("web", &json!({}), &volumes)).await?;
    world.ready_pods(1).await?;
    world.client().delete_key::<PersistentVolumeClaim>(&world.key("data"), &Delete::new()).await?;
    consistently(Duration::from_mins(1), async || {
        world.client().get::<PersistentVolumeClaim>(&world.key("data")).await.map(|_| ())
    })
    .await?;
    world.client().delete_key::<Pod>(&world.key("web"), &Delete::new()).await?;
    eventually(LIMIT, async || {
        let claim = world.client().get_opt::<PersistentVolumeClaim>(&world.key("data")).await?;
        ensure!(claim.is_none(), "it still exists");
        Ok(())
    })
    .await?;
    Ok(())
}
