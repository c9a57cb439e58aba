//! Which of the nodes that a pod fits is best for it: the one with the most room, weighed with what is preferred.

use k8s_openapi::api::core::v1::Pod;

use super::filter;
use super::state::{Site, Tenant};

/// What a container that asks for nothing counts as, so that such pods are spread too.
const SOME_CPU: i64 = 100;
const SOME_MEMORY: i64 = 200 * 1024 * 1024;
const BEST: i64 = 100;
const TAINTS_WEIGHT: i64 = 3;
const AFFINITY_WEIGHT: i64 = 2;

/// The best of some nodes. Among equals the one with the fewest pods of the same controller, then the fewest pods, then
/// the first.
pub(super) fn best<'a>(pod: &Pod, tenant: &Tenant, sites: &[(&'a String, &Site)]) -> Option<&'a String> {
    let taints = scale(sites.iter().map(|(_, site)| unwelcoming(pod, site)).collect());
    let affinity = scale(sites.iter().map(|(_, site)| preference(pod, site)).collect());
    let scored =
        sites.iter().zip(taints.into_iter().zip(affinity)).map(|((name, site), (taints, affinity))| {
            let score = room(tenant, site) + TAINTS_WEIGHT * (BEST - taints) + AFFINITY_WEIGHT * affinity;
            let siblings = site.pods.values().filter(|other| {
                other.controller.is_some() && other.controller == tenant.controller && !other.leaves
            });
            (siblings.count(), -score, site.pods.len(), *name)
        });
    scored.min().map(|(_, _, _, name)| name)
}

/// Values as a part of the largest.
fn scale(values: Vec<i64>) -> Vec<i64> {
    match values.iter().copied().max() {
        Some(largest) if largest > 0 => values.into_iter().map(|value| value * BEST / largest).collect(),
        _ => values,
    }
}

/// How much of a node would be free.
fn room(tenant: &Tenant, site: &Site) -> i64 {
    let free = |resource: &str, least: i64| {
        let has = site.has.get(resource).copied().unwrap_or_default();
        let asks = tenant.asks.get(resource).copied().filter(|asks| *asks > 0).unwrap_or(least);
        let used = site.used.get(resource).copied().unwrap_or_default() + asks;
        if has <= 0 || used > has { 0 } else { (has - used).saturating_mul(BEST) / has }
    };
    i64::midpoint(free("cpu", SOME_CPU), free("memory", SOME_MEMORY))
}

/// How many taints say that the pod should rather not be there.
fn unwelcoming(pod: &Pod, site: &Site) -> i64 {
    let taints = site.node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let rather_not = taints.iter().filter(|taint| taint.effect == "PreferNoSchedule").count();
    let minded = filter::untolerated(pod, &site.node, &["PreferNoSchedule"]).is_some();
    if minded { i64::try_from(rather_not).unwrap_or(i64::MAX) } else { 0 }
}

/// How much the pod would like to be there.
fn preference(pod: &Pod, site: &Site) -> i64 {
    let affinity = pod.spec.as_ref().and_then(|spec| spec.affinity.as_ref()?.node_affinity.as_ref());
    let preferred =
        affinity.and_then(|it| it.preferred_during_scheduling_ignored_during_execution.as_deref());
    let terms = preferred.unwrap_or_default().iter();
    terms
        .filter(|term| filter::term_selects(&term.preference, &site.node))
        .map(|term| i64::from(term.weight))
        .sum()
}
