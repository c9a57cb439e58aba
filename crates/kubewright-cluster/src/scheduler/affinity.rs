//! Beside which pods a pod must be, or must not.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Node, Pod, PodAffinityTerm};
use kubewright_runtime::LabelSelector;

use super::filter::Refusal;
use super::state::{Site, Tenant};

/// A required term, ready to be asked.
pub(super) struct Term {
    topology: String,
    /// None matches nothing.
    selector: Option<LabelSelector>,
    /// None is every namespace.
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

    fn matches(&self, tenant: &Tenant) -> bool {
        self.namespaces.as_ref().is_none_or(|namespaces| namespaces.contains(&tenant.namespace))
            && self.selector.as_ref().is_some_and(|selector| selector.matches(&tenant.labels))
    }
}

/// Where a label has a value: a rack, a zone, a node.
type Domain = (String, String);

/// What the neighbours on each node mean for a pod.
pub(super) struct Neighbours {
    /// Of each term, the label and the values where such pods are. None if the pod is the first of its kind.
    wanted: Option<Vec<(String, BTreeSet<String>)>>,
    unwanted: BTreeSet<Domain>,
    /// Where others do not want it.
    avoided: BTreeSet<Domain>,
}

impl Neighbours {
    pub(super) fn new(pod: &Pod, tenant: &Tenant, sites: &BTreeMap<String, Site>) -> Self {
        let affinity = pod.spec.as_ref().and_then(|spec| spec.affinity.as_ref()?.pod_affinity.as_ref());
        let terms: &[PodAffinityTerm] = affinity
            .and_then(|it| it.required_during_scheduling_ignored_during_execution.as_deref())
            .unwrap_or_default();
        let terms: Vec<Term> = terms.iter().map(|term| Term::new(term, &tenant.namespace, pod)).collect();
        let mut wanted: Vec<(String, BTreeSet<String>)> =
            terms.iter().map(|term| (term.topology.clone(), BTreeSet::new())).collect();
        let (mut unwanted, mut avoided) = (BTreeSet::new(), BTreeSet::new());
        for site in sites.values() {
            let value =
                |topology: &str| site.node.metadata.labels.as_ref().and_then(|it| it.get(topology).cloned());
            let domain = |topology: &str| value(topology).map(|value| (topology.to_owned(), value));
            for other in site.pods.values() {
                // A pod counts for affinity if it matches all terms.
                if !terms.is_empty() && terms.iter().all(|term| term.matches(other)) {
                    for (topology, values) in &mut wanted {
                        values.extend(value(topology));
                    }
                }
                let ours = tenant.avoids.iter().filter(|term| term.matches(other));
                unwanted.extend(ours.filter_map(|term| domain(&term.topology)));
                let theirs = other.avoids.iter().filter(|term| term.matches(tenant));
                avoided.extend(theirs.filter_map(|term| domain(&term.topology)));
            }
        }
        let is_first = wanted.iter().all(|(_, values)| values.is_empty())
            && terms.iter().all(|term| term.matches(tenant));
        Self { wanted: (!is_first).then_some(wanted), unwanted, avoided }
    }

    /// Why a node is not for the pod.
    pub(super) fn refuses(&self, node: &Node) -> Option<Refusal> {
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
            Some(Refusal::PodAffinity)
        } else if is_in(&self.unwanted) {
            Some(Refusal::PodAntiAffinity)
        } else {
            is_in(&self.avoided).then_some(Refusal::AvoidedByOthers)
        }
    }
}
