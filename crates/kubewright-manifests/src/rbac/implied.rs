//! Permissions implied by registrations.
//!
//! The minimum that the runtime needs for a registered controller. Authors declare permissions for other
//! writes of a reconciler with `#[rbac]`.

use kubewright_apimachinery::object::Fields as _;

use crate::declare::Rule;
use crate::inventory::{ApiServiceDeclared, ControllerDeclared, Inventory, Resource};
use crate::webhook::configuration;

/// Verbs of the cache for every kind. `get` is used by `Client::uncached` and after a write without a
/// response.
const READ: [&str; 3] = ["get", "list", "watch"];

/// A derived rule.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Derived {
    pub(super) rule: Rule,
    pub(super) used: Used,
}

/// When a derived rule counts as used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Used {
    /// When any of its verbs is called.
    ByAny,
    /// Always: events and admission checks do not occur in every run.
    Sometimes,
}

/// The rules of the operator's role that are implied by its controllers and events. Leader election and
/// secure metrics have separate roles: see [`leader_election_role`](super::leader_election_role) and
/// [`metrics_auth_role`](super::metrics_auth_role).
pub fn implied_rules(inventory: &Inventory) -> Vec<Rule> {
    derived(inventory).into_iter().map(|derived| derived.rule).collect()
}

pub(super) fn derived(inventory: &Inventory) -> Vec<Derived> {
    let mut all = Vec::new();
    for controller in &inventory.controllers {
        all.extend(of_controller(controller, inventory));
    }
    let cached = inventory.cached.iter();
    all.extend(
        cached.map(|resource| Derived {
            rule: rule(&resource.group, &resource.plural, &READ),
            used: Used::ByAny,
        }),
    );
    if inventory.records_events() {
        all.push(Derived {
            rule: rule("events.k8s.io", "events", &["create", "patch"]),
            used: Used::Sometimes,
        });
    }
    all.extend(of_certificates(inventory));
    all
}

/// Where the CA of the webhooks is injected. Configurations are listed and found by their Service, because kustomize
/// prefixes their names. CRDs and APIServices have fixed names.
fn of_certificates(inventory: &Inventory) -> Vec<Derived> {
    const ADMISSION: &str = "admissionregistration.k8s.io";
    if !inventory.webhook_certificates {
        return Vec::new();
    }
    let configurations = |mutating: bool| -> Vec<String> {
        let webhooks = inventory.webhooks.iter().filter(|webhook| webhook.mutating == mutating);
        webhooks.map(|webhook| configuration(webhook).to_owned()).collect()
    };
    let crds = inventory.conversions.iter().filter_map(|conversion| {
        let mut kinds = inventory.kinds().map(|kind| kind.definition.at("spec"));
        let spec = kinds.find(|spec| {
            spec.str_at("group") == conversion.group && spec.str_at("names.kind") == conversion.kind
        })?;
        Some(format!("{}.{}", spec.str_at("names.plural"), conversion.group))
    });
    let api_services = inventory.api_services.iter().map(ApiServiceDeclared::name);
    let by_service = [
        ("mutatingwebhookconfigurations", configurations(true)),
        ("validatingwebhookconfigurations", configurations(false)),
    ];
    let by_name = [
        ("apiextensions.k8s.io", "customresourcedefinitions", crds.collect::<Vec<_>>()),
        ("apiregistration.k8s.io", "apiservices", api_services.collect()),
    ];
    let mut rules = Vec::new();
    for (resource, names) in by_service.into_iter().filter(|(_, names)| !names.is_empty()) {
        rules.push(rule(ADMISSION, resource, &["list", "watch"]));
        rules.push(Rule { resource_names: names, ..rule(ADMISSION, resource, &["patch"]) });
    }
    for (group, resource, names) in by_name.into_iter().filter(|(_, _, names)| !names.is_empty()) {
        // A watch with the field selector `metadata.name` is a request for this name.
        rules.push(Rule { resource_names: names, ..rule(group, resource, &["get", "patch", "watch"]) });
    }
    // `dev` and tests provide their own certificates.
    rules.into_iter().map(|rule| Derived { rule, used: Used::Sometimes }).collect()
}

fn of_controller(controller: &ControllerDeclared, inventory: &Inventory) -> Vec<Derived> {
    let ControllerDeclared { of, owns, watches, finalizers, without_status, .. } = controller;
    let by_any = |rule| Derived { rule, used: Used::ByAny };
    // A controller of keys has no kind.
    let has_kind = !of.plural.is_empty();
    let read = |resource: &Resource| by_any(rule(&resource.group, &resource.plural, &READ));
    let own = has_kind.then_some(of);
    let mut all: Vec<Derived> = own.into_iter().chain(owns).chain(watches).map(read).collect();
    if !has_kind {
        return all;
    }
    if !without_status && is_own_with_status(of, inventory) {
        let status = format!("{}/status", of.plural);
        all.push(by_any(rule(&of.group, &status, &["patch"])));
    }
    if !owns.is_empty() {
        // Owned objects block the deletion of their owner. With OwnerReferencesPermissionEnforcement, this
        // requires permission to update the owner's finalizers.
        let rule = rule(&of.group, &format!("{}/finalizers", of.plural), &["update"]);
        all.push(Derived { rule, used: Used::Sometimes });
    }
    if !finalizers.is_empty() {
        all.push(by_any(rule(&of.group, &of.plural, &["patch"])));
    }
    all
}

fn rule(group: &str, resource: &str, verbs: &[&str]) -> Rule {
    Rule {
        groups: vec![group.to_owned()],
        resources: vec![resource.to_owned()],
        verbs: verbs.iter().map(|&verb| verb.to_owned()).collect(),
        ..Rule::default()
    }
}

/// Whether a kind is defined by the operator and has a status subresource. The status of other kinds is
/// written by their own controller.
fn is_own_with_status(resource: &Resource, inventory: &Inventory) -> bool {
    let Resource { group, version, plural, .. } = resource;
    let mut versions = inventory
        .kinds()
        .map(|kind| kind.definition.at("spec"))
        .filter(|spec| spec.str_at("group") == group && spec.str_at("names.plural") == plural)
        .flat_map(|spec| spec.list_at("versions"));
    versions.any(|known| known.str_at("name") == version && known.has("subresources.status"))
}
