//! Decides which pods of a StatefulSet to create, delete or wait for.
//!
//! Pure. Invariant: with `OrderedReady`, one pod changes at a time, in ascending order when scaling up and in
//! descending order when scaling down, and only while all other pods are available.

use std::collections::BTreeMap;
use std::ops::Range;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;

use super::identity;
use crate::deployment::scaled;
use crate::history::{self, REVISION};
use crate::pod::{self, Availability};

/// A change to make.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Step<'a> {
    /// Create the missing pod with this ordinal.
    Create(i32),
    /// Delete a finished pod. It is created again afterwards.
    Replace(&'a Pod),
    /// Set the labels of the pod's ordinal.
    Label(&'a Pod),
    /// Delete a pod that is excess or outdated.
    Delete(&'a Pod),
}

/// The relevant parts of the spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shape {
    /// The desired ordinals.
    pub(super) ordinals: Range<i32>,
    pub(super) min_ready: i32,
    /// Whether the pod management policy is `OrderedReady`.
    ordered: bool,
    /// The rolling update settings; `None` for `OnDelete`.
    rolling: Option<Rolling>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rolling {
    /// `partition`.
    from: i32,
    /// `maxUnavailable`.
    unavailable: i32,
}

impl Shape {
    pub(super) fn of(set: &StatefulSet) -> Self {
        let Some(spec) = &set.spec else {
            return Self { ordinals: 0..0, min_ready: 0, ordered: true, rolling: None };
        };
        let start = spec.ordinals.as_ref().and_then(|ordinals| ordinals.start).unwrap_or_default();
        let replicas = spec.replicas.unwrap_or(1);
        let strategy = spec.update_strategy.as_ref();
        let waits = strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete");
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let partition = rolling.and_then(|rolling| rolling.partition).unwrap_or_default();
        let unavailable = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
        let unavailable = unavailable.map_or(1, |value| scaled(value, replicas, false)).max(1);
        Self {
            ordinals: start..start.saturating_add(replicas),
            min_ready: spec.min_ready_seconds.unwrap_or_default(),
            ordered: spec.pod_management_policy.as_deref() != Some("Parallel"),
            rolling: (!waits).then_some(Rolling { from: start.saturating_add(partition), unavailable }),
        }
    }

    pub(super) fn is_rolling(&self) -> bool {
        self.rolling.is_some()
    }

    /// Whether a new pod with this ordinal gets the old revision.
    pub(super) fn keeps_old(&self, ordinal: i32) -> bool {
        self.rolling.is_some_and(|rolling| ordinal < rolling.from)
    }

    fn is_available(&self, pod: &Pod, now: Timestamp) -> bool {
        pod::phase(pod) == "Running"
            && !pod::is_terminating(pod)
            && pod::availability(pod, self.min_ready, now) == Availability::Yes
    }
}

/// Plans the next changes. `pods` are the pods of the set by ordinal.
pub(super) fn steps<'a>(
    set: &StatefulSet,
    shape: &Shape,
    pods: &BTreeMap<i32, &'a Pod>,
    update: &str,
    now: Timestamp,
) -> Vec<Step<'a>> {
    let mut steps = Vec::new();
    for ordinal in shape.ordinals.clone() {
        let (step, waits) = match pods.get(&ordinal) {
            None => (Some(Step::Create(ordinal)), true),
            Some(pod) if pod::is_terminal(pod) => {
                ((!pod::is_terminating(pod)).then_some(Step::Replace(pod)), true)
            }
            Some(pod) if shape.ordered && !shape.is_available(pod, now) => (None, true),
            Some(pod) => ((!identity::is_labelled(set, pod)).then_some(Step::Label(pod)), false),
        };
        steps.extend(step);
        if waits && shape.ordered {
            return steps;
        }
    }
    let mut spare: Vec<&Pod> =
        pods.iter().filter(|(ordinal, _)| !shape.ordinals.contains(ordinal)).map(|(_, pod)| *pod).collect();
    // An unhealthy excess pod is deleted only if it is the first unhealthy one; otherwise scaling down would
    // block itself.
    let first_unwell =
        spare.iter().find(|pod| !shape.is_available(pod, now)).and_then(|pod| pod.metadata.uid.clone());
    spare.reverse();
    for pod in spare {
        if shape.ordered && !shape.is_available(pod, now) && pod.metadata.uid != first_unwell {
            return steps;
        }
        if !pod::is_terminating(pod) {
            steps.push(Step::Delete(pod));
        }
        if shape.ordered {
            return steps;
        }
    }
    steps.extend(outdated(shape, pods, update, now).into_iter().map(Step::Delete));
    steps
}

/// The outdated pods to delete, in descending order and within `maxUnavailable`.
fn outdated<'a>(shape: &Shape, pods: &BTreeMap<i32, &'a Pod>, update: &str, now: Timestamp) -> Vec<&'a Pod> {
    let Some(rolling) = shape.rolling else { return Vec::new() };
    let mut left = rolling.unavailable;
    let mut doomed = Vec::new();
    for ordinal in (rolling.from.max(shape.ordinals.start)..shape.ordinals.end).rev() {
        if left == 0 {
            break;
        }
        match pods.get(&ordinal) {
            Some(pod) if pod::is_active(pod) && history::label(*pod, REVISION) != Some(update) => {
                doomed.push(*pod);
                left -= 1;
            }
            Some(pod) if shape.is_available(pod, now) => {}
            _ => left -= 1,
        }
    }
    doomed
}

#[cfg(test)]
mod tests;
