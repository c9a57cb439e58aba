//! Generates roles from RBAC rules.
//!
//! [`normalise`] follows controller-gen: rules are split by resource, rules that differ in only one property
//! are merged, and everything is sorted. The output grants exactly the permissions of the input and does not
//! depend on its order.

mod bindings;
mod implied;
mod placed;
mod scope;
mod support;
mod usage;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::declare::Rule;
use crate::inventory::Inventory;

pub use bindings::{Account, bound};
pub use implied::implied_rules;
pub(crate) use placed::Placed;
pub use support::{
    DEBUG_PAGE_READER, LEADER_ELECTION_ROLE, METRICS_AUTH_ROLE, METRICS_READER, WEBHOOK_CERTIFICATES_ROLE,
    debug_page_reader_role, leader_election_role, metrics_auth_role, metrics_reader_role,
    webhook_certificates_role,
};
pub use usage::{Call, Unused, Usage};

/// kubebuilder's name of the operator's role.
pub const MANAGER_ROLE: &str = "manager-role";

pub(crate) const API_VERSION: &str = "rbac.authorization.k8s.io/v1";

/// A rule of a role. It has either resources or URLs.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyRule {
    /// `apiGroups`.
    pub groups: BTreeSet<String>,
    /// `resources`.
    pub resources: BTreeSet<String>,
    /// `resourceNames`.
    pub names: BTreeSet<String>,
    /// `nonResourceURLs`.
    pub urls: BTreeSet<String>,
    /// `verbs`.
    pub verbs: BTreeSet<String>,
}

impl PolicyRule {
    /// Converts a declared rule, to two rules if it has both resources and URLs.
    pub fn of(rule: &Rule) -> Vec<Self> {
        let set = |list: &[String]| list.iter().cloned().collect::<BTreeSet<String>>();
        let whole = Self {
            groups: rule.groups.iter().map(|group| canonical_group(group).to_owned()).collect(),
            resources: set(&rule.resources),
            names: set(&rule.resource_names),
            urls: set(&rule.urls),
            verbs: set(&rule.verbs),
        };
        if whole.urls.is_empty() {
            return vec![whole];
        }
        let paths = Self { urls: whole.urls.clone(), verbs: whole.verbs.clone(), ..Self::default() };
        if whole.resources.is_empty() {
            return vec![paths];
        }
        vec![Self { urls: BTreeSet::new(), ..whole }, paths]
    }

    /// The rule as JSON.
    pub fn to_value(&self) -> Value {
        let mut value = Map::new();
        for (name, set) in [
            ("apiGroups", &self.groups),
            ("nonResourceURLs", &self.urls),
            ("resourceNames", &self.names),
            ("resources", &self.resources),
        ] {
            if !set.is_empty() {
                value.insert(name.into(), json!(set));
            }
        }
        value.insert("verbs".into(), json!(self.verbs));
        value.into()
    }

    /// controller-gen's sort key.
    fn order(&self) -> String {
        let joined = |set: &BTreeSet<String>| set.iter().map(String::as_str).collect::<Vec<_>>().join("&");
        [&self.groups, &self.resources, &self.names, &self.urls].map(joined).join(" + ")
    }

    /// Removes everything that a `*` already includes.
    fn without_what_a_wildcard_grants(mut self) -> Self {
        for set in [&mut self.groups, &mut self.resources, &mut self.urls, &mut self.verbs] {
            if set.contains("*") {
                set.retain(|word| word == "*");
            }
        }
        self
    }
}

/// The API name of a group. `core` is an alias of the empty group.
pub(crate) fn canonical_group(group: &str) -> &str {
    if group == "core" { "" } else { group }
}

/// Normalizes the rules of one role like controller-gen: few rules, sorted.
///
/// controller-gen runs each step once. If merging groups makes two rules apply to the same resources, one
/// replaces the other and its verbs are lost. Here the steps repeat until nothing changes.
pub fn normalise(rules: impl IntoIterator<Item = PolicyRule>) -> Vec<PolicyRule> {
    let mut rules: BTreeSet<PolicyRule> = rules.into_iter().collect();
    // Terminates, because each round either reduces the number of rules per resource or changes nothing.
    loop {
        let merged = merged(&rules);
        if merged == rules {
            break;
        }
        rules = merged;
    }
    let mut rules: Vec<PolicyRule> = rules.into_iter().collect();
    rules.sort_by_cached_key(PolicyRule::order);
    rules
}

fn merged(rules: &BTreeSet<PolicyRule>) -> BTreeSet<PolicyRule> {
    let split = rules.iter().flat_map(|rule| {
        let one = |resource: &String| PolicyRule { resources: [resource.clone()].into(), ..rule.clone() };
        if rule.resources.is_empty() { vec![rule.clone()] } else { rule.resources.iter().map(one).collect() }
    });
    let mut rules: BTreeSet<PolicyRule> = split.map(PolicyRule::without_what_a_wildcard_grants).collect();
    let parts: [fn(&mut PolicyRule) -> &mut BTreeSet<String>; 4] =
        [|rule| &mut rule.verbs, |rule| &mut rule.resources, |rule| &mut rule.groups, |rule| &mut rule.urls];
    for part in parts {
        let mut alike: BTreeMap<PolicyRule, BTreeSet<String>> = BTreeMap::new();
        for mut rule in rules {
            let own = std::mem::take(part(&mut rule));
            alike.entry(rule).or_default().extend(own);
        }
        rules = alike
            .into_iter()
            .map(|(mut rule, union)| {
                *part(&mut rule) = union;
                rule.without_what_a_wildcard_grants()
            })
            .collect();
    }
    rules
}

/// All rules of an operator, declared or implied, with the namespace of their Role. If the operator watches
/// specific namespaces, namespaced resources are granted in those.
pub fn rules(inventory: &Inventory) -> Vec<Rule> {
    let all = inventory.rules().cloned().chain(implied_rules(inventory));
    all.flat_map(|rule| scope::placed(&rule, inventory)).collect()
}

/// The roles with these rules: ClusterRoles first, then Roles by namespace, sorted by name.
pub fn roles(rules: &[Rule]) -> Vec<Value> {
    let mut by_role: BTreeMap<(&str, &str), Vec<PolicyRule>> = BTreeMap::new();
    for rule in rules {
        let name = if rule.role_name.is_empty() { MANAGER_ROLE } else { &rule.role_name };
        by_role.entry((&rule.namespace, name)).or_default().extend(PolicyRule::of(rule));
    }
    by_role.into_iter().map(|((namespace, name), rules)| role(namespace, name, rules)).collect()
}

fn role(namespace: &str, name: &str, rules: Vec<PolicyRule>) -> Value {
    let rules: Vec<Value> = normalise(rules).iter().map(PolicyRule::to_value).collect();
    let (kind, metadata) = if namespace.is_empty() {
        ("ClusterRole", json!({ "name": name }))
    } else {
        ("Role", json!({ "name": name, "namespace": namespace }))
    };
    json!({ "apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "rules": rules })
}

#[cfg(test)]
mod tests;
