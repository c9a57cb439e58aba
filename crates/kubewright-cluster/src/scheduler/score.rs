//! Scores the nodes that a pod fits on by free resources, preferred node affinity and soft taints.

use k8s_openapi::api::core::v1::Pod;

use super::filter;
use super::nodes::{NodeInfo, PodInfo};

/// Assumed request of a container without requests, so that such pods are spread too.
const SOME_CPU: i64 = 100;
const SOME_MEMORY: i64 = 200 * 1024 * 1024;
const BEST: i64 = 100;
const TAINTS_WEIGHT: i64 = 3;
const AFFINITY_WEIGHT: i64 = 2;

/// The best node: fewest pods of the same controller, then the highest score, then the fewest pods, then by name.
pub(super) fn best<'a>(pod: &Pod, info: &PodInfo, nodes: &[(&'a str, &NodeInfo)]) -> Option<&'a str> {
    let taints = scale(nodes.iter().map(|(_, node_info)| soft_taints(pod, node_info)).collect());
    let affinity = scale(nodes.iter().map(|(_, node_info)| preference(pod, node_info)).collect());
    let scored =
        nodes.iter().zip(taints.into_iter().zip(affinity)).map(|((name, node_info), (taints, affinity))| {
            let score = room(info, node_info) + TAINTS_WEIGHT * (BEST - taints) + AFFINITY_WEIGHT * affinity;
            let siblings = node_info.pods.values().filter(|other| {
                other.shape.controller.is_some()
                    && other.shape.controller == info.shape.controller
                    && !other.terminating
            });
            (siblings.count(), -score, node_info.pods.len(), *name)
        });
    scored.min().map(|(_, _, _, name)| name)
}

/// Normalizes scores to the maximum.
fn scale(values: Vec<i64>) -> Vec<i64> {
    match values.iter().copied().max() {
        Some(largest) if largest > 0 => values.into_iter().map(|value| value * BEST / largest).collect(),
        _ => values,
    }
}

/// The free share of a node after placing the pod.
fn room(info: &PodInfo, node_info: &NodeInfo) -> i64 {
    let free = |resource: &str, least: i64| {
        let has = node_info.has.get(resource).copied().unwrap_or_default();
        let requests =
            info.shape.requests.get(resource).copied().filter(|requests| *requests > 0).unwrap_or(least);
        let used = node_info.used.get(resource).copied().unwrap_or_default() + requests;
        if has <= 0 || used > has { 0 } else { (has - used).saturating_mul(BEST) / has }
    };
    i64::midpoint(free("cpu", SOME_CPU), free("memory", SOME_MEMORY))
}

/// The number of untolerated `PreferNoSchedule` taints.
fn soft_taints(pod: &Pod, node_info: &NodeInfo) -> i64 {
    let taints = node_info.node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let rather_not = taints.iter().filter(|taint| taint.effect == "PreferNoSchedule").count();
    let minded = filter::untolerated(pod, &node_info.node, &["PreferNoSchedule"]).is_some();
    if minded { i64::try_from(rather_not).unwrap_or(i64::MAX) } else { 0 }
}

/// The score of the preferred node affinity.
fn preference(pod: &Pod, node_info: &NodeInfo) -> i64 {
    let affinity = pod.spec.as_ref().and_then(|spec| spec.affinity.as_ref()?.node_affinity.as_ref());
    let preferred =
        affinity.and_then(|it| it.preferred_during_scheduling_ignored_during_execution.as_deref());
    let terms = preferred.unwrap_or_default().iter();
    terms
        .filter(|term| filter::term_selects(&term.preference, &node_info.node))
        .map(|term| i64::from(term.weight))
        .sum()
}
