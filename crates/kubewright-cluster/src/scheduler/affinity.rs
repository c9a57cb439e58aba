//! Required pod affinity and anti-affinity.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Node, Pod, PodAffinityTerm};
use kubewright_runtime::LabelSelector;

use super::filter::Unfit;
use super::nodes::{Nodes, PodInfo};

/// A compiled affinity term.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Term {
    topology: String,
    /// `None` matches nothing.
    selector: Option<LabelSelector>,
    /// `None` means all namespaces.
    namespaces: Option<BTreeSet<String>>,
}

impl Term {
    pub(super) fn new(term: &PodAffinityTerm, namespace: &str, pod: &Pod) -> Self {
        let mut selector = term.label_selector.clone();
        if let Some(selector) = &mut selector {
            let labels = pod.metadata.labels.as_ref();
            for key in term.match_label_keys.iter().flatten() {
                if let Some(value) = labels.and_then(|labels| labels.get(key)) {
                    selector.match_labels.get_or_insert_default().insert(key.clone(), value.clone());
                }
            }
        }
        let mut namespaces: BTreeSet<String> = term.namespaces.iter().flatten().cloned().collect();
        let everywhere = term.namespace_selector.as_ref().is_some_and(|selector| {
            selector.match_labels.as_ref().is_none_or(BTreeMap::is_empty)
                && selector.match_expressions.as_ref().is_none_or(Vec::is_empty)
        });
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.insert(namespace.to_owned());
        }
        Self {
            topology: term.topology_key.clone(),
            selector: selector.and_then(|selector| LabelSelector::try_from(selector).ok()),
            namespaces: (!everywhere).then_some(namespaces),
        }
    }

    fn matches(&self, info: &PodInfo) -> bool {
        self.namespaces.as_ref().is_none_or(|namespaces| namespaces.contains(&info.shape.namespace))
            && self.selector.as_ref().is_some_and(|selector| selector.matches(&info.shape.labels))
    }
}

/// A topology domain: label key and value.
type Domain = (String, String);

/// The affinity and anti-affinity of a pod, evaluated against existing pods.
pub(super) struct Neighbours {
    /// For each affinity term, the topology key and the domains with matching pods. `None` if the pod is the
    /// first of its group.
    wanted: Option<Vec<(String, BTreeSet<String>)>>,
    unwanted: BTreeSet<Domain>,
    /// Domains excluded by anti-affinity.
    avoided: BTreeSet<Domain>,
}

impl Neighbours {
    pub(super) fn new(pod: &Pod, info: &PodInfo, nodes: &Nodes) -> Self {
        let affinity = pod.spec.as_ref().and_then(|spec| spec.affinity.as_ref()?.pod_affinity.as_ref());
        let terms: &[PodAffinityTerm] = affinity
            .and_then(|it| it.required_during_scheduling_ignored_during_execution.as_deref())
            .unwrap_or_default();
        let terms: Vec<Term> = terms.iter().map(|term| Term::new(term, &info.shape.namespace, pod)).collect();
        let mut wanted: Vec<(String, BTreeSet<String>)> =
            terms.iter().map(|term| (term.topology.clone(), BTreeSet::new())).collect();
        let (mut unwanted, mut avoided) = (BTreeSet::new(), BTreeSet::new());
        // Most pods have no affinity, and then the pods of all nodes need not be read.
        let reads_pods = !terms.is_empty() || !info.shape.avoids.is_empty() || nodes.has_avoiding_pods();
        for node_info in nodes.values().filter(|_| reads_pods) {
            let value = |topology: &str| {
                node_info.node.metadata.labels.as_ref().and_then(|it| it.get(topology).cloned())
            };
            let domain = |topology: &str| value(topology).map(|value| (topology.to_owned(), value));
            for other in node_info.pods.values() {
                // A pod counts for affinity only if it matches all terms.
                if !terms.is_empty() && terms.iter().all(|term| term.matches(other)) {
                    for (topology, values) in &mut wanted {
                        values.extend(value(topology));
                    }
                }
                let ours = info.shape.avoids.iter().filter(|term| term.matches(other));
                unwanted.extend(ours.filter_map(|term| domain(&term.topology)));
                let theirs = other.shape.avoids.iter().filter(|term| term.matches(info));
                avoided.extend(theirs.filter_map(|term| domain(&term.topology)));
            }
        }
        let is_first =
            wanted.iter().all(|(_, values)| values.is_empty()) && terms.iter().all(|term| term.matches(info));
        Self { wanted: (!is_first).then_some(wanted), unwanted, avoided }
    }

    /// Why the node does not fit.
    pub(super) fn check(&self, node: &Node) -> Option<Unfit> {
        let labels = node.metadata.labels.as_ref();
        let is_in = |domains: &BTreeSet<Domain>| {
            labels.is_some_and(|labels| {
                domains.iter().any(|(topology, value)| labels.get(topology) == Some(value))
            })
        };
        let together = self.wanted.iter().flatten().all(|(topology, values)| {
            labels.and_then(|labels| labels.get(topology)).is_some_and(|value| values.contains(value))
        });
        if !together {
            Some(Unfit::PodAffinity)
        } else if is_in(&self.unwanted) {
            Some(Unfit::PodAntiAffinity)
        } else {
            is_in(&self.avoided).then_some(Unfit::AvoidedByOthers)
        }
    }
}
