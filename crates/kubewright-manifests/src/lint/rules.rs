//! Findings about declared RBAC rules. Implied rules are always valid.

use std::collections::{BTreeMap, BTreeSet};

use kubewright_apimachinery::nearest::nearest;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apis::facts;

use super::{Finding, server};
use crate::declare::Rule;
use crate::inventory::Inventory;
use crate::rbac::{self, canonical_group};

/// Resources that only exist in RBAC rules.
const VIRTUAL: [(&str, &[&str]); 4] = [
    ("", &["users", "groups"]),
    ("authentication.k8s.io", &["userextras", "uids"]),
    ("certificates.k8s.io", &["signers"]),
    ("policy", &["podsecuritypolicies"]),
];

/// Subresources of custom resources. `finalizers` only exists in RBAC rules.
const SUBRESOURCES: [&str; 3] = ["status", "finalizers", "scale"];

/// Checks every rule.
pub(super) fn check(inventory: &Inventory) -> Vec<Finding> {
    let known = Known::of(inventory);
    let mut findings = Vec::new();
    for rule in inventory.rules() {
        findings.extend(refused(rule));
        findings.extend(wildcards(rule));
        findings.extend(names_that_do_not_restrict(rule));
        findings.extend(known.misses(rule));
    }
    findings
}

fn refused(rule: &Rule) -> Vec<Finding> {
    let roles = rbac::roles(std::slice::from_ref(rule));
    let refusals = roles.iter().flat_map(server::refusals);
    let mut findings: Vec<Finding> = refusals
        .map(|refusal| {
            // `rules[0].verbs` becomes `verbs`.
            let field = refusal.field.rsplit('.').next().unwrap_or_default();
            let (code, field, help) = match field {
                "verbs" => ("KW302", "verbs", "add verbs, such as `verbs = \"get, list, watch\"`"),
                "apiGroups" | "resources" => (
                    "KW303",
                    if field == "resources" { "resources" } else { "groups" },
                    "add groups and resources, such as `groups = \"apps\", resources = \"deployments\"` (the core \
                     group is `\"\"`), or URLs, such as `urls = \"/metrics\"`",
                ),
                "nonResourceURLs" => (
                    "KW304",
                    "urls",
                    "remove `namespace`: only a ClusterRole can grant non-resource URLs",
                ),
                "namespace" => ("KW300", "namespace", "use a namespace name such as `team-a`"),
                "name" => ("KW300", "role_name", "use a role name such as `secret-reader`"),
                _ => ("KW300", "", "change the rule so that the API server accepts it"),
            };
            Finding::error(code, &rule.item, refusal.message, help).at(field)
        })
        .collect();
    // The API server requires groups and resources. Report it once.
    if findings.iter().filter(|finding| finding.code == "KW303").count() > 1 {
        findings.retain(|finding| finding.field != "groups");
    }
    findings
}

fn wildcards(rule: &Rule) -> Vec<Finding> {
    let lists = [
        (
            "groups",
            &rule.groups,
            "every API group, including resources with these names that are installed later",
        ),
        ("resources", &rule.resources, "every resource of the groups, including Secrets and subresources"),
        ("verbs", &rule.verbs, "everything, also `escalate`, `bind` and `impersonate`"),
        ("urls", &rule.urls, "every URL of the API server"),
    ];
    let granted = lists.into_iter().filter(|(_, list, _)| list.iter().any(|word| word == "*"));
    granted
        .map(|(field, _, what)| {
            let message = format!("`*` grants {what}");
            let help = "list what the operator needs; only users with the same permissions can install it";
            Finding::warning("KW301", &rule.item, message, help).at(field)
        })
        .collect()
}

/// Verbs that resource names cannot restrict.
fn names_that_do_not_restrict(rule: &Rule) -> Option<Finding> {
    let never = |verb: &&String| matches!(verb.as_str(), "create" | "deletecollection");
    let verb = rule.verbs.iter().find(never).filter(|_| !rule.resource_names.is_empty())?;
    let message =
        format!("`{verb}` with `resource_names` is never granted, because such requests have no name");
    let help = format!("add a separate rule with `{verb}` and without `resource_names`");
    Some(Finding::warning("KW306", &rule.item, message, help).at("resource_names"))
}

/// Plurals by group, for groups whose resources are all known.
struct Known<'a> {
    plurals: BTreeMap<&'a str, BTreeSet<&'a str>>,
    own: BTreeSet<&'a str>,
}

impl<'a> Known<'a> {
    fn of(inventory: &'a Inventory) -> Self {
        let mut plurals: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for resource in facts::resources() {
            plurals.entry(resource.group).or_default().insert(resource.plural);
        }
        for (group, known) in VIRTUAL {
            plurals.entry(group).or_default().extend(known);
        }
        let mut own = BTreeSet::new();
        for kind in inventory.kinds() {
            let spec = kind.definition.at("spec");
            plurals.entry(spec.str_at("group")).or_default().insert(spec.str_at("names.plural"));
            own.insert(spec.str_at("group"));
        }
        // A controller may reconcile a kind of this group that another operator defines.
        for resource in inventory.resources() {
            if let Some(known) = plurals.get_mut(resource.group.as_str()) {
                known.insert(&resource.plural);
            }
        }
        Self { plurals, own }
    }

    /// Resources of the rule that do not exist. Groups of other operators are not checked.
    fn misses(&self, rule: &Rule) -> Vec<Finding> {
        let groups: Vec<&str> = rule.groups.iter().map(|group| canonical_group(group)).collect();
        // With several groups, each resource may be in any of them.
        let Some(known) = groups.iter().map(|group| self.plurals.get(group)).collect::<Option<Vec<_>>>()
        else {
            return Vec::new();
        };
        if known.is_empty() {
            return Vec::new();
        }
        let is_own = groups.iter().all(|group| self.own.contains(group));
        let plurals: BTreeSet<&str> = known.into_iter().flatten().copied().collect();
        let groups: Vec<String> = groups.iter().map(|group| format!("`{group}`")).collect();
        let finding = |resource: &String| {
            let help = remedy(resource, &plurals, is_own)?;
            let message =
                format!("no resource `{resource}` in {}: the rule has no effect", groups.join(", "));
            Some(Finding::warning("KW305", &rule.item, message, help).at("resources"))
        };
        rule.resources.iter().filter_map(finding).collect()
    }
}

/// The fix for a resource that does not exist, or `None` if it exists.
fn remedy(resource: &str, plurals: &BTreeSet<&str>, is_own: bool) -> Option<String> {
    let (plural, subresource) = resource.split_once('/').unwrap_or((resource, "*"));
    if plural != "*" && !plurals.contains(plural) {
        return Some(match nearest(plural, plurals.iter().copied()) {
            Some(meant) => format!("use the lower-case plural; did you mean `{meant}`?"),
            None => "use the lower-case plural as in `kubectl api-resources`".to_owned(),
        });
    }
    if !is_own || subresource == "*" || SUBRESOURCES.contains(&subresource) {
        return None;
    }
    Some(match nearest(subresource, SUBRESOURCES) {
        Some(meant) => format!("did you mean `{plural}/{meant}`?"),
        None => "custom resources have `status`, `scale` and `finalizers`".to_owned(),
    })
}
