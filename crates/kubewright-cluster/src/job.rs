//! The Job controller.
//!
//! Each pod is counted once, even if it is deleted: a finalizer keeps it until the Job's status includes it
//! (`count`). `decide` computes the pods to create and delete, and whether the Job is finished. Both are
//! pure.

mod count;
mod decide;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus};
use k8s_openapi::api::core::v1::{EnvVar, Pod};
use kubewright_runtime::client::{self, ignore_not_found};
use kubewright_runtime::{Context, Delete, Manager, Outcome, Patch, Reconciler, RegisterError, Result};
use serde_json::json;

use self::count::{FINALIZER, Indexes};
use self::decide::{End, Plan};
use crate::adoption;
use crate::node::whole;
use crate::pod::{self, until};
use crate::replicaset::{create_pod, delete_pod, from_template};

const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// Registers the Job controller.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    adoption::index::<Pod>(manager)?;
    manager
        .controller(Jobs)
        .owns::<Pod>()
        .watches_with(adoption::orphans(), |pod: &Pod, cache| {
            adoption::adopters::<Job>(pod, cache, |job| {
                adoption::selector(job.spec.as_ref()?.selector.as_ref()?)
            })
        })
        .concurrency(4)
        .register()
}

/// A condition with status `True`.
pub(crate) fn condition<'a>(job: &'a Job, type_: &str) -> Option<&'a JobCondition> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == type_ && condition.status == "True")
}

/// The condition Complete or Failed, if `True`.
pub(crate) fn finished(job: &Job) -> Option<&JobCondition> {
    condition(job, "Complete").or_else(|| condition(job, "Failed"))
}

struct Jobs;

impl Reconciler for Jobs {
    type Object = Job;

    async fn reconcile(&self, job: &Job, cx: &Context) -> Result<Outcome> {
        let Some(spec) = &job.spec else { return Ok(Outcome::done()) };
        let Some(selector) = spec.selector.as_ref().and_then(adoption::selector) else {
            return Ok(Outcome::done());
        };
        let pods = adoption::claim::<_, Pod>(cx.client(), job, &selector).await?;
        if let Some(end) = finished(job) {
            release(pods.iter(), cx).await?;
            return expire(job, end, cx).await;
        }
        let now = cx.now();
        let mut status = count::next(job, &pods);
        if job.metadata.deletion_timestamp.is_some() {
            // The status of a terminating Job does not matter: release its pods.
            release(pods.iter(), cx).await?;
            return Ok(Outcome::done());
        }
        let plan = decide::plan(job, &mut status, &pods, now);
        let mut failed = None;
        for index in &plan.create {
            let pod = pod_of(job, *index);
            if let Err(error) = create_pod(job, &pod, cx).await {
                failed = Some(error);
                break;
            }
            status.active = Some(status.active.unwrap_or_default() + 1);
        }
        for pod in &plan.delete {
            delete_pod(job, pod, cx).await?;
        }
        write(job, status, cx).await?;
        // Only counted pods may lose their finalizer.
        let counted = count::uncounted(&count::next(job, &pods));
        let is_counted = |pod: &&Arc<Pod>| pod.metadata.uid.as_ref().is_some_and(|uid| counted.contains(uid));
        release(pods.iter().filter(is_counted), cx).await?;
        record_events(job, &plan, cx);
        match failed {
            Some(error) if !error.is_namespace_terminating() => Err(error.into()),
            _ => Ok(plan.wake.map_or(Outcome::done(), Outcome::requeue_after)),
        }
    }
}

/// Removes the finalizer of pods.
async fn release(pods: impl Iterator<Item = &Arc<Pod>>, cx: &Context) -> Result<(), client::Error> {
    for pod in pods {
        let Some(finalizers) =
            pod.metadata.finalizers.as_ref().filter(|it| it.iter().any(|it| it == FINALIZER))
        else {
            continue;
        };
        let left: Vec<&String> = finalizers.iter().filter(|it| *it != FINALIZER).collect();
        let version = pod.metadata.resource_version.as_deref().unwrap_or_default();
        let patch = Patch::merge(json!({ "metadata": { "finalizers": left } })).optimistic(version);
        ignore_not_found(cx.client().patch(&**pod, &patch).await)?;
    }
    Ok(())
}

/// Deletes a finished Job after `ttlSecondsAfterFinished`.
async fn expire(job: &Job, end: &JobCondition, cx: &Context) -> Result<Outcome> {
    let ttl = job.spec.as_ref().and_then(|spec| spec.ttl_seconds_after_finished);
    let Some(ttl) = ttl.and_then(|ttl| u64::try_from(ttl).ok()) else { return Ok(Outcome::done()) };
    let since = end.last_transition_time.as_ref().map_or(cx.now(), |time| time.0);
    if let Some(left) = until(since, Duration::from_secs(ttl), cx.now()) {
        return Ok(Outcome::requeue_after(left));
    }
    let how = Delete::foreground().uid(job.metadata.uid.clone().unwrap_or_default());
    ignore_not_found(cx.client().delete_with(job, &how).await)?;
    Ok(Outcome::done())
}

async fn write(job: &Job, status: JobStatus, cx: &Context) -> Result<()> {
    let patch = crate::status::patch(job.status.as_ref(), &status)?;
    if !patch.is_empty() {
        // Counts must be based on the current status: use optimistic locking.
        let version = job.metadata.resource_version.as_deref().unwrap_or_default();
        ignore_not_found(cx.client().status().patch(job, &patch.optimistic(version)).await)?;
    }
    Ok(())
}

fn record_events(job: &Job, plan: &Plan, cx: &Context) {
    match &plan.end {
        Some(End::Complete) => cx.events().normal(job, "Completed").action("Completed").note("Job completed"),
        Some(End::Failed { reason, message }) => {
            cx.events().warning(job, reason).action("Failed").note(message);
        }
        None => {}
    }
    match plan.suspended {
        Some(true) => cx.events().normal(job, "Suspended").action("Suspended").note("Job suspended"),
        Some(false) => cx.events().normal(job, "Resumed").action("Resumed").note("Job resumed"),
        None => {}
    }
}

/// A pod of a Job, with an index for Indexed Jobs.
fn pod_of(job: &Job, index: Option<i32>) -> Pod {
    let mut pod = from_template(job, job.spec.as_ref().map(|spec| &spec.template));
    pod.metadata.finalizers.get_or_insert_default().push(FINALIZER.to_owned());
    let Some(index) = index else { return pod };
    let name = job.metadata.name.as_deref().unwrap_or_default();
    pod.metadata.generate_name = Some(format!("{name}-{index}-"));
    pod.metadata.annotations.get_or_insert_default().insert(INDEX.to_owned(), index.to_string());
    pod.metadata.labels.get_or_insert_default().insert(INDEX.to_owned(), index.to_string());
    if let Some(spec) = &mut pod.spec {
        spec.hostname = Some(format!("{name}-{index}"));
        for container in spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten()) {
            container.env.get_or_insert_default().push(EnvVar {
                name: "JOB_COMPLETION_INDEX".to_owned(),
                value: Some(index.to_string()),
                value_from: None,
            });
        }
    }
    pod
}

/// The completion index of a pod.
fn index_of(pod: &Pod) -> Option<i32> {
    pod.metadata.annotations.as_ref()?.get(INDEX)?.parse().ok()
}

/// Sets a condition to `True`, if it is not.
fn set_condition(status: &mut JobStatus, type_: &str, reason: &str, message: &str, now: jiff::Timestamp) {
    let conditions = status.conditions.get_or_insert_default();
    if conditions.iter().any(|condition| condition.type_ == type_ && condition.status == "True") {
        return;
    }
    conditions.retain(|condition| condition.type_ != type_);
    conditions.push(JobCondition {
        type_: type_.to_owned(),
        status: "True".to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(whole(now)),
        last_transition_time: Some(whole(now)),
    });
}

/// The completed indexes of a Job.
fn completed(status: &JobStatus) -> Indexes {
    Indexes::parse(status.completed_indexes.as_deref().unwrap_or_default())
}

/// Whether the completion mode is Indexed.
fn is_indexed(job: &Job) -> bool {
    job.spec.as_ref().and_then(|spec| spec.completion_mode.as_deref()) == Some("Indexed")
}

/// The pods that are neither finished nor terminating.
fn active(pods: &[Arc<Pod>]) -> Vec<Arc<Pod>> {
    pods.iter().filter(|pod| pod::is_active(pod)).cloned().collect()
}
