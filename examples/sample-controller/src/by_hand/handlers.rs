//! Event handlers: they add the keys of Bars to the queue, and do nothing else.

use k8s_openapi::api::apps::v1::Deployment;
use kubewright::informer::{EventHandler, Indexer};
use kubewright::owner::controller_of;
use kubewright::queue::WorkQueue;
use kubewright::tracing::debug;
use kubewright::{Key, Resource as _};

use crate::api::v1alpha1::Bar;
use crate::bar::BY_DEPLOYMENT;

/// Queues each Bar that changes.
pub(super) struct BarHandler {
    pub(super) queue: WorkQueue,
}

impl EventHandler<Bar> for BarHandler {
    fn on_add(&self, bar: &Bar, _is_in_initial_list: bool) {
        self.queue.add(Key::of(bar));
    }

    fn on_update(&self, _old: &Bar, bar: &Bar) {
        self.queue.add(Key::of(bar));
    }

    // A deleted Bar needs no work: the finalizer has done the cleanup before.
}

/// Queues the Bars that a Deployment concerns: its owner, and those that request its name.
pub(super) struct DeploymentHandler {
    pub(super) queue: WorkQueue,
    pub(super) bars: Indexer<Bar>,
}

impl DeploymentHandler {
    fn handle(&self, deployment: &Deployment) {
        let namespace = deployment.metadata.namespace.as_deref();
        if let Some(owner) = controller_of(deployment).filter(|owner| owner.kind == Bar::kind(&())) {
            self.queue.add(Key::new(namespace, &owner.name));
        }
        let key = Key::of(deployment);
        match self.bars.index_keys(BY_DEPLOYMENT, key.as_str()) {
            Ok(bars) => bars.into_iter().for_each(|bar| self.queue.add(bar)),
            // Bars are not listed yet. Their own handler queues all of them.
            Err(error) => debug!(deployment = %key, %error, "Bars are not listed yet"),
        }
    }
}

impl EventHandler<Deployment> for DeploymentHandler {
    fn on_add(&self, deployment: &Deployment, _is_in_initial_list: bool) {
        self.handle(deployment);
    }

    fn on_update(&self, old: &Deployment, new: &Deployment) {
        // A resync delivers unchanged Deployments.
        if old.metadata.resource_version != new.metadata.resource_version {
            // The old owner, if it changed.
            self.handle(old);
            self.handle(new);
        }
    }

    fn on_delete(&self, deployment: &Deployment) {
        self.handle(deployment);
    }
}
