//! The Deployment controller.
//!
//! `rolling` computes sizes, `status` the status, `template` and `revision` the names and annotations of
//! ReplicaSets: all pure. This file does the reads and writes. A rollback is a normal template change:
//! `kubectl rollout undo` writes an old template, whose ReplicaSet still exists.

mod revision;
mod rolling;
mod status;
mod template;

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kubewright_runtime::client::ignore_not_found;
use kubewright_runtime::controller::{Predicate, Watch};
use kubewright_runtime::owner::{controller_of, is_controlled_by};
use kubewright_runtime::{
    Cache, Context, Delete, Key, Manager, Outcome, Patch, Reconciler, RegisterError, Result,
};
use serde_json::json;

pub(crate) use self::rolling::scaled;
use self::rolling::{Limits, Resize, size};
use self::status::{ConditionValue, PROGRESSING};
use crate::{adoption, pod};

/// Registers the Deployment controller.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    adoption::index::<Pod>(manager)?;
    adoption::index::<ReplicaSet>(manager)?;
    // The strategy `Recreate` waits for the deletion of the last old pod.
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method path is not general enough over lifetimes"
    )]
    let pod_gone = Watch::new().filter(Predicate::new(|event| event.is_delete()));
    manager
        .controller(Deployments)
        .owns::<ReplicaSet>()
        .watches_with(adoption::orphans(), |set: &ReplicaSet, cache| {
            adoption::adopters::<Deployment>(set, cache, |deployment| {
                adoption::selector(&deployment.spec.as_ref()?.selector)
            })
        })
        .watches_with::<Pod>(pod_gone, recreating)
        .concurrency(4)
        .register()
}

/// The Deployment of a pod, if its strategy is `Recreate`.
fn recreating(pod: &Pod, cache: &Cache) -> Vec<Key> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let find = || {
        let set = controller_of(pod).filter(|owner| owner.kind == "ReplicaSet")?;
        let set = cache.get::<ReplicaSet>(&Key::namespaced(namespace, &set.name)).ok()??;
        let owner = controller_of(&*set).filter(|owner| owner.kind == "Deployment")?;
        let key = Key::namespaced(namespace, &owner.name);
        cache.get::<Deployment>(&key).ok()?.filter(|deployment| !rolling::is_rolling(deployment)).map(|_| key)
    };
    find().into_iter().collect()
}

struct Deployments;

impl Reconciler for Deployments {
    type Object = Deployment;

    async fn reconcile(&self, deployment: &Deployment, cx: &Context) -> Result<Outcome> {
        let Some(selector) = deployment.spec.as_ref().and_then(|spec| adoption::selector(&spec.selector))
        else {
            let note = "This deployment is selecting all pods. A non-empty selector is required.";
            cx.events().warning(deployment, "SelectingAll").action("Selecting").note(note);
            return Ok(Outcome::done());
        };
        let sets = adoption::claim::<_, ReplicaSet>(cx.client(), deployment, &selector).await?;
        let sets = sets.into_iter().map(|set| (*set).clone()).collect();
        let mut rollout = Rollout::new(deployment, sets, cx);
        let outcome = rollout.step().await?;
        rollout.write().await?;
        Ok(outcome)
    }
}

/// One sync of a Deployment.
struct Rollout<'a> {
    before: &'a Deployment,
    /// The Deployment with its new status and annotations.
    after: Deployment,
    new: Option<ReplicaSet>,
    old: Vec<ReplicaSet>,
    cx: &'a Context,
}

impl<'a> Rollout<'a> {
    fn new(before: &'a Deployment, sets: Vec<ReplicaSet>, cx: &'a Context) -> Self {
        let new = template::current(before, &sets);
        let name = new.as_ref().map(|new| new.metadata.name.clone());
        let old = sets.into_iter().filter(|set| Some(&set.metadata.name) != name.as_ref()).collect();
        Self { before, after: before.clone(), new, old, cx }
    }

    /// Makes the next changes. Other objects are written immediately; changes of the Deployment are collected
    /// in `after`.
    async fn step(&mut self) -> Result<Outcome> {
        if self.before.metadata.deletion_timestamp.is_some() {
            self.count();
            return Ok(Outcome::done());
        }
        let now = self.cx.now();
        status::set_paused(self.before, self.status(), now);
        if self.new.is_some() {
            self.adopt_revision().await?;
        }
        let paused = self.before.spec.as_ref().is_some_and(|spec| spec.paused == Some(true));
        if paused || self.was_scaled() {
            for resize in rolling::rescale(self.before, Limits::of(self.before), self.new.as_ref(), &self.old)
            {
                self.resize(resize).await?;
            }
            if paused {
                self.clean_up().await?;
            }
            self.count();
            return Ok(Outcome::done());
        }
        let collided =
            if rolling::is_rolling(self.before) { self.roll().await? } else { self.recreate().await? };
        if collided {
            return Ok(Outcome::requeue());
        }
        if status::is_complete(self.before, &self.before.status.clone().unwrap_or_default()) {
            self.clean_up().await?;
        }
        let old_status = self.after.status.clone().unwrap_or_default();
        self.count();
        let all: Vec<&ReplicaSet> = self.old.iter().chain(self.new.as_ref()).collect();
        let mut next = self.after.status.clone().unwrap_or_default();
        status::set_progressing(self.before, &old_status, &mut next, self.new.as_ref(), &all, now);
        let late = status::deadline_in(self.before, &next, now);
        self.after.status = Some(next);
        Ok(late.map_or(Outcome::done(), Outcome::requeue_after))
    }

    fn status(&mut self) -> &mut DeploymentStatus {
        self.after.status.get_or_insert_default()
    }

    /// Updates the numbers of the status.
    fn count(&mut self) {
        let all: Vec<&ReplicaSet> = self.old.iter().chain(self.new.as_ref()).collect();
        let old = self.after.status.clone().unwrap_or_default();
        self.after.status = Some(status::numbers(self.before, &old, self.new.as_ref(), &all, self.cx.now()));
    }

    /// Whether the Deployment was scaled since its ReplicaSets were last resized.
    fn was_scaled(&self) -> bool {
        let wanted = Limits::of(self.before).wanted;
        let active = self.old.iter().chain(self.new.as_ref()).filter(|set| size(set) > 0);
        active.filter_map(|set| revision::count(set, revision::DESIRED)).any(|desired| desired != wanted)
    }

    /// A step of a rolling update: scales up, or else scales down. Returns whether there was a name
    /// collision.
    async fn roll(&mut self) -> Result<bool> {
        if self.new.is_none() && self.create().await? {
            return Ok(true);
        }
        let Some(new) = &self.new else { return Ok(false) };
        let limits = Limits::of(self.before);
        let all: Vec<&ReplicaSet> = self.old.iter().chain([new]).collect();
        let size_of_new = rolling::scaled_up(limits, true, new, &all);
        if size_of_new != size(new) {
            let resize = Resize { set: new.metadata.name.clone().unwrap_or_default(), size: size_of_new };
            self.resize(resize).await?;
            return Ok(false);
        }
        for resize in rolling::scale_down(limits, new, &self.old) {
            self.resize(resize).await?;
        }
        Ok(false)
    }

    /// A step of the strategy `Recreate`. Returns whether there was a name collision.
    async fn recreate(&mut self) -> Result<bool> {
        let names = self.old.iter().filter(|set| size(set) > 0).filter_map(|set| set.metadata.name.clone());
        let doomed: Vec<Resize> = names.map(|set| Resize { set, size: 0 }).collect();
        if !doomed.is_empty() {
            for resize in doomed {
                self.resize(resize).await?;
            }
            return Ok(false);
        }
        let namespace = self.before.metadata.namespace.as_deref().unwrap_or_default();
        for set in &self.old {
            let uid = set.metadata.uid.as_deref().unwrap_or_default();
            let pods = adoption::controlled::<Pod>(self.cx.client(), namespace, uid).await?;
            if pods.iter().any(|pod| !pod::is_terminal(pod)) {
                return Ok(false);
            }
        }
        if self.new.is_none() && self.create().await? {
            return Ok(true);
        }
        let wanted = Limits::of(self.before).wanted;
        if let Some(new) = self.new.as_ref().filter(|new| size(new) != wanted) {
            let set = new.metadata.name.clone().unwrap_or_default();
            self.resize(Resize { set, size: wanted }).await?;
        }
        Ok(false)
    }

    /// Updates the revision and annotations of the current ReplicaSet, and the revision of the Deployment.
    async fn adopt_revision(&mut self) -> Result<()> {
        let Some(new) = &mut self.new else { return Ok(()) };
        let annotations = revision::annotations(self.before, new, revision::next(&self.old));
        let min_ready = self.before.spec.as_ref().and_then(|spec| spec.min_ready_seconds);
        let own = new.spec.as_ref().and_then(|spec| spec.min_ready_seconds);
        if new.metadata.annotations.as_ref() != Some(&annotations) || own != min_ready {
            let patch = json!({
                "metadata": { "annotations": annotations },
                "spec": { "minReadySeconds": min_ready },
            });
            *new = self.cx.client().patch(new, &Patch::merge(patch)).await?;
        }
        let name = new.metadata.name.clone().unwrap_or_default();
        self.set_revision();
        if status::deadline(self.before).is_some() && status::find(self.status(), PROGRESSING).is_none() {
            let message = format!("Found new replica set {name:?}");
            let value = ConditionValue { status: "True", reason: "FoundNewReplicaSet", message };
            let now = self.cx.now();
            status::set(self.status(), PROGRESSING, value, now);
        }
        Ok(())
    }

    fn set_revision(&mut self) {
        if let Some(number) = self.new.as_ref().map(revision::number) {
            let annotations = self.after.metadata.annotations.get_or_insert_default();
            annotations.insert(revision::REVISION.to_owned(), number.to_string());
        }
    }

    /// Creates the ReplicaSet of the template. Returns whether there was a name collision; the next attempt
    /// uses another hash.
    async fn create(&mut self) -> Result<bool> {
        let mut set = template::new_set(self.before, revision::next(&self.old));
        let name = set.metadata.name.clone().unwrap_or_default();
        let all: Vec<&ReplicaSet> = self.old.iter().collect();
        let size = rolling::scaled_up(Limits::of(self.before), rolling::is_rolling(self.before), &set, &all);
        set.spec.get_or_insert_default().replicas = Some(size);
        let now = self.cx.now();
        match self.cx.client().create(&set).await {
            Ok(created) => {
                if size > 0 {
                    let note = format_args!("Scaled up replica set {name} from 0 to {size}");
                    let events = self.cx.events().about(self.before).related(&created);
                    events.normal("ScalingReplicaSet").action("ScaleUp").note(note);
                }
                self.new = Some(created);
                if status::deadline(self.before).is_some() {
                    let message = format!("Created new replica set {name:?}");
                    let value = ConditionValue { status: "True", reason: "NewReplicaSetCreated", message };
                    status::set(self.status(), PROGRESSING, value, now);
                }
            }
            Err(error) if error.is_already_exists() => {
                let existing = self.cx.client().uncached().get::<ReplicaSet>(&Key::of(&set)).await?;
                if !is_controlled_by(&*existing, self.before) || !template::is_current(self.before, &existing)
                {
                    let collisions = self.status().collision_count.get_or_insert_default();
                    *collisions += 1;
                    return Ok(true);
                }
                self.new = Some((*existing).clone());
            }
            Err(error) if error.is_namespace_terminating() => return Ok(false),
            Err(error) => {
                let message = format!("Failed to create new replica set {name:?}: {error}");
                self.cx
                    .events()
                    .warning(self.before, "ReplicaSetCreateError")
                    .action("Create")
                    .note(&message);
                if status::deadline(self.before).is_some() {
                    let value = ConditionValue { status: "False", reason: "ReplicaSetCreateError", message };
                    status::set(self.status(), PROGRESSING, value, now);
                    self.write().await?;
                }
                return Err(error.into());
            }
        }
        self.set_revision();
        Ok(false)
    }

    /// Scales a ReplicaSet and updates its desired-replicas annotations.
    async fn resize(&mut self, resize: Resize) -> Result<()> {
        let sets = self.old.iter_mut().chain(self.new.as_mut());
        let Some(set) = sets.into_iter().find(|set| set.metadata.name.as_ref() == Some(&resize.set)) else {
            return Ok(());
        };
        let sizes: BTreeMap<String, String> = revision::sizes(self.before).into();
        let noted = set.metadata.annotations.clone().unwrap_or_default();
        let before = size(set);
        if before == resize.size && sizes.iter().all(|(name, value)| noted.get(name) == Some(value)) {
            return Ok(());
        }
        let patch = json!({ "metadata": { "annotations": sizes }, "spec": { "replicas": resize.size } });
        *set = self.cx.client().patch(set, &Patch::merge(patch)).await?;
        if before != resize.size {
            let (direction, action) =
                if before < resize.size { ("up", "ScaleUp") } else { ("down", "ScaleDown") };
            let Resize { set: name, size } = resize;
            let note = format_args!("Scaled {direction} replica set {name} from {before} to {size}");
            // The related object distinguishes this event from those about other ReplicaSets.
            self.cx
                .events()
                .about(self.before)
                .related(&*set)
                .normal("ScalingReplicaSet")
                .action(action)
                .note(note);
        }
        Ok(())
    }

    /// Deletes old ReplicaSets beyond the revision history limit.
    async fn clean_up(&self) -> Result<()> {
        for set in revision::excess(self.before, &self.old) {
            let how = Delete::background().uid(set.metadata.uid.clone().unwrap_or_default());
            ignore_not_found(self.cx.client().delete_with(set, &how).await)?;
        }
        Ok(())
    }

    /// Writes the changes of the Deployment: its revision annotation and its status.
    async fn write(&self) -> Result<()> {
        ignore_not_found(self.cx.client().status().patch_between(self.before, &self.after).await)?;
        Ok(())
    }
}
