//! Jobs complete, fail, are counted and expire.

use anyhow::{Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use kubewright_cluster::Options;
use kubewright_envtest::eventually;
use serde_json::{Value, json};

use crate::world::{LIMIT, World};

fn job(annotations: &Value, more: &Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": { "name": "work" },
        "spec": { "template": {
            "metadata": { "annotations": annotations },
            "spec": { "restartPolicy": "Never", "containers": [{ "name": "work", "image": "work:1" }] },
        } },
    });
    if let (Some(into), Some(from)) = (job["spec"].as_object_mut(), more.as_object()) {
        into.extend(from.clone());
    }
    job
}

/// Waits until the Job has a condition.
async fn ended(world: &World, type_: &str) -> Result<Job> {
    let job = eventually(LIMIT, async || {
        let job = world.client().get::<Job>(&world.key("work")).await?;
        let status = job.status.clone().unwrap_or_default();
        ensure!(
            status.conditions.iter().flatten().any(|it| it.type_ == type_ && it.status == "True"),
            "{status:?}"
        );
        Ok((*job).clone())
    });
    Ok(job.await?)
}

#[tokio::test(start_paused = true)]
async fn a_job_runs_within_its_parallelism_and_completes() -> Result<()> {
    let world = World::start(Options::default()).await?;
    world.apply(job(&json!({}), &json!({ "completions": 5, "parallelism": 2 }))).await?;
    let status = ended(&world, "Complete").await?.status.unwrap();
    assert_eq!((status.succeeded, status.failed, status.active), (Some(5), None, None));
    assert!(status.completion_time.is_some() && status.start_time.is_some());
    let pods = world.pods().await?;
    assert_eq!(pods.len(), 5);
    assert!(pods.iter().all(|pod| pod.metadata.finalizers.is_none()), "a pod still has its finalizer");
    let events = world.events("work").await?;
    assert!(events.contains(&"Completed: Job completed".to_owned()), "{events:?}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_indexed_job_has_a_pod_for_each_index() -> Result<()> {
    let world = World::start(Options::default()).await?;
    world
        .apply(job(&json!({}), &json!({ "completions": 3, "parallelism": 3, "completionMode": "Indexed" })))
        .await?;
    let status = ended(&world, "Complete").await?.status.unwrap();
    assert_eq!((status.succeeded, status.completed_indexes.as_deref()), (Some(3), Some("0-2")));
    let mut names: Vec<String> =
        world.pods().await?.iter().filter_map(|pod| pod.spec.as_ref()?.hostname.clone()).collect();
    names.sort();
    assert_eq!(names, ["work-0", "work-1", "work-2"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_job_fails_at_its_backoff_limit() -> Result<()> {
    let world = World::start(Options::default()).await?;
    let failing = json!({ "kubewright.dev/exit-code": "1" });
    world.apply(job(&failing, &json!({ "backoffLimit": 2 }))).await?;
    let status = ended(&world, "Failed").await?.status.unwrap();
    assert_eq!(status.failed, Some(3));
    let failed = status.conditions.unwrap().into_iter().find(|it| it.type_ == "Failed").unwrap();
    assert_eq!(failed.reason.as_deref(), Some("BackoffLimitExceeded"));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_job_fails_at_its_deadline_and_its_pods_are_deleted() -> Result<()> {
    let world = World::start(Options::default()).await?;
    let slow = json!({ "kubewright.dev/run-time": "1h" });
    world.apply(job(&slow, &json!({ "activeDeadlineSeconds": 30 }))).await?;
    let status = ended(&world, "Failed").await?.status.unwrap();
    let failed = status.conditions.unwrap().into_iter().find(|it| it.type_ == "Failed").unwrap();
    assert_eq!(failed.reason.as_deref(), Some("DeadlineExceeded"));
    eventually(LIMIT, async || {
        ensure!(world.pods().await?.is_empty(), "a pod is left");
        Ok(())
    })
    .await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_finished_job_is_deleted_after_its_ttl() -> Result<()> {
    let world = World::start(Options::default()).await?;
    world.apply(job(&json!({}), &json!({ "ttlSecondsAfterFinished": 60 }))).await?;
    ended(&world, "Complete").await?;
    eventually(LIMIT, async || {
        let job = world.client().get_opt::<Job>(&world.key("work")).await?;
        ensure!(job.is_none() && world.pods().await?.is_empty(), "the job or a pod still exists");
        Ok(())
    })
    .await?;
    Ok(())
}
