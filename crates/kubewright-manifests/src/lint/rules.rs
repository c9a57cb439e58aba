//! Findings about rights that are declared.
//!
//! Only what is declared is looked at: rights that follow from the code are right by construction.

use std::collections::{BTreeMap, BTreeSet};

use kubewright_apimachinery::nearest::nearest;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apis::facts;

use super::{Finding, server};
use crate::declarations::Declarations;
use crate::declare::Rule;
use crate::rbac::{self, canonical_group};

/// Resources that rights are given for although no path serves them.
const VIRTUAL: [(&str, &[&str]); 4] = [
    ("", &["users", "groups"]),
    ("authentication.k8s.io", &["userextras", "uids"]),
    ("certificates.k8s.io", &["signers"]),
    ("policy", &["podsecuritypolicies"]),
];

/// Subresources of custom kinds; the second is only asked for, never served.
const SUBRESOURCES: [&str; 3] = ["status", "finalizers", "scale"];

/// Looks at every rule.
pub(super) fn check(declarations: &Declarations) -> Vec<Finding> {
    let known = Known::of(declarations);
    let mut findings = Vec::new();
    for rule in declarations.rules() {
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
            // `rules[0].verbs` to `verbs`.
            let field = refusal.field.rsplit('.').next().unwrap_or_default();
            let (code, field, help) = match field {
                "verbs" => ("KW302", "verbs", "say what may be done: `verbs = \"get, list, watch\"`"),
                "apiGroups" | "resources" => (
                    "KW303",
                    if field == "resources" { "resources" } else { "groups" },
                    "name groups and resources, as `groups = \"apps\", resources = \"deployments\"` (the core \
                     group is `\"\"`), or paths, as `urls = \"/metrics\"`",
                ),
                "nonResourceURLs" => (
                    "KW304",
                    "urls",
                    "leave out `namespace`: paths are in no namespace, and only a ClusterRole can grant them",
                ),
                "namespace" => ("KW300", "namespace", "write the name of a namespace, as `team-a`"),
                "name" => ("KW300", "role_name", "write the name of a role, as `secret-reader`"),
                _ => ("KW300", "", "write a rule that an API server accepts"),
            };
            Finding::error(code, &rule.item, refusal.message, help).at(field)
        })
        .collect();
    // The server asks for groups and for resources: it is one mistake.
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
            "every API group, and so every resource of these names that is ever installed",
        ),
        ("resources", &rule.resources, "every resource of the groups, Secrets and subresources included"),
        ("verbs", &rule.verbs, "everything, also `escalate`, `bind` and `impersonate`"),
        ("urls", &rule.urls, "every path of the API server"),
    ];
    let granted = lists.into_iter().filter(|(_, list, _)| list.iter().any(|word| word == "*"));
    granted
        .map(|(field, _, what)| {
            let message = format!("`*` grants {what}");
            let help =
                "name what the operator needs; nobody can install it who does not have the same rights";
            Finding::warning("KW301", &rule.item, message, help).at(field)
        })
        .collect()
}

/// Rights that a name takes away instead of restricting them.
fn names_that_do_not_restrict(rule: &Rule) -> Option<Finding> {
    let never = |verb: &&String| matches!(verb.as_str(), "create" | "deletecollection");
    let verb = rule.verbs.iter().find(never).filter(|_| !rule.resource_names.is_empty())?;
    let message = format!(
        "`{verb}` with `resource_names` is never granted: the name is not part of such a request, so it matches none"
    );
    let help = format!("give `{verb}` in a rule of its own without `resource_names`");
    Some(Finding::warning("KW306", &rule.item, message, help).at("resource_names"))
}

/// Plurals by group, of which all are known.
struct Known<'a> {
    plurals: BTreeMap<&'a str, BTreeSet<&'a str>>,
    own: BTreeSet<&'a str>,
}

impl<'a> Known<'a> {
    fn of(declarations: &'a Declarations) -> Self {
        let mut plurals: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for resource in facts::resources() {
            plurals.entry(resource.group).or_default().insert(resource.plural);
        }
        for (group, known) in VIRTUAL {
            plurals.entry(group).or_default().extend(known);
        }
        let mut own = BTreeSet::new();
        for kind in declarations.kinds() {
            let spec = kind.definition.at("spec");
            plurals.entry(spec.str_at("group")).or_default().insert(spec.str_at("names.plural"));
            own.insert(spec.str_at("group"));
        }
        // A controller may be for a kind of the group that another operator defines.
        for resource in declarations.resources() {
            if let Some(known) = plurals.get_mut(resource.group.as_str()) {
                known.insert(&resource.plural);
            }
        }
        Self { plurals, own }
    }

    /// Resources of the rule that do not exist. Of groups that others define, nothing is known.
    fn misses(&self, rule: &Rule) -> Vec<Finding> {
        let groups: Vec<&str> = rule.groups.iter().map(|group| canonical_group(group)).collect();
        // In a rule with several groups, each resource is meant in one of them.
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
                format!("there is no `{resource}` in {}: the right is for nothing", groups.join(", "));
            Some(Finding::warning("KW305", &rule.item, message, help).at("resources"))
        };
        rule.resources.iter().filter_map(finding).collect()
    }
}

/// What to write instead of a resource that does not exist; nothing if it does.
fn remedy(resource: &str, plurals: &BTreeSet<&str>, is_own: bool) -> Option<String> {
    let (plural, subresource) = resource.split_once('/').unwrap_or((resource, "*"));
    if plural != "*" && !plurals.contains(plural) {
        return Some(match nearest(plural, plurals.iter().copied()) {
            Some(meant) => format!("write the plural in lower case; did you mean `{meant}`?"),
            None => "write the plural in lower case, as `kubectl api-resources` has it".to_owned(),
        });
    }
    if !is_own || subresource == "*" || SUBRESOURCES.contains(&subresource) {
        return None;
    }
    Some(match nearest(subresource, SUBRESOURCES) {
        Some(meant) => format!("did you mean `{plural}/{meant}`?"),
        None => "custom kinds have `status`, `scale` and `finalizers`".to_owned(),
    })
}
