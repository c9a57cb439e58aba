//! Aggregated ClusterRoles: updates their rules from the roles that their selectors match.
//!
//! In a real cluster a controller does this asynchronously. Here it is part of the write, under
//! [`Controllers::Core`](crate::Controllers::Core).

use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::selector::LabelSelector;
use kubewright_apimachinery::status::ApiError;
use kubewright_structured_merge as apply;
use serde_json::{Value, json};

use crate::authz::rbac_index::{Kind, RbacIndex, Role};
use crate::authz::rule::Rule;
use crate::encoding::response;
use crate::fieldmanager::FieldManager;
use crate::server::Inner;
use crate::storage::Expect;

/// The field manager of aggregated rules.
const MANAGER: &str = "clusterrole-aggregation-controller";

/// The aggregated ClusterRoles whose rules are out of date, by name, with their new rules.
pub(crate) fn aggregated_rules(index: &RbacIndex) -> Vec<(String, Value)> {
    index
        .cluster_roles()
        .filter_map(|role| {
            let rules = sum(index, role, role.sums()?);
            let changed = !rules.iter().copied().eq(role.rules());
            let rules = rules.into_iter().map(Rule::to_value).collect();
            changed.then(|| (role.version().key.to_string(), rules))
        })
        .collect()
}

/// The rules of the selected roles, ordered by role name, without duplicates.
fn sum<'a>(index: &'a RbacIndex, role: &Role, selectors: &[LabelSelector]) -> Vec<&'a Rule> {
    let mut rules: Vec<&Rule> = Vec::new();
    for selector in selectors {
        let selected = index.cluster_roles().filter(|other| {
            other.version().key != role.version().key && selector.matches(&other.version().attributes)
        });
        for rule in selected.flat_map(Role::rules) {
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
    }
    rules
}

impl Inner {
    /// Updates the rules of all aggregated roles that are out of date.
    pub(crate) fn aggregate_roles(&self) {
        // Nested aggregation needs at most one round per aggregated role. Cyclic aggregation might never
        // settle.
        let mut rounds = None;
        loop {
            let (stale, sums) = self.authz.with_rbac(|index| (aggregated_rules(index), count_sums(index)));
            let left: &mut usize = rounds.get_or_insert(sums + 1);
            if stale.is_empty() || *left == 0 {
                return;
            }
            *left -= 1;
            for (name, rules) in stale {
                if let Err(error) = self.write_rules(&name, &rules) {
                    tracing::warn!(
                        role = name,
                        error = error.message,
                        "failed to update aggregated ClusterRole"
                    );
                    return;
                }
            }
        }
    }

    /// Applies rules to a role. On a conflict the concurrent write triggers aggregation again.
    fn write_rules(&self, name: &str, rules: &Value) -> Result<(), ApiError> {
        let registry = self.registry();
        let Some(served) = registry.stored(Kind::ClusterRole.storage()) else { return Ok(()) };
        let Some(current) = self.store.get(&served.storage, name) else { return Ok(()) };
        let mut wanted = json!({
            "apiVersion": served.gvk().api_version(),
            "kind": served.kind(),
            "metadata": {"name": name},
        });
        if rules.as_array().is_some_and(|rules| !rules.is_empty()) {
            wanted.set_at("rules", rules.clone());
        }
        let old = response::object(served, &current);
        let mut new = self
            .with_write(served, "", &FieldManager::named(MANAGER), |write| {
                apply::apply(Some(&old), &wanted, true, write)
            })
            .map_err(|error| error.to_api_error())?;
        served.strategy.canonicalize(&mut new)?;
        // A conflict is not an error, see above.
        let _ = self.commit_object(served, name, Expect::At(current.revision), new);
        Ok(())
    }
}

fn count_sums(index: &RbacIndex) -> usize {
    index.cluster_roles().filter(|role| role.sums().is_some()).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ApiServer, Controllers, Options};

    #[test]
    fn aggregated_bootstrap_roles_have_the_rules_of_the_roles_they_select() {
        let server = ApiServer::new(Options { controllers: Controllers::Core, ..Options::default() });
        let (sums, stale) =
            server.inner.authz.with_rbac(|index| (count_sums(index), aggregated_rules(index)));
        assert_eq!(sums, 3, "admin, edit and view");
        assert_eq!(stale, [], "cargo xtask facts writes them");
    }
}
