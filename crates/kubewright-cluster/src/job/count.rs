//! Counts succeeded and failed pods of a Job, each once.
//!
//! The UID of a finished pod is first added to `uncountedTerminatedPods`, then the pod loses its finalizer,
//! then the UID moves to the counters. The status alone shows whether a pod is counted.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::{Job, JobStatus, UncountedTerminatedPods};
use k8s_openapi::api::core::v1::Pod;

use super::{completed, index_of, is_indexed};
use crate::pod;

/// The finalizer that keeps a pod until it is counted.
pub(super) const FINALIZER: &str = "batch.kubernetes.io/job-tracking";

/// Whether the pod has finished, or is deleted before it was scheduled: no kubelet will finish it.
pub(super) fn is_over(pod: &Pod) -> bool {
    let is_scheduled = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    pod::is_terminal(pod) || pod::is_terminating(pod) && !is_scheduled
}

/// Adds newly finished pods to the status.
pub(super) fn next(job: &Job, pods: &[Arc<Pod>]) -> JobStatus {
    let mut status = job.status.clone().unwrap_or_default();
    let mut notes = status.uncounted_terminated_pods.take().unwrap_or_default();
    let held = |uid: &String| pods.iter().any(|pod| pod.metadata.uid.as_ref() == Some(uid) && is_held(pod));
    let settle = |notes: &mut Option<Vec<String>>| {
        let all = notes.take().unwrap_or_default();
        let (still, done): (Vec<String>, Vec<String>) = all.into_iter().partition(held);
        *notes = Some(still);
        i32::try_from(done.len()).unwrap_or(i32::MAX)
    };
    let succeeded = settle(&mut notes.succeeded);
    let failed = settle(&mut notes.failed);
    let plus =
        |count: Option<i32>, more: i32| Some(count.unwrap_or_default() + more).filter(|count| *count > 0);
    status.failed = plus(status.failed, failed);
    let mut indexes = completed(&status);
    for pod in pods.iter().filter(|pod| is_held(pod) && is_over(pod)) {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let list = if pod::phase(pod) == "Succeeded" { &mut notes.succeeded } else { &mut notes.failed };
        let list = list.get_or_insert_default();
        if !list.contains(&uid) {
            list.push(uid);
        }
        if pod::phase(pod) == "Succeeded" {
            indexes.0.extend(index_of(pod));
        }
    }
    if is_indexed(job) {
        // An index that succeeds twice counts once.
        status.completed_indexes = Some(indexes.to_string()).filter(|text| !text.is_empty());
        status.succeeded = plus(None, i32::try_from(indexes.0.len()).unwrap_or(i32::MAX));
    } else {
        status.succeeded = plus(status.succeeded, succeeded);
    }
    let notes = UncountedTerminatedPods {
        succeeded: notes.succeeded.filter(|list| !list.is_empty()),
        failed: notes.failed.filter(|list| !list.is_empty()),
    };
    status.uncounted_terminated_pods = Some(notes);
    status
}

/// The UIDs in `uncountedTerminatedPods`.
pub(super) fn uncounted(status: &JobStatus) -> BTreeSet<String> {
    let notes = status.uncounted_terminated_pods.clone().unwrap_or_default();
    notes.succeeded.into_iter().chain(notes.failed).flatten().collect()
}

/// The totals of succeeded and failed pods, including uncounted ones.
pub(super) fn totals(job: &Job, status: &JobStatus) -> (i32, i32) {
    let notes = status.uncounted_terminated_pods.clone().unwrap_or_default();
    let len = |list: Option<Vec<String>>| i32::try_from(list.unwrap_or_default().len()).unwrap_or(i32::MAX);
    let noted = if is_indexed(job) { 0 } else { len(notes.succeeded) };
    (status.succeeded.unwrap_or_default() + noted, status.failed.unwrap_or_default() + len(notes.failed))
}

fn is_held(pod: &Pod) -> bool {
    pod.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == FINALIZER)
}

/// Completed indexes in the format of the status: `0-2,5`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Indexes(pub(super) BTreeSet<i32>);

impl Indexes {
    pub(super) fn parse(text: &str) -> Self {
        let ranges = text.split(',').filter_map(|part| {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            Some(from.parse::<i32>().ok()?..=to.parse::<i32>().ok()?)
        });
        Self(ranges.flatten().collect())
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(i32, i32)> = Vec::new();
        for index in &self.0 {
            match ranges.last_mut() {
                Some((_, to)) if *to + 1 == *index => *to = *index,
                _ => ranges.push((*index, *index)),
            }
        }
        let part = |(from, to): &(i32, i32)| match to - from {
            0 => from.to_string(),
            1 => format!("{from},{to}"),
            _ => format!("{from}-{to}"),
        };
        f.write_str(&ranges.iter().map(part).collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn pod(uid: &str, phase: &str, held: bool) -> Arc<Pod> {
        let finalizers = if held { vec![FINALIZER] } else { Vec::new() };
        let pod =
            json!({ "metadata": { "uid": uid, "finalizers": finalizers }, "status": { "phase": phase } });
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    #[test]
    fn a_pod_is_counted_once() {
        let mut job = Job::default();
        let noted =
            next(&job, &[pod("a", "Succeeded", true), pod("b", "Failed", true), pod("c", "Running", true)]);
        assert_eq!(uncounted(&noted), BTreeSet::from(["a".to_owned(), "b".to_owned()]));
        assert_eq!((noted.succeeded, noted.failed, totals(&job, &noted)), (None, None, (1, 1)));
        job.status = Some(noted.clone());
        assert_eq!(
            next(&job, &[pod("a", "Succeeded", true), pod("b", "Failed", true)]),
            noted,
            "nothing is new"
        );
        // One lost its finalizer, the other is deleted.
        let counted = next(&job, &[pod("a", "Succeeded", false)]);
        assert_eq!((counted.succeeded, counted.failed, totals(&job, &counted)), (Some(1), Some(1), (1, 1)));
        job.status = Some(counted.clone());
        assert_eq!(next(&job, &[pod("a", "Succeeded", false)]), counted);
    }

    proptest! {
        #[test]
        fn indexes_round_trip(indexes in prop::collection::btree_set(0_i32..40, 0..30)) {
            let indexes = Indexes(indexes);
            prop_assert_eq!(Indexes::parse(&indexes.to_string()), indexes);
        }
    }

    #[test]
    fn index_ranges_have_at_least_three_indexes() {
        assert_eq!(Indexes(BTreeSet::from([0, 1, 2, 5, 7, 8])).to_string(), "0-2,5,7,8");
    }
}
