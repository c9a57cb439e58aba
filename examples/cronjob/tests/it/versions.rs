//! Tests the operator with all its parts: objects of both versions, webhooks and the controller.

use anyhow::{Result, ensure};
use cronjob::api::{v1, v2};
use cronjob::registry;
use k8s_openapi::api::batch::v1::Job;
use kubewright::{Key, ListOptions};
use kubewright_envtest::{Environment, Mode, Running, matches_yaml};

const V2: &str = include_str!("../../config/samples/batch_v2_cronjob.yaml");

async fn start() -> Result<(Environment, Running, String)> {
    let builder = Environment::builder().mode(Mode::Embedded).seed(1).with_cluster();
    let env = builder.crd::<v1::CronJob>().crd::<v2::CronJob>().start().await?;
    let namespace = env.namespace().await?;
    let manager = env.manager("cronjob")?;
    registry::register(&manager)?;
    let mut running = env.run(manager);
    running.ready().await?;
    Ok((env, running, namespace))
}

#[tokio::test(start_paused = true)]
async fn an_object_of_v2_gets_defaults_and_jobs() -> Result<()> {
    let (env, running, namespace) = start().await?;
    env.apply_yaml(&namespace, V2).await?;
    tokio::time::sleep(std::time::Duration::from_secs(90)).await;
    let (client, key) = (env.runtime_client(), Key::namespaced(&namespace, "cronjob-v2-sample"));
    let hub = client.get::<v1::CronJob>(&key).await?;
    matches_yaml(&*hub, "spec: {schedule: '*/1 * * * *', suspend: false, successfulJobsHistoryLimit: 3}")?;
    let spoke = client.get::<v2::CronJob>(&key).await?;
    let v2 = "
spec:
  schedule: {minute: '*/1', hour: '*', dayOfMonth: '*', month: '*', dayOfWeek: '*'}
  concurrencyPolicy: Allow
  failedJobsHistoryLimit: 1
status: {lastScheduleTime: '2026-01-01T00:01:00Z'}
";
    matches_yaml(&*spoke, v2)?;
    let jobs = client.list::<Job>(&ListOptions::namespace(&namespace)).await?;
    ensure!(jobs.len() == 1, "{jobs:?}");
    Ok(running.stop().await?)
}

#[tokio::test(start_paused = true)]
async fn an_object_of_v2_is_validated_as_v1() -> Result<()> {
    let (env, running, namespace) = start().await?;
    let refused = env.apply_yaml(&namespace, &V2.replace("*/1", "60")).await;
    let error = format!("{:#}", anyhow::Error::from(refused.expect_err("minute 60 does not exist")));
    ensure!(error.contains("spec.schedule: Invalid value: \"60 * * * *\""), "{error}");
    // A space would be another field in v1.
    let refused = env.apply_yaml(&namespace, &V2.replace("*/1", "0 12")).await;
    let error = format!("{:#}", anyhow::Error::from(refused.expect_err("a field contains no space")));
    ensure!(error.contains("\"0 12 * * * *\": must have five fields"), "{error}");
    Ok(running.stop().await?)
}
