//! How evenly pods must be spread over zones, nodes and the like.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod, TopologySpreadConstraint};
use kubewright_runtime::LabelSelector;

use super::filter::{self, Refusal};
use super::state::{Site, Tenant};

/// The constraints of a pod that must be kept, with how many pods each domain has.
pub(super) struct Spread(Vec<Constraint>);

struct Constraint {
    topology: String,
    max_skew: i64,
    /// Whether the pod counts itself.
    itself: i64,
    counts: BTreeMap<String, i64>,
    least: i64,
}

impl Spread {
    pub(super) fn new(pod: &Pod, tenant: &Tenant, sites: &BTreeMap<String, Site>) -> Self {
        let constraints = pod.spec.as_ref().and_then(|spec| spec.topology_spread_constraints.as_deref());
        let hard: Vec<&TopologySpreadConstraint> = constraints
            .unwrap_or_default()
            .iter()
            .filter(|constraint| constraint.when_unsatisfiable == "DoNotSchedule")
            .collect();
        // A node counts if it has all labels that are spread over.
        let eligible = |site: &&Site| {
            let labels = site.node.metadata.labels.as_ref();
            hard.iter().all(|it| labels.is_some_and(|labels| labels.contains_key(&it.topology_key)))
        };
        let constraints = hard.iter().map(|constraint| {
            let selector = selector(constraint, tenant);
            let matches = |other: &Tenant| {
                other.namespace == tenant.namespace
                    && !other.leaves
                    && selector.as_ref().is_some_and(|selector| selector.matches(&other.labels))
            };
            let honors =
                |policy: &Option<String>, default: &str| policy.as_deref().unwrap_or(default) == "Honor";
            let mut counts = BTreeMap::<String, i64>::new();
            for site in sites.values().filter(eligible) {
                if honors(&constraint.node_affinity_policy, "Honor") && !filter::selects(pod, &site.node) {
                    continue;
                }
                let tainted = || filter::untolerated(pod, &site.node, &["NoSchedule", "NoExecute"]).is_some();
                if honors(&constraint.node_taints_policy, "Ignore") && tainted() {
                    continue;
                }
                let labels = site.node.metadata.labels.as_ref();
                let Some(value) = labels.and_then(|labels| labels.get(&constraint.topology_key)) else {
                    continue;
                };
                let there = site.pods.values().filter(|other| matches(other)).count();
                *counts.entry(value.clone()).or_default() += i64::try_from(there).unwrap_or(i64::MAX);
            }
            let domains = i32::try_from(counts.len()).unwrap_or(i32::MAX);
            let few = domains < constraint.min_domains.unwrap_or(1);
            Constraint {
                topology: constraint.topology_key.clone(),
                max_skew: constraint.max_skew.into(),
                itself: matches(tenant).into(),
                least: if few { 0 } else { counts.values().copied().min().unwrap_or_default() },
                counts,
            }
        });
        Self(constraints.collect())
    }

    /// Why a node is not for the pod.
    pub(super) fn refuses(&self, node: &Node) -> Option<Refusal> {
        self.0.iter().find_map(|constraint| {
            let labels = node.metadata.labels.as_ref();
            let Some(value) = labels.and_then(|labels| labels.get(&constraint.topology)) else {
                return Some(Refusal::SpreadLabel);
            };
            let there = constraint.counts.get(value).copied().unwrap_or_default();
            let skew = there + constraint.itself - constraint.least;
            (skew > constraint.max_skew).then_some(Refusal::Spread)
        })
    }
}

fn selector(constraint: &TopologySpreadConstraint, tenant: &Tenant) -> Option<LabelSelector> {
    let mut selector = constraint.label_selector.clone()?;
    for key in constraint.match_label_keys.iter().flatten() {
        if let Some(value) = tenant.labels.get(key) {
            selector.match_labels.get_or_insert_default().insert(key.clone(), value.clone());
        }
    }
    LabelSelector::try_from(selector).ok()
}
