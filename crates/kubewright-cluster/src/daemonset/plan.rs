//! What is next for the pods of a DaemonSet: on which nodes one comes, and which pods go.
//!
//! Pure. Invariant: a rollout leaves no more nodes without an available pod than it may, and has no more nodes with two
//! than it may. It moves only when every node has what it must have.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::target::{Standing, node_of};
use crate::deployment::scaled;
use crate::history::{self, REVISION};
use crate::kubelet;
use crate::pod::{self, Availability};

/// What is there.
pub(super) struct View<'a> {
    pub(super) set: &'a DaemonSet,
    /// Every node, and what the set has to do with it.
    pub(super) nodes: BTreeMap<&'a str, Standing>,
    /// The pods of the set by their node, the oldest first. Those that ended and only wait to be gone are left out.
    pub(super) pods: BTreeMap<&'a str, Vec<&'a Pod>>,
    /// The hash of the current revision.
    pub(super) hash: &'a str,
    pub(super) now: Timestamp,
}

/// What is to be done.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan<'a> {
    /// The nodes that get a pod.
    pub(super) create: Vec<&'a str>,
    /// The pods that go.
    pub(super) delete: Vec<&'a Pod>,
    /// Those of them that had ended.
    pub(super) ended: Vec<&'a Pod>,
}

impl<'a> View<'a> {
    pub(super) fn new(
        set: &'a DaemonSet,
        nodes: BTreeMap<&'a str, Standing>,
        pods: impl Iterator<Item = &'a Pod>,
        hash: &'a str,
        now: Timestamp,
    ) -> Self {
        let mut by_node = BTreeMap::<&str, Vec<&Pod>>::new();
        for pod in pods.filter(|pod| !(pod::is_terminal(pod) && pod::is_terminating(pod))) {
            if let Some(node) = node_of(pod) {
                by_node.entry(node).or_default().push(pod);
            }
        }
        for pods in by_node.values_mut() {
            pods.sort_by_cached_key(|pod| {
                let created = pod::created(pod.metadata.creation_timestamp.as_ref());
                (kubelet::node_name(pod).is_none(), created, pod.metadata.name.clone())
            });
        }
        Self { set, nodes, pods: by_node, hash, now }
    }

    fn min_ready(&self) -> i32 {
        self.set.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or_default()
    }

    pub(super) fn availability(&self, pod: &Pod) -> Availability {
        pod::availability(pod, self.min_ready(), self.now)
    }

    fn is_available(&self, pod: &Pod) -> bool {
        self.availability(pod) == Availability::Yes
    }

    pub(super) fn is_updated(&self, pod: &Pod) -> bool {
        history::label(pod, REVISION) == Some(self.hash)
    }

    /// How many nodes may have two pods, and how many none that is available, while pods are replaced. None if they are
    /// not replaced by themselves.
    fn limits(&self) -> Option<(usize, usize)> {
        let strategy = self.set.spec.as_ref().and_then(|spec| spec.update_strategy.as_ref());
        if strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete") {
            return None;
        }
        let wanted = self.nodes.values().filter(|standing| **standing == Standing::Wanted).count();
        let wanted = i32::try_from(wanted).unwrap_or(i32::MAX);
        let count = |value: &IntOrString| usize::try_from(scaled(value, wanted, true)).unwrap_or_default();
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let surge = rolling.and_then(|rolling| rolling.max_surge.as_ref()).map_or(0, count);
        let unavailable = rolling.and_then(|rolling| rolling.max_unavailable.as_ref()).map_or(1, count);
        // Something must be allowed, or nothing would ever move.
        Some((surge, if surge == 0 { unavailable.max(1) } else { unavailable }))
    }

    /// The pods of a node that stay: the current one and the one before. None if there are more of a kind.
    fn pair(&self, pods: &[&'a Pod]) -> Option<(Option<&'a Pod>, Option<&'a Pod>)> {
        let (mut new, mut old) = (None, None);
        for pod in pods.iter().filter(|pod| !pod::is_terminating(pod)) {
            let place = if self.is_updated(pod) { &mut new } else { &mut old };
            if place.replace(*pod).is_some() {
                return None;
            }
        }
        Some((new, old))
    }
}

/// What is to be done now: first what every node must have, then the next step of a rollout.
pub(super) fn plan<'a>(view: &View<'a>) -> Plan<'a> {
    let plan = settle(view);
    if plan != Plan::default() {
        return plan;
    }
    match view.limits() {
        None => plan,
        Some((0, unavailable)) => replace(view, unavailable),
        Some((surge, _)) => overlap(view, surge),
    }
}

/// Has every node have the pods that it must have.
fn settle<'a>(view: &View<'a>) -> Plan<'a> {
    let surges = view.limits().is_some_and(|(surge, _)| surge > 0);
    let mut plan = Plan::default();
    for (node, standing) in &view.nodes {
        let Some(pods) = view.pods.get(node) else {
            if *standing == Standing::Wanted {
                plan.create.push(node);
            }
            continue;
        };
        let mut pods: Vec<&Pod> = pods.iter().copied().filter(|pod| !pod::is_terminating(pod)).collect();
        if *standing == Standing::Unwanted {
            plan.delete.append(&mut pods);
            continue;
        }
        let (ended, running): (Vec<&Pod>, Vec<&Pod>) =
            pods.into_iter().partition(|pod| pod::is_terminal(pod));
        plan.delete.extend(&ended);
        plan.ended.extend(ended);
        if surges {
            plan.delete.extend(superseded(view, &running));
        } else {
            plan.delete.extend(running.iter().skip(1));
        }
    }
    // Nobody else ends a pod that waits for a node that is gone.
    let lost = view.pods.iter().filter(|(node, _)| !view.nodes.contains_key(*node));
    let waits = |pod: &&&Pod| kubelet::node_name(pod).is_none() && !pod::is_terminating(pod);
    plan.delete.extend(lost.flat_map(|(_, pods)| pods.iter().filter(waits)));
    plan
}

/// Where two may overlap: all but the oldest of each kind, and the old one as soon as it is not needed.
fn superseded<'a>(view: &View<'a>, running: &[&'a Pod]) -> Vec<&'a Pod> {
    let (new, old): (Vec<&Pod>, Vec<&Pod>) = running.iter().partition(|pod| view.is_updated(pod));
    let mut doomed: Vec<&Pod> = new.iter().skip(1).chain(old.iter().skip(1)).copied().collect();
    if let (Some(new), Some(old)) = (new.first(), old.first())
        && (!pod::is_ready(old) || view.is_available(new))
    {
        doomed.push(old);
    }
    doomed
}

/// Deletes old pods, of which the next round makes new ones: all that are of no use, and as many others as may be missing.
fn replace<'a>(view: &View<'a>, unavailable: usize) -> Plan<'a> {
    let mut missing = 0;
    let (mut useless, mut candidates) = (Vec::new(), Vec::new());
    for pods in view.pods.values() {
        match view.pair(pods) {
            Some((Some(new), None)) if view.is_available(new) => {}
            Some((None, Some(old))) if view.is_available(old) => candidates.push(old),
            Some((None, Some(old))) => {
                useless.push(old);
                missing += 1;
            }
            _ => missing += 1,
        }
    }
    useless.extend(candidates.into_iter().take(unavailable.saturating_sub(missing)));
    Plan { delete: useless, ..Plan::default() }
}

/// Creates new pods beside old ones: wherever the old one is of no use, and beside as many others as may have two.
fn overlap<'a>(view: &View<'a>, surge: usize) -> Plan<'a> {
    let mut surging = 0;
    let (mut useless, mut candidates) = (Vec::new(), Vec::new());
    for (node, pods) in &view.pods {
        if view.nodes.get(node) != Some(&Standing::Wanted) {
            continue;
        }
        match view.pair(pods) {
            Some((_, None)) => {}
            Some((None, Some(old))) if !view.is_available(old) => useless.push(*node),
            Some((None, Some(_))) => candidates.push(*node),
            _ => surging += 1,
        }
    }
    useless.extend(candidates.into_iter().take(surge.saturating_sub(surging)));
    Plan { create: useless, ..Plan::default() }
}

#[cfg(test)]
mod tests;
