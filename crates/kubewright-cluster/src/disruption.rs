//! The PodDisruptionBudget controller: how many pods may be evicted.
//!
//! The API server decrements `disruptionsAllowed` on each eviction and records the pod; this controller
//! recomputes it. Both write the status, so writes use optimistic locking. `status` computes the status as a
//! pure function.

mod status;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kubewright_runtime::client::ignore_not_found;
use kubewright_runtime::owner::controller_of;
use kubewright_runtime::{
    Context, Key, LabelSelector, ListOptions, Manager, Outcome, Patch, Reconciler, RegisterError, Result,
};

use crate::adoption;
use crate::scale::{Found, Target};

/// Registers the PodDisruptionBudget controller.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager
        .controller(Budgets)
        .named("disruption")
        .watches::<Pod>(|pod, cache| adoption::selecting::<PodDisruptionBudget>(pod, cache, selector))
        .register()
}

/// The selector of a budget: an empty one matches every pod of the namespace, an absent one none.
fn selector(budget: &PodDisruptionBudget) -> Option<LabelSelector> {
    let selector = budget.spec.as_ref()?.selector.clone()?;
    LabelSelector::try_from(selector).ok()
}

struct Budgets;

impl Reconciler for Budgets {
    type Object = PodDisruptionBudget;

    async fn reconcile(&self, budget: &PodDisruptionBudget, cx: &Context) -> Result<Outcome> {
        let namespace = cx.key().namespace().unwrap_or_default();
        let pods = match selector(budget) {
            Some(selector) => {
                cx.client().list::<Pod>(&ListOptions::namespace(namespace).matching(&selector)).await?
            }
            None => Vec::new(),
        };
        if pods.is_empty() {
            cx.events().normal(budget, "NoPods").action("Sync").note("No matching pods found");
        }
        let expected = if status::needs_scale(budget) { expected_scale(&pods, cx).await? } else { Ok(0) };
        let next = match expected {
            Ok(scale) => status::next(budget, &pods, scale, cx.now()),
            Err(why) => {
                let note = format_args!("Failed to calculate the number of expected pods: {why}");
                cx.events().warning(budget, "CalculateExpectedPodCountFailed").action("Sync").note(note);
                status::failed(budget, &why, cx.now())
            }
        };
        for pod in &next.not_deleted {
            let name = budget.metadata.name.as_deref().unwrap_or_default();
            let note = format_args!("Pod was expected by PDB {namespace}/{name} to be deleted but it wasn't");
            cx.events().warning(&**pod, "NotDeleted").action("Sync").note(note);
        }
        let mut wanted = budget.clone();
        wanted.status = Some(next.status);
        let patch = Patch::between(budget, &wanted)?;
        if !patch.is_empty() {
            let version = budget.metadata.resource_version.as_deref().unwrap_or_default();
            ignore_not_found(cx.client().status().patch(budget, &patch.optimistic(version)).await)?;
        }
        Ok(next.wake.map_or(Outcome::done(), Outcome::requeue_after))
    }
}

/// The total scale of the pods' controllers, or why it cannot be determined.
async fn expected_scale(pods: &[Arc<Pod>], cx: &Context) -> Result<Result<i32, String>> {
    let mut scales = BTreeMap::new();
    for pod in pods {
        // Pods without a controller do not count.
        let Some(owner) = controller_of(&**pod) else { continue };
        if scales.contains_key(&owner.uid) {
            continue;
        }
        match scale_of(owner, cx).await? {
            Ok(Some((uid, scale))) => {
                scales.insert(owner.uid.clone(), (uid, scale));
            }
            Ok(None) => {
                let name = pod.metadata.name.as_deref().unwrap_or_default();
                return Ok(Err(format!("found no controllers for pod {name:?}")));
            }
            Err(why) => return Ok(Err(why)),
        }
    }
    // Several ReplicaSets of one Deployment count once, with the scale of the Deployment.
    let by_owner: BTreeMap<String, i32> = scales.into_values().collect();
    Ok(Ok(by_owner.into_values().sum()))
}

/// The UID and the scale of the controller; for a ReplicaSet of a Deployment those of the Deployment.
async fn scale_of(owner: &OwnerReference, cx: &Context) -> Result<Result<Option<(String, i32)>, String>> {
    let key = |name: &str| Key::namespaced(cx.key().namespace().unwrap_or_default(), name);
    if owner.kind == "ReplicaSet" && owner.api_version.starts_with("apps/") {
        let Some(set) = cx.client().get_opt::<ReplicaSet>(&key(&owner.name)).await? else {
            return Ok(Ok(None));
        };
        let deployment = controller_of(&*set).filter(|above| above.kind == "Deployment");
        let Some(above) = deployment else {
            let replicas = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
            let is_same = set.metadata.uid.as_ref() == Some(&owner.uid);
            return Ok(Ok(is_same.then(|| (owner.uid.clone(), replicas))));
        };
        let deployment = cx.client().get_opt::<Deployment>(&key(&above.name)).await?;
        let deployment = deployment.filter(|it| it.metadata.uid.as_ref() == Some(&above.uid));
        return Ok(Ok(deployment
            .map(|it| (above.uid.clone(), it.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)))));
    }
    let target = match Target::named(cx.client(), &owner.api_version, &owner.kind, &key(&owner.name)).await {
        Ok(target) => target,
        Err(error) if error.is_unknown_kind() => return Ok(Ok(None)),
        Err(error) => return Err(error.into()),
    };
    Ok(match target.get(cx.client()).await? {
        Found::NotScalable => Err(format!("{} does not implement the scale subresource", target.resource())),
        Found::Scale(scale) if scale.metadata.uid.as_ref() == Some(&owner.uid) => {
            Ok(Some((owner.uid.clone(), scale.spec.and_then(|spec| spec.replicas).unwrap_or_default())))
        }
        Found::Scale(_) | Found::Gone => Ok(None),
    })
}
