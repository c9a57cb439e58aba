//! DaemonSets run a pod on each eligible node, follow node changes, and roll out.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use kubewright_cluster::{Nodes, Options};
use kubewright_envtest::{consistently, eventually};
use kubewright_runtime::owner::controller_of;
use kubewright_runtime::{Delete, Key, ListOptions, Patch};
use serde_json::{Value, json};

use crate::world::{LIMIT, World, image, is_ready};

fn cluster() -> Options {
    Options { nodes: Nodes::count(3), ..Options::default() }
}

fn set(image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": { "name": "log" },
        "spec": {
            "selector": { "matchLabels": { "app": "log" } },
            "template": {
                "metadata": { "labels": { "app": "log" } },
                "spec": { "containers": [{ "name": "web", "image": image }] },
            },
        },
    })
}

fn nodes(pods: &[Pod]) -> Vec<&str> {
    let mut nodes: Vec<&str> =
        pods.iter().filter_map(|pod| pod.spec.as_ref()?.node_name.as_deref()).collect();
    nodes.sort_unstable();
    nodes
}

async fn change(world: &World, node: &str, patch: Value) -> Result<()> {
    let node = world.client().get::<Node>(&Key::cluster(node)).await?;
    world.client().patch(&*node, &Patch::merge(patch)).await?;
    Ok(())
}

/// Waits for the condition of `kubectl rollout status`, and for the deletion of the old pods.
async fn rolled_out(world: &World, count: i32) -> Result<DaemonSet> {
    let done = async || {
        let set = world.client().get::<DaemonSet>(&world.key("log")).await?;
        let status = set.status.clone().unwrap_or_default();
        ensure!(status.observed_generation == set.metadata.generation, "{status:?}");
        ensure!(status.desired_number_scheduled == count, "{status:?}");
        ensure!(status.updated_number_scheduled.unwrap_or_default() == count, "{status:?}");
        ensure!(status.number_available.unwrap_or_default() == count, "{status:?}");
        let pods = world.pods().await?.len();
        ensure!(i32::try_from(pods)? == count, "{pods} pods");
        Ok((*set).clone())
    };
    Ok(eventually(LIMIT, done).await?)
}

#[tokio::test(start_paused = true)]
async fn each_node_has_one_pod_and_pods_follow_node_changes() -> Result<()> {
    let world = World::start(cluster()).await?;
    world.apply(set("web:1")).await?;
    let pods = world.ready_pods(3).await?;
    assert_eq!(nodes(&pods), ["node-1", "node-2", "node-3"]);
    let done = rolled_out(&world, 3).await?;
    assert_eq!(
        serde_json::to_value(done.status)?,
        json!({ "desiredNumberScheduled": 3, "currentNumberScheduled": 3, "numberMisscheduled": 0,
            "numberReady": 3, "updatedNumberScheduled": 3, "numberAvailable": 3, "observedGeneration": 1 })
    );
    let pod = serde_json::to_value(&pods[0])?;
    let hash = pod["metadata"]["labels"]["controller-revision-hash"].clone();
    assert_eq!(pod["metadata"]["labels"]["pod-template-generation"], "1");
    let tolerations = pod["spec"]["tolerations"].as_array().unwrap();
    let unreachable =
        json!({ "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute" });
    assert!(tolerations.contains(&unreachable), "without tolerationSeconds: {tolerations:?}");
    let revisions =
        world.client().list::<ControllerRevision>(&ListOptions::namespace(&world.namespace)).await?;
    assert_eq!(revisions[0].metadata.name, Some(format!("log-{}", hash.as_str().unwrap())));

    let more = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "node-4" } });
    world.env.apply_yaml("", &more.to_string()).await?;
    let pods = world.ready_pods(4).await?;
    assert_eq!(nodes(&pods), ["node-1", "node-2", "node-3", "node-4"]);
    world.client().delete_key::<Node>(&Key::cluster("node-2"), &Delete::new()).await?;
    let pods = world.ready_pods(3).await?;
    assert_eq!(nodes(&pods), ["node-1", "node-3", "node-4"]);
    let events = world.events("log").await?;
    assert!(events.iter().any(|it| it.starts_with("SuccessfulCreate: Created pod: log-")), "{events:?}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn taints_and_labels_select_nodes_and_a_cordoned_node_is_eligible() -> Result<()> {
    let world = World::start(cluster()).await?;
    let mut wanted = set("web:1");
    wanted["spec"]["template"]["spec"]["nodeSelector"] = json!({ "logs": "yes" });
    world.apply(wanted).await?;
    let label = |value: Value| json!({ "metadata": { "labels": { "logs": value } } });
    change(&world, "node-1", json!({ "spec": { "unschedulable": true } })).await?;
    for node in ["node-1", "node-2", "node-3"] {
        change(&world, node, label(json!("yes"))).await?;
    }
    assert_eq!(nodes(&world.ready_pods(3).await?), ["node-1", "node-2", "node-3"]);

    change(&world, "node-2", json!({ "spec": { "taints": [{ "key": "full", "effect": "NoSchedule" }] } }))
        .await?;
    eventually(LIMIT, async || {
        let set = world.client().get::<DaemonSet>(&world.key("log")).await?;
        let status = set.status.clone().unwrap_or_default();
        ensure!((status.desired_number_scheduled, status.number_misscheduled) == (2, 1), "{status:?}");
        Ok(())
    })
    .await?;
    assert_eq!(world.ready_pods(3).await?.len(), 3, "existing pods stay");
    let evicting = json!({ "spec": { "taints": [{ "key": "broken", "effect": "NoExecute" }] } });
    change(&world, "node-2", evicting).await?;
    assert_eq!(nodes(&world.ready_pods(2).await?), ["node-1", "node-3"]);
    change(&world, "node-3", label(Value::Null)).await?;
    assert_eq!(nodes(&world.ready_pods(1).await?), ["node-1"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_rollout_keeps_within_max_unavailable_and_can_be_undone() -> Result<()> {
    let world = World::start(cluster()).await?;
    let mut wanted = set("web:1");
    wanted["spec"]["minReadySeconds"] = json!(10);
    wanted["spec"]["revisionHistoryLimit"] = json!(1);
    world.apply(wanted.clone()).await?;
    rolled_out(&world, 3).await?;
    wanted["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:2");
    world.apply(wanted.clone()).await?;
    consistently(Duration::from_secs(20), async || {
        let ready = world.pods().await?.iter().filter(|pod| is_ready(pod)).count();
        ensure!(ready >= 2, "{ready} ready pods");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    rolled_out(&world, 3).await?;
    assert!(world.pods().await?.iter().all(|pod| image(pod) == "web:2"));

    let revisions = async || {
        let all =
            world.client().list::<ControllerRevision>(&ListOptions::namespace(&world.namespace)).await?;
        let mut all: Vec<ControllerRevision> = all.iter().map(|it| (**it).clone()).collect();
        all.sort_by_key(|it| it.revision);
        anyhow::Ok(all)
    };
    // Like `kubectl rollout undo`.
    let undo = Patch::strategic_from(&revisions().await?[0].data)?;
    world.client().patch(&*world.client().get::<DaemonSet>(&world.key("log")).await?, &undo).await?;
    rolled_out(&world, 3).await?;
    assert!(world.pods().await?.iter().all(|pod| image(pod) == "web:1"));
    wanted["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:3");
    world.apply(wanted).await?;
    rolled_out(&world, 3).await?;
    eventually(LIMIT, async || {
        let numbers: Vec<i64> = revisions().await?.iter().map(|it| it.revision).collect();
        ensure!(numbers == [3, 4], "{numbers:?}");
        Ok(())
    })
    .await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_surging_rollout_keeps_all_pods_available_and_on_delete_waits() -> Result<()> {
    let world = World::start(cluster()).await?;
    let mut wanted = set("web:1");
    wanted["spec"]["updateStrategy"] = json!({ "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } });
    wanted["spec"]["template"]["metadata"]["annotations"] = json!({ "kubewright.dev/ready-delay": "5s" });
    world.apply(wanted.clone()).await?;
    rolled_out(&world, 3).await?;
    wanted["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:2");
    world.apply(wanted.clone()).await?;
    consistently(Duration::from_secs(20), async || {
        let pods = world.pods().await?;
        let ready = pods.iter().filter(|pod| is_ready(pod)).count();
        ensure!(ready >= 3 && pods.len() <= 4, "{ready} of {} are ready", pods.len());
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    rolled_out(&world, 3).await?;

    wanted["spec"]["updateStrategy"] = json!({ "type": "OnDelete" });
    wanted["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:3");
    world.apply(wanted).await?;
    consistently(Duration::from_secs(20), async || {
        let pods = world.pods().await?;
        ensure!(pods.iter().all(|pod| image(pod) == "web:2"), "a pod was replaced");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    let first = world.pods().await?.remove(0);
    world.client().delete(&first).await?;
    eventually(LIMIT, async || {
        let pods = world.pods().await?;
        let new = pods.iter().filter(|pod| image(pod) == "web:3" && is_ready(pod)).count();
        ensure!(pods.len() == 3 && new == 1, "{new} of {}", pods.len());
        Ok(())
    })
    .await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_failed_pod_is_replaced_and_orphans_are_adopted() -> Result<()> {
    let world = World::start(cluster()).await?;
    world.apply(set("web:1")).await?;
    let pods = world.ready_pods(3).await?;
    let failed = Patch::merge(json!({ "status": { "phase": "Failed" } }));
    world.client().status().patch(&pods[0], &failed).await?;
    let name = pods[0].metadata.name.clone().unwrap();
    eventually(LIMIT, async || {
        let events = world.events("log").await?;
        let node = pods[0].spec.as_ref().unwrap().node_name.as_deref().unwrap();
        let note = format!(
            "FailedDaemonPod: Found failed daemon pod {}/{name} on node {node}, will try to kill it",
            world.namespace
        );
        ensure!(events.contains(&note), "{events:?}");
        Ok(())
    })
    .await?;
    rolled_out(&world, 3).await?;
    let before = world.ready_pods(3).await?;
    world.client().delete_key::<DaemonSet>(&world.key("log"), &Delete::orphan()).await?;
    eventually(LIMIT, async || {
        let pods = world.pods().await?;
        ensure!(pods.iter().all(|pod| controller_of(pod).is_none()), "a pod is not orphaned");
        Ok(())
    })
    .await?;
    world.apply(set("web:1")).await?;
    rolled_out(&world, 3).await?;
    let after = world.pods().await?;
    let uids = |pods: &[Pod]| {
        let mut uids: Vec<_> = pods.iter().map(|pod| pod.metadata.uid.clone()).collect();
        uids.sort();
        uids
    };
    assert_eq!(uids(&before), uids(&after));
    assert!(after.iter().all(|pod| controller_of(pod).is_some()));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_result_is_the_same_despite_failed_requests() -> Result<()> {
    for seed in 0..4 {
        let world = World::start(cluster()).await?;
        world.apply(set("web:1")).await?;
        world.disturb(seed);
        rolled_out(&world, 3).await?;
        world.env.faults().heal();
        world.apply(set("web:2")).await?;
        world.disturb(seed);
        rolled_out(&world, 3).await?;
        let pods = world.ready_pods(3).await?;
        assert_eq!(nodes(&pods), ["node-1", "node-2", "node-3"], "seed {seed}");
        assert!(pods.iter().all(|pod| image(pod) == "web:2"), "seed {seed}");
    }
    Ok(())
}
