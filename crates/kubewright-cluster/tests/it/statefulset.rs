//! StatefulSets create named pods in order, each with its claims, and roll out as `kubectl rollout` sees it.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kubewright_cluster::{Nodes, Options};
use kubewright_envtest::{consistently, eventually};
use kubewright_runtime::owner::controller_of;
use kubewright_runtime::{Delete, ListOptions, Patch};
use serde_json::{Value, json};

use crate::world::{LIMIT, World, image};

fn cluster() -> Options {
    Options { nodes: Nodes::count(2), ..Options::default() }
}

fn set(replicas: i32, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": { "name": "db" },
        "spec": {
            "replicas": replicas,
            "serviceName": "peers",
            "selector": { "matchLabels": { "app": "db" } },
            "template": {
                "metadata": { "labels": { "app": "db" } },
                "spec": { "containers": [{ "name": "web", "image": image }] },
            },
        },
    })
}

fn names(pods: &[Pod]) -> Vec<&str> {
    pods.iter().filter_map(|pod| pod.metadata.name.as_deref()).collect()
}

async fn revisions(world: &World) -> Result<Vec<(i64, String)>> {
    let all = world.client().list::<ControllerRevision>(&ListOptions::namespace(&world.namespace)).await?;
    let mut all: Vec<_> =
        all.iter().map(|it| (it.revision, it.metadata.name.clone().unwrap_or_default())).collect();
    all.sort();
    Ok(all)
}

async fn claims(world: &World) -> Result<Vec<String>> {
    let all = world.client().list::<PersistentVolumeClaim>(&ListOptions::namespace(&world.namespace)).await?;
    Ok(all.iter().filter_map(|claim| claim.metadata.name.clone()).collect())
}

/// Waits for the condition of `kubectl rollout status`.
async fn rolled_out(world: &World, replicas: i32) -> Result<StatefulSet> {
    let done = async || {
        let set = world.client().get::<StatefulSet>(&world.key("db")).await?;
        let status = set.status.clone().unwrap_or_default();
        ensure!(status.observed_generation == set.metadata.generation, "{status:?}");
        ensure!(status.ready_replicas.unwrap_or_default() == replicas, "{status:?}");
        ensure!(status.replicas == replicas, "{status:?}");
        ensure!(status.current_revision == status.update_revision, "{status:?}");
        Ok((*set).clone())
    };
    Ok(eventually(LIMIT, done).await?)
}

#[tokio::test(start_paused = true)]
async fn pods_are_created_in_order_with_claims_and_deleted_in_reverse() -> Result<()> {
    let world = World::start(cluster()).await?;
    let mut wanted = set(3, "web:1");
    wanted["spec"]["template"]["metadata"]["annotations"] = json!({ "kubewright.dev/ready-delay": "20s" });
    wanted["spec"]["volumeClaimTemplates"] = json!([{
        "metadata": { "name": "data" },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    }]);
    world.apply(wanted).await?;
    consistently(Duration::from_secs(19), async || {
        let pods = world.pods().await?;
        ensure!(pods.len() <= 1, "{:?}", names(&pods));
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    let pods = world.ready_pods(3).await?;
    assert_eq!(names(&pods), ["db-0", "db-1", "db-2"]);
    let done = rolled_out(&world, 3).await?.status.unwrap();
    let revision = done.current_revision.clone().unwrap();
    assert_eq!(
        serde_json::to_value(&done)?,
        json!({ "replicas": 3, "readyReplicas": 3, "availableReplicas": 3, "currentReplicas": 3,
            "updatedReplicas": 3, "currentRevision": revision, "updateRevision": revision,
            "collisionCount": 0, "observedGeneration": 1 })
    );
    let second = serde_json::to_value(&pods[1])?;
    assert_eq!(
        (&second["spec"]["hostname"], &second["spec"]["subdomain"]),
        (&json!("db-1"), &json!("peers"))
    );
    assert_eq!(
        second["metadata"]["labels"],
        json!({ "app": "db", "apps.kubernetes.io/pod-index": "1", "controller-revision-hash": revision,
            "statefulset.kubernetes.io/pod-name": "db-1" })
    );
    assert_eq!(claims(&world).await?, ["data-db-0", "data-db-1", "data-db-2"]);

    world
        .client()
        .modify::<StatefulSet>(&world.key("db"), |it| it.spec.as_mut().unwrap().replicas = Some(1))
        .await?;
    let left = world.ready_pods(1).await?;
    assert_eq!(names(&left), ["db-0"]);
    assert_eq!(claims(&world).await?.len(), 3, "claims outlive their pods");
    let events = world.events("db").await?;
    for event in [
        "SuccessfulCreate: create Claim data-db-0 Pod db-0 in StatefulSet db success",
        "SuccessfulCreate: create Pod db-0 in StatefulSet db successful",
        "SuccessfulDelete: delete Pod db-2 in StatefulSet db successful",
    ] {
        assert!(events.iter().any(|it| it == event), "{event}: {events:#?}");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_rollout_respects_the_partition_and_can_be_undone() -> Result<()> {
    let world = World::start(cluster()).await?;
    let mut wanted = set(3, "web:1");
    wanted["spec"]["updateStrategy"] = json!({ "rollingUpdate": { "partition": 2 } });
    world.apply(wanted.clone()).await?;
    rolled_out(&world, 3).await?;
    wanted["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:2");
    world.apply(wanted.clone()).await?;
    eventually(LIMIT, async || {
        let status = world.client().get::<StatefulSet>(&world.key("db")).await?.status.clone().unwrap();
        ensure!(status.updated_replicas == Some(1) && status.current_replicas == Some(2), "{status:?}");
        ensure!(status.ready_replicas == Some(3), "{status:?}");
        Ok(())
    })
    .await?;
    let images =
        async || anyhow::Ok(world.pods().await?.iter().map(image).map(str::to_owned).collect::<Vec<_>>());
    assert_eq!(images().await?, ["web:1", "web:1", "web:2"]);
    // A recreated pod below the partition keeps the old revision.
    world.client().delete_key::<Pod>(&world.key("db-0"), &Delete::new()).await?;
    world.ready_pods(3).await?;
    assert_eq!(images().await?, ["web:1", "web:1", "web:2"]);

    wanted["spec"]["updateStrategy"] = json!({ "rollingUpdate": { "partition": 0 } });
    world.apply(wanted).await?;
    rolled_out(&world, 3).await?;
    assert_eq!(images().await?, ["web:2", "web:2", "web:2"]);
    let before = revisions(&world).await?;
    assert_eq!(before.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2]);

    // Like `kubectl rollout undo`.
    let first = world.client().get::<ControllerRevision>(&world.key(&before[0].1)).await?;
    let undo = Patch::strategic_from(&first.data)?;
    world.client().patch(&*world.client().get::<StatefulSet>(&world.key("db")).await?, &undo).await?;
    let undone = rolled_out(&world, 3).await?;
    assert_eq!(images().await?, ["web:1", "web:1", "web:1"]);
    assert_eq!(revisions(&world).await?, [(2, before[1].1.clone()), (3, before[0].1.clone())]);
    assert_eq!(undone.status.unwrap().current_revision.as_ref(), Some(&before[0].1));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_rollout_of_a_bad_image_stops_at_its_first_pod() -> Result<()> {
    let world = World::start(cluster()).await?;
    let mut wanted = set(3, "web:1");
    wanted["spec"]["template"]["metadata"]["annotations"] =
        json!({ "kubewright.dev/bad-images": "web:broken" });
    world.apply(wanted.clone()).await?;
    rolled_out(&world, 3).await?;
    wanted["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:broken");
    world.apply(wanted).await?;
    let images =
        async || anyhow::Ok(world.pods().await?.iter().map(image).map(str::to_owned).collect::<Vec<_>>());
    eventually(LIMIT, async || {
        let images = images().await?;
        ensure!(images == ["web:1", "web:1", "web:broken"], "{images:?}");
        Ok(())
    })
    .await?;
    consistently(Duration::from_mins(1), async || {
        let images = images().await?;
        ensure!(images == ["web:1", "web:1", "web:broken"], "{images:?}");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_parallel_set_starts_all_pods_at_once_and_on_delete_keeps_old_pods() -> Result<()> {
    let world = World::start(cluster()).await?;
    let mut wanted = set(3, "web:1");
    wanted["spec"]["podManagementPolicy"] = json!("Parallel");
    wanted["spec"]["ordinals"] = json!({ "start": 5 });
    wanted["spec"]["updateStrategy"] = json!({ "type": "OnDelete" });
    wanted["spec"]["template"]["metadata"]["annotations"] = json!({ "kubewright.dev/start-delay": "1h" });
    world.apply(wanted.clone()).await?;
    eventually(LIMIT, async || {
        let pods = world.pods().await?;
        ensure!(names(&pods) == ["db-5", "db-6", "db-7"], "{:?}", names(&pods));
        Ok(())
    })
    .await?;
    wanted["spec"]["template"]["metadata"]["annotations"] = json!({});
    wanted["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:2");
    world.apply(wanted).await?;
    world.client().delete_key::<Pod>(&world.key("db-6"), &Delete::new()).await?;
    eventually(LIMIT, async || {
        let pods = world.pods().await?;
        let images: Vec<&str> = pods.iter().map(image).collect();
        ensure!(images == ["web:1", "web:2", "web:1"], "{images:?}");
        let status = world.client().get::<StatefulSet>(&world.key("db")).await?.status.clone().unwrap();
        ensure!(status.ready_replicas == Some(1) && status.updated_replicas == Some(1), "{status:?}");
        Ok(())
    })
    .await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_failed_pod_is_recreated_and_orphans_are_adopted() -> Result<()> {
    let world = World::start(cluster()).await?;
    world.apply(set(2, "web:1")).await?;
    rolled_out(&world, 2).await?;
    let failed = world.client().get::<Pod>(&world.key("db-1")).await?;
    let status = Patch::merge(json!({ "status": { "phase": "Failed" } }));
    world.client().status().patch(&*failed, &status).await?;
    eventually(LIMIT, async || {
        let pod = world.client().get::<Pod>(&world.key("db-1")).await?;
        ensure!(pod.metadata.uid != failed.metadata.uid, "the pod was not replaced");
        Ok(())
    })
    .await?;
    let before = world.ready_pods(2).await?;
    let events = world.events("db").await?;
    let note =
        format!("RecreatingFailedPod: StatefulSet {}/db is recreating failed Pod db-1", world.namespace);
    assert!(events.contains(&note), "{events:?}");

    world.client().delete_key::<StatefulSet>(&world.key("db"), &Delete::orphan()).await?;
    eventually(LIMIT, async || {
        let pods = world.pods().await?;
        ensure!(pods.iter().all(|pod| controller_of(pod).is_none()), "a pod is not orphaned");
        Ok(())
    })
    .await?;
    // Matching labels are not enough: the name must match too.
    world.apply(crate::world::pod("stranger", &json!({}), &json!({}))).await?;
    let stranger = world.client().get::<Pod>(&world.key("stranger")).await?;
    let same = Patch::merge(json!({ "metadata": { "labels": { "app": "db" } } }));
    world.client().patch(&*stranger, &same).await?;
    world.apply(set(2, "web:1")).await?;
    rolled_out(&world, 2).await?;
    let after = world.pods().await?;
    let uids = |pods: &[Pod]| pods[..2].iter().map(|pod| pod.metadata.uid.clone()).collect::<Vec<_>>();
    assert_eq!(uids(&before), uids(&after));
    assert_eq!(after.iter().filter(|pod| controller_of(*pod).is_some()).count(), 2);
    assert_eq!(revisions(&world).await?.len(), 1, "its revision was taken back as well");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn claims_follow_the_retention_policy() -> Result<()> {
    let world = World::start(cluster()).await?;
    let mut wanted = set(2, "web:1");
    wanted["spec"]["persistentVolumeClaimRetentionPolicy"] =
        json!({ "whenScaled": "Delete", "whenDeleted": "Delete" });
    wanted["spec"]["volumeClaimTemplates"] = json!([{
        "metadata": { "name": "data" },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    }]);
    world.apply(wanted.clone()).await?;
    rolled_out(&world, 2).await?;
    let uid = async |name: &str| {
        let claim = world.client().get::<PersistentVolumeClaim>(&world.key(name)).await?;
        anyhow::Ok(claim.metadata.uid.clone())
    };
    let (first, second) = (uid("data-db-0").await?, uid("data-db-1").await?);
    let scale = async |replicas: i32| {
        let change = |it: &mut StatefulSet| it.spec.as_mut().unwrap().replicas = Some(replicas);
        world.client().modify::<StatefulSet>(&world.key("db"), change).await
    };
    scale(1).await?;
    eventually(LIMIT, async || {
        let claims = claims(&world).await?;
        ensure!(claims == ["data-db-0"], "{claims:?}");
        Ok(())
    })
    .await?;
    scale(2).await?;
    rolled_out(&world, 2).await?;
    assert_eq!(uid("data-db-0").await?, first);
    assert_ne!(uid("data-db-1").await?, second);
    world.client().delete_key::<StatefulSet>(&world.key("db"), &Delete::background()).await?;
    eventually(LIMIT, async || {
        let (claims, pods) = (claims(&world).await?, world.pods().await?);
        ensure!(claims.is_empty() && pods.is_empty(), "{claims:?} {} pods", pods.len());
        Ok(())
    })
    .await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_rollout_waits_for_availability_and_history_is_limited() -> Result<()> {
    let world = World::start(cluster()).await?;
    let mut wanted = set(2, "web:0");
    wanted["spec"]["minReadySeconds"] = json!(30);
    wanted["spec"]["revisionHistoryLimit"] = json!(1);
    world.apply(wanted.clone()).await?;
    eventually(LIMIT, async || {
        let status =
            world.client().get::<StatefulSet>(&world.key("db")).await?.status.clone().unwrap_or_default();
        ensure!(status.ready_replicas == Some(1), "{status:?}");
        Ok(())
    })
    .await?;
    consistently(Duration::from_secs(28), async || {
        let pods = world.pods().await?;
        ensure!(pods.len() == 1, "the second pod was created too early");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    eventually(LIMIT, async || {
        let status =
            world.client().get::<StatefulSet>(&world.key("db")).await?.status.clone().unwrap_or_default();
        ensure!(status.available_replicas == Some(2), "{status:?}");
        Ok(())
    })
    .await?;
    for number in 1..4 {
        wanted["spec"]["template"]["spec"]["containers"][0]["image"] = json!(format!("web:{number}"));
        world.apply(wanted.clone()).await?;
        rolled_out(&world, 2).await?;
    }
    eventually(LIMIT, async || {
        let numbers: Vec<i64> = revisions(&world).await?.into_iter().map(|(number, _)| number).collect();
        ensure!(numbers == [3, 4], "{numbers:?}");
        Ok(())
    })
    .await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_result_is_the_same_despite_failed_requests() -> Result<()> {
    for seed in 0..4 {
        let world = World::start(cluster()).await?;
        let mut wanted = set(3, "web:1");
        wanted["spec"]["volumeClaimTemplates"] = json!([{
            "metadata": { "name": "data" },
            "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
        }]);
        world.apply(wanted.clone()).await?;
        world.disturb(seed);
        rolled_out(&world, 3).await?;
        world.env.faults().heal();
        wanted["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:2");
        wanted["spec"]["replicas"] = json!(2);
        world.apply(wanted).await?;
        world.disturb(seed);
        let done = rolled_out(&world, 2).await?.status.unwrap_or_default();
        assert_eq!(done.collision_count, Some(0), "seed {seed}: no revision is created twice");
        let pods = world.ready_pods(2).await?;
        assert!(pods.iter().all(|pod| image(pod) == "web:2"), "seed {seed}");
        assert_eq!(claims(&world).await?.len(), 3, "seed {seed}");
        let numbers: Vec<i64> = revisions(&world).await?.into_iter().map(|(number, _)| number).collect();
        assert_eq!(numbers, [1, 2], "seed {seed}");
    }
    Ok(())
}
