//! Deployments create running pods and roll out, as `kubectl rollout` sees it.

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kubewright_cluster::{Nodes, Options};
use kubewright_envtest::{consistently, eventually};
use kubewright_runtime::{Delete, ListOptions};
use serde_json::json;

use crate::world::{LIMIT, World, deployment, image, shown};

fn cluster() -> Options {
    Options { nodes: Nodes::count(2), ..Options::default() }
}

async fn sets(world: &World) -> Result<Vec<ReplicaSet>> {
    let sets = world.client().list::<ReplicaSet>(&ListOptions::namespace(&world.namespace)).await?;
    Ok(sets.iter().map(|set| (**set).clone()).collect())
}

#[tokio::test(start_paused = true)]
async fn a_deployment_creates_running_pods_and_scales() -> Result<()> {
    let world = World::start(cluster()).await?;
    world.apply(deployment("web", 3, "web:1")).await?;
    let pods = world.ready_pods(3).await?;
    let nodes: std::collections::BTreeSet<_> =
        pods.iter().filter_map(|pod| pod.spec.as_ref()?.node_name.clone()).collect();
    assert_eq!(nodes.len(), 2, "pods are spread");
    let done = world.rolled_out("web", 3).await?;
    assert_eq!(done.metadata.annotations.unwrap()["deployment.kubernetes.io/revision"], "1");

    for size in [1, 3] {
        let key = world.key("web");
        world
            .client()
            .modify::<Deployment>(&key, |it| it.spec.as_mut().unwrap().replicas = Some(size))
            .await?;
        world.ready_pods(usize::try_from(size)?).await?;
    }
    let set = sets(&world).await?.remove(0).metadata.name.unwrap();
    let told = world.events("web").await?;
    for what in [
        "up replica set SET from 0 to 3",
        "down replica set SET from 3 to 1",
        "up replica set SET from 1 to 3",
    ] {
        let what = format!("ScalingReplicaSet: Scaled {}", what.replace("SET", &set));
        assert!(told.contains(&what), "{what}: {told:?}");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_rollout_keeps_within_its_limits_and_can_be_undone() -> Result<()> {
    let world = World::start(cluster()).await?;
    let mut wanted = deployment("web", 4, "web:1");
    wanted["spec"]["strategy"] = json!({ "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 1 } });
    wanted["spec"]["template"]["metadata"]["annotations"] = json!({ "kubewright.dev/ready-delay": "5s" });
    world.apply(wanted.clone()).await?;
    world.rolled_out("web", 4).await?;

    wanted["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:2");
    world.apply(wanted.clone()).await?;
    let done = world.rolled_out("web", 4).await?;
    assert_eq!(done.metadata.annotations.unwrap()["deployment.kubernetes.io/revision"], "2");
    assert!(world.pods().await?.iter().all(|pod| image(pod) == "web:2"));
    assert_eq!(sets(&world).await?.len(), 2);

    // Like `kubectl rollout undo`.
    wanted["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:1");
    world.apply(wanted).await?;
    let undone = world.rolled_out("web", 4).await?;
    assert_eq!(undone.metadata.annotations.unwrap()["deployment.kubernetes.io/revision"], "3");
    let sets = sets(&world).await?;
    let again = sets.iter().find(|set| set.spec.as_ref().unwrap().replicas == Some(4)).unwrap();
    let annotations = again.metadata.annotations.as_ref().unwrap();
    assert_eq!(annotations["deployment.kubernetes.io/revision-history"], "1");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_rollout_of_a_bad_image_exceeds_its_deadline_and_the_old_pods_stay() -> Result<()> {
    let world = World::start(cluster()).await?;
    let mut wanted = deployment("web", 4, "web:1");
    wanted["spec"]["progressDeadlineSeconds"] = json!(60);
    wanted["spec"]["template"]["metadata"]["annotations"] =
        json!({ "kubewright.dev/bad-images": "web:broken" });
    world.apply(wanted.clone()).await?;
    world.rolled_out("web", 4).await?;
    wanted["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:broken");
    world.apply(wanted).await?;
    eventually(LIMIT, async || {
        let status =
            world.client().get::<Deployment>(&world.key("web")).await?.status.clone().unwrap_or_default();
        let late = status
            .conditions
            .iter()
            .flatten()
            .any(|it| it.reason.as_deref() == Some("ProgressDeadlineExceeded"));
        ensure!(late, "{status:?}");
        Ok(())
    })
    .await?;
    let mut shown: Vec<String> =
        world.pods().await?.iter().map(|pod| format!("{} {}", image(pod), shown(pod))).collect();
    shown.sort();
    // 25 % of 4 replicas: one more, one less.
    assert_eq!(
        shown,
        [
            "web:1 Running",
            "web:1 Running",
            "web:1 Running",
            "web:broken ImagePullBackOff",
            "web:broken ImagePullBackOff"
        ]
    );
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn recreate_deletes_all_old_pods_before_creating_new_ones() -> Result<()> {
    let world = World::start(cluster()).await?;
    let mut wanted = deployment("web", 2, "web:1");
    wanted["spec"]["strategy"] = json!({ "type": "Recreate" });
    wanted["spec"]["template"]["metadata"]["annotations"] = json!({ "kubewright.dev/stop-delay": "20s" });
    world.apply(wanted.clone()).await?;
    world.rolled_out("web", 2).await?;
    wanted["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:2");
    world.apply(wanted).await?;
    consistently(std::time::Duration::from_secs(19), async || {
        let pods = world.pods().await?;
        ensure!(pods.iter().all(|pod| image(pod) == "web:1"), "a new pod exists next to an old one");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    world.rolled_out("web", 2).await?;
    assert!(world.pods().await?.iter().all(|pod| image(pod) == "web:2"));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_paused_deployment_scales_without_rollout_and_history_is_limited() -> Result<()> {
    let world = World::start(cluster()).await?;
    let mut wanted = deployment("web", 1, "web:0");
    wanted["spec"]["revisionHistoryLimit"] = json!(1);
    world.apply(wanted.clone()).await?;
    world.rolled_out("web", 1).await?;
    for number in 1..4 {
        wanted["spec"]["template"]["spec"]["containers"][0]["image"] = json!(format!("web:{number}"));
        world.apply(wanted.clone()).await?;
        world.rolled_out("web", 1).await?;
    }
    eventually(LIMIT, async || {
        let count = sets(&world).await?.len();
        ensure!(count == 2, "{count} sets");
        Ok(())
    })
    .await?;

    wanted["spec"]["paused"] = json!(true);
    wanted["spec"]["replicas"] = json!(2);
    wanted["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:new");
    world.apply(wanted.clone()).await?;
    let pods = world.ready_pods(2).await?;
    assert!(pods.iter().all(|pod| image(pod) == "web:3"));
    wanted["spec"]["paused"] = json!(false);
    world.apply(wanted).await?;
    world.rolled_out("web", 2).await?;
    assert!(world.pods().await?.iter().all(|pod| image(pod) == "web:new"));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_name_collision_gets_another_hash() -> Result<()> {
    let world = World::start(cluster()).await?;
    world.apply(deployment("web", 1, "web:1")).await?;
    world.rolled_out("web", 1).await?;
    let taken = sets(&world).await?.remove(0);
    world
        .client()
        .delete_with(&*world.client().get::<Deployment>(&world.key("web")).await?, &Delete::orphan())
        .await?;
    let labels = json!({ "app": "other" });
    let blocker = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": { "name": taken.metadata.name },
        "spec": { "replicas": 0, "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": taken.spec.unwrap().template.unwrap().spec } },
    });
    world
        .client()
        .delete_key::<ReplicaSet>(&world.key(taken.metadata.name.as_deref().unwrap()), &Delete::new())
        .await?;
    world.apply(blocker).await?;
    world.apply(deployment("web", 1, "web:1")).await?;
    let done = world.rolled_out("web", 1).await?;
    assert_eq!(done.status.unwrap().collision_count, Some(1));
    Ok(())
}
