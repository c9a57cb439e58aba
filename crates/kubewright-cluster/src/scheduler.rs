//! The scheduler.
//!
//! Keeps its own view of nodes and pods (`state`), updated by a pod and a node reconciler. A pod that fits on
//! no node is queued and tried again when a change could make it schedulable. Pods with a higher priority can
//! preempt others (`preempt`); their node is reserved until the victims are gone.
//!
//! Invariant: a scheduling decision counts for the next one before the API server confirms it.

mod affinity;
mod filter;
mod nodes;
mod preempt;
mod requests;
mod score;
mod spread;
mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::{Binding, Node, ObjectReference, Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::Status;
use kubewright_runtime::client::ignore_not_found;
use kubewright_runtime::{
    Context, Delete, Key, ListOptions, Manager, Outcome, Patch, Reconciler, RegisterError, Result,
};
use serde_json::json;
use tokio::sync::mpsc;

pub(crate) use self::filter::{selects, tolerates, tolerations, untolerated};
use self::preempt::Preemption;
use self::state::{Decision, State};
use crate::eviction::disrupted;
use crate::node::whole;
use crate::{kubelet, pod};

/// The scheduler name.
const NAME: &str = "default-scheduler";
/// Capacity of the channel that requeues waiting pods.
const REQUEUE_CAPACITY: usize = 1024;

/// Registers the scheduler.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    let (requeues, keys) = mpsc::channel(REQUEUE_CAPACITY);
    let shared = Arc::new(Shared { state: Mutex::default(), requeues });
    manager.controller(Pods(shared.clone())).named("scheduler").channel(keys).register()?;
    manager.controller(Nodes(shared)).named("scheduler-nodes").register()
}

struct Shared {
    state: Mutex<State>,
    requeues: mpsc::Sender<Key>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requeues waiting pods.
    async fn requeue(&self, pods: Vec<Key>) {
        for key in pods {
            // Fails only when the manager stops.
            let _ = self.requeues.send(key).await;
        }
    }
}

struct Pods(Arc<Shared>);

impl Reconciler for Pods {
    type Object = Pod;

    async fn reconcile(&self, pod: &Pod, cx: &Context) -> Result<Outcome> {
        let key = cx.key();
        self.load(cx).await?;
        if kubelet::node_name(pod).is_some() || pod::is_terminal(pod) {
            let freed = self.0.state().placed(key, pod);
            self.0.requeue(freed).await;
            return Ok(Outcome::done());
        }
        if !is_ours(pod) {
            self.0.state().stop_waiting(key);
            return Ok(Outcome::done());
        }
        let decision = self.0.state().decide(key, pod);
        match decision {
            Decision::AlreadyPlaced => Ok(Outcome::done()),
            Decision::Place(node) => {
                let bound = bind(pod, &node, cx).await;
                if let Err(error) = bound {
                    let freed = self.0.state().forget(key);
                    self.0.requeue(freed).await;
                    return Err(error);
                }
                let name = pod.metadata.name.as_deref().unwrap_or_default();
                let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
                let note = format_args!("Successfully assigned {namespace}/{name} to {node}");
                cx.events().normal(pod, "Scheduled").action("Binding").note(note);
                Ok(Outcome::done())
            }
            Decision::Unschedulable(why) => {
                cx.events().warning(pod, "FailedScheduling").action("Scheduling").note(&why);
                mark_unschedulable(pod, &why, cx).await?;
                Ok(Outcome::done())
            }
            Decision::Preempt { why, preemption } => {
                if let Err(error) = evict_victims(pod, &preemption, cx).await {
                    self.0.state().withdraw(key);
                    return Err(error);
                }
                cx.events().warning(pod, "FailedScheduling").action("Scheduling").note(&why);
                mark_unschedulable(pod, &why, cx).await?;
                Ok(Outcome::done())
            }
        }
    }

    async fn deleted(&self, key: &Key, _: &Context) -> Result<Outcome> {
        let freed = self.0.state().forget(key);
        self.0.requeue(freed).await;
        Ok(Outcome::done())
    }
}

impl Pods {
    /// Loads all nodes and pods before the first decision.
    async fn load(&self, cx: &Context) -> Result<()> {
        if self.0.state().is_loaded() {
            return Ok(());
        }
        let nodes = cx.client().list::<Node>(&ListOptions::all()).await?;
        let pods = cx.client().list::<Pod>(&ListOptions::all()).await?;
        self.0.state().load(&nodes, &pods);
        Ok(())
    }
}

struct Nodes(Arc<Shared>);

impl Reconciler for Nodes {
    type Object = Node;

    async fn reconcile(&self, node: &Node, _: &Context) -> Result<Outcome> {
        let waiting = self.0.state().node(node);
        self.0.requeue(waiting).await;
        Ok(Outcome::done())
    }

    async fn deleted(&self, key: &Key, _: &Context) -> Result<Outcome> {
        let waiting = self.0.state().node_gone(key.name());
        self.0.requeue(waiting).await;
        Ok(Outcome::done())
    }
}

/// Whether an unbound pod uses this scheduler.
fn is_ours(pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else { return false };
    let named = spec.scheduler_name.as_deref().unwrap_or(NAME) == NAME;
    named && spec.scheduling_gates.iter().flatten().next().is_none() && !pod::is_terminating(pod)
}

async fn bind(pod: &Pod, node: &str, cx: &Context) -> Result<()> {
    let binding = Binding {
        metadata: ObjectMeta {
            name: pod.metadata.name.clone(),
            namespace: pod.metadata.namespace.clone(),
            uid: pod.metadata.uid.clone(),
            ..ObjectMeta::default()
        },
        target: ObjectReference {
            kind: Some("Node".to_owned()),
            name: Some(node.to_owned()),
            ..ObjectReference::default()
        },
    };
    cx.client().subresource("binding").create::<Pod, _, Status>(cx.key(), &binding).await?;
    Ok(())
}

/// Deletes the victims and sets `nominatedNodeName` of the preemptor.
async fn evict_victims(pod: &Pod, preemption: &Preemption, cx: &Context) -> Result<()> {
    for victim in &preemption.victims {
        let Some(victim) = cx.client().get_opt::<Pod>(victim).await?.filter(|pod| !pod::is_terminating(pod))
        else {
            continue;
        };
        let message = format!("{NAME}: preempting to accommodate a higher priority pod");
        let condition = disrupted("PreemptionByScheduler", &message, cx.now());
        let patch = Patch::strategic(json!({ "status": { "conditions": [condition] } }));
        if ignore_not_found(cx.client().status().patch(&*victim, &patch).await)?.is_none() {
            continue;
        }
        let how = Delete::new().uid(victim.metadata.uid.clone().unwrap_or_default());
        ignore_not_found(cx.client().delete_with(&*victim, &how).await)?;
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let note = format_args!("Preempted by pod {uid} on node {}", preemption.node);
        cx.events().about(&*victim).related(pod).normal("Preempted").action("Preempting").note(note);
    }
    let nominated = Patch::merge(json!({ "status": { "nominatedNodeName": preemption.node } }));
    ignore_not_found(cx.client().status().patch(pod, &nominated).await)?;
    Ok(())
}

/// Sets the condition PodScheduled to `False` with the reason.
async fn mark_unschedulable(pod: &Pod, why: &str, cx: &Context) -> Result<()> {
    let old = pod::condition(pod, "PodScheduled");
    let same = old.filter(|old| old.status == "False");
    if same.is_some_and(|old| old.message.as_deref() == Some(why)) {
        return Ok(());
    }
    let transition = same.and_then(|old| old.last_transition_time.clone());
    let condition = PodCondition {
        type_: "PodScheduled".to_owned(),
        status: "False".to_owned(),
        reason: Some("Unschedulable".to_owned()),
        message: Some(why.to_owned()),
        last_transition_time: transition.or_else(|| Some(whole(cx.now()))),
        ..PodCondition::default()
    };
    let patch = Patch::strategic(json!({ "status": { "conditions": [condition] } }));
    ignore_not_found(cx.client().status().patch(pod, &patch).await)?;
    Ok(())
}
