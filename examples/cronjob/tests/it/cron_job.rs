//! Tests the cronjob controller: Jobs on schedule, concurrency policies, history, suspension, permissions.
//!
//! Each test waits until half a minute after a scheduled time, when all Jobs of that time have started.

use anyhow::{Result, ensure};
use cronjob::api::v1::CronJob;
use k8s_openapi::api::batch::v1::Job;
use kubewright_envtest::matches_yaml;
use serde_json::json;

use crate::world::World;

const NAME: &str = "cronjob-sample";
const SAMPLE: &str = include_str!("../../config/samples/batch_v1_cronjob.yaml");
/// 2026-01-01T00:00:00Z in Unix time, the start of the names of all Jobs.
const MIDNIGHT: u64 = 1_767_225_600;

#[tokio::test(start_paused = true)]
async fn the_sample_becomes_ready_and_starts_jobs() -> Result<()> {
    let world = World::start().await?;
    world.env.apply_yaml(&world.namespace, SAMPLE).await?;
    world.wait_until(0, 0, 30).await;
    let (status, reason, message) = world.ready(NAME).await?;
    assert_eq!((status.as_str(), reason.as_str()), ("True", "Scheduled"));
    assert_eq!(message, "The next start is at 2026-01-01T00:01:00Z");
    assert_eq!(world.last(NAME).await?, None);
    world.wait_until(0, 1, 30).await;
    assert_eq!(world.last(NAME).await?.as_deref(), Some("2026-01-01T00:01:00Z"));
    let key = world.key(&format!("{NAME}-{}", MIDNIGHT + 60));
    let job = world.env.runtime_client().get::<Job>(&key).await?;
    matches_yaml(
        &*job,
        "
metadata:
  annotations: {batch.tutorial.kubebuilder.io/scheduled-at: '2026-01-01T00:01:00Z'}
  ownerReferences: [{apiVersion: batch.tutorial.kubebuilder.io/v1, kind: CronJob, name: cronjob-sample, controller: true}]
spec: {template: {spec: {restartPolicy: OnFailure, containers: [{name: hello, image: busybox}]}}}
status: {succeeded: 1}
",
    )?;
    world.stop().await
}

#[tokio::test(start_paused = true)]
async fn running_jobs_are_listed_in_the_status() -> Result<()> {
    let world = World::start().await?;
    world.create_slow("slow", json!({ "schedule": "* * * * *" }), 80).await?;
    world.wait_until(0, 1, 30).await;
    assert_eq!(world.active("slow").await?, [format!("slow-{}", MIDNIGHT + 60)]);
    // The first Job ends at 00:02:20, the second one is running.
    world.wait_until(0, 2, 50).await;
    assert_eq!(world.active("slow").await?, [format!("slow-{}", MIDNIGHT + 120)]);
    world.stop().await
}

#[tokio::test(start_paused = true)]
async fn allow_starts_jobs_while_others_run() -> Result<()> {
    let world = World::start().await?;
    let spec = json!({ "schedule": "* * * * *", "concurrencyPolicy": "Allow" });
    world.create_slow("allow", spec, 600).await?;
    world.wait_until(0, 3, 30).await;
    assert_eq!(world.times("allow").await?, ["00:01:00", "00:02:00", "00:03:00"]);
    assert_eq!(world.active("allow").await?.len(), 3);
    world.stop().await
}

#[tokio::test(start_paused = true)]
async fn forbid_starts_the_latest_missed_job_after_the_running_one() -> Result<()> {
    let world = World::start().await?;
    let spec = json!({ "schedule": "* * * * *", "concurrencyPolicy": "Forbid" });
    world.create_slow("forbid", spec, 150).await?;
    world.wait_until(0, 3, 15).await;
    assert_eq!(world.times("forbid").await?, ["00:01:00"]);
    assert_eq!(world.last("forbid").await?.as_deref(), Some("2026-01-01T00:01:00Z"));
    let note = "Not starting a Job, because a Job is running and the concurrency policy is Forbid";
    assert_eq!(world.notes("JobAlreadyActive").await?, [note]);
    // The first Job has ended. The start at 00:02:00 is skipped.
    world.wait_until(0, 3, 50).await;
    assert_eq!(world.times("forbid").await?, ["00:01:00", "00:03:00"]);
    assert_eq!(world.active("forbid").await?, [format!("forbid-{}", MIDNIGHT + 180)]);
    world.stop().await
}

#[tokio::test(start_paused = true)]
async fn replace_deletes_the_running_job() -> Result<()> {
    let world = World::start().await?;
    let spec = json!({ "schedule": "* * * * *", "concurrencyPolicy": "Replace" });
    world.create_slow("replace", spec, 600).await?;
    world.wait_until(0, 3, 50).await;
    assert_eq!(world.times("replace").await?, ["00:03:00"]);
    assert_eq!(world.active("replace").await?, [format!("replace-{}", MIDNIGHT + 180)]);
    let deleted = [60, 120].map(|second| format!("Deleted Job replace-{}", MIDNIGHT + second));
    assert_eq!(world.notes("SuccessfulDelete").await?, deleted);
    world.stop().await
}

#[tokio::test(start_paused = true)]
async fn finished_jobs_above_the_history_limits_are_deleted() -> Result<()> {
    let world = World::start().await?;
    let spec = json!({
        "schedule": "* * * * *", "successfulJobsHistoryLimit": 2, "failedJobsHistoryLimit": 1,
    });
    world.create("succeeds", spec.clone()).await?;
    world.create_slow("fails", spec, 5).await?;
    world.create("defaults", json!({ "schedule": "* * * * *" })).await?;
    world.create_slow("fails-by-default", json!({ "schedule": "* * * * *" }), 5).await?;
    world.wait_until(0, 5, 30).await;
    assert_eq!(world.times("succeeds").await?, ["00:04:00", "00:05:00"]);
    assert_eq!(world.times("fails").await?, ["00:05:00"]);
    assert_eq!(world.times("defaults").await?, ["00:03:00", "00:04:00", "00:05:00"]);
    assert_eq!(world.times("fails-by-default").await?, ["00:05:00"]);
    assert!(world.active("succeeds").await?.is_empty());
    world.stop().await
}

#[tokio::test(start_paused = true)]
async fn without_history_a_time_starts_one_job() -> Result<()> {
    let world = World::start().await?;
    let spec = json!({ "schedule": "* * * * *", "successfulJobsHistoryLimit": 0 });
    world.create("forgetful", spec).await?;
    world.wait_until(0, 3, 30).await;
    assert!(world.jobs("forgetful").await?.is_empty());
    assert_eq!(world.last("forgetful").await?.as_deref(), Some("2026-01-01T00:03:00Z"));
    assert_eq!(world.created(), 3);
    world.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_suspended_cron_job_starts_no_job_until_it_is_resumed() -> Result<()> {
    let world = World::start().await?;
    world.create_slow("suspended", json!({ "schedule": "* * * * *", "suspend": true }), 600).await?;
    world.wait_until(0, 5, 30).await;
    assert!(world.jobs("suspended").await?.is_empty());
    assert_eq!(world.ready("suspended").await?.1, "Suspended");
    // Only the latest start is made up for.
    world.change("suspended", |it| it.spec.suspend = Some(false)).await?;
    world.wait_until(0, 5, 50).await;
    assert_eq!(world.times("suspended").await?, ["00:05:00"]);
    // Suspension does not stop running Jobs.
    world.change("suspended", |it| it.spec.suspend = Some(true)).await?;
    world.wait_until(0, 8, 30).await;
    assert_eq!(world.active("suspended").await?.len(), 1);
    assert_eq!(world.times("suspended").await?, ["00:05:00"]);
    world.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_changed_schedule_is_followed() -> Result<()> {
    let world = World::start().await?;
    world.create("moved", json!({ "schedule": "0 12 * * *" })).await?;
    world.wait_until(0, 5, 30).await;
    world.change("moved", |it| it.spec.schedule = "*/2 * * * *".to_owned()).await?;
    world.wait_until(0, 8, 30).await;
    // 00:04 is before the change, but after the last start: there was none.
    assert_eq!(world.times("moved").await?, ["00:04:00", "00:06:00", "00:08:00"]);
    world.stop().await
}

#[tokio::test(start_paused = true)]
async fn an_invalid_schedule_is_reported() -> Result<()> {
    let world = World::start().await?;
    // No webhook runs in this test.
    world.create("invalid", json!({ "schedule": "* * * *" })).await?;
    world.wait_until(0, 1, 30).await;
    let (status, reason, message) = world.ready("invalid").await?;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "UnparseableSchedule"));
    let expected =
        "spec.schedule: must have five fields: minute, hour, day of month, month and day of week; found 4";
    assert_eq!(message, expected);
    assert_eq!(world.notes("UnparseableSchedule").await?, [expected]);
    world.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_job_that_the_api_server_refuses_is_reported() -> Result<()> {
    let world = World::start().await?;
    let pod = json!({ "restartPolicy": "Always", "containers": [{ "name": "hello", "image": "busybox" }] });
    let spec = json!({
        "schedule": "* * * * *", "jobTemplate": { "spec": { "template": { "spec": pod } } },
    });
    world.create("refused", spec).await?;
    world.wait_until(0, 1, 30).await;
    let notes = world.notes("FailedCreate").await?;
    ensure!(notes.len() == 1 && notes[0].contains("spec.template.spec.restartPolicy"), "{notes:?}");
    world.stop().await
}

#[tokio::test(start_paused = true)]
async fn deleting_a_cron_job_deletes_its_jobs() -> Result<()> {
    let world = World::start().await?;
    world.create_slow("deleted", json!({ "schedule": "* * * * *" }), 600).await?;
    world.wait_until(0, 2, 30).await;
    assert_eq!(world.jobs("deleted").await?.len(), 2);
    let client = world.env.runtime_client();
    client.delete_key::<CronJob>(&world.key("deleted"), &kubewright::Delete::background()).await?;
    world.wait_until(0, 4, 30).await;
    assert!(world.jobs("deleted").await?.is_empty());
    assert_eq!(world.created(), 2);
    world.stop().await
}

#[tokio::test(start_paused = true)]
async fn the_generated_role_has_exactly_the_needed_permissions() -> Result<()> {
    let world = World::start().await?;
    let spec = json!({ "schedule": "* * * * *", "successfulJobsHistoryLimit": 1 });
    world.create("history", spec).await?;
    world.wait_until(0, 3, 30).await;
    assert_eq!(world.times("history").await?, ["00:03:00"]);
    let requests = world.env.faults().operator().requests();
    assert!(requests.iter().all(|it| it.user.starts_with("system:serviceaccount:")), "{requests:?}");
    assert_eq!(world.env.forbidden_permissions(), []);
    assert_eq!(world.env.unused_permissions(), []);
    world.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_waiting_cron_job_is_not_written() -> Result<()> {
    let mut world = World::without_operator().await?;
    world.start_operator()?;
    world.create("daily", json!({ "schedule": "0 12 * * *" })).await?;
    world.wait_until(0, 1, 0).await;
    let writes = || world.env.faults().operator().count(|asked| asked.is_write() && !asked.is_of("events"));
    let before = writes();
    world.wait_until(6, 0, 0).await;
    assert_eq!(writes(), before);
    world.stop().await
}
