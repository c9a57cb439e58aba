//! Which role a rule goes into, where an operator watches certain namespaces alone.
//!
//! A Role grants nothing on what is in no namespace, and a ClusterRole would grant more than the operator may see. So
//! rules are taken apart: resources of the cluster and paths stay in the ClusterRole, all else goes into a Role of each
//! namespace. Of a resource that nothing is known of, it is assumed that it is in namespaces.

use kubewright_apimachinery::object::Fields as _;
use kubewright_apis::facts;

use super::canonical_group;
use crate::declarations::Declarations;
use crate::declare::Rule;

/// A rule as the roles have it. One that names its namespace is left as it is.
pub(super) fn placed(rule: &Rule, declarations: &Declarations) -> Vec<Rule> {
    if declarations.namespaces.is_empty() || !rule.namespace.is_empty() || rule.resources.is_empty() {
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
            .partition(|resource| is_of_the_cluster(canonical_group(group), resource, declarations));
        let group = std::slice::from_ref(group);
        grant("", group, cluster, &[]);
        for namespace in &declarations.namespaces {
            grant(namespace, group, namespaced.clone(), &[]);
        }
    }
    // Without groups it is no rule; the linter says so.
    if placed.is_empty() { vec![rule.clone()] } else { placed }
}

fn is_of_the_cluster(group: &str, resource: &str, declarations: &Declarations) -> bool {
    let plural = resource.split('/').next().unwrap_or_default();
    if let Some(known) = declarations.resources().find(|known| known.group == group && known.plural == plural)
    {
        return !known.namespaced;
    }
    let own = declarations
        .kinds()
        .map(|kind| kind.definition.at("spec"))
        .find(|spec| spec.str_at("group") == group && spec.str_at("names.plural") == plural);
    if let Some(spec) = own {
        return spec.str_at("scope") == "Cluster";
    }
    let built_in = facts::resources().iter().find(|known| known.group == group && known.plural == plural);
    built_in.is_some_and(|known| !known.namespaced())
}
