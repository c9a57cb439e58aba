//! The DaemonSet controller.
//!
//! `target` selects the nodes, `plan` decides which pods to create and delete, `status` computes the status:
//! all pure. Templates are stored as ControllerRevisions (`history`). Each pod has a node affinity for its
//! node, and the scheduler binds it.

mod plan;
mod status;
mod target;

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet, DaemonSetStatus};
use k8s_openapi::api::core::v1::{Node, Pod};
use kubewright_runtime::client::{self, ignore_not_found};
use kubewright_runtime::controller::{Predicate, Watch};
use kubewright_runtime::{
    Context, Key, LabelSelector, ListOptions, Manager, Outcome, Reconciler, RegisterError, Result,
};

use self::plan::{Plan, View};
use crate::history::{self, History, REVISION, Subject};
use crate::replicaset::{create_pod, delete_pod, slow_start};
use crate::{adoption, pod};

/// Maximum number of pods created or deleted in one sync.
const BURST: usize = 250;

/// Registers the DaemonSet controller.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    adoption::index::<Pod>(manager)?;
    adoption::index::<ControllerRevision>(manager)?;
    // Ignore node updates that do not affect scheduling.
    let moved = Predicate::<Node>::new(|event| match (event.old(), event.new_object()) {
        (Some(old), Some(new)) => {
            let taints = |node: &Node| node.spec.as_ref().and_then(|spec| spec.taints.clone());
            old.metadata.labels != new.metadata.labels || taints(&old) != taints(&new)
        }
        _ => true,
    });
    manager
        .controller(DaemonSets)
        .owns::<Pod>()
        .owns::<ControllerRevision>()
        .watches_with(adoption::orphans(), |pod: &Pod, cache| {
            adoption::adopters::<DaemonSet>(pod, cache, selector)
        })
        .watches_with::<Node>(Watch::new().filter(moved), |_, cache| {
            let sets = cache.list::<DaemonSet>(&ListOptions::all()).unwrap_or_default();
            sets.iter().map(|set| Key::of(&**set)).collect()
        })
        .concurrency(2)
        .register()
}

fn selector(set: &DaemonSet) -> Option<LabelSelector> {
    adoption::selector(&set.spec.as_ref()?.selector)
}

struct DaemonSets;

impl Reconciler for DaemonSets {
    type Object = DaemonSet;

    async fn reconcile(&self, set: &DaemonSet, cx: &Context) -> Result<Outcome> {
        let Some(selector) = selector(set) else {
            let note = "This daemon set is selecting all pods. A non-empty selector is required.";
            cx.events().warning(set, "SelectingAll").action("Selecting").note(note);
            return Ok(Outcome::done());
        };
        // The revisions of a terminating set may already be deleted.
        let Some(spec) = set.spec.as_ref().filter(|_| set.metadata.deletion_timestamp.is_none()) else {
            return Ok(Outcome::done());
        };
        let pods = adoption::claim::<_, Pod>(cx.client(), set, &selector).await?;
        let collisions = set.status.as_ref().and_then(|status| status.collision_count).unwrap_or_default();
        let subject = Subject { selector: &selector, template: &spec.template, label: REVISION, collisions };
        let Some(history) = history::follow(set, &subject, cx).await? else { return Ok(Outcome::done()) };
        let hash = history::label(&*history.current, REVISION).unwrap_or_default();
        let daemon = target::daemon(set, hash);
        let nodes = cx.client().list::<Node>(&ListOptions::all()).await?;
        let standings = nodes
            .iter()
            .filter_map(|node| Some((node.metadata.name.as_deref()?, target::eligibility(&daemon, node))))
            .collect();
        let view = View::new(set, standings, pods.iter().map(|pod| &**pod), hash, cx.now());
        let done = carry_out(set, &daemon, &plan::plan(&view), cx).await;
        let next = status::next(&view, history.collisions);
        write(set, next.status, cx).await?;
        truncate_history(set, &pods, &history, cx).await?;
        match done {
            Err(error) if !error.is_namespace_terminating() => Err(error.into()),
            _ => Ok(next.wake.map_or(Outcome::done(), Outcome::requeue_after)),
        }
    }
}

async fn carry_out(
    set: &DaemonSet,
    daemon: &Pod,
    plan: &Plan<'_>,
    cx: &Context,
) -> Result<(), client::Error> {
    for pod in plan.ended.iter().take(BURST) {
        let [namespace, name] =
            [&pod.metadata.namespace, &pod.metadata.name].map(|name| name.as_deref().unwrap_or_default());
        let node = target::node_of(pod).unwrap_or_default();
        let events = cx.events().about(set).related(*pod);
        if pod::phase(pod) == "Failed" {
            let note = format_args!(
                "Found failed daemon pod {namespace}/{name} on node {node}, will try to kill it"
            );
            events.warning("FailedDaemonPod").action("Delete").note(note);
        } else {
            let note = format_args!(
                "Found succeeded daemon pod {namespace}/{name} on node {node}, will try to delete it"
            );
            events.normal("SucceededDaemonPod").action("Delete").note(note);
        }
    }
    let missing: Vec<Pod> =
        plan.create.iter().take(BURST).map(|node| target::for_node(daemon, node)).collect();
    slow_start(missing.len(), |number| create_pod(set, &missing[number], cx)).await?;
    for pod in plan.delete.iter().take(BURST) {
        delete_pod(set, pod, cx).await?;
    }
    Ok(())
}

async fn write(set: &DaemonSet, status: DaemonSetStatus, cx: &Context) -> Result<()> {
    ignore_not_found(crate::status::write(cx.client(), set, set.status.as_ref(), &status).await)?;
    Ok(())
}

/// Deletes revisions beyond the history limit.
async fn truncate_history(set: &DaemonSet, pods: &[Arc<Pod>], history: &History, cx: &Context) -> Result<()> {
    let limit = set.spec.as_ref().and_then(|spec| spec.revision_history_limit).unwrap_or(10);
    let live: BTreeSet<&str> = pods.iter().filter_map(|pod| history::label(&**pod, REVISION)).collect();
    let is_live = |revision: &ControllerRevision| {
        history::label(revision, REVISION).is_some_and(|hash| live.contains(hash))
    };
    let surplus = history.old.len().saturating_sub(usize::try_from(limit).unwrap_or_default());
    history::shorten(&history.old, surplus, is_live, cx).await
}
