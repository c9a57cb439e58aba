//! Roles: from rights that are declared here and there to the few rules that grant them.
//!
//! Owns [`normalise`], which follows controller-gen: rules are split by resource, those that differ in one respect alone
//! become one, and everything is sorted. Whatever the order of the input, exactly the rights of the input are granted,
//! in the same bytes.

mod bindings;
mod implied;
mod scope;
mod support;
mod usage;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::declarations::Declarations;
use crate::declare::Rule;

pub use bindings::{Account, bound};
pub use implied::implied_rules;
pub use support::{
    LEADER_ELECTION_ROLE, METRICS_AUTH_ROLE, METRICS_READER, WEBHOOK_CERTIFICATES_ROLE, leader_election_role,
    metrics_auth_role, metrics_reader_role, webhook_certificates_role,
};
pub use usage::{Call, Unused, Usage};

/// The role of the operator itself: kubebuilder's name, which its bindings have.
pub const MANAGER_ROLE: &str = "manager-role";

pub(crate) const API_VERSION: &str = "rbac.authorization.k8s.io/v1";

/// A rule of a role. Resources and paths never stand in the same one.
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
    /// The rules that a declared one becomes: one, or one for its resources and one for its paths.
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

    /// As a role has it.
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

    /// What controller-gen sorts rules by.
    fn order(&self) -> String {
        let joined = |set: &BTreeSet<String>| set.iter().map(String::as_str).collect::<Vec<_>>().join("&");
        [&self.groups, &self.resources, &self.names, &self.urls].map(joined).join(" + ")
    }

    /// `*` says it all: what stands beside it adds nothing.
    fn without_what_a_wildcard_grants(mut self) -> Self {
        for set in [&mut self.groups, &mut self.resources, &mut self.urls, &mut self.verbs] {
            if set.contains("*") {
                set.retain(|word| word == "*");
            }
        }
        self
    }
}

/// The name that the API has for a group: people also write `core` for the one without a name.
pub(crate) fn canonical_group(group: &str) -> &str {
    if group == "core" { "" } else { group }
}

/// Brings the rules of one role into controller-gen's form: few rules, sorted.
///
/// controller-gen takes each step once. Then a rule that comes to stand for the same resources as another, because
/// groups were merged, replaces it, and its rights are lost; here, steps repeat until nothing changes.
pub fn normalise(rules: impl IntoIterator<Item = PolicyRule>) -> Vec<PolicyRule> {
    let mut rules: BTreeSet<PolicyRule> = rules.into_iter().collect();
    // It ends: taken apart by resource, a round has fewer rules than the one before, or changes nothing.
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

/// Every right that an operator needs, declared or implied, with the namespace of its Role: where the operator watches
/// certain namespaces alone, what is in namespaces is granted in those.
pub fn rules(declarations: &Declarations) -> Vec<Rule> {
    let all = declarations.rules().cloned().chain(implied_rules(declarations));
    all.flat_map(|rule| scope::placed(&rule, declarations)).collect()
}

/// The roles that grant rules: ClusterRoles first, then Roles by namespace, each by name.
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
