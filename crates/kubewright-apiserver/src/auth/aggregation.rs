//! ClusterRoles that are the sum of others: their rules are kept up with what their selectors find.
//!
//! A real cluster has a controller for this, which acts some time later. Here it is part of the write, under
//! [`Controllers::Core`](crate::Controllers::Core).

use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::selector::LabelSelector;
use kubewright_apimachinery::status::ApiError;
use kubewright_structured_merge as apply;
use serde_json::{Value, json};

use super::rbac_index::{Kind, RbacIndex, Role};
use super::rule::Rule;
use crate::fieldmanager::FieldManager;
use crate::output;
use crate::server::Inner;
use crate::storage::Expect;

/// Who writes the rules, as managedFields name them.
const MANAGER: &str = "clusterrole-aggregation-controller";

/// The names of the ClusterRoles whose rules are not what their selectors find, and what these find.
pub(crate) fn aggregated_rules(rights: &RbacIndex) -> Vec<(String, Value)> {
    rights
        .cluster_roles()
        .filter_map(|role| {
            let rules = sum(rights, role, role.sums()?);
            let changed = !rules.iter().copied().eq(role.rules());
            let rules = rules.into_iter().map(Rule::to_value).collect();
            changed.then(|| (role.version().key.to_string(), rules))
        })
        .collect()
}

/// The rules of what is selected, by name, each once.
fn sum<'a>(rights: &'a RbacIndex, role: &Role, selectors: &[LabelSelector]) -> Vec<&'a Rule> {
    let mut rules: Vec<&Rule> = Vec::new();
    for selector in selectors {
        let selected = rights.cluster_roles().filter(|other| {
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
    /// Brings every sum up to date that is not.
    pub(crate) fn aggregate_roles(&self) {
        // A sum of sums takes as many rounds as there are sums at most; those that go in a circle may never agree.
        let mut rounds = None;
        loop {
            let (stale, sums) =
                self.rbac.ask(&self.store, |rights| (aggregated_rules(rights), count_sums(rights)));
            let left: &mut usize = rounds.get_or_insert(sums + 1);
            if stale.is_empty() || *left == 0 {
                return;
            }
            *left -= 1;
            for (name, rules) in stale {
                if let Err(error) = self.write_rules(&name, &rules) {
                    tracing::warn!(role = name, error = error.message, "an aggregated role was not written");
                    return;
                }
            }
        }
    }

    /// Applies rules to a role. One that somebody else writes at this moment comes by again with their write.
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
        let old = output::object(served, &current);
        let mut new = self
            .with_write(served, "", &FieldManager::named(MANAGER), |write| {
                apply::apply(Some(&old), &wanted, true, write)
            })
            .map_err(|error| error.to_api_error())?;
        served.normalise(&mut new)?;
        // A conflict is not an error here.
        let _ = self.commit_object(served, name, Expect::At(current.revision), new);
        Ok(())
    }
}

fn count_sums(rights: &RbacIndex) -> usize {
    rights.cluster_roles().filter(|role| role.sums().is_some()).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ApiServer, Controllers, Options};

    #[test]
    fn the_roles_that_every_server_has_are_the_sum_of_what_they_select() {
        let server = ApiServer::new(Options { controllers: Controllers::Core, ..Options::default() });
        let (sums, stale) = server
            .inner
            .rbac
            .ask(&server.inner.store, |rights| (count_sums(rights), aggregated_rules(rights)));
        assert_eq!(sums, 3, "admin, edit and view");
        assert_eq!(stale, [], "cargo xtask facts writes them");
    }
}
