//! Chooses between Role and ClusterRole if an operator watches specific namespaces.
//!
//! Cluster-scoped resources and URLs stay in the ClusterRole. Everything else goes to a Role in each
//! namespace. Unknown resources are assumed to be namespaced.

use kubewright_apimachinery::object::Fields as _;
use kubewright_apis::facts;

use super::canonical_group;
use crate::declare::Rule;
use crate::inventory::Inventory;

/// Splits a rule by role. A rule with a namespace is unchanged.
pub(super) fn placed(rule: &Rule, inventory: &Inventory) -> Vec<Rule> {
    if inventory.namespaces.is_empty() || !rule.namespace.is_empty() || rule.resources.is_empty() {
        return vec![rule.clone()];
    }
    let mut placed = Vec::new();
    let mut grant = |namespace: &str, groups: &[String], resources: Vec<String>, urls: &[String]| {
        if !resources.is_empty() || !urls.is_empty() {
            placed.push(Rule {
                groups: groups.to_vec(),
                resources,
                urls: urls.to_vec(),
                namespace: namespace.to_owned(),
                ..rule.clone()
            });
        }
    };
    grant("", &[], Vec::new(), &rule.urls);
    for group in &rule.groups {
        let (cluster, namespaced): (Vec<String>, Vec<String>) = rule
            .resources
            .iter()
            .cloned()
            .partition(|resource| is_of_the_cluster(canonical_group(group), resource, inventory));
        let group = std::slice::from_ref(group);
        grant("", group, cluster, &[]);
        for namespace in &inventory.namespaces {
            grant(namespace, group, namespaced.clone(), &[]);
        }
    }
    // A rule without groups is invalid; the linter reports it.
    if placed.is_empty() { vec![rule.clone()] } else { placed }
}

fn is_of_the_cluster(group: &str, resource: &str, inventory: &Inventory) -> bool {
    let plural = resource.split('/').next().unwrap_or_default();
    if let Some(known) = inventory.resources().find(|known| known.group == group && known.plural == plural) {
        return !known.namespaced;
    }
    let own = inventory
        .kinds()
        .map(|kind| kind.definition.at("spec"))
        .find(|spec| spec.str_at("group") == group && spec.str_at("names.plural") == plural);
    if let Some(spec) = own {
        return spec.str_at("scope") == "Cluster";
    }
    let built_in = facts::resources().iter().find(|known| known.group == group && known.plural == plural);
    built_in.is_some_and(|known| !known.namespaced())
}
