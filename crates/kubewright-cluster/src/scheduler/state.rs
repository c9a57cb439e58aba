//! What is where, and who waits: the memory of the scheduler, and its decision.
//!
//! Without async and without a clock. What was decided counts at once, whether the API server has heard of it or not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, PodAffinityTerm};
use kubewright_runtime::Key;
use kubewright_runtime::owner::controller_of;

use super::affinity::{self, Term};
use super::filter::{self, Refusal};
use super::preempt::{self, Preemption};
use super::requests::{self, Amounts};
use super::score;
use super::spread::Spread;
use crate::{kubelet, pod};

/// Below so many nodes all are looked at; above, this many and at least this part of them.
const FEW: usize = 100;
const LEAST_PERCENT: usize = 5;

/// What becomes of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decision {
    /// It has a place already, and the cache has not seen it yet.
    Known,
    /// It goes to this node.
    Place(String),
    /// It fits nowhere, for these reasons.
    Nowhere(String),
    /// It fits nowhere, and will on this node, when these are gone.
    Preempt { why: String, preemption: Preemption },
}

/// A node, and what is on it.
pub(super) struct Site {
    pub(super) node: Node,
    pub(super) has: Amounts,
    pub(super) used: Amounts,
    pub(super) pods: BTreeMap<Key, Arc<Tenant>>,
}

/// What counts of a pod that has a node.
pub(super) struct Tenant {
    pub(super) uid: String,
    pub(super) namespace: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) controller: Option<String>,
    pub(super) leaves: bool,
    pub(super) priority: i32,
    pub(super) started: Timestamp,
    pub(super) asks: Amounts,
    pub(super) ports: BTreeSet<(String, i32)>,
    /// Beside whom it must not be.
    pub(super) avoids: Vec<Term>,
}

#[derive(Default)]
pub(super) struct State {
    primed: bool,
    sites: BTreeMap<String, Site>,
    /// Where each pod is.
    places: BTreeMap<Key, String>,
    /// Pods on nodes that are not known, so that they count when the node comes.
    homeless: BTreeMap<String, BTreeMap<Key, Arc<Tenant>>>,
    waiting: BTreeSet<Key>,
    /// The pods that others leave for, and count on their nodes as if they were there.
    nominated: BTreeMap<Key, Preemption>,
    /// How many pods are of each priority.
    priorities: BTreeMap<i32, usize>,
    /// Where the last search ended: the next one begins there.
    turn: usize,
}

impl Tenant {
    pub(super) fn of(pod: &Pod) -> Self {
        let spec = pod.spec.as_ref();
        let namespace = pod.metadata.namespace.clone().unwrap_or_default();
        let ports =
            spec.into_iter().flat_map(|spec| &spec.containers).flat_map(|it| it.ports.iter().flatten());
        let ports = ports.filter_map(|port| {
            let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".to_owned());
            port.host_port.filter(|port| *port > 0).map(|port| (protocol, port))
        });
        let anti = spec.and_then(|spec| spec.affinity.as_ref()?.pod_anti_affinity.as_ref());
        let anti: &[PodAffinityTerm] = anti
            .and_then(|it| it.required_during_scheduling_ignored_during_execution.as_deref())
            .unwrap_or_default();
        Self {
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            labels: pod.metadata.labels.clone().unwrap_or_default(),
            controller: controller_of(pod).map(|owner| owner.uid.clone()),
            leaves: pod::is_terminating(pod),
            priority: spec.and_then(|spec| spec.priority).unwrap_or_default(),
            started: pod
                .status
                .as_ref()
                .and_then(|it| it.start_time.as_ref())
                .map_or(Timestamp::MAX, |it| it.0),
            asks: requests::of_pod(pod),
            ports: ports.collect(),
            avoids: anti.iter().map(|term| Term::new(term, &namespace, pod)).collect(),
            namespace,
        }
    }
}

impl State {
    pub(super) fn is_primed(&self) -> bool {
        self.primed
    }

    /// Learns everything that is there.
    pub(super) fn prime(&mut self, nodes: &[Arc<Node>], pods: &[Arc<Pod>]) {
        for node in nodes {
            self.node(node);
        }
        for pod in pods {
            if kubelet::node_name(pod).is_some() && !pod::is_terminal(pod) {
                self.placed(&Key::of(&**pod), pod);
            }
        }
        self.primed = true;
    }

    /// A node is there, or changed. Who should look again.
    pub(super) fn node(&mut self, node: &Node) -> Vec<Key> {
        let name = node.metadata.name.clone().unwrap_or_default();
        let has = requests::of_node(node);
        if let Some(site) = self.sites.get_mut(&name) {
            if site.node.spec == node.spec
                && site.node.metadata.labels == node.metadata.labels
                && site.has == has
            {
                return Vec::new();
            }
            (site.node, site.has) = (node.clone(), has);
        } else {
            let mut site = Site { node: node.clone(), has, used: Amounts::new(), pods: BTreeMap::new() };
            for (key, tenant) in self.homeless.remove(&name).unwrap_or_default() {
                site.moves_in(key, tenant);
            }
            self.sites.insert(name, site);
        }
        self.look_again()
    }

    /// A node is gone. Who should look again: the sentence that they were told names a number of nodes.
    pub(super) fn node_gone(&mut self, name: &str) -> Vec<Key> {
        if let Some(site) = self.sites.remove(name)
            && !site.pods.is_empty()
        {
            self.homeless.insert(name.to_owned(), site.pods);
        }
        self.look_again()
    }

    /// A pod has a node, or has ended there. Who should look again.
    pub(super) fn placed(&mut self, key: &Key, pod: &Pod) -> Vec<Key> {
        self.waiting.remove(key);
        self.withdraw(key);
        if pod::is_terminal(pod) {
            return self.forget(key);
        }
        let Some(node) = kubelet::node_name(pod) else { return Vec::new() };
        let before = self.places.get(key).cloned();
        self.moves(key, node, Tenant::of(pod));
        // Somebody may want to be beside it; where it was before, there is room.
        if before.as_deref() == Some(node) { Vec::new() } else { self.look_again() }
    }

    /// A pod is gone. Who should look again.
    pub(super) fn forget(&mut self, key: &Key) -> Vec<Key> {
        self.waiting.remove(key);
        self.nominated.remove(key);
        if self.moves_out(key) { self.look_again() } else { Vec::new() }
    }

    /// A pod that waited does not any more.
    pub(super) fn stops_waiting(&mut self, key: &Key) {
        self.waiting.remove(key);
        self.withdraw(key);
    }

    /// Finds a node for a pod, which is there from then on.
    pub(super) fn decide(&mut self, key: &Key, pod: &Pod) -> Decision {
        let tenant = Tenant::of(pod);
        let before = self.nominated.remove(key);
        if before.is_some() {
            self.moves_out(key);
        }
        if let Some(known) = self.tenant(key) {
            if known.uid == tenant.uid {
                return Decision::Known;
            }
            // A namesake of before, whose end nobody has told yet.
            self.moves_out(key);
        }
        match self.search(pod, &tenant) {
            Ok(node) => {
                self.waiting.remove(key);
                self.moves(key, &node, tenant);
                Decision::Place(node)
            }
            Err(nowhere) => {
                self.waiting.insert(key.clone());
                self.preempt(key, pod, tenant, before, &nowhere)
            }
        }
    }

    /// Has others leave for a pod that fits nowhere, if that is allowed and of use.
    fn preempt(
        &mut self,
        key: &Key,
        pod: &Pod,
        tenant: Tenant,
        before: Option<Preemption>,
        nowhere: &Nowhere,
    ) -> Decision {
        if !preempt::is_allowed(pod) {
            return Decision::Nowhere(nowhere.sentence("not eligible due to preemptionPolicy=Never"));
        }
        if let Some(before) = before.filter(|before| self.is_emptying(before, &tenant)) {
            self.nominate(key, before, tenant);
            let why = "not eligible due to a terminating pod on the nominated node";
            return Decision::Nowhere(nowhere.sentence(why));
        }
        let nominated = &self.nominated;
        // Mostly all are equal, and nobody need be asked.
        let is_above = self.priorities.keys().next().is_some_and(|lowest| *lowest < tenant.priority);
        let mut find = || preempt::find(pod, &tenant, &mut self.sites, |key| nominated.contains_key(key));
        match is_above.then(&mut find).flatten() {
            None => Decision::Nowhere(nowhere.sentence(&nowhere.helpless())),
            Some(Preemption { node, victims }) if victims.is_empty() => {
                self.waiting.remove(key);
                self.moves(key, &node, tenant);
                Decision::Place(node)
            }
            Some(preemption) => {
                self.nominate(key, preemption.clone(), tenant);
                Decision::Preempt { why: nowhere.reasons(), preemption }
            }
        }
    }

    /// Whether those that were to leave for a pod, or others, still do.
    fn is_emptying(&self, preemption: &Preemption, tenant: &Tenant) -> bool {
        let leaves = |(key, other): (&Key, &Arc<Tenant>)| {
            other.priority < tenant.priority && (other.leaves || preemption.victims.contains(key))
        };
        self.sites.get(&preemption.node).is_some_and(|site| site.pods.iter().any(leaves))
    }

    fn nominate(&mut self, key: &Key, preemption: Preemption, tenant: Tenant) {
        self.moves(key, &preemption.node, tenant);
        self.nominated.insert(key.clone(), preemption);
    }

    /// A pod is not left for any more.
    pub(super) fn withdraw(&mut self, key: &Key) {
        if self.nominated.remove(key).is_some() {
            self.moves_out(key);
        }
    }

    fn search(&mut self, pod: &Pod, tenant: &Tenant) -> Result<String, Nowhere> {
        let total = self.sites.len();
        if total == 0 {
            return Err(Nowhere { nodes: 0, refusals: Vec::new() });
        }
        let neighbours = affinity::Neighbours::new(pod, tenant, &self.sites);
        let spread = Spread::new(pod, tenant, &self.sites);
        let enough = enough(total);
        let sites: Vec<(&String, &Site)> = self.sites.iter().collect();
        let (mut fitting, mut refusals) = (Vec::new(), Vec::new());
        let mut looked = 0;
        for step in 0..total {
            let (name, site) = sites[(self.turn + step) % total];
            looked += 1;
            let why = filter::check(pod, tenant, site, &neighbours, &spread);
            if why.is_empty() {
                fitting.push((name, site));
                if fitting.len() >= enough {
                    break;
                }
            } else {
                refusals.push(why);
            }
        }
        let best = score::best(pod, tenant, &fitting).map(|name| (*name).clone());
        self.turn = (self.turn + looked) % total;
        best.ok_or(Nowhere { nodes: total, refusals })
    }

    fn tenant(&self, key: &Key) -> Option<&Tenant> {
        let node = self.places.get(key)?;
        let pods = self.sites.get(node).map(|site| &site.pods).or_else(|| self.homeless.get(node))?;
        pods.get(key).map(|tenant| &**tenant)
    }

    fn moves(&mut self, key: &Key, node: &str, tenant: Tenant) {
        self.moves_out(key);
        *self.priorities.entry(tenant.priority).or_default() += 1;
        let tenant = Arc::new(tenant);
        self.places.insert(key.clone(), node.to_owned());
        match self.sites.get_mut(node) {
            Some(site) => site.moves_in(key.clone(), tenant),
            None => {
                self.homeless.entry(node.to_owned()).or_default().insert(key.clone(), tenant);
            }
        }
    }

    fn moves_out(&mut self, key: &Key) -> bool {
        if let Some(priority) = self.tenant(key).map(|tenant| tenant.priority)
            && let Some(count) = self.priorities.get_mut(&priority)
        {
            *count -= 1;
            if *count == 0 {
                self.priorities.remove(&priority);
            }
        }
        let Some(node) = self.places.remove(key) else { return false };
        if let Some(site) = self.sites.get_mut(&node) {
            site.moves_out(key);
        }
        if let Some(pods) = self.homeless.get_mut(&node) {
            pods.remove(key);
        }
        true
    }

    fn look_again(&self) -> Vec<Key> {
        self.waiting.iter().cloned().collect()
    }
}

impl Site {
    pub(super) fn moves_in(&mut self, key: Key, tenant: Arc<Tenant>) {
        requests::add(&mut self.used, &tenant.asks);
        self.pods.insert(key, tenant);
    }

    pub(super) fn moves_out(&mut self, key: &Key) {
        if let Some(tenant) = self.pods.remove(key) {
            requests::subtract(&mut self.used, &tenant.asks);
        }
    }
}

/// So many nodes are enough to choose from.
fn enough(nodes: usize) -> usize {
    if nodes < FEW {
        return nodes;
    }
    let percent = 50_usize.saturating_sub(nodes / 125).max(LEAST_PERCENT);
    (nodes * percent / 100).max(FEW)
}

/// Why a pod fits nowhere, in upstream's words.
struct Nowhere {
    nodes: usize,
    refusals: Vec<Vec<Refusal>>,
}

impl Nowhere {
    /// The reasons alone.
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

    /// The reasons, and why nobody leaves for the pod.
    fn sentence(&self, why: &str) -> String {
        if self.nodes == 0 {
            return self.reasons();
        }
        format!("{} no new claims to deallocate, preemption: {why}.", self.reasons())
    }

    /// Why it would not help if somebody left.
    fn helpless(&self) -> String {
        let helpless = self.refusals.iter().filter(|why| why.iter().any(|it| !it.could_be_helped())).count();
        let victims = [
            (self.nodes - helpless, "No preemption victims found for incoming pod"),
            (helpless, "Preemption is not helpful for scheduling"),
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
