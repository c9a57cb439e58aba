//! Rights that follow from what an operator does.
//!
//! They are what its runtime asks for on its own account: a controller that starts must not be refused. What a
//! reconciler does beyond that only its author knows, and says with `#[rbac]`.

use kubewright_apimachinery::facts;
use kubewright_apimachinery::object::Fields as _;

use crate::declarations::{ControllerDeclared, Declarations, Resource};
use crate::declare::Rule;

/// What the cache does with every kind that it has.
const READ: [&str; 3] = ["get", "list", "watch"];

/// The rights of the operator's own role that follow from its controllers and its events. Those for leader election
/// and secured metrics are in roles of their own: see [`leader_election_role`](super::leader_election_role) and
/// [`metrics_auth_role`](super::metrics_auth_role).
pub fn implied_rules(declarations: &Declarations) -> Vec<Rule> {
    let mut rules = Vec::new();
    for controller in &declarations.controllers {
        rules.extend(of_controller(controller, declarations));
    }
    if declarations.events {
        rules.push(rule(&["", "events.k8s.io"], "events", &["create", "patch"]));
    }
    rules
}

fn of_controller(controller: &ControllerDeclared, declarations: &Declarations) -> Vec<Rule> {
    let ControllerDeclared { of, owns, watches, .. } = controller;
    let read = |resource: &Resource| rule(&[&resource.group], &resource.plural, &READ);
    let mut rules: Vec<Rule> = std::iter::once(of).chain(owns).chain(watches).map(read).collect();
    if has_status(of, declarations) {
        let status = format!("{}/status", of.plural);
        rules.push(rule(&[&of.group], &status, &["get", "update", "patch"]));
    }
    // Children that block their owner's deletion: the API server asks whether one may set its finalizers.
    rules.push(rule(&[&of.group], &format!("{}/finalizers", of.plural), &["update"]));
    rules
}

fn rule(groups: &[&str], resource: &str, verbs: &[&str]) -> Rule {
    let strings = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    Rule {
        groups: strings(groups),
        resources: vec![resource.to_owned()],
        verbs: strings(verbs),
        ..Rule::default()
    }
}

/// Whether a kind has a status to write. One that nothing is known of has.
fn has_status(resource: &Resource, declarations: &Declarations) -> bool {
    let Resource { group, version, plural, .. } = resource;
    let own = declarations.kinds().map(|kind| kind.definition.at("spec")).find(|spec| {
        spec.str_at("group") == group
            && spec.str_at("names.plural") == plural
            && spec.list_at("versions").iter().any(|known| known.str_at("name") == version)
    });
    if let Some(spec) = own {
        let known = spec.list_at("versions").iter().find(|known| known.str_at("name") == version);
        return known.is_some_and(|version| version.has("subresources.status"));
    }
    let built_in = facts::resources()
        .iter()
        .find(|known| known.group == group && known.version == version && known.plural == plural);
    built_in.is_none_or(|known| known.subresource("status").is_some())
}
