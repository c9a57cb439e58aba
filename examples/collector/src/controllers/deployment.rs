//! Controller for Deployment, which this project does not define: collects the IPs of its Pods.

mod counts;

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kubewright::cache::Index;
use kubewright::controller::Watch;
use kubewright::owner::controller_of;
use kubewright::prelude::*;
use kubewright::tracing::info;
use kubewright::{Cache, Context, Key, RegisterError, Result};

use self::counts::Counts;

/// The label of the ConfigMaps, so that no others are cached.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "collector");
/// The index of Pods by the uid of the ReplicaSet that controls them.
const BY_OWNER: &str = "metadata.ownerReferences.uid";

/// Reconciles Deployment objects.
pub struct DeploymentReconciler {
    pods: Index<Pod>,
    counts: Counts,
}

/// Registers the controller with the manager.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    let pods = manager.cache().index::<Pod>(BY_OWNER, owner_uid)?;
    let counts = Counts::new(manager.metrics());
    let (label, value) = MANAGED_BY;
    manager
        .controller(DeploymentReconciler { pods, counts })
        .owns::<ReplicaSet>()
        .owns_with::<ConfigMap>(Watch::new().labels(format!("{label}={value}")))
        .watches::<Pod>(deployment_of)
        .without_status()
        .without_events()
        .register()
}

#[rbac(groups = "", resources = "configmaps", verbs = "create, patch")]
impl Reconciler for DeploymentReconciler {
    type Object = Deployment;

    async fn reconcile(&self, deployment: &Deployment, cx: &Context) -> Result<Outcome> {
        self.counts.add(cx.causes());
        if deployment.metadata.deletion_timestamp.is_some() {
            // The garbage collector deletes the ConfigMap.
            return Ok(Outcome::done());
        }
        let ips = self.ips(cx)?;
        info!(ips = ips.len(), adds = cx.causes().adds(), because = %cx.causes(), "Collected Pod IPs");
        let (label, value) = MANAGED_BY;
        cx.apply_owned(object! { ConfigMap {
            metadata: {
                name: format!("{}-pod-ips", deployment.name_any()),
                labels: BTreeMap::from([(label, value)]),
            },
            data: &ips,
        } })
        .await?;
        Ok(Outcome::done())
    }
}

impl DeploymentReconciler {
    /// The IPs of the Deployment's Pods, by name. Pods without an IP and Pods that are being deleted are left out.
    fn ips(&self, cx: &Context) -> Result<BTreeMap<String, String>> {
        let mut ips = BTreeMap::new();
        for replica_set in cx.owned::<ReplicaSet>()? {
            for pod in self.pods.get(&replica_set.uid().unwrap_or_default())? {
                let ip = pod.status.as_ref().and_then(|status| status.pod_ip.clone());
                if let Some(ip) = ip.filter(|_| pod.metadata.deletion_timestamp.is_none()) {
                    ips.insert(pod.name_any(), ip);
                }
            }
        }
        Ok(ips)
    }
}

fn owner_uid(pod: &Pod) -> Vec<String> {
    controller_of(pod).map(|owner| owner.uid.clone()).into_iter().collect()
}

/// The Deployment of a Pod: the controller of the ReplicaSet that controls it.
fn deployment_of(pod: &Pod, cache: &Cache) -> Vec<Key> {
    let namespace = pod.metadata.namespace.as_deref();
    let replica_set = controller_of(pod).filter(|owner| owner.kind == "ReplicaSet").and_then(|owner| {
        let found = cache.get::<ReplicaSet>(&Key::new(namespace, &owner.name)).ok()??;
        // A ReplicaSet of the same name may have replaced the owner.
        (found.uid().as_ref() == Some(&owner.uid)).then_some(found)
    });
    let owner = replica_set.as_deref().and_then(controller_of).filter(|owner| owner.kind == "Deployment");
    owner.map(|owner| Key::new(namespace, &owner.name)).into_iter().collect()
}
