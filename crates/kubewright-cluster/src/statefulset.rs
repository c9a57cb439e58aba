//! The StatefulSet controller.
//!
//! `plan` decides which pods to create and delete, `identity` derives names, labels and storage from the
//! ordinal, `status` computes the status: all pure. Templates are stored as ControllerRevisions (`history`).
//! PersistentVolumeClaims are created but never bound: there is no provisioner, and pods do not wait for
//! them.

mod identity;
mod plan;
mod status;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kubewright_runtime::client::{self, ignore_not_found};
use kubewright_runtime::controller::{Predicate, Watch};
use kubewright_runtime::{
    Context, Delete, Key, LabelSelector, Manager, Outcome, Patch, Reconciler, RegisterError, Result,
};
use serde_json::json;

use self::plan::{Shape, Step};
use self::status::Names;
use crate::history::{self, History, REVISION, Subject};
use crate::{adoption, pod};

const HASH: &str = "controller.kubernetes.io/hash";

/// Registers the StatefulSet controller.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    adoption::index::<Pod>(manager)?;
    adoption::index::<ControllerRevision>(manager)?;
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method path is not general enough over lifetimes"
    )]
    let claim_gone = Watch::new().filter(Predicate::new(|event| event.is_delete()));
    manager
        .controller(StatefulSets)
        .owns::<Pod>()
        .owns::<ControllerRevision>()
        .watches_with(adoption::orphans(), |pod: &Pod, cache| {
            adoption::adopters::<StatefulSet>(pod, cache, selector)
        })
        .watches_with::<PersistentVolumeClaim>(claim_gone, |claim, cache| {
            adoption::selecting::<StatefulSet>(claim, cache, selector)
        })
        .concurrency(4)
        .register()
}

fn selector(set: &StatefulSet) -> Option<LabelSelector> {
    adoption::selector(&set.spec.as_ref()?.selector)
}

struct StatefulSets;

impl Reconciler for StatefulSets {
    type Object = StatefulSet;

    async fn reconcile(&self, set: &StatefulSet, cx: &Context) -> Result<Outcome> {
        let Some(selector) = selector(set) else { return Ok(Outcome::done()) };
        // The revisions of a terminating set may already be deleted.
        let Some(spec) = set.spec.as_ref().filter(|_| set.metadata.deletion_timestamp.is_none()) else {
            return Ok(Outcome::done());
        };
        let is_member =
            |pod: &Pod| adoption::selects(&selector, pod) && identity::ordinal(set, pod).is_some();
        let pods = adoption::claim_where::<_, Pod>(cx.client(), set, is_member).await?;
        let collisions = set.status.as_ref().and_then(|status| status.collision_count).unwrap_or_default();
        let subject = Subject { selector: &selector, template: &spec.template, label: HASH, collisions };
        let Some(history) = history::follow(set, &subject, cx).await? else { return Ok(Outcome::done()) };
        let round = Sync::new(set, &pods, &history, cx);
        let done = round.run().await;
        let names = Names { current: history::name(round.current), update: history::name(&history.current) };
        let next = status::next(set, &round.shape, names, history.collisions, round.pods(), cx.now());
        write(set, next.status, cx).await?;
        round.truncate_history().await?;
        match done {
            Err(error) if !is_namespace_terminating(&error) => Err(error),
            _ => Ok(next.wake.map_or(Outcome::done(), Outcome::requeue_after)),
        }
    }
}

fn is_namespace_terminating(error: &kubewright_runtime::ReconcileError) -> bool {
    error.downcast_ref::<client::Error>().is_some_and(client::Error::is_namespace_terminating)
}

async fn write(set: &StatefulSet, status: StatefulSetStatus, cx: &Context) -> Result<()> {
    ignore_not_found(crate::status::write(cx.client(), set, set.status.as_ref(), &status).await)?;
    Ok(())
}

/// One sync of a StatefulSet.
struct Sync<'a> {
    set: &'a StatefulSet,
    shape: Shape,
    members: BTreeMap<i32, &'a Pod>,
    /// The revision that is being replaced; the latest one without a rollout.
    current: &'a ControllerRevision,
    history: &'a History,
    cx: &'a Context,
}

impl<'a> Sync<'a> {
    fn new(set: &'a StatefulSet, pods: &'a [Arc<Pod>], history: &'a History, cx: &'a Context) -> Self {
        let before = set.status.as_ref().and_then(|status| status.current_revision.as_deref());
        let current = history.old.iter().find(|revision| Some(history::name(revision)) == before);
        Self {
            set,
            shape: Shape::of(set),
            members: pods.iter().filter_map(|pod| Some((identity::ordinal(set, pod)?, &**pod))).collect(),
            current: current.unwrap_or(&history.current),
            history,
            cx,
        }
    }

    fn pods(&self) -> impl Iterator<Item = &'a Pod> {
        self.members.values().copied()
    }

    /// Creates, updates and deletes Pods according to the plan.
    async fn run(&self) -> Result<()> {
        for (ordinal, pod) in &self.members {
            self.keep_claims(*ordinal, pod).await?;
        }
        let update = history::name(&self.history.current);
        for step in plan::steps(self.set, &self.shape, &self.members, update, self.cx.now()) {
            match step {
                Step::Create(ordinal) => self.create(ordinal).await?,
                Step::Delete(pod) => self.delete(pod).await?,
                Step::Replace(pod) => self.replace(pod).await?,
                Step::Label(pod) => self.label(pod).await?,
            }
        }
        Ok(())
    }

    /// Deletes revisions beyond the history limit.
    async fn truncate_history(&self) -> Result<()> {
        let limit = self.set.spec.as_ref().and_then(|spec| spec.revision_history_limit).unwrap_or(10);
        let is_live = |revision: &ControllerRevision| {
            let name = history::name(revision);
            name == history::name(self.current)
                || self.pods().any(|pod| history::label(pod, REVISION) == Some(name))
        };
        let old = &self.history.old;
        let dead = old.iter().filter(|revision| !is_live(revision)).count();
        let surplus = dead.saturating_sub(usize::try_from(limit).unwrap_or_default());
        history::shorten(old, surplus, is_live, self.cx).await
    }

    async fn create(&self, ordinal: i32) -> Result<()> {
        let revision = if self.shape.keeps_old(ordinal) { self.current } else { &*self.history.current };
        let pod = identity::pod(self.set, ordinal, &history::template(revision)?, revision);
        for claim in identity::claims(self.set, ordinal) {
            match self.cx.client().get_opt::<PersistentVolumeClaim>(&Key::of(&claim)).await? {
                // The claim is deleted with the previous pod; its deletion triggers another sync.
                Some(claim)
                    if identity::is_leaving(&claim) || claim.metadata.deletion_timestamp.is_some() =>
                {
                    return Ok(());
                }
                Some(_) => {}
                None => self.claim(&pod, &claim).await?,
            }
        }
        let created = self.cx.client().create(&pod).await;
        // A pod of another owner with the same name exists; no event.
        if !created.as_ref().is_err_and(client::Error::is_already_exists) {
            self.record_event("Create", &pod, created.as_ref().map(|_| ()));
        }
        created?;
        Ok(())
    }

    /// Creates a claim of a pod. Its owner references are set once the pod exists.
    async fn claim(&self, pod: &Pod, claim: &PersistentVolumeClaim) -> Result<()> {
        let created = self.cx.client().create(claim).await;
        let names = [&claim.metadata.name, &pod.metadata.name, &self.set.metadata.name];
        let [claim, pod, set] = names.map(|name| name.as_deref().unwrap_or_default());
        let events = self.cx.events().about(self.set);
        match created {
            Ok(created) => {
                let note = format_args!("create Claim {claim} Pod {pod} in StatefulSet {set} success");
                events.related(&created).normal("SuccessfulCreate").action("Create").note(note);
            }
            Err(error) if error.is_already_exists() => {}
            Err(error) => {
                let note = format_args!(
                    "create Claim {claim} for Pod {pod} in StatefulSet {set} failed error: {error}"
                );
                events.warning("FailedCreate").action("Create").note(note);
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Creates missing claims of a pod and updates the owner references of all its claims.
    async fn keep_claims(&self, ordinal: i32, pod: &Pod) -> Result<()> {
        for wanted in identity::claims(self.set, ordinal) {
            let Some(claim) = self.cx.client().get_opt::<PersistentVolumeClaim>(&Key::of(&wanted)).await?
            else {
                if pod::phase(pod) == "Pending" && !pod::is_terminating(pod) {
                    self.claim(pod, &wanted).await?;
                }
                continue;
            };
            let is_spare = !self.shape.ordinals.contains(&ordinal);
            let owned = identity::with_owners(self.set, pod, is_spare, &claim);
            let patch = Patch::between(&*claim, &owned)?;
            if !patch.is_empty() {
                ignore_not_found(self.cx.client().patch(&*claim, &patch).await)?;
            }
        }
        Ok(())
    }

    async fn delete(&self, pod: &Pod) -> Result<()> {
        let how = Delete::new().uid(pod.metadata.uid.clone().unwrap_or_default());
        let deleted = ignore_not_found(self.cx.client().delete_with(pod, &how).await);
        self.record_event("Delete", pod, deleted.as_ref().map(|_| ()));
        deleted?;
        Ok(())
    }

    async fn replace(&self, pod: &Pod) -> Result<()> {
        let [namespace, set, name] =
            [&self.set.metadata.namespace, &self.set.metadata.name, &pod.metadata.name]
                .map(|name| name.as_deref().unwrap_or_default());
        let events = self.cx.events().about(self.set).related(pod);
        if pod::phase(pod) == "Failed" {
            let note = format_args!("StatefulSet {namespace}/{set} is recreating failed Pod {name}");
            events.warning("RecreatingFailedPod").action("Recreate").note(note);
        } else {
            let note = format_args!("StatefulSet {namespace}/{set} is recreating terminated Pod {name}");
            events.normal("RecreatingTerminatedPod").action("Recreate").note(note);
        }
        self.delete(pod).await
    }

    async fn label(&self, pod: &Pod) -> Result<()> {
        let Some(ordinal) = identity::ordinal(self.set, pod) else { return Ok(()) };
        let labels = BTreeMap::from(identity::labels(self.set, ordinal));
        let patch = Patch::merge(json!({ "metadata": { "labels": labels } }));
        let labelled = ignore_not_found(self.cx.client().patch(pod, &patch).await);
        self.record_event("Update", pod, labelled.as_ref().map(|_| ()));
        labelled?;
        Ok(())
    }

    /// Records an event about a pod.
    fn record_event(&self, action: &str, pod: &Pod, done: Result<(), &client::Error>) {
        let set = identity::name_of(self.set);
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let verb = action.to_lowercase();
        let events = self.cx.events().about(self.set).related(pod);
        match done {
            Ok(()) => {
                let note = format_args!("{verb} Pod {name} in StatefulSet {set} successful");
                events.normal(&format!("Successful{action}")).action(action).note(note);
            }
            Err(error) if error.is_namespace_terminating() => {}
            Err(error) => {
                let note = format_args!("{verb} Pod {name} in StatefulSet {set} failed error: {error}");
                events.warning(&format!("Failed{action}")).action(action).note(note);
            }
        }
    }
}
