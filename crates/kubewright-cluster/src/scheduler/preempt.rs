//! Preemption: finds lower-priority victims for a pod that fits on no node.
//!
//! Pure. Invariant: every victim has a lower priority, and without any one of them the pod would not fit.

use std::cmp::Reverse;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kubewright_runtime::Key;

use super::affinity::Neighbours;
use super::filter::{self, Unfit};
use super::nodes::{NodeInfo, Nodes, PodInfo};
use super::spread::Spread;

/// Compares one tenth of the nodes as candidates, and at least 100.
const PART: usize = 10;
const FEW: usize = 100;

/// A node and the victims on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Preemption {
    pub(super) node: String,
    /// The pods to delete. Empty if the obstacles were only nominated pods.
    pub(super) victims: Vec<Key>,
}

/// Whether the preemption policy of a pod allows preemption.
pub(super) fn is_allowed(pod: &Pod) -> bool {
    pod.spec.as_ref().and_then(|spec| spec.preemption_policy.as_deref()) != Some("Never")
}

/// Picks the node with the cheapest victims. Nominated pods are displaced without deletion.
pub(super) fn find(
    pod: &Pod,
    info: &PodInfo,
    nodes: &mut Nodes,
    is_nominated: impl Fn(&Key) -> bool,
) -> Option<Preemption> {
    let rules = (Neighbours::new(pod, info, nodes), Spread::new(pod, info, nodes));
    let names: Vec<String> = nodes.names().cloned().collect();
    let enough = (names.len() / PART).max(FEW);
    let mut candidates = Vec::new();
    for name in names {
        let has_lower = |node_info: &&NodeInfo| {
            node_info.pods.values().any(|other| other.shape.priority < info.shape.priority)
        };
        let Some(node_info) = nodes.get(&name).filter(has_lower) else { continue };
        let why = filter::check(pod, info, node_info, &rules.0, &rules.1);
        if !why.iter().all(Unfit::preemption_could_help) {
            continue;
        }
        // Affinity and spreading depend on the other pods and are expensive to recompute.
        let alone = !why
            .iter()
            .any(|why| matches!(why, Unfit::Spread | Unfit::PodAntiAffinity | Unfit::AvoidedByOthers));
        let mut trial = Trial { pod, info, name: &name, nodes, rules: alone.then_some(&rules) };
        if let Some(victims) = trial.victims(&is_nominated) {
            candidates.push((loss(&victims), name, victims));
        }
        if candidates.len() >= enough {
            break;
        }
    }
    let (_, node, victims) =
        candidates.into_iter().min_by(|one, other| (&one.0, &one.1).cmp(&(&other.0, &other.1)))?;
    Some(Preemption { node, victims: victims.into_iter().map(|(key, _)| key).collect() })
}

/// The cost of victims, lower is better: the highest priority, the sum of priorities, their number, and the
/// start time of the earliest victim with the highest priority.
fn loss(victims: &[(Key, Arc<PodInfo>)]) -> (i32, i64, usize, Reverse<Option<Timestamp>>) {
    let highest = victims.iter().map(|(_, victim)| victim.shape.priority).max();
    let first = victims.iter().filter(|(_, victim)| Some(victim.shape.priority) == highest);
    let first = first.map(|(_, victim)| victim.started).min();
    // Priorities may be negative: shift them, so that each victim counts.
    let each = |victim: &PodInfo| i64::from(victim.shape.priority) - i64::from(i32::MIN);
    let all = victims.iter().map(|(_, victim)| each(victim)).sum();
    (highest.unwrap_or(i32::MIN), all, victims.len(), Reverse(first))
}

/// A node during victim selection, without the lower-priority pods.
struct Trial<'a> {
    pod: &'a Pod,
    info: &'a PodInfo,
    name: &'a str,
    nodes: &'a mut Nodes,
    rules: Option<&'a (Neighbours, Spread)>,
}

impl Trial<'_> {
    /// The minimal victims; `None` if preemption does not help. Restores the node afterwards.
    fn victims(&mut self, is_nominated: impl Fn(&Key) -> bool) -> Option<Vec<(Key, Arc<PodInfo>)>> {
        let lower = |info: &&Arc<PodInfo>| info.shape.priority < self.info.shape.priority;
        let node_info = self.nodes.get(self.name)?;
        let lower = node_info.pods.iter().filter(|(_, info)| lower(info));
        let mut lower: Vec<(Key, Arc<PodInfo>)> =
            lower.map(|(key, info)| (key.clone(), info.clone())).collect();
        for (key, _) in &lower {
            self.remove_pod(key);
        }
        let mut victims = Vec::new();
        let fits = self.fits();
        if fits {
            // Reprieve the most important pods first: by priority, then by run time.
            lower.sort_by_key(|(_, info)| (Reverse(info.shape.priority), info.started));
            for (key, info) in lower.iter().filter(|(key, _)| !is_nominated(key)) {
                self.add_pod(key, info);
                if !self.fits() {
                    self.remove_pod(key);
                    victims.push((key.clone(), info.clone()));
                }
            }
        }
        for (key, info) in &lower {
            self.add_pod(key, info);
        }
        fits.then_some(victims)
    }

    fn fits(&self) -> bool {
        let Some(node_info) = self.nodes.get(self.name) else { return false };
        let check = |rules: &(Neighbours, Spread)| {
            filter::check(self.pod, self.info, node_info, &rules.0, &rules.1).is_empty()
        };
        self.rules.map_or_else(
            || {
                let neighbours = Neighbours::new(self.pod, self.info, self.nodes);
                check(&(neighbours, Spread::new(self.pod, self.info, self.nodes)))
            },
            check,
        )
    }

    fn remove_pod(&mut self, key: &Key) {
        self.nodes.remove_pod(self.name, key);
    }

    fn add_pod(&mut self, key: &Key, info: &Arc<PodInfo>) {
        if self.nodes.get(self.name).is_some_and(|node_info| !node_info.pods.contains_key(key)) {
            // Cannot fail: the node is known.
            let _ = self.nodes.add_pod(self.name, key.clone(), info.clone());
        }
    }
}
