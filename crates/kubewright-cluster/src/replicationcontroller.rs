//! The ReplicationController controller: the ReplicaSet controller for the older kind.
//!
//! As upstream, a ReplicationController is treated as the ReplicaSet with the same spec. Only written objects have its
//! own kind: owner references, events and its status.

use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetSpec, ReplicaSetStatus};
use k8s_openapi::api::core::v1::{
    Pod, ReplicationController, ReplicationControllerCondition, ReplicationControllerStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector as Selector;
use kubewright_runtime::client::ignore_not_found;
use kubewright_runtime::{Context, LabelSelector, Manager, Outcome, Reconciler, RegisterError, Result};

use crate::replicaset::{manage, status};
use crate::{adoption, pod, replicaset};

/// Registers the ReplicationController controller.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    adoption::index::<Pod>(manager)?;
    manager
        .controller(ReplicationControllers)
        .owns_with(replicaset::pods())
        .watches_with(adoption::orphans(), |pod: &Pod, cache| {
            adoption::adopters::<ReplicationController>(pod, cache, selector)
        })
        .concurrency(4)
        .register()
}

fn selector(controller: &ReplicationController) -> Option<LabelSelector> {
    let selector = controller.spec.as_ref()?.selector.clone().filter(|selector| !selector.is_empty())?;
    Some(LabelSelector::equal(selector))
}

struct ReplicationControllers;

impl Reconciler for ReplicationControllers {
    type Object = ReplicationController;

    async fn reconcile(&self, controller: &ReplicationController, cx: &Context) -> Result<Outcome> {
        let Some(selector) = selector(controller) else { return Ok(Outcome::done()) };
        let pods = adoption::claim::<_, Pod>(cx.client(), controller, &selector).await?;
        let active: Vec<_> = pods.into_iter().filter(|pod| pod::is_active(pod)).collect();
        let set = as_replica_set(controller);
        let managed = match controller.metadata.deletion_timestamp {
            None => manage(controller, &set, &active, cx).await,
            Some(_) => Ok(()),
        };
        let failure = managed.as_ref().err().map(|(failure, error)| (*failure, error.to_string()));
        let next = status::next(&set, &active, 0, failure.as_ref(), cx.now());
        let (old, new) = (controller.status.as_ref(), to_status(next.status));
        ignore_not_found(crate::status::write(cx.client(), controller, old, &new).await)?;
        match managed {
            Err((_, error)) if !error.is_namespace_terminating() => Err(error.into()),
            _ => Ok(next.wake.map_or(Outcome::done(), Outcome::requeue_after)),
        }
    }
}

/// The ReplicaSet with the same spec and status.
fn as_replica_set(controller: &ReplicationController) -> ReplicaSet {
    let spec = controller.spec.as_ref().map(|spec| ReplicaSetSpec {
        min_ready_seconds: spec.min_ready_seconds,
        replicas: spec.replicas,
        selector: Selector { match_labels: spec.selector.clone(), ..Selector::default() },
        template: spec.template.clone(),
    });
    let conditions = controller.status.as_ref().and_then(|status| status.conditions.as_ref());
    let condition = |it: &ReplicationControllerCondition| ReplicaSetCondition {
        last_transition_time: it.last_transition_time.clone(),
        message: it.message.clone(),
        reason: it.reason.clone(),
        status: it.status.clone(),
        type_: it.type_.clone(),
    };
    let conditions = conditions.map(|conditions| conditions.iter().map(condition).collect());
    ReplicaSet {
        metadata: controller.metadata.clone(),
        spec,
        status: Some(ReplicaSetStatus { conditions, ..ReplicaSetStatus::default() }),
    }
}

fn to_status(status: ReplicaSetStatus) -> ReplicationControllerStatus {
    let condition = |it: ReplicaSetCondition| ReplicationControllerCondition {
        last_transition_time: it.last_transition_time,
        message: it.message,
        reason: it.reason,
        status: it.status,
        type_: it.type_,
    };
    ReplicationControllerStatus {
        available_replicas: status.available_replicas,
        conditions: status.conditions.map(|list| list.into_iter().map(condition).collect()),
        fully_labeled_replicas: status.fully_labeled_replicas,
        observed_generation: status.observed_generation,
        ready_replicas: status.ready_replicas,
        replicas: status.replicas,
    }
}
