//! A control plane with simulated Jobs and the operator, on a paused clock.
//!
//! The clock starts at midnight on 1 January 2026. Waiting takes no real time.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use cronjob::api::v1::{CronJob, CronJobStatus};
use cronjob::{api, controllers};
use k8s_openapi::api::batch::v1::Job;
use kubewright::prelude::*;
use kubewright::{Key, ListOptions};
use kubewright_envtest::{Builder, Environment, Mode, Running};
use serde_json::{Value, json};
use tokio::time::Instant;

pub(crate) const SCHEDULED_AT: &str = "batch.tutorial.kubebuilder.io/scheduled-at";

pub(crate) struct World {
    running: Option<Running>,
    midnight: Instant,
    pub(crate) namespace: String,
    pub(crate) env: Environment,
}

impl World {
    /// Starts the control plane, with controllers that run Jobs, and the operator.
    pub(crate) async fn start() -> Result<Self> {
        let mut world = Self::build(Environment::builder().with_cluster()).await?;
        world.start_operator()?;
        Ok(world)
    }

    /// Starts the control plane only. No controller runs, so Jobs never finish, and hours pass faster.
    pub(crate) async fn without_operator() -> Result<Self> {
        Self::build(Environment::builder()).await
    }

    async fn build(builder: Builder) -> Result<Self> {
        let midnight = Instant::now();
        let builder = builder.mode(Mode::Embedded).seed(1).crd::<CronJob>().crd::<api::v2::CronJob>();
        let env = builder.start().await?;
        let namespace = env.namespace().await?;
        Ok(Self { running: None, midnight, namespace, env })
    }

    pub(crate) fn start_operator(&mut self) -> Result<()> {
        let manager = self.env.manager("cronjob")?;
        self.run(manager)
    }

    /// Starts the operator with a manager.
    pub(crate) fn run(&mut self, manager: Manager) -> Result<()> {
        controllers::cron_job::register(&manager)?;
        self.running = Some(self.env.run(manager));
        Ok(())
    }

    pub(crate) async fn stop_operator(&mut self) -> Result<()> {
        let running = self.running.take().context("the operator does not run")?;
        Ok(running.stop().await?)
    }

    pub(crate) async fn stop(mut self) -> Result<()> {
        self.stop_operator().await
    }

    /// Waits until a time of the first day.
    pub(crate) async fn wait_until(&self, hour: u64, minute: u64, second: u64) {
        let time = Duration::from_secs((hour * 60 + minute) * 60 + second);
        assert!(Instant::now() <= self.midnight + time, "{hour}:{minute}:{second} has passed");
        tokio::time::sleep_until(self.midnight + time).await;
    }

    /// Creates a CronJob whose Jobs succeed after a second.
    pub(crate) async fn create(&self, name: &str, spec: Value) -> Result<()> {
        let containers = json!([{ "name": "hello", "image": "busybox" }]);
        let template = json!({ "spec": { "restartPolicy": "Never", "containers": containers } });
        self.create_with(name, spec, json!({ "template": template })).await
    }

    /// Creates a CronJob whose Jobs run for some seconds and fail: no node fits their Pods.
    pub(crate) async fn create_slow(&self, name: &str, spec: Value, seconds: u32) -> Result<()> {
        let containers = json!([{ "name": "hello", "image": "busybox" }]);
        let pod = json!({
            "restartPolicy": "Never", "nodeSelector": { "none": "such" }, "containers": containers,
        });
        let job = json!({ "activeDeadlineSeconds": seconds, "template": { "spec": pod } });
        self.create_with(name, spec, job).await
    }

    async fn create_with(&self, name: &str, mut spec: Value, job: Value) -> Result<()> {
        if spec["jobTemplate"].is_null() {
            spec["jobTemplate"] = json!({ "spec": job });
        }
        let object = json!({
            "apiVersion": "batch.tutorial.kubebuilder.io/v1",
            "kind": "CronJob",
            "metadata": { "name": name },
            "spec": spec,
        });
        self.env.apply_yaml(&self.namespace, &object.to_string()).await?;
        Ok(())
    }

    pub(crate) async fn change(&self, name: &str, change: impl Fn(&mut CronJob)) -> Result<()> {
        self.env.runtime_client().modify(&self.key(name), change).await?;
        Ok(())
    }

    pub(crate) fn key(&self, name: &str) -> Key {
        Key::namespaced(&self.namespace, name)
    }

    pub(crate) async fn status(&self, name: &str) -> Result<CronJobStatus> {
        let cron_job = self.env.runtime_client().get::<CronJob>(&self.key(name)).await?;
        Ok(cron_job.status.clone().unwrap_or_default())
    }

    /// The Jobs of a CronJob, oldest first.
    pub(crate) async fn jobs(&self, name: &str) -> Result<Vec<Arc<Job>>> {
        let mut jobs =
            self.env.runtime_client().list::<Job>(&ListOptions::namespace(&self.namespace)).await?;
        jobs.retain(|job| job.owner_references().iter().any(|owner| owner.name == name));
        jobs.sort_by_key(|job| job.name_any());
        Ok(jobs)
    }

    /// The scheduled times of the Jobs of a CronJob, such as `00:01:00`.
    pub(crate) async fn times(&self, name: &str) -> Result<Vec<String>> {
        let jobs = self.jobs(name).await?;
        let times = jobs.iter().map(|job| {
            let time = job.annotations().get(SCHEDULED_AT).context("no scheduled time")?;
            let time = time.strip_prefix("2026-01-01T").context("another day")?;
            anyhow::Ok(time.trim_end_matches('Z').to_owned())
        });
        times.collect()
    }

    /// The times of the Jobs in the status.
    pub(crate) async fn active(&self, name: &str) -> Result<Vec<String>> {
        let mut active: Vec<String> =
            self.status(name).await?.active.into_iter().filter_map(|job| job.name).collect();
        active.sort();
        Ok(active)
    }

    /// The scheduled time of the latest Job in the status.
    pub(crate) async fn last(&self, name: &str) -> Result<Option<String>> {
        Ok(self.status(name).await?.last_schedule_time.map(|time| time.0.to_string()))
    }

    /// The reason and the message of the condition Ready.
    pub(crate) async fn ready(&self, name: &str) -> Result<(String, String, String)> {
        let status = self.status(name).await?;
        let ready = status.conditions.into_iter().find(|condition| condition.type_ == "Ready");
        let ready = ready.context("no condition")?;
        Ok((ready.status, ready.reason, ready.message))
    }

    /// The notes of the events with a reason.
    pub(crate) async fn notes(&self, reason: &str) -> Result<Vec<String>> {
        let events = self.env.events(&self.namespace).await?;
        let about = |it: &&Arc<k8s_openapi::api::events::v1::Event>| {
            it.reason.as_deref() == Some(reason)
                && it.regarding.as_ref().is_some_and(|about| {
                    about.api_version.as_deref() == Some("batch.tutorial.kubebuilder.io/v1")
                })
        };
        Ok(events.iter().filter(about).filter_map(|event| event.note.clone()).collect())
    }

    /// The number of Jobs that the operator created, also those that were deleted since.
    pub(crate) fn created(&self) -> usize {
        self.env.faults().operator().count(|asked| asked.is_of("jobs") && asked.verb == "create")
    }
}
