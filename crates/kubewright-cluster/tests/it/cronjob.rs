//! CronJobs create Jobs on schedule; a simulated week passes immediately.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use kubewright_cluster::Options;
use kubewright_envtest::eventually;
use kubewright_runtime::ListOptions;
use serde_json::{Value, json};

use crate::world::World;

const WEEK: Duration = Duration::from_hours(7 * 24);

fn cron(schedule: &str, more: &Value, annotations: &Value) -> Value {
    let mut cron = json!({
        "apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": { "name": "nightly" },
        "spec": { "schedule": schedule, "jobTemplate": { "spec": { "template": {
            "metadata": { "annotations": annotations },
            "spec": { "restartPolicy": "Never", "containers": [{ "name": "work", "image": "work:1" }] },
        } } } },
    });
    if let (Some(into), Some(from)) = (cron["spec"].as_object_mut(), more.as_object()) {
        into.extend(from.clone());
    }
    cron
}

async fn jobs(world: &World) -> Result<Vec<Job>> {
    let jobs = world.client().list::<Job>(&ListOptions::namespace(&world.namespace)).await?;
    Ok(jobs.iter().map(|job| (**job).clone()).collect())
}

#[tokio::test(start_paused = true)]
async fn a_nightly_cron_job_keeps_its_last_three_jobs() -> Result<()> {
    // Without the policy controllers, whose watches would slow down a week of minutes.
    let world = World::start(Options { policies: false, ..Options::default() }).await?;
    world.apply(cron("30 2 * * *", &json!({ "timeZone": "Etc/UTC" }), &json!({}))).await?;
    tokio::time::sleep(WEEK).await;
    let cron = world.client().get::<CronJob>(&world.key("nightly")).await?;
    let status = cron.status.clone().unwrap();
    // The clock of the environment starts on 1 January 2026.
    assert_eq!(status.last_schedule_time.unwrap().0.to_string(), "2026-01-07T02:30:00Z");
    assert_eq!(status.active, None);
    let jobs = jobs(&world).await?;
    let mut times: Vec<String> = jobs
        .iter()
        .map(|job| {
            job.metadata.annotations.as_ref().unwrap()["batch.kubernetes.io/cronjob-scheduled-timestamp"]
                .clone()
        })
        .collect();
    times.sort();
    assert_eq!(times, ["2026-01-05T02:30:00Z", "2026-01-06T02:30:00Z", "2026-01-07T02:30:00Z"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_concurrency_policy_is_respected() -> Result<()> {
    for (policy, count) in [("Forbid", 1), ("Replace", 1), ("Allow", 3)] {
        let world = World::start(Options::default()).await?;
        let long = json!({ "kubewright.dev/run-time": "24h" });
        world.apply(cron("0 * * * *", &json!({ "concurrencyPolicy": policy }), &long)).await?;
        tokio::time::sleep(Duration::from_mins(3 * 60 + 30)).await;
        let first = "2026-01-01T01:00:00Z";
        eventually(Duration::from_mins(1), async || {
            let jobs = jobs(&world).await?;
            ensure!(jobs.len() == count, "{policy}: {} jobs", jobs.len());
            let has_first = jobs.iter().any(|job| {
                job.metadata.annotations.as_ref().unwrap()["batch.kubernetes.io/cronjob-scheduled-timestamp"]
                    == first
            });
            ensure!(has_first == (policy != "Replace"), "{policy}");
            Ok(())
        })
        .await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_suspended_cron_job_creates_no_jobs() -> Result<()> {
    let world = World::start(Options::default()).await?;
    world.apply(cron("@hourly", &json!({ "suspend": true }), &json!({}))).await?;
    tokio::time::sleep(Duration::from_hours(5)).await;
    assert_eq!(jobs(&world).await?.len(), 0);
    Ok(())
}
