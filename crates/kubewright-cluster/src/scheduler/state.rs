//! The scheduler's view of nodes and pods, and its decisions.
//!
//! Synchronous and without a clock. Decisions take effect immediately, before the API server confirms them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use kubewright_runtime::Key;

use super::affinity;
use super::filter::{self, Unfit};
use super::nodes::{NodeInfo, Nodes, PodInfo};
use super::preempt::{self, Preemption};
use super::score;
use super::spread::Spread;
use crate::{kubelet, pod};

/// Up to this number of nodes all are evaluated; beyond it at least this number and share.
const FEW: usize = 100;
const LEAST_PERCENT: usize = 5;

/// The result of a scheduling attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decision {
    /// Already placed; the cache is not up to date yet.
    AlreadyPlaced,
    /// Bind to this node.
    Place(String),
    /// Fits on no node, for these reasons.
    Unschedulable(String),
    /// Fits on no node now, but on one after its victims are deleted.
    Preempt { why: String, preemption: Preemption },
}

#[derive(Default)]
pub(super) struct State {
    loaded: bool,
    nodes: Nodes,
    /// The node of each pod.
    places: BTreeMap<Key, String>,
    /// Pods on unknown nodes, which count once the node is added.
    on_unknown_nodes: BTreeMap<String, BTreeMap<Key, Arc<PodInfo>>>,
    waiting: BTreeSet<Key>,
    /// Nominated pods, which count on their nodes as if they were bound.
    nominated: BTreeMap<Key, Preemption>,
    /// The number of pods per priority.
    priorities: BTreeMap<i32, usize>,
    /// The node at which the next search starts.
    turn: String,
}

impl State {
    pub(super) fn is_loaded(&self) -> bool {
        self.loaded
    }

    /// Loads all nodes and pods.
    pub(super) fn load(&mut self, nodes: &[Arc<Node>], pods: &[Arc<Pod>]) {
        for node in nodes {
            self.node(node);
        }
        for pod in pods {
            if kubelet::node_name(pod).is_some() && !pod::is_terminal(pod) {
                self.placed(&Key::of(&**pod), pod);
            }
        }
        self.loaded = true;
    }

    /// Adds or updates a node. Returns the pods to requeue.
    pub(super) fn node(&mut self, node: &Node) -> Vec<Key> {
        if !self.nodes.set(node) {
            return Vec::new();
        }
        let name = node.metadata.name.as_deref().unwrap_or_default();
        for (key, info) in self.on_unknown_nodes.remove(name).unwrap_or_default() {
            // Cannot fail: the node was added above.
            let _ = self.nodes.add_pod(name, key, info);
        }
        self.requeue_waiting()
    }

    /// Removes a node. Returns the pods to requeue: their messages contain the number of nodes.
    pub(super) fn node_gone(&mut self, name: &str) -> Vec<Key> {
        if let Some(pods) = self.nodes.remove(name).filter(|pods| !pods.is_empty()) {
            self.on_unknown_nodes.insert(name.to_owned(), pods);
        }
        self.requeue_waiting()
    }

    /// Updates a bound pod. Returns the pods to requeue.
    pub(super) fn placed(&mut self, key: &Key, pod: &Pod) -> Vec<Key> {
        self.waiting.remove(key);
        self.withdraw(key);
        if pod::is_terminal(pod) {
            return self.forget(key);
        }
        let Some(node) = kubelet::node_name(pod) else { return Vec::new() };
        let before = self.places.get(key).cloned();
        self.moves(key, node, PodInfo::of(pod));
        // A new pod can satisfy an affinity; its old node has room.
        if before.as_deref() == Some(node) { Vec::new() } else { self.requeue_waiting() }
    }

    /// Removes a pod. Returns the pods to requeue.
    pub(super) fn forget(&mut self, key: &Key) -> Vec<Key> {
        self.waiting.remove(key);
        self.nominated.remove(key);
        if self.remove_pod(key) { self.requeue_waiting() } else { Vec::new() }
    }

    /// Removes a pod from the waiting ones.
    pub(super) fn stop_waiting(&mut self, key: &Key) {
        self.waiting.remove(key);
        self.withdraw(key);
    }

    /// Selects a node for a pod and places it there.
    pub(super) fn decide(&mut self, key: &Key, pod: &Pod) -> Decision {
        let info = PodInfo::of(pod);
        let before = self.nominated.remove(key);
        if before.is_some() {
            self.remove_pod(key);
        }
        if let Some(known) = self.info(key) {
            if known.uid == info.uid {
                return Decision::AlreadyPlaced;
            }
            // An older pod with the same name, whose deletion is not observed yet.
            self.remove_pod(key);
        }
        match self.search(pod, &info) {
            Ok(node) => {
                self.waiting.remove(key);
                self.moves(key, &node, info);
                Decision::Place(node)
            }
            Err(nowhere) => {
                self.waiting.insert(key.clone());
                self.preempt(key, pod, info, before, &nowhere)
            }
        }
    }

    /// Finds victims for a pod that fits on no node, if preemption is allowed and helps.
    fn preempt(
        &mut self,
        key: &Key,
        pod: &Pod,
        info: PodInfo,
        before: Option<Preemption>,
        nowhere: &FitError,
    ) -> Decision {
        if !preempt::is_allowed(pod) {
            return Decision::Unschedulable(nowhere.sentence("not eligible due to preemptionPolicy=Never"));
        }
        if let Some(before) = before.filter(|before| self.has_terminating_victims(before, &info)) {
            self.nominate(key, before, info);
            let why = "not eligible due to a terminating pod on the nominated node";
            return Decision::Unschedulable(nowhere.sentence(why));
        }
        let nominated = &self.nominated;
        // Fast path: usually all pods have the same priority.
        let is_above = self.priorities.keys().next().is_some_and(|lowest| *lowest < info.shape.priority);
        let mut find = || preempt::find(pod, &info, &mut self.nodes, |key| nominated.contains_key(key));
        match is_above.then(&mut find).flatten() {
            None => Decision::Unschedulable(nowhere.sentence(&nowhere.preemption_problem())),
            Some(Preemption { node, victims }) if victims.is_empty() => {
                self.waiting.remove(key);
                self.moves(key, &node, info);
                Decision::Place(node)
            }
            Some(preemption) => {
                self.nominate(key, preemption.clone(), info);
                Decision::Preempt { why: nowhere.reasons(), preemption }
            }
        }
    }

    /// Whether the victims of a pod, or other lower-priority pods on its node, are still terminating.
    fn has_terminating_victims(&self, preemption: &Preemption, info: &PodInfo) -> bool {
        let terminating = |(key, other): (&Key, &Arc<PodInfo>)| {
            other.shape.priority < info.shape.priority
                && (other.terminating || preemption.victims.contains(key))
        };
        self.nodes.get(&preemption.node).is_some_and(|node_info| node_info.pods.iter().any(terminating))
    }

    fn nominate(&mut self, key: &Key, preemption: Preemption, info: PodInfo) {
        self.moves(key, &preemption.node, info);
        self.nominated.insert(key.clone(), preemption);
    }

    /// Removes the nomination of a pod.
    pub(super) fn withdraw(&mut self, key: &Key) {
        if self.nominated.remove(key).is_some() {
            self.remove_pod(key);
        }
    }

    fn search(&mut self, pod: &Pod, info: &PodInfo) -> Result<String, FitError> {
        let total = self.nodes.len();
        if total == 0 {
            return Err(FitError { nodes: 0, refusals: Vec::new() });
        }
        let neighbours = affinity::Neighbours::new(pod, info, &self.nodes);
        let spread = Spread::new(pod, info, &self.nodes);
        let enough = enough(total);
        let (mut fitting, mut refusals) = (Vec::<(&str, &NodeInfo)>::new(), Vec::new());
        let mut nodes = self.nodes.starting_at(&self.turn);
        for (name, node_info) in nodes.by_ref() {
            let why = filter::check(pod, info, node_info, &neighbours, &spread);
            if why.is_empty() {
                fitting.push((name, node_info));
                if fitting.len() >= enough {
                    break;
                }
            } else {
                refusals.push(why);
            }
        }
        let turn = nodes.next().map(|(name, _)| name.to_owned());
        let best = score::best(pod, info, &fitting).map(str::to_owned);
        // After a search of all nodes, the next one starts at the same node again.
        if let Some(turn) = turn {
            self.turn = turn;
        }
        best.ok_or(FitError { nodes: total, refusals })
    }

    fn info(&self, key: &Key) -> Option<&PodInfo> {
        let node = self.places.get(key)?;
        let pods = self
            .nodes
            .get(node)
            .map(|node_info| &node_info.pods)
            .or_else(|| self.on_unknown_nodes.get(node))?;
        pods.get(key).map(|info| &**info)
    }

    fn moves(&mut self, key: &Key, node: &str, mut info: PodInfo) {
        self.remove_pod(key);
        self.nodes.share(&mut info);
        *self.priorities.entry(info.shape.priority).or_default() += 1;
        let info = Arc::new(info);
        self.places.insert(key.clone(), node.to_owned());
        if let Err((key, info)) = self.nodes.add_pod(node, key.clone(), info) {
            self.on_unknown_nodes.entry(node.to_owned()).or_default().insert(key, info);
        }
    }

    fn remove_pod(&mut self, key: &Key) -> bool {
        if let Some(priority) = self.info(key).map(|info| info.shape.priority)
            && let Some(count) = self.priorities.get_mut(&priority)
        {
            *count -= 1;
            if *count == 0 {
                self.priorities.remove(&priority);
            }
        }
        let Some(node) = self.places.remove(key) else { return false };
        self.nodes.remove_pod(&node, key);
        if let Some(pods) = self.on_unknown_nodes.get_mut(&node) {
            pods.remove(key);
        }
        true
    }

    fn requeue_waiting(&self) -> Vec<Key> {
        self.waiting.iter().cloned().collect()
    }
}

/// The number of feasible nodes after which the search stops.
fn enough(nodes: usize) -> usize {
    if nodes < FEW {
        return nodes;
    }
    let percent = 50_usize.saturating_sub(nodes / 125).max(LEAST_PERCENT);
    (nodes * percent / 100).max(FEW)
}

/// Why a pod fits on no node, in upstream's wording.
struct FitError {
    nodes: usize,
    refusals: Vec<Vec<Unfit>>,
}

impl FitError {
    /// The reasons without a prefix.
    fn reasons(&self) -> String {
        if self.nodes == 0 {
            return "no nodes available to schedule pods".to_owned();
        }
        let mut counts = BTreeMap::<String, usize>::new();
        for refusal in self.refusals.iter().flatten() {
            *counts.entry(refusal.to_string()).or_default() += 1;
        }
        let mut reasons: Vec<String> =
            counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        reasons.sort();
        format!("0/{} nodes are available: {}.", self.nodes, reasons.join(", "))
    }

    /// The full message, with the reasons why preemption does not help.
    fn sentence(&self, why: &str) -> String {
        if self.nodes == 0 {
            return self.reasons();
        }
        format!("{} no new claims to deallocate, preemption: {why}.", self.reasons())
    }

    /// Why preemption does not help.
    fn preemption_problem(&self) -> String {
        let preemption_problem =
            self.refusals.iter().filter(|why| why.iter().any(|it| !it.preemption_could_help())).count();
        let victims = [
            (self.nodes - preemption_problem, "No preemption victims found for incoming pod"),
            (preemption_problem, "Preemption is not helpful for scheduling"),
        ];
        let victims: Vec<String> = victims
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, why)| format!("{count} {why}"))
            .collect();
        format!("0/{} nodes are available: {}", self.nodes, victims.join(", "))
    }
}

#[cfg(test)]
mod tests;
