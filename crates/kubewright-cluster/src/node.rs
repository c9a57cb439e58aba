//! Simulated nodes: Node objects with their status and leases.
//!
//! Each configured node registers once. Deleting its Node object removes the machine: it does not register
//! again, and its pods are deleted. Nodes created by other clients are simulated as well.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{
    Node, NodeAddress, NodeCondition, NodeDaemonEndpoints, NodeStatus, NodeSystemInfo, Pod, PodCondition,
    Taint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time};
use kubewright_runtime::client::ignore_not_found;
use kubewright_runtime::owner::{OwnerOptions, set_owner_reference};
use kubewright_runtime::{
    Context, Delete, Key, ListOptions, Manager, Outcome, Patch, Reconciler, RegisterError, Result,
};
use serde_json::json;
use tokio::sync::mpsc;

use crate::{hash, kubelet, pod};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// How long a node may be unresponsive before it becomes unreachable, as in the node lifecycle controller.
const GRACE: Duration = Duration::from_secs(50);
const LEASES: &str = "kube-node-lease";
/// The lease duration of kubelets.
const LEASE_SECONDS: i32 = 40;

/// The simulated nodes of a cluster.
#[derive(Debug, Clone)]
pub struct Nodes {
    /// The names of the nodes.
    pub names: Vec<String>,
    /// The capacity of each node: `cpu`, `memory`, `pods` and so on.
    pub capacity: BTreeMap<String, String>,
    /// How often leases are renewed. Never by default: no controller here reads them, and heartbeats would
    /// keep a paused clock from skipping time.
    pub heartbeat: Option<Duration>,
}

impl Nodes {
    /// This many nodes, named `node-1` and so on.
    pub fn count(count: usize) -> Self {
        Self::named((1..=count).map(|number| format!("node-{number}")))
    }

    /// Nodes with these names.
    pub fn named<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        let capacity = [("cpu", "8"), ("ephemeral-storage", "100Gi"), ("memory", "32Gi"), ("pods", "110")];
        Self {
            names: names.into_iter().map(Into::into).collect(),
            capacity: capacity.into_iter().map(|(name, much)| (name.to_owned(), much.to_owned())).collect(),
            heartbeat: None,
        }
    }

    /// Sets the capacity of a resource on each node.
    #[must_use]
    pub fn capacity(mut self, resource: &str, much: &str) -> Self {
        self.capacity.insert(resource.to_owned(), much.to_owned());
        self
    }
}

impl Default for Nodes {
    /// One node with 8 CPUs, 32 GiB and 110 pods.
    fn default() -> Self {
        Self::count(1)
    }
}

/// Registers the node controller.
pub fn register(manager: &Manager, nodes: &Nodes) -> Result<(), RegisterError> {
    kubelet::index(manager)?;
    let (sender, keys) = mpsc::channel(nodes.names.len().max(1));
    for name in &nodes.names {
        // The channel has capacity for all nodes.
        let _ = sender.try_send(Key::cluster(name));
    }
    let machines = Machines { nodes: nodes.clone(), memory: Mutex::default() };
    manager.controller(machines).named("node").channel(keys).register()
}

struct Machines {
    nodes: Nodes,
    memory: Mutex<Memory>,
}

/// State of the machines that is not stored in objects.
#[derive(Default)]
struct Memory {
    /// The nodes that have registered.
    registered: BTreeSet<String>,
    /// Since when nodes have been unresponsive.
    silent: BTreeMap<String, Timestamp>,
}

impl Machines {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reconciler for Machines {
    type Object = Node;

    async fn reconcile(&self, node: &Node, cx: &Context) -> Result<Outcome> {
        let (name, now) = (cx.key().name(), cx.now());
        let silent = {
            let mut memory = self.memory();
            memory.registered.insert(name.to_owned());
            if kubelet::is_down(node.metadata.annotations.as_ref()) {
                Some(*memory.silent.entry(name.to_owned()).or_insert(now))
            } else {
                memory.silent.remove(name);
                None
            }
        };
        let health = match silent {
            None => Health::Ready,
            // Within the grace period the last status stays.
            Some(since) => match pod::until(since, GRACE, now) {
                Some(left) => return Ok(Outcome::requeue_after(left)),
                None => Health::Unknown,
            },
        };
        let next = status(node, &self.nodes, health, now);
        let written = crate::status::write(cx.client(), node, node.status.as_ref(), &next).await?;
        let node = written.as_ref().unwrap_or(node);
        if let Some(taints) = taints(node, health, now) {
            let version = node.metadata.resource_version.as_deref().unwrap_or_default();
            let patch = Patch::merge(json!({ "spec": { "taints": taints } })).optimistic(version);
            cx.client().patch(node, &patch).await?;
        }
        if health == Health::Unknown {
            mark_pods_not_ready(name, cx).await?;
        }
        match self.nodes.heartbeat {
            Some(every) if health == Health::Ready => {
                renew(node, cx).await?;
                Ok(Outcome::requeue_after(every))
            }
            _ => Ok(Outcome::done()),
        }
    }

    async fn deleted(&self, key: &Key, cx: &Context) -> Result<Outcome> {
        let name = key.name();
        let is_new =
            self.nodes.names.iter().any(|own| own == name) && !self.memory().registered.contains(name);
        if is_new {
            match cx.client().create(&machine(name)).await {
                Err(error) if !error.is_already_exists() => return Err(error.into()),
                _ => self.memory().registered.insert(name.to_owned()),
            };
            return Ok(Outcome::done());
        }
        // A removed machine has no kubelet that could end its pods.
        for pod in cx.client().list::<Pod>(&ListOptions::all().field(kubelet::NODE_NAME, name)).await? {
            let how = Delete::new().grace_period(0).uid(pod.metadata.uid.clone().unwrap_or_default());
            ignore_not_found(cx.client().delete_with(&*pod, &how).await)?;
        }
        Ok(Outcome::done())
    }
}

/// The health of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Ready,
    Unknown,
}

/// A Node object as its kubelet registers it.
fn machine(name: &str) -> Node {
    let labels = [
        ("kubernetes.io/hostname", name),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
        ("beta.kubernetes.io/os", "linux"),
        ("beta.kubernetes.io/arch", "amd64"),
    ];
    let labels = labels.into_iter().map(|(label, value)| (label.to_owned(), value.to_owned())).collect();
    let metadata = ObjectMeta { name: Some(name.to_owned()), labels: Some(labels), ..ObjectMeta::default() };
    Node { metadata, ..Node::default() }
}

/// The IP address of a node.
pub(crate) fn address(name: &str) -> String {
    let number = hash::fnv1a(name.as_bytes());
    format!("172.{}.{}.{}", 16 + (number >> 16) % 16, (number >> 8) % 256, number % 254 + 1)
}

/// Computes the status of a node from its previous one.
fn status(node: &Node, nodes: &Nodes, health: Health, now: Timestamp) -> NodeStatus {
    let name = node.metadata.name.clone().unwrap_or_default();
    let mut status = node.status.clone().unwrap_or_default();
    let conditions = status.conditions.get_or_insert_default();
    for (type_, [status, reason, message]) in conditions_of(health) {
        let at = conditions.iter().position(|condition| condition.type_ == type_);
        let before = at.map(|at| conditions.remove(at));
        let same = before.as_ref().is_some_and(|before| before.status == status);
        let kept = before.filter(|_| same);
        let transition = kept.as_ref().and_then(|kept| kept.last_transition_time.clone());
        let heartbeat = kept.and_then(|kept| kept.last_heartbeat_time);
        conditions.insert(
            at.unwrap_or(conditions.len()),
            NodeCondition {
                type_: type_.to_owned(),
                status: status.to_owned(),
                reason: Some(reason.to_owned()),
                message: Some(message.to_owned()),
                last_heartbeat_time: heartbeat.or(Some(whole(now))),
                last_transition_time: transition.or(Some(whole(now))),
            },
        );
    }
    let capacity =
        || nodes.capacity.iter().map(|(name, much)| (name.clone(), Quantity(much.clone()))).collect();
    status.capacity.get_or_insert_with(capacity);
    status.allocatable.get_or_insert_with(capacity);
    status.addresses.get_or_insert_with(|| {
        [("InternalIP", address(&name)), ("Hostname", name.clone())]
            .map(|(type_, address)| NodeAddress { type_: type_.to_owned(), address })
            .into()
    });
    // The API server creates an empty nodeInfo.
    if status.node_info.as_ref().is_none_or(|info| info.kubelet_version.is_empty()) {
        status.node_info = Some(NodeSystemInfo {
            architecture: "amd64".to_owned(),
            operating_system: "linux".to_owned(),
            os_image: "kubewright".to_owned(),
            container_runtime_version: "kubewright://simulated".to_owned(),
            kubelet_version: "v1.36.4".to_owned(),
            machine_id: name,
            ..NodeSystemInfo::default()
        });
    }
    status.daemon_endpoints.get_or_insert_with(NodeDaemonEndpoints::default);
    status
}

/// Conditions, each with status, reason and message.
fn conditions_of(health: Health) -> [(&'static str, [&'static str; 3]); 4] {
    const SILENT: [&str; 3] = ["Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status."];
    match health {
        Health::Unknown => {
            ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"].map(|type_| (type_, SILENT))
        }
        Health::Ready => [
            (
                "MemoryPressure",
                ["False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"],
            ),
            ("DiskPressure", ["False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"]),
            ("PIDPressure", ["False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"]),
            ("Ready", ["True", "KubeletReady", "kubelet is posting ready status"]),
        ],
    }
}

/// The taints of the node, if they must change.
fn taints(node: &Node, health: Health, now: Timestamp) -> Option<Vec<Taint>> {
    let own = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    let wanted: &[(&str, &str)] = match health {
        Health::Ready => &[],
        Health::Unknown => &[(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")],
    };
    let is_wanted = |taint: &Taint| wanted.contains(&(taint.key.as_str(), taint.effect.as_str()));
    let managed = |taint: &Taint| taint.key == NOT_READY || taint.key == UNREACHABLE;
    let mut taints: Vec<Taint> =
        own.iter().filter(|taint| !managed(taint) || is_wanted(taint)).cloned().collect();
    for (key, effect) in wanted {
        if !taints.iter().any(|taint| taint.key == *key && taint.effect == *effect) {
            taints.push(Taint {
                key: (*key).to_owned(),
                effect: (*effect).to_owned(),
                time_added: Some(whole(now)),
                value: None,
            });
        }
    }
    (taints != own).then_some(taints)
}

/// Marks pods on unreachable nodes NotReady. The kubelet restores them when it is back.
async fn mark_pods_not_ready(node: &str, cx: &Context) -> Result<()> {
    for pod in cx.client().list::<Pod>(&ListOptions::all().field(kubelet::NODE_NAME, node)).await? {
        let Some(ready) = pod::condition(&pod, "Ready").filter(|ready| ready.status == "True") else {
            continue;
        };
        let ready = PodCondition {
            status: "False".to_owned(),
            last_transition_time: Some(whole(cx.now())),
            ..ready.clone()
        };
        let patch = Patch::strategic(json!({ "status": { "conditions": [ready] } }));
        if ignore_not_found(cx.client().status().patch(&*pod, &patch).await)?.is_some() {
            cx.events().warning(&*pod, "NodeNotReady").action("Lose").note("Node is not ready");
        }
    }
    Ok(())
}

/// Renews the lease of a node, and creates it the first time.
async fn renew(node: &Node, cx: &Context) -> Result<()> {
    let name = node.metadata.name.clone().unwrap_or_default();
    let mut lease = Lease {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            namespace: Some(LEASES.to_owned()),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(name),
            lease_duration_seconds: Some(LEASE_SECONDS),
            renew_time: Some(MicroTime(cx.now())),
            ..LeaseSpec::default()
        }),
    };
    let renewal = Patch::merge(json!({ "spec": lease.spec }));
    if ignore_not_found(cx.client().patch(&lease, &renewal).await)?.is_none() {
        set_owner_reference(node, &mut lease, OwnerOptions::default())?;
        cx.client().create(&lease).await?;
    }
    Ok(())
}

/// Truncates a timestamp to seconds, the precision of API objects.
pub(crate) fn whole(time: Timestamp) -> Time {
    Time(Timestamp::from_second(time.as_second()).unwrap_or(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_node_becomes_ready_and_loses_its_not_ready_taint() {
        let mut node = machine("a");
        node.spec.get_or_insert_default().taints = Some(vec![
            Taint { key: NOT_READY.to_owned(), effect: "NoSchedule".to_owned(), ..Taint::default() },
            Taint { key: "mine".to_owned(), effect: "NoSchedule".to_owned(), ..Taint::default() },
        ]);
        let kept = taints(&node, Health::Ready, Timestamp::UNIX_EPOCH).expect("a taint is removed");
        assert_eq!(kept.iter().map(|taint| taint.key.as_str()).collect::<Vec<_>>(), ["mine"]);
        node.spec.get_or_insert_default().taints = Some(kept);
        assert_eq!(taints(&node, Health::Ready, Timestamp::UNIX_EPOCH), None);

        let nodes = Nodes::default().capacity("example.com/gpu", "2");
        let ready = status(&node, &nodes, Health::Ready, Timestamp::UNIX_EPOCH);
        assert_eq!(ready.capacity.as_ref().unwrap()["example.com/gpu"].0, "2");
        let conditions = ready.conditions.clone().unwrap();
        assert_eq!(conditions.last().unwrap().reason.as_deref(), Some("KubeletReady"));
        node.status = Some(ready.clone());
        let later = Timestamp::from_second(60).unwrap();
        assert_eq!(status(&node, &nodes, Health::Ready, later), ready, "the status is stable");
    }

    #[test]
    fn an_unresponsive_node_is_unreachable_until_it_recovers() {
        let mut node = machine("a");
        let now = Timestamp::UNIX_EPOCH;
        node.status = Some(status(&node, &Nodes::default(), Health::Ready, now));
        node.status = Some(status(&node, &Nodes::default(), Health::Unknown, now));
        let conditions = node.status.as_ref().unwrap().conditions.as_ref().unwrap();
        assert_eq!(conditions.len(), 4);
        assert!(conditions.iter().all(|condition| condition.status == "Unknown"));
        node.spec.get_or_insert_default().taints = taints(&node, Health::Unknown, now);
        assert_eq!(node.spec.as_ref().unwrap().taints.as_ref().unwrap().len(), 2);
        assert_eq!(taints(&node, Health::Unknown, now), None);
        assert_eq!(taints(&node, Health::Ready, now), Some(Vec::new()));
    }
}
