//! The nodes that the scheduler knows, with the pods on each.
//!
//! Invariant: `used` of a node and the number of pods with anti-affinity follow from the pods of the nodes. So a
//! decision for a pod without affinity does not read the pods of all nodes.

use std::collections::btree_map::{self, BTreeMap};
use std::collections::{BTreeSet, HashSet};
use std::ops::Bound;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, PodAffinityTerm};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_runtime::Key;
use kubewright_runtime::owner::controller_of;

use super::affinity::Term;
use super::requests::{self, Amounts};
use crate::pod;

/// A node and its pods.
pub(super) struct NodeInfo {
    /// Name, labels and spec only.
    pub(super) node: Node,
    pub(super) has: Amounts,
    pub(super) used: Amounts,
    pub(super) pods: BTreeMap<Key, Arc<PodInfo>>,
}

/// The scheduling properties of a placed pod.
pub(super) struct PodInfo {
    pub(super) uid: Box<str>,
    pub(super) terminating: bool,
    pub(super) started: Timestamp,
    pub(super) shape: Arc<Shape>,
}

/// The scheduling properties that pods of one controller have in common. They share one value in memory.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Shape {
    pub(super) namespace: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) controller: Option<String>,
    pub(super) priority: i32,
    pub(super) requests: Amounts,
    pub(super) ports: BTreeSet<(String, i32)>,
    /// Its required anti-affinity terms.
    pub(super) avoids: Vec<Term>,
}

/// The nodes by name.
#[derive(Default)]
pub(super) struct Nodes {
    by_name: BTreeMap<String, Box<NodeInfo>>,
    /// The number of pods with required anti-affinity on these nodes.
    avoiding: usize,
    shapes: Shapes,
}

/// The shapes of the placed pods, each once.
#[derive(Default)]
struct Shapes {
    known: HashSet<Arc<Shape>>,
    /// The number of shapes at which unused ones are dropped.
    limit: usize,
}

impl Shapes {
    /// Replaces a shape by an equal one that other pods have.
    fn share(&mut self, shape: &mut Arc<Shape>) {
        if let Some(known) = self.known.get(shape) {
            shape.clone_from(known);
            return;
        }
        if self.known.len() >= self.limit {
            self.known.retain(|shape| Arc::strong_count(shape) > 1);
            self.limit = 2 * self.known.len() + 64;
        }
        self.known.insert(shape.clone());
    }
}

impl PodInfo {
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
        let started = pod.status.as_ref().and_then(|it| it.start_time.as_ref());
        let shape = Shape {
            labels: pod.metadata.labels.clone().unwrap_or_default(),
            controller: controller_of(pod).map(|owner| owner.uid.clone()),
            priority: spec.and_then(|spec| spec.priority).unwrap_or_default(),
            requests: requests::of_pod(pod),
            ports: ports.collect(),
            avoids: anti.iter().map(|term| Term::new(term, &namespace, pod)).collect(),
            namespace,
        };
        Self {
            uid: pod.metadata.uid.as_deref().unwrap_or_default().into(),
            terminating: pod::is_terminating(pod),
            started: started.map_or(Timestamp::MAX, |it| it.0),
            shape: Arc::new(shape),
        }
    }
}

impl Nodes {
    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(super) fn get(&self, name: &str) -> Option<&NodeInfo> {
        self.by_name.get(name).map(|node_info| &**node_info)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.by_name.keys()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &NodeInfo> {
        self.by_name.values().map(|node_info| &**node_info)
    }

    /// All nodes in the order of their names, starting with the first one that is not before `name`.
    pub(super) fn starting_at<'a>(
        &'a self,
        name: &str,
    ) -> impl Iterator<Item = (&'a str, &'a NodeInfo)> + use<'a> {
        let after = self.by_name.range::<str, _>((Bound::Included(name), Bound::Unbounded));
        let before = self.by_name.range::<str, _>((Bound::Unbounded, Bound::Excluded(name)));
        after.chain(before).map(|(name, node_info)| (name.as_str(), &**node_info))
    }

    /// Whether a pod on any node has required anti-affinity.
    pub(super) fn has_avoiding_pods(&self) -> bool {
        self.avoiding > 0
    }

    /// Adds or updates a node. Returns false if nothing that matters for scheduling has changed.
    pub(super) fn set(&mut self, node: &Node) -> bool {
        let name = node.metadata.name.clone().unwrap_or_default();
        let has = requests::of_node(node);
        let entry = self.by_name.entry(name);
        if let btree_map::Entry::Occupied(known) = &entry
            && known.get().node.spec == node.spec
            && known.get().node.metadata.labels == node.metadata.labels
            && known.get().has == has
        {
            return false;
        }
        let metadata = ObjectMeta {
            name: node.metadata.name.clone(),
            labels: node.metadata.labels.clone(),
            ..ObjectMeta::default()
        };
        let node = Node { metadata, spec: node.spec.clone(), status: None };
        match entry {
            btree_map::Entry::Occupied(mut known) => {
                let known = known.get_mut();
                (known.node, known.has) = (node, has);
            }
            btree_map::Entry::Vacant(new) => {
                let (used, pods) = (Amounts::default(), BTreeMap::new());
                new.insert(Box::new(NodeInfo { node, has, used, pods }));
            }
        }
        true
    }

    /// Shares what the pod has in common with others.
    pub(super) fn share(&mut self, info: &mut PodInfo) {
        self.shapes.share(&mut info.shape);
    }

    /// Removes a node. Returns its pods.
    pub(super) fn remove(&mut self, name: &str) -> Option<BTreeMap<Key, Arc<PodInfo>>> {
        let pods = self.by_name.remove(name)?.pods;
        self.avoiding -= pods.values().filter(|info| !info.shape.avoids.is_empty()).count();
        Some(pods)
    }

    /// Adds a pod to a node. Returns the pod if the node is unknown.
    pub(super) fn add_pod(
        &mut self,
        node: &str,
        key: Key,
        info: Arc<PodInfo>,
    ) -> Result<(), (Key, Arc<PodInfo>)> {
        let Some(node_info) = self.by_name.get_mut(node) else { return Err((key, info)) };
        node_info.used.add(&info.shape.requests);
        self.avoiding += usize::from(!info.shape.avoids.is_empty());
        node_info.pods.insert(key, info);
        Ok(())
    }

    /// Removes a pod from a node.
    pub(super) fn remove_pod(&mut self, node: &str, key: &Key) {
        let Some(node_info) = self.by_name.get_mut(node) else { return };
        if let Some(info) = node_info.pods.remove(key) {
            node_info.used.subtract(&info.shape.requests);
            self.avoiding -= usize::from(!info.shape.avoids.is_empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn info(app: &str) -> PodInfo {
        let pod = json!({ "metadata": { "namespace": "n", "uid": app, "labels": { "app": app } } });
        PodInfo::of(&serde_json::from_value(pod).unwrap())
    }

    #[test]
    fn equal_shapes_are_shared_and_unused_ones_dropped() {
        let (mut nodes, mut one, mut same, mut other) =
            (Nodes::default(), info("web"), info("web"), info("db"));
        for info in [&mut one, &mut same, &mut other] {
            nodes.share(info);
        }
        assert!(Arc::ptr_eq(&one.shape, &same.shape) && !Arc::ptr_eq(&one.shape, &other.shape));
        drop((one, same));
        for number in 0..1_000 {
            nodes.share(&mut info(&number.to_string()));
        }
        assert!(nodes.shapes.known.contains(&other.shape) && nodes.shapes.known.len() <= 66);
    }
}
