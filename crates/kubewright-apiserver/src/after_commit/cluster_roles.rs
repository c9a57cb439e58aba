//! Aggregated ClusterRoles: updates their rules from the roles that their selectors match.
//!
//! In a real cluster a controller does this asynchronously. Here it is part of the write, under
//! [`Controllers::Core`](crate::Controllers::Core).

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::selector::LabelSelector;
use kubewright_apimachinery::status::ApiError;
use kubewright_structured_merge as apply;
use serde_json::{Value, json};

use crate::authz::Authz;
use crate::authz::rbac_index::{Kind, Role};
use crate::authz::rule::Rule;
use crate::encoding::response;
use crate::fieldmanager::FieldManager;
use crate::registry::conversion::Recorder;
use crate::registry::store::ObjectStore;
use crate::storage::Expect;

/// The field manager of aggregated rules.
const MANAGER: &str = "clusterrole-aggregation-controller";

/// The aggregated ClusterRoles whose rules are out of date, by name, with their new rules.
fn aggregated_rules(roles: &[Arc<Role>]) -> Vec<(String, Value)> {
    let mut aggregation = Aggregation::of(roles);
    aggregation.settle();
    aggregation.changed()
}

/// All ClusterRoles, with the rules that aggregation gives them. Roles and rules are indexes.
struct Aggregation<'a> {
    roles: Vec<&'a Role>,
    /// Distinct rules.
    rules: Vec<&'a Rule>,
    /// The rules of each role before aggregation.
    before: Vec<Vec<usize>>,
    /// The rules of each role.
    now: Vec<Vec<usize>>,
    /// The roles that an aggregated role selects, in the order of their rules; `None` for other roles.
    selected: Vec<Option<Vec<usize>>>,
}

impl<'a> Aggregation<'a> {
    fn of(roles: &'a [Arc<Role>]) -> Self {
        let roles: Vec<&Role> = roles.iter().map(|role| &**role).collect();
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let mut rules = Vec::new();
        let selected: Vec<_> = roles
            .iter()
            .map(|role| role.aggregation_rule().map(|selectors| selected(&roles, role, selectors)))
            .collect();
        // Only the rules of selected and of aggregated roles matter.
        let mut matters: Vec<bool> = selected.iter().map(Option::is_some).collect();
        for other in selected.iter().flatten().flatten() {
            matters[*other] = true;
        }
        let before: Vec<Vec<usize>> = roles
            .iter()
            .zip(matters)
            .map(|(role, matters)| {
                let own = if matters { role.rules() } else { &[] };
                let number = |rule: &'a Rule| {
                    *numbers.entry(rule.to_value().to_string()).or_insert_with(|| {
                        rules.push(rule);
                        rules.len() - 1
                    })
                };
                own.iter().map(number).collect()
            })
            .collect();
        Self { roles, rules, now: before.clone(), before, selected }
    }

    /// Updates aggregated roles until none changes. A cycle of roles settles when all its roles have the same rules;
    /// the number of updates is bounded anyway.
    fn settle(&mut self) {
        let aggregated: Vec<usize> =
            (0..self.roles.len()).filter(|role| self.selected[*role].is_some()).collect();
        let mut selected_by: Vec<Vec<usize>> = vec![Vec::new(); self.roles.len()];
        for role in &aggregated {
            for other in self.selected[*role].iter().flatten() {
                selected_by[*other].push(*role);
            }
        }
        let mut left = aggregated.len() * (aggregated.len() + 1);
        let mut waits = vec![true; self.roles.len()];
        let mut queue = VecDeque::from(aggregated);
        while let Some(role) = queue.pop_front() {
            waits[role] = false;
            let rules = self.union(role);
            if rules == self.now[role] {
                continue;
            }
            self.now[role] = rules;
            if left == 0 {
                return;
            }
            left -= 1;
            for dependent in &selected_by[role] {
                if !std::mem::replace(&mut waits[*dependent], true) {
                    queue.push_back(*dependent);
                }
            }
        }
    }

    /// The rules of the selected roles, without duplicates.
    fn union(&self, role: usize) -> Vec<usize> {
        let mut seen = vec![false; self.rules.len()];
        let all = self.selected[role].iter().flatten().flat_map(|other| &self.now[*other]);
        all.copied().filter(|rule| !std::mem::replace(&mut seen[*rule], true)).collect()
    }

    fn changed(&self) -> Vec<(String, Value)> {
        let changed = (0..self.roles.len()).filter(|role| self.now[*role] != self.before[*role]);
        changed
            .map(|role| {
                let rules = self.now[role].iter().map(|rule| self.rules[*rule].to_value()).collect();
                (self.roles[role].version().key.to_string(), rules)
            })
            .collect()
    }
}

/// The roles that match a selector, ordered by selector and then by name.
fn selected(roles: &[&Role], role: &Role, selectors: &[LabelSelector]) -> Vec<usize> {
    let matching = |selector: &LabelSelector| {
        let others = roles.iter().enumerate().filter(|(_, other)| other.version().key != role.version().key);
        let matching = others.filter(|(_, other)| selector.matches(&other.version().attributes));
        matching.map(|(number, _)| number).collect::<Vec<_>>()
    };
    selectors.iter().flat_map(matching).collect()
}

/// Updates aggregated ClusterRoles.
pub(crate) struct ClusterRoleAggregator {
    objects: Arc<ObjectStore>,
    authz: Arc<Authz>,
}

impl ClusterRoleAggregator {
    /// `authz` has the index of all roles.
    pub(crate) fn new(objects: Arc<ObjectStore>, authz: Arc<Authz>) -> Self {
        Self { objects, authz }
    }

    /// Updates the rules of all aggregated roles that are out of date.
    pub(crate) fn aggregate(&self) {
        // Authorization waits for the index, so only the list of roles is taken from it.
        let roles: Vec<Arc<Role>> = self.authz.with_rbac(|index| index.cluster_roles().cloned().collect());
        for (name, rules) in aggregated_rules(&roles) {
            if let Err(error) = self.write_rules(&name, &rules) {
                tracing::warn!(role = name, error = error.message, "failed to update aggregated ClusterRole");
                return;
            }
        }
    }

    /// Applies rules to a role. On a conflict the concurrent write triggers aggregation again.
    fn write_rules(&self, name: &str, rules: &Value) -> Result<(), ApiError> {
        let registry = self.objects.registry();
        let Some(resource) = registry.stored(Kind::ClusterRole.storage()) else { return Ok(()) };
        let Some(current) = self.objects.storage().get(&resource.storage, name) else { return Ok(()) };
        let mut wanted = json!({
            "apiVersion": resource.gvk().api_version(),
            "kind": resource.kind(),
            "metadata": {"name": name},
        });
        if rules.as_array().is_some_and(|rules| !rules.is_empty()) {
            wanted.set_at("rules", rules.clone());
        }
        let old = response::object(resource, &current);
        let mut new = FieldManager::named(MANAGER)
            .with_write(&Recorder::new(&*self.objects.clock, resource), "", |write| {
                apply::apply(Some(&old), &wanted, true, write)
            })
            .map_err(|error| error.to_api_error())?;
        resource.strategy.canonicalize(&mut new)?;
        // A conflict is not an error, see above.
        let _ = self.objects.put_without_steps(resource, name, Expect::At(current.revision), new);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ApiServer, Controllers, Options};

    #[test]
    fn aggregated_bootstrap_roles_have_the_rules_of_the_roles_they_select() {
        let server = ApiServer::new(Options { controllers: Controllers::Core, ..Options::default() });
        let roles: Vec<Arc<Role>> =
            server.stages.authz.with_rbac(|index| index.cluster_roles().cloned().collect());
        let aggregated = roles.iter().filter(|role| role.aggregation_rule().is_some()).count();
        assert_eq!(aggregated, 3, "admin, edit and view");
        assert_eq!(aggregated_rules(&roles), [], "cargo xtask facts writes them");
    }
}
