//! The rules of a Bar that both controllers share: its Deployment, its status, and the indexes.
//!
//! Pure: nothing here reads or writes the cluster.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use kubewright::client;
use kubewright::condition::{ConditionUpdate, set_condition};
use kubewright::jiff::Timestamp;
use kubewright::object::ApplyObject;
use kubewright::owner::{controller_of, set_controller_reference};
use kubewright::prelude::*;
use kubewright::{Key, ReconcileError, Result};

use crate::api::v1alpha1::{Bar, BarStatus};

/// Condition type: the Deployment has as many available Pods as the Bar requests.
pub const READY: &str = "Ready";
/// Reason of the condition and of the event if the Deployment belongs to another owner.
pub const ERR_RESOURCE_EXISTS: &str = "ErrResourceExists";
/// The finalizer: the registration in the inventory must be removed first.
pub const FINALIZER: &str = "samplecontroller.example.com/inventory";
/// The index of Deployments by the uid of the Bar that controls them.
pub const BY_OWNER: &str = "metadata.ownerReferences.uid";
/// The index of Bars by the name of their Deployment.
pub const BY_DEPLOYMENT: &str = "spec.deploymentName";

/// The Deployment exists, and this Bar does not control it.
#[derive(Debug, thiserror::Error)]
#[error("Deployment {0} already exists and is not managed by this Bar")]
pub struct NotOwned(pub Key);

/// The desired Deployment of a Bar, with its owner reference.
pub fn deployment(bar: &Bar) -> Result<ApplyObject<Deployment>> {
    let labels = BTreeMap::from([("app", "nginx".to_owned()), ("controller", bar.name_any())]);
    let mut deployment = object! { Deployment {
        metadata: {
            name: &bar.spec.deployment_name,
            namespace: bar.namespace().unwrap_or_default(),
            labels: &labels,
        },
        spec: {
            replicas: bar.spec.replicas,
            selector: { matchLabels: &labels },
            template: {
                metadata: { labels: &labels },
                spec: { containers: [{ name: "nginx", image: "nginx:latest" }] },
            },
        },
    } };
    set_controller_reference(bar, &mut deployment)?;
    Ok(deployment)
}

/// The new status of a Bar after a sync. `None` if the sync read a stale cache: it is retried, and nothing is known yet.
pub fn status(bar: &Bar, synced: &Result<Deployment>, now: Timestamp) -> Option<BarStatus> {
    let mut status = bar.status.clone().unwrap_or_default();
    let ready = match synced {
        Ok(deployment) => {
            let observed = deployment.status.as_ref();
            status.available_replicas = observed.and_then(|it| it.available_replicas).unwrap_or(0);
            let count = format!("{} of {} Pods are available", status.available_replicas, bar.spec.replicas);
            if status.available_replicas == bar.spec.replicas {
                ConditionUpdate::true_(READY, "Available", count)
            } else {
                ConditionUpdate::false_(READY, "Progressing", count)
            }
        }
        Err(error) if error.is::<NotOwned>() => {
            // The root cause, without the marker of a terminal error.
            ConditionUpdate::false_(READY, ERR_RESOURCE_EXISTS, error.root_cause().to_string())
        }
        Err(error) if is_stale(error) => return None,
        Err(error) => ConditionUpdate::false_(READY, "Failed", format!("{error:#}")),
    };
    set_condition(&mut status.conditions, ready.observed(bar.metadata.generation), now);
    Some(status)
}

/// Whether a write failed because the cache is behind the API server.
pub fn is_stale(error: &ReconcileError) -> bool {
    let error = error.chain().find_map(|cause| cause.downcast_ref::<client::Error>());
    error.is_some_and(|it| it.is_already_exists() || it.is_conflict())
}

/// The values of [`BY_OWNER`].
pub fn owner_uids(deployment: &Deployment) -> Vec<String> {
    let owner = controller_of(deployment).filter(|owner| owner.kind == Bar::kind(&()));
    owner.map(|owner| owner.uid.clone()).into_iter().collect()
}

/// The values of [`BY_DEPLOYMENT`]: namespace and name, because an index covers all namespaces.
pub fn deployment_keys(bar: &Bar) -> Vec<String> {
    let key = Key::new(bar.namespace().as_deref(), &bar.spec.deployment_name);
    vec![key.to_string()]
}
