//! Recipe: owned objects and an index of them.

use std::sync::Arc;

use kubewright::cache::Index;
use kubewright::k8s_openapi::api::batch::v1::Job;
use kubewright::prelude::*;
use kubewright::tracing;
use kubewright::{Context, Key, ListOptions, Result};
use serde::{Deserialize, Serialize};

#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Backup", namespaced)]
#[serde(rename_all = "camelCase")]
pub struct BackupSpec {
    /// The number of Jobs to keep.
    #[schemars(range(min = 1))]
    pub keep: u32,
}

pub struct BackupReconciler {
    /// The Jobs of all Backups by image.
    pub by_image: Index<Job>,
}

#[rbac(groups = "batch", resources = "jobs", verbs = "delete")]
impl Reconciler for BackupReconciler {
    type Object = Backup;

    async fn reconcile(&self, backup: &Backup, cx: &Context) -> Result<Outcome> {
        let mut jobs: Vec<Arc<Job>> = cx.owned()?;
        jobs.sort_by_key(|job| job.creation_timestamp().map(|time| time.0));
        let surplus = jobs.len().saturating_sub(backup.spec.keep as usize);
        for job in &jobs[..surplus] {
            cx.client().delete(&**job).await?;
        }
        let old = self
            .by_image
            .list("backup:v1", &ListOptions::namespace(backup.namespace().unwrap_or_default()))?;
        tracing::info!("{} Jobs of the namespace run backup:v1", old.len());
        Ok(Outcome::done())
    }
}

fn images(job: &Job) -> Vec<String> {
    let pod = job.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let containers = pod.into_iter().flat_map(|pod| &pod.containers);
    containers.filter_map(|container| container.image.clone()).collect()
}

pub fn register(manager: &Manager) -> Result<()> {
    let by_image = manager.cache().index::<Job>("image", images)?;
    manager.controller(BackupReconciler { by_image }).owns::<Job>().register()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anyhow::ensure;
    use kubewright::owner::set_controller_reference;
    use kubewright_envtest::{Environment, eventually};

    use super::*;

    fn job(name: &str, owner: &Backup) -> Result<Job> {
        let pod = kubewright::serde_json::json!({
            "restartPolicy": "Never",
            "containers": [{ "name": "backup", "image": "backup:v1" }],
        });
        let mut job: Job = kubewright::serde_json::from_value(kubewright::serde_json::json!({
            "metadata": { "name": name, "namespace": "default" },
            "spec": { "template": { "spec": pod } },
        }))?;
        set_controller_reference(owner, &mut job)?;
        Ok(job)
    }

    #[tokio::test]
    async fn surplus_jobs_of_the_owner_are_deleted() -> Result<()> {
        let env = Environment::builder().crd::<Backup>().start().await?;
        let client = env.runtime_client();
        let backup = "{apiVersion: example.com/v1, kind: Backup, metadata: {name: nightly}, spec: {keep: 2}}";
        env.apply_yaml("default", backup).await?;
        let backup = client.get::<Backup>(&Key::namespaced("default", "nightly")).await?;
        for name in ["one", "two", "three", "four"] {
            client.create(&job(name, &backup)?).await?;
        }
        let mut other = job("of-another-owner", &backup)?;
        other.metadata.owner_references = None;
        client.create(&other).await?;

        let manager = env.manager("backups")?;
        register(&manager)?;
        let running = env.run(manager);
        eventually(Duration::from_secs(30), async || {
            let jobs = client.list::<Job>(&ListOptions::namespace("default")).await?;
            ensure!(jobs.len() == 3, "{} Jobs", jobs.len());
            ensure!(jobs.iter().any(|job| job.name_any() == "of-another-owner"), "it was deleted");
            Ok(())
        })
        .await?;
        Ok(running.stop().await?)
    }
}
