//! Pods wait for a suitable node and report why.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kubewright_cluster::{Nodes, Options};
use kubewright_envtest::eventually;
use kubewright_runtime::{Key, Patch};
use serde_json::json;

use crate::world::{LIMIT, World, deployment, is_ready, pod};

#[tokio::test(start_paused = true)]
async fn an_unschedulable_pod_reports_why_and_is_retried() -> Result<()> {
    let world =
        World::start(Options { nodes: Nodes::count(1).capacity("cpu", "1"), ..Options::default() }).await?;
    let big = json!({ "containers": [{ "name": "web", "image": "web:1", "resources": { "requests": { "cpu": "700m" } } }] });
    world.apply(pod("first", &json!({}), &big)).await?;
    world.ready_pods(1).await?;
    world.apply(pod("second", &json!({}), &big)).await?;
    let why = "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are \
               available: 1 No preemption victims found for incoming pod.";
    eventually(LIMIT, async || {
        let events = world.events("second").await?;
        ensure!(events == [format!("FailedScheduling: {why}")], "{events:?}");
        let pod = world.client().get::<Pod>(&world.key("second")).await?;
        let conditions = serde_json::to_value(&pod.status.clone().unwrap_or_default().conditions)?;
        ensure!(
            conditions[0]["reason"] == "Unschedulable" && conditions[0]["message"] == why,
            "{conditions}"
        );
        Ok(())
    })
    .await?;
    world.client().delete_key::<Pod>(&world.key("first"), &kubewright_runtime::Delete::new()).await?;
    let pods = world.ready_pods(1).await?;
    assert_eq!(pods[0].metadata.name.as_deref(), Some("second"));
    let events = world.events("second").await?;
    assert!(
        events.contains(&format!("Scheduled: Successfully assigned {}/second to node-1", world.namespace)),
        "{events:?}"
    );
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_cordoned_node_gets_no_pods_until_uncordoned() -> Result<()> {
    let world = World::start(Options::default()).await?;
    let key = Key::cluster("node-1");
    eventually(LIMIT, async || {
        let node = world.client().get::<Node>(&key).await?;
        ensure!(node.spec.as_ref().is_none_or(|spec| spec.taints.is_none()), "not ready");
        Ok(())
    })
    .await?;
    let cordon = |closed: bool| Patch::merge(json!({ "spec": { "unschedulable": closed } }));
    world.client().patch(&*world.client().get::<Node>(&key).await?, &cordon(true)).await?;
    world.apply(pod("web", &json!({}), &json!({}))).await?;
    eventually(LIMIT, async || {
        let events = world.events("web").await?;
        ensure!(events.iter().any(|it| it.contains("1 node(s) were unschedulable")), "{events:?}");
        Ok(())
    })
    .await?;
    world.client().patch(&*world.client().get::<Node>(&key).await?, &cordon(false)).await?;
    world.ready_pods(1).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_higher_priority_pod_preempts_a_lower_one() -> Result<()> {
    let world =
        World::start(Options { nodes: Nodes::count(1).capacity("cpu", "1"), ..Options::default() }).await?;
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": { "name": "urgent" }, "value": 1000,
    });
    world.env.apply_yaml("", &class.to_string()).await?;
    let mut wanted = deployment("web", 1, "web:1");
    let asks = json!({ "requests": { "cpu": "700m" } });
    wanted["spec"]["template"]["spec"]["containers"][0]["resources"] = asks.clone();
    wanted["spec"]["template"]["metadata"]["annotations"] = json!({ "kubewright.dev/stop-delay": "20s" });
    world.apply(wanted).await?;
    let before = world.ready_pods(1).await?.remove(0).metadata.name.unwrap();
    let urgent = json!({
        "priorityClassName": "urgent",
        "containers": [{ "name": "web", "image": "web:1", "resources": asks }],
    });
    world.apply(pod("urgent", &json!({}), &urgent)).await?;
    eventually(LIMIT, async || {
        let pod = world.client().get::<Pod>(&world.key("urgent")).await?;
        let status = pod.status.clone().unwrap_or_default();
        ensure!(status.nominated_node_name.as_deref() == Some("node-1"), "{status:?}");
        Ok(())
    })
    .await?;
    eventually(LIMIT, async || {
        let pods = world.pods().await?;
        let shown: Vec<(bool, &str)> = pods
            .iter()
            .map(|pod| (is_ready(pod), pod.metadata.name.as_deref().unwrap_or_default()))
            .collect();
        let ready: Vec<&str> = shown.iter().filter(|(ready, _)| *ready).map(|(_, name)| *name).collect();
        ensure!(ready == ["urgent"] && pods.len() == 2, "{shown:?}");
        Ok(())
    })
    .await?;
    let uid = world.client().get::<Pod>(&world.key("urgent")).await?.metadata.uid.clone().unwrap();
    let events = world.events(&before).await?;
    assert!(events.contains(&format!("Preempted: Preempted by pod {uid} on node node-1")), "{events:?}");
    Ok(())
}
