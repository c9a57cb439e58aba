//! Topology spread constraints.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod, TopologySpreadConstraint};
use kubewright_runtime::LabelSelector;

use super::filter::{self, Unfit};
use super::nodes::{NodeInfo, Nodes, PodInfo};

/// The hard constraints of a pod, with the number of matching pods per domain.
pub(super) struct Spread(Vec<Constraint>);

struct Constraint {
    topology: String,
    max_skew: i64,
    /// 1 if the pod matches its own selector, otherwise 0.
    self_match: i64,
    counts: BTreeMap<String, i64>,
    least: i64,
}

impl Spread {
    pub(super) fn new(pod: &Pod, info: &PodInfo, nodes: &Nodes) -> Self {
        let constraints = pod.spec.as_ref().and_then(|spec| spec.topology_spread_constraints.as_deref());
        let hard: Vec<&TopologySpreadConstraint> = constraints
            .unwrap_or_default()
            .iter()
            .filter(|constraint| constraint.when_unsatisfiable == "DoNotSchedule")
            .collect();
        // Only nodes with all topology keys count.
        let eligible = |node_info: &&NodeInfo| {
            let labels = node_info.node.metadata.labels.as_ref();
            hard.iter().all(|it| labels.is_some_and(|labels| labels.contains_key(&it.topology_key)))
        };
        let constraints = hard.iter().map(|constraint| {
            let selector = selector(constraint, info);
            let matches = |other: &PodInfo| {
                other.shape.namespace == info.shape.namespace
                    && !other.terminating
                    && selector.as_ref().is_some_and(|selector| selector.matches(&other.shape.labels))
            };
            let honors =
                |policy: &Option<String>, default: &str| policy.as_deref().unwrap_or(default) == "Honor";
            let mut counts = BTreeMap::<String, i64>::new();
            for node_info in nodes.values().filter(eligible) {
                if honors(&constraint.node_affinity_policy, "Honor") && !filter::selects(pod, &node_info.node)
                {
                    continue;
                }
                let tainted =
                    || filter::untolerated(pod, &node_info.node, &["NoSchedule", "NoExecute"]).is_some();
                if honors(&constraint.node_taints_policy, "Ignore") && tainted() {
                    continue;
                }
                let labels = node_info.node.metadata.labels.as_ref();
                let Some(value) = labels.and_then(|labels| labels.get(&constraint.topology_key)) else {
                    continue;
                };
                let there = node_info.pods.values().filter(|other| matches(other)).count();
                *counts.entry(value.clone()).or_default() += i64::try_from(there).unwrap_or(i64::MAX);
            }
            let domains = i32::try_from(counts.len()).unwrap_or(i32::MAX);
            let few = domains < constraint.min_domains.unwrap_or(1);
            Constraint {
                topology: constraint.topology_key.clone(),
                max_skew: constraint.max_skew.into(),
                self_match: matches(info).into(),
                least: if few { 0 } else { counts.values().copied().min().unwrap_or_default() },
                counts,
            }
        });
        Self(constraints.collect())
    }

    /// Why the node does not fit.
    pub(super) fn check(&self, node: &Node) -> Option<Unfit> {
        self.0.iter().find_map(|constraint| {
            let labels = node.metadata.labels.as_ref();
            let Some(value) = labels.and_then(|labels| labels.get(&constraint.topology)) else {
                return Some(Unfit::SpreadLabel);
            };
            let there = constraint.counts.get(value).copied().unwrap_or_default();
            let skew = there + constraint.self_match - constraint.least;
            (skew > constraint.max_skew).then_some(Unfit::Spread)
        })
    }
}

fn selector(constraint: &TopologySpreadConstraint, info: &PodInfo) -> Option<LabelSelector> {
    let mut selector = constraint.label_selector.clone()?;
    for key in constraint.match_label_keys.iter().flatten() {
        if let Some(value) = info.shape.labels.get(key) {
            selector.match_labels.get_or_insert_default().insert(key.clone(), value.clone());
        }
    }
    LabelSelector::try_from(selector).ok()
}
