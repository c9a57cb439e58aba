//! Decides which pods of a DaemonSet to create and delete.
//!
//! Pure. Invariant: a rollout keeps within `maxUnavailable` and `maxSurge`, and starts only when every node
//! has the pods that it needs.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::target::{Eligibility, node_of};
use crate::deployment::scaled;
use crate::history::{self, REVISION};
use crate::kubelet;
use crate::pod::{self, Availability};

/// The observed state.
pub(super) struct View<'a> {
    pub(super) set: &'a DaemonSet,
    /// All nodes and their eligibility.
    pub(super) nodes: BTreeMap<&'a str, Eligibility>,
    /// The pods of the set by node, oldest first, without finished pods that are being deleted.
    pub(super) pods: BTreeMap<&'a str, Vec<&'a Pod>>,
    /// The hash of the current revision.
    pub(super) hash: &'a str,
    pub(super) now: Timestamp,
}

/// The changes to make.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan<'a> {
    /// The nodes that get a pod.
    pub(super) create: Vec<&'a str>,
    /// The pods to delete.
    pub(super) delete: Vec<&'a Pod>,
    /// The deleted pods that had finished.
    pub(super) ended: Vec<&'a Pod>,
}

impl<'a> View<'a> {
    pub(super) fn new(
        set: &'a DaemonSet,
        nodes: BTreeMap<&'a str, Eligibility>,
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

    /// `maxSurge` and `maxUnavailable`; `None` for the update strategy `OnDelete`.
    fn limits(&self) -> Option<(usize, usize)> {
        let strategy = self.set.spec.as_ref().and_then(|spec| spec.update_strategy.as_ref());
        if strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete") {
            return None;
        }
        let wanted =
            self.nodes.values().filter(|eligibility| **eligibility == Eligibility::ShouldRun).count();
        let wanted = i32::try_from(wanted).unwrap_or(i32::MAX);
        let count = |value: &IntOrString| usize::try_from(scaled(value, wanted, true)).unwrap_or_default();
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let surge = rolling.and_then(|rolling| rolling.max_surge.as_ref()).map_or(0, count);
        let unavailable = rolling.and_then(|rolling| rolling.max_unavailable.as_ref()).map_or(1, count);
        // At least one must be allowed, or the rollout would not progress.
        Some((surge, if surge == 0 { unavailable.max(1) } else { unavailable }))
    }

    /// The new and the old pod of a node. `None` if there are several of either.
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

/// Plans the next changes: first the pods that every node needs, then a step of the rollout.
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

/// Plans the pods that every node needs, without rollout.
fn settle<'a>(view: &View<'a>) -> Plan<'a> {
    let surges = view.limits().is_some_and(|(surge, _)| surge > 0);
    let mut plan = Plan::default();
    for (node, eligibility) in &view.nodes {
        let Some(pods) = view.pods.get(node) else {
            if *eligibility == Eligibility::ShouldRun {
                plan.create.push(node);
            }
            continue;
        };
        let mut pods: Vec<&Pod> = pods.iter().copied().filter(|pod| !pod::is_terminating(pod)).collect();
        if *eligibility == Eligibility::MustNotRun {
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
    // Pods bound to deleted nodes have no kubelet that could end them.
    let lost = view.pods.iter().filter(|(node, _)| !view.nodes.contains_key(*node));
    let waits = |pod: &&&Pod| kubelet::node_name(pod).is_none() && !pod::is_terminating(pod);
    plan.delete.extend(lost.flat_map(|(_, pods)| pods.iter().filter(waits)));
    plan
}

/// With surge: deletes all but the oldest pod of each revision, and the old pod once the new one is
/// available.
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

/// A rolling update without surge: deletes unavailable old pods, and available ones within `maxUnavailable`.
/// The next sync creates their replacements.
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

/// A rolling update with surge: creates new pods next to old ones, on nodes without an available pod and on
/// others within `maxSurge`.
fn overlap<'a>(view: &View<'a>, surge: usize) -> Plan<'a> {
    let mut surging = 0;
    let (mut useless, mut candidates) = (Vec::new(), Vec::new());
    for (node, pods) in &view.pods {
        if view.nodes.get(node) != Some(&Eligibility::ShouldRun) {
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
