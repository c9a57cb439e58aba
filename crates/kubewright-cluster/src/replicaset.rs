//! The ReplicaSet controller.

mod ranking;
pub(crate) mod status;

use std::sync::Arc;

use futures_util::future::join_all;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_runtime::client::{self, ignore_not_found};
use kubewright_runtime::controller::{Predicate, Watch};
use kubewright_runtime::owner::{controller_of, set_controller_reference};
use kubewright_runtime::{Context, Delete, Manager, Object, Outcome, Reconciler, RegisterError, Result};

use self::status::Failure;
use crate::{adoption, pod};

/// Maximum number of pods created or deleted in one sync.
const BURST: usize = 500;

/// Registers the ReplicaSet controller.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    adoption::index::<Pod>(manager)?;
    adoption::index::<ReplicaSet>(manager)?;
    manager
        .controller(ReplicaSets)
        .owns_with(pods())
        .watches_with(adoption::orphans(), |pod: &Pod, cache| {
            adoption::adopters::<ReplicaSet>(pod, cache, |set| {
                adoption::selector(&set.spec.as_ref()?.selector)
            })
        })
        .concurrency(4)
        .register()
}

/// Watches the events of pods that can change the number of pods to create or delete, or a status.
///
/// Without it, each pod would cause two more syncs of its ReplicaSet: when it is bound, and when its containers are
/// being created.
pub(crate) fn pods() -> Watch<Pod> {
    Watch::new().filter(Predicate::new(|event| match (event.old(), event.new_object()) {
        (Some(old), Some(new)) => {
            let ready = |pod: &Pod| pod::condition(pod, "Ready").filter(|it| it.status == "True").cloned();
            pod::is_terminal(&old) != pod::is_terminal(&new)
                || pod::is_terminating(&old) != pod::is_terminating(&new)
                || ready(&old) != ready(&new)
                || old.metadata.labels != new.metadata.labels
                || old.metadata.owner_references != new.metadata.owner_references
        }
        _ => true,
    }))
}

struct ReplicaSets;

impl Reconciler for ReplicaSets {
    type Object = ReplicaSet;

    async fn reconcile(&self, set: &ReplicaSet, cx: &Context) -> Result<Outcome> {
        let Some(spec) = &set.spec else { return Ok(Outcome::done()) };
        let Some(selector) = adoption::selector(&spec.selector) else { return Ok(Outcome::done()) };
        let pods = adoption::claim::<_, Pod>(cx.client(), set, &selector).await?;
        let (active, others): (Vec<_>, Vec<_>) = pods.into_iter().partition(|pod| pod::is_active(pod));
        let managed = match set.metadata.deletion_timestamp {
            None => manage(set, set, &active, cx).await,
            Some(_) => Ok(()),
        };
        let failure = managed.as_ref().err().map(|(failure, error)| (*failure, error.to_string()));
        let terminating =
            others.iter().filter(|pod| pod::is_terminating(pod) && !pod::is_terminal(pod)).count();
        let next = status::next(set, &active, terminating, failure.as_ref(), cx.now());
        ignore_not_found(crate::status::write(cx.client(), set, set.status.as_ref(), &next.status).await)?;
        match managed {
            // Nothing can be created in a terminating namespace.
            Err((_, error)) if !error.is_namespace_terminating() => Err(error.into()),
            _ => Ok(next.wake.map_or(Outcome::done(), Outcome::requeue_after)),
        }
    }
}

/// Creates missing pods or deletes excess pods. Their controller is `owner`: `set` itself, or the ReplicationController
/// that it was made from.
pub(crate) async fn manage<O: Object>(
    owner: &O,
    set: &ReplicaSet,
    active: &[Arc<Pod>],
    cx: &Context,
) -> Result<(), (Failure, client::Error)> {
    let wanted = usize::try_from(status::wanted(set)).unwrap_or_default();
    if active.len() < wanted {
        let template = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
        let pod = from_template(owner, template);
        return slow_start((wanted - active.len()).min(BURST), |_| create_pod(owner, &pod, cx))
            .await
            .map_err(|error| (Failure::Create, error));
    }
    if active.len() == wanted {
        return Ok(());
    }
    let related = related(set, active, cx).await.map_err(|error| (Failure::Delete, error))?;
    let surplus = (active.len() - wanted).min(BURST);
    let doomed = ranking::to_delete(active, &related, surplus, cx.now());
    let deletions = doomed.into_iter().map(|pod| delete_pod(owner, pod, cx));
    let failed = join_all(deletions).await.into_iter().find_map(Result::err);
    failed.map_or(Ok(()), |error| Err((Failure::Delete, error)))
}

/// Calls `attempt` with the indices 0 to `count`, in batches of 1, 2, 4 and so on. Stops after a failure, so
/// that a persistent error does not cause hundreds of requests.
pub(crate) async fn slow_start<E, F: Future<Output = Result<(), E>>>(
    count: usize,
    attempt: impl Fn(usize) -> F,
) -> Result<(), E> {
    let (mut done, mut batch) = (0, 1);
    while done < count {
        batch = batch.min(count - done);
        let results = join_all((done..done + batch).map(&attempt)).await;
        results.into_iter().collect::<Result<(), E>>()?;
        done += batch;
        batch *= 2;
    }
    Ok(())
}

/// Creates a pod object from a template, controlled by `owner`.
pub(crate) fn from_template<O: Object>(owner: &O, template: Option<&PodTemplateSpec>) -> Pod {
    let template = template.cloned().unwrap_or_default();
    let meta = template.metadata.unwrap_or_default();
    let mut pod = Pod {
        metadata: ObjectMeta {
            namespace: owner.meta().namespace.clone(),
            generate_name: Some(format!("{}-", owner.meta().name.as_deref().unwrap_or_default())),
            labels: meta.labels,
            annotations: meta.annotations,
            finalizers: meta.finalizers,
            ..ObjectMeta::default()
        },
        spec: template.spec,
        status: None,
    };
    // Cannot fail: the pod is new and in the same namespace.
    let _ = set_controller_reference(owner, &mut pod);
    pod
}

/// Creates a pod and records an event.
pub(crate) async fn create_pod<O: Object>(owner: &O, pod: &Pod, cx: &Context) -> Result<(), client::Error> {
    match cx.client().create(pod).await {
        Ok(created) => {
            let name = created.metadata.name.as_deref().unwrap_or_default();
            let note = format_args!("Created pod: {name}");
            cx.events().about(owner).related(&created).normal("SuccessfulCreate").action("Create").note(note);
            Ok(())
        }
        Err(error) => {
            if !error.is_namespace_terminating() {
                cx.events()
                    .warning(owner, "FailedCreate")
                    .action("Create")
                    .note(format_args!("Error creating: {error}"));
            }
            Err(error)
        }
    }
}

/// Deletes a pod with a UID precondition and records an event.
pub(crate) async fn delete_pod<O: Object>(owner: &O, pod: &Pod, cx: &Context) -> Result<(), client::Error> {
    let how = Delete::new().uid(pod.metadata.uid.clone().unwrap_or_default());
    match cx.client().delete_with(pod, &how).await {
        Ok(()) => {
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            let note = format_args!("Deleted pod: {name}");
            cx.events().about(owner).related(pod).normal("SuccessfulDelete").action("Delete").note(note);
            Ok(())
        }
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => {
            cx.events()
                .warning(owner, "FailedDelete")
                .action("Delete")
                .note(format_args!("Error deleting: {error}"));
            Err(error)
        }
    }
}

/// The pods of all ReplicaSets of the same Deployment. Nodes with more of them are scaled down first.
async fn related(
    set: &ReplicaSet,
    active: &[Arc<Pod>],
    cx: &Context,
) -> Result<Vec<Arc<Pod>>, client::Error> {
    let Some(owner) = controller_of(set) else { return Ok(active.to_vec()) };
    let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
    let mut pods = Vec::new();
    for sibling in adoption::controlled::<ReplicaSet>(cx.client(), namespace, &owner.uid).await? {
        let uid = sibling.metadata.uid.as_deref().unwrap_or_default();
        pods.extend(adoption::controlled::<Pod>(cx.client(), namespace, uid).await?);
    }
    pods.retain(|pod| pod::is_active(pod));
    Ok(pods)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test]
    async fn slow_start_doubles_until_a_failure() {
        let tried = Mutex::new(0);
        let attempt = async |limit: usize| {
            let mut tried = tried.lock().unwrap();
            *tried += 1;
            if *tried > limit { Err(()) } else { Ok(()) }
        };
        assert_eq!(slow_start(10, |_| attempt(100)).await, Ok(()));
        assert_eq!(*tried.lock().unwrap(), 10);
        *tried.lock().unwrap() = 0;
        assert_eq!(slow_start(500, |_| attempt(0)).await, Err(()));
        assert_eq!(*tried.lock().unwrap(), 1, "the first failure is the last try");
        *tried.lock().unwrap() = 0;
        assert_eq!(slow_start(500, |_| attempt(2)).await, Err(()));
        assert_eq!(*tried.lock().unwrap(), 3);
    }
}
