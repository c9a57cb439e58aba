//! The simulated kubelet: starts, runs and stops pods as their annotations specify.
//!
//! `status` computes the next status of a pod as a pure function of the pod and the time; this file writes
//! it. No containers run. The only state is the assigned IP addresses.

pub mod annotation;
mod behaviour;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::core::v1::{Node, Pod};
use kubewright_runtime::client::ignore_not_found;
use kubewright_runtime::controller::{Predicate, Watch};
use kubewright_runtime::{
    Context, Delete, Key, ListOptions, Manager, Outcome, Reconciler, RegisterError, Result,
};

use self::behaviour::Behaviour;
use self::status::{Level, Place};
use crate::{hash, node, pod};

/// Index of pods by node.
pub(crate) const NODE_NAME: &str = "spec.nodeName";
const POD_IP: &str = "status.podIP";

/// Registers the index of pods by node. Several controllers share it.
pub(crate) fn index(manager: &Manager) -> Result<(), RegisterError> {
    let values = |pod: &Pod| node_name(pod).map(str::to_owned).into_iter().collect();
    manager.cache().index::<Pod>(NODE_NAME, values).map(drop)
}

/// The node of a pod, if it is bound.
pub(crate) fn node_name(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
}

/// Whether [`annotation::DOWN`] powers the node off.
pub(crate) fn is_down(annotations: Option<&BTreeMap<String, String>>) -> bool {
    annotations.and_then(|it| it.get(annotation::DOWN)).is_some_and(|it| it == "true")
}

/// Registers the simulated kubelet.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    index(manager)?;
    manager.cache().index::<Pod>(POD_IP, |pod| pod_ip(pod).map(str::to_owned).into_iter().collect())?;
    // Ignore node status updates and heartbeats.
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method path is not general enough over lifetimes"
    )]
    let switched = Predicate::new(|event| event.is_create()).or(Predicate::annotations_changed());
    manager
        .controller(Kubelet::default())
        .named("kubelet")
        .watches_with::<Node>(Watch::new().filter(switched), |node, cache| {
            let name = node.metadata.name.as_deref().unwrap_or_default();
            let pods = cache.list::<Pod>(&ListOptions::all().field(NODE_NAME, name)).unwrap_or_default();
            pods.iter().map(|pod| Key::of(&**pod)).collect()
        })
        .concurrency(4)
        .register()
}

#[derive(Default)]
struct Kubelet {
    addresses: Mutex<Addresses>,
}

impl Reconciler for Kubelet {
    type Object = Pod;

    async fn reconcile(&self, pod: &Pod, cx: &Context) -> Result<Outcome> {
        let Some(name) = node_name(pod) else { return Ok(Outcome::done()) };
        // Nodes are many and only their annotations matter, so do not decode the node.
        let node = cx.client().cache().and_then(|cache| cache.informer::<Node>().entry(&Key::cluster(name)));
        if node.is_none_or(|node| is_down(Some(&node.marks().annotations))) {
            return Ok(Outcome::done());
        }
        let (behaviour, mistakes) = Behaviour::of(pod);
        for mistake in mistakes {
            cx.events().warning(pod, "InvalidAnnotation").action("Simulate").note(mistake);
        }
        let place = Place { host_ip: node::address(name), pod_ip: self.address(pod, cx) };
        let next = status::next(pod, &behaviour, &place, cx.now());
        if let Some(status) = &next.status {
            let patch = crate::status::patch(pod.status.as_ref(), status)?;
            if ignore_not_found(cx.client().status().patch(pod, &patch).await)?.is_none() {
                return Ok(Outcome::done());
            }
        }
        for event in next.events {
            match event.level {
                Level::Normal => cx.events().normal(pod, event.reason).action(event.action).note(event.note),
                Level::Warning => {
                    cx.events().warning(pod, event.reason).action(event.action).note(event.note);
                }
            }
        }
        if next.remove {
            let how = Delete::new().grace_period(0).uid(pod.metadata.uid.clone().unwrap_or_default());
            ignore_not_found(cx.client().delete_with(pod, &how).await)?;
        }
        Ok(next.wake.map_or(Outcome::done(), Outcome::requeue_after))
    }

    async fn deleted(&self, key: &Key, _: &Context) -> Result<Outcome> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner).release(key);
        Ok(Outcome::done())
    }
}

impl Kubelet {
    /// The IP address of the pod, or a free one.
    fn address(&self, pod: &Pod, cx: &Context) -> String {
        if pod.spec.as_ref().is_some_and(|spec| spec.host_network == Some(true)) {
            return node::address(node_name(pod).unwrap_or_default());
        }
        if let Some(own) = pod_ip(pod) {
            return own.to_owned();
        }
        let is_free = |address: &str| {
            let users = cx
                .client()
                .cache()
                .map(|cache| cache.list::<Pod>(&ListOptions::all().field(POD_IP, address)));
            users.and_then(Result::ok).unwrap_or_default().is_empty()
        };
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        addresses.take(cx.key(), hash::fnv1a(uid.as_bytes()), is_free)
    }
}

fn pod_ip(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.pod_ip.as_deref().filter(|_| !pod::is_terminal(pod))
}

/// Assigned IP addresses. The cache may not contain the latest ones yet.
#[derive(Default)]
struct Addresses {
    by_pod: BTreeMap<Key, String>,
    taken: BTreeSet<String>,
}

impl Addresses {
    /// Assigns an address of 10.128.0.0/9, starting the search at `start`. Returns the same address for the
    /// same pod.
    fn take(&mut self, pod: &Key, start: u32, is_free: impl Fn(&str) -> bool) -> String {
        if let Some(own) = self.by_pod.get(pod) {
            return own.clone();
        }
        let text = |number: u32| {
            format!("10.{}.{}.{}", 128 + (number >> 16) % 128, (number >> 8) % 256, number % 256)
        };
        let address = (0..=u32::MAX)
            .map(|step| start.wrapping_add(step))
            .filter(|number| !matches!(number % 256, 0 | 255))
            .map(text)
            .find(|address| !self.taken.contains(address) && is_free(address))
            .expect("the network has more addresses than pods");
        self.taken.insert(address.clone());
        self.by_pod.insert(pod.clone(), address.clone());
        address
    }

    fn release(&mut self, pod: &Key) {
        if let Some(address) = self.by_pod.remove(pod) {
            self.taken.remove(&address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_unique_and_released_with_their_pod() {
        let mut addresses = Addresses::default();
        let (a, b, c) = (Key::namespaced("x", "a"), Key::namespaced("x", "b"), Key::namespaced("x", "c"));
        assert_eq!(addresses.take(&a, 254, |_| true), "10.128.0.254");
        assert_eq!(addresses.take(&a, 7, |_| true), "10.128.0.254");
        assert_eq!(addresses.take(&b, 254, |_| true), "10.128.1.1");
        assert_eq!(addresses.take(&c, 254, |address| address != "10.128.1.2"), "10.128.1.3");
        addresses.release(&a);
        assert_eq!(addresses.take(&Key::namespaced("x", "d"), 254, |_| true), "10.128.0.254");
    }
}
