//! Storage object in use protection: keeps PersistentVolumeClaims used by pods and bound PersistentVolumes.
//!
//! The API server adds the finalizer on creation. These controllers remove it when the object is deleted and
//! no longer in use.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kubewright_runtime::client::ignore_not_found;
use kubewright_runtime::controller::{Predicate, Watch};
use kubewright_runtime::{
    Context, Key, ListOptions, Manager, Object, Outcome, Patch, Reconciler, RegisterError, Result,
};
use serde_json::json;

use crate::{kubelet, pod};

const CLAIM: &str = "kubernetes.io/pvc-protection";
const VOLUME: &str = "kubernetes.io/pv-protection";
/// Index of pods by the claims that they use, as `namespace/name`.
const CLAIMS: &str = "spec.volumes.persistentVolumeClaim";

/// Registers the protection controllers.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager.cache().index::<Pod>(CLAIMS, |pod| claims(pod).iter().map(ToString::to_string).collect())?;
    let ended = Predicate::<Pod>::new(|event| {
        event.is_delete() || event.new_object().is_some_and(|pod| pod::is_terminal(&pod))
    });
    manager
        .controller_with(Claims, Watch::new().filter(deleted()))
        .named("pvc-protection")
        .watches_with::<Pod>(Watch::new().filter(ended), |pod, _| claims(pod))
        .register()?;
    manager.controller_with(Volumes, Watch::new().filter(deleted())).named("pv-protection").register()
}

/// Only objects that are being deleted.
fn deleted<K: Object>() -> Predicate<K> {
    Predicate::<K>::new(|event| event.new_object().is_some_and(|it| it.meta().deletion_timestamp.is_some()))
}

/// The claims that a pod uses.
fn claims(pod: &Pod) -> Vec<Key> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let claims = volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref());
    claims.map(|claim| Key::namespaced(namespace, &claim.claim_name)).collect()
}

/// Whether a pod may have its volumes mounted.
fn uses(pod: &Pod) -> bool {
    kubelet::node_name(pod).is_some() && !pod::is_terminal(pod)
}

struct Claims;

impl Reconciler for Claims {
    type Object = PersistentVolumeClaim;

    async fn reconcile(&self, claim: &PersistentVolumeClaim, cx: &Context) -> Result<Outcome> {
        let pods = cx.client().list::<Pod>(&ListOptions::all().field(CLAIMS, cx.key().to_string())).await?;
        if !pods.iter().any(|pod| uses(pod)) {
            release(claim, CLAIM, cx).await?;
        }
        Ok(Outcome::done())
    }
}

struct Volumes;

impl Reconciler for Volumes {
    type Object = PersistentVolume;

    async fn reconcile(&self, volume: &PersistentVolume, cx: &Context) -> Result<Outcome> {
        let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
        if phase != Some("Bound") {
            release(volume, VOLUME, cx).await?;
        }
        Ok(Outcome::done())
    }
}

/// Removes the finalizer of an object that is being deleted.
async fn release<K: Object>(object: &K, finalizer: &str, cx: &Context) -> Result<()> {
    let meta = object.meta();
    let finalizers = meta.finalizers.as_deref().unwrap_or_default();
    if meta.deletion_timestamp.is_none() || !finalizers.iter().any(|it| it == finalizer) {
        return Ok(());
    }
    let left: Vec<&String> = finalizers.iter().filter(|it| *it != finalizer).collect();
    let version = meta.resource_version.as_deref().unwrap_or_default();
    let patch = Patch::merge(json!({ "metadata": { "finalizers": left } })).optimistic(version);
    ignore_not_found(cx.client().patch(object, &patch).await)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_in_use_by_bound_pods_that_have_not_finished() {
        let pod = |node: &str, phase: &str| -> Pod {
            serde_json::from_value(json!({
                "metadata": { "namespace": "default", "name": "web" },
                "spec": { "nodeName": node, "containers": [], "volumes": [
                    { "name": "tmp", "emptyDir": {} },
                    { "name": "data", "persistentVolumeClaim": { "claimName": "mine" } },
                ] },
                "status": { "phase": phase },
            }))
            .unwrap()
        };
        assert_eq!(claims(&pod("", "Pending")), [Key::namespaced("default", "mine")]);
        assert!(uses(&pod("a", "Running")) && uses(&pod("a", "Pending")));
        assert!(!uses(&pod("", "Pending")) && !uses(&pod("a", "Succeeded")));
    }
}
