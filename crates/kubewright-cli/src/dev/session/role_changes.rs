//! The difference between two versions of role.yaml, as permissions.

use std::collections::BTreeSet;

use kubewright_apimachinery::permission::Permission;
use serde_json::Value;

/// The permissions that a file of roles gained and lost: `added create, patch secrets; removed delete configmaps`.
/// Empty if only the text differs.
pub(super) fn describe(before: &str, after: &str) -> String {
    let (before, after) = (permissions(before), permissions(after));
    let mut parts = Vec::new();
    for (what, these, without) in [("added", &after, &before), ("removed", &before, &after)] {
        let changed: Vec<&Granted> = these.difference(without).collect();
        if !changed.is_empty() {
            parts.push(format!("{what} {}", listed(&changed)));
        }
    }
    parts.join("; ")
}

/// A verb on something, in some namespace. Verbs on the same thing are adjacent.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Granted {
    /// Empty for a ClusterRole.
    namespace: String,
    group: String,
    /// A resource, or a URL.
    resource: String,
    /// Empty for all names.
    name: String,
    verb: String,
}

impl Granted {
    fn is_same_thing(&self, other: &Self) -> bool {
        let of = |it: &Self| [&it.namespace, &it.group, &it.resource, &it.name].map(Clone::clone);
        of(self) == of(other)
    }
}

/// The permissions of all roles in a file. A file that cannot be read has none.
fn permissions(text: &str) -> BTreeSet<Granted> {
    let roles: Vec<Value> = serde_saphyr::from_multiple(text).unwrap_or_default();
    let mut found = BTreeSet::new();
    for role in &roles {
        let namespace = role["metadata"]["namespace"].as_str().unwrap_or_default();
        for rule in role["rules"].as_array().into_iter().flatten() {
            let mut resources: Vec<(&str, &str)> = Vec::new();
            for group in texts(rule, "apiGroups") {
                resources.extend(texts(rule, "resources").map(|resource| (group, resource)));
            }
            resources.extend(texts(rule, "nonResourceURLs").map(|url| ("", url)));
            let mut names: Vec<&str> = texts(rule, "resourceNames").collect();
            if names.is_empty() {
                names.push("");
            }
            for ((group, resource), verb) in
                resources.iter().flat_map(|it| texts(rule, "verbs").map(move |verb| (it, verb)))
            {
                found.extend(names.iter().map(|name| Granted {
                    namespace: namespace.to_owned(),
                    group: (*group).to_owned(),
                    resource: (*resource).to_owned(),
                    name: (*name).to_owned(),
                    verb: verb.to_owned(),
                }));
            }
        }
    }
    found
}

fn texts<'a>(rule: &'a Value, key: &str) -> impl Iterator<Item = &'a str> {
    rule[key].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn listed(granted: &[&Granted]) -> String {
    let things = granted.chunk_by(|one, other| one.is_same_thing(other)).map(|of| {
        let verbs: Vec<&str> = of.iter().map(|it| it.verb.as_str()).collect();
        let Granted { namespace, group, resource, name, .. } = of[0];
        let mut text = Permission::new(group, resource, verbs.join(", ")).to_string();
        if resource.starts_with('/') {
            text = format!("{} {resource}", verbs.join(", "));
        }
        if !name.is_empty() {
            text = format!("{text} named {name}");
        }
        if !namespace.is_empty() {
            text = format!("{text} in namespace {namespace}");
        }
        text
    });
    things.collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "\
kind: ClusterRole
metadata: {name: manager-role}
rules:
- {apiGroups: [''], resources: [configmaps, pods/log], verbs: [get, delete]}
- {apiGroups: [apps], resources: [deployments], verbs: [get]}
- {nonResourceURLs: [/metrics], verbs: [get]}
";

    #[test]
    fn added_and_removed_permissions_are_grouped_by_resource() {
        let after = "\
kind: ClusterRole
metadata: {name: manager-role}
rules:
- {apiGroups: [''], resources: [configmaps], verbs: [get]}
- {apiGroups: [''], resources: [pods/log], verbs: [get, delete]}
- {apiGroups: [apps], resources: [deployments], verbs: [create, get, patch]}
---
kind: Role
metadata: {name: manager-role, namespace: shop}
rules:
- {apiGroups: [''], resources: [secrets], resourceNames: [tls], verbs: [get]}
";
        assert_eq!(
            describe(BEFORE, after),
            "added create, patch deployments.apps and get secrets named tls in namespace shop; \
             removed get /metrics and delete configmaps"
        );
    }

    #[test]
    fn the_same_permissions_in_other_rules_are_no_difference() {
        let split = "\
rules:
- {apiGroups: [apps], resources: [deployments], verbs: [get]}
- {apiGroups: [''], resources: [configmaps, pods/log], verbs: [delete]}
- {apiGroups: [''], resources: [configmaps, pods/log], verbs: [get]}
- {nonResourceURLs: [/metrics], verbs: [get]}
";
        assert_eq!(describe(BEFORE, split), "");
        assert!(describe("", split).starts_with("added get /metrics and delete, get configmaps and "));
    }
}
