//! One RBAC rule: what it allows, and whether it covers another rule.
//!
//! Owns the meaning of `*`, `*/subresource`, `resourceNames` and of paths that end in `*`. Rules only grant
//! permissions; none can deny. Pure; independent of users and roles.

use std::collections::BTreeSet;

use kubewright_apimachinery::field::quote;
use kubewright_apimachinery::object::Fields as _;
use serde_json::{Value, json};

use super::{Action, ActionOn};

const ALL: &str = "*";

type Names = Box<[Box<str>]>;

/// A `PolicyRule`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) verbs: Names,
    pub(crate) groups: Names,
    /// Plural names; a subresource follows after a slash.
    pub(crate) resources: Names,
    /// Empty means every name.
    pub(crate) names: Names,
    /// Non-resource URLs.
    pub(crate) paths: Names,
}

impl Rule {
    /// The rules of a role, or of any object with `rules`.
    pub(crate) fn all_of(role: &Value) -> Box<[Self]> {
        role.list_at("rules").iter().map(Self::read).collect()
    }

    fn read(rule: &Value) -> Self {
        let names = |field: &str| -> Names {
            rule.list_at(field).iter().filter_map(|name| name.as_str().map(Into::into)).collect()
        };
        Self {
            verbs: names("verbs"),
            groups: names("apiGroups"),
            resources: names("resources"),
            names: names("resourceNames"),
            paths: names("nonResourceURLs"),
        }
    }

    /// The rule as JSON, without empty fields.
    pub(crate) fn to_value(&self) -> Value {
        let mut value = json!({"verbs": self.verbs});
        let fields = [
            ("apiGroups", &self.groups),
            ("resources", &self.resources),
            ("resourceNames", &self.names),
            ("nonResourceURLs", &self.paths),
        ];
        for (field, names) in fields.into_iter().filter(|(_, names)| !names.is_empty()) {
            value[field] = json!(names);
        }
        value
    }

    /// Rules that allow every verb on every resource and non-resource URL.
    pub(crate) fn everything() -> [Self; 2] {
        let all = || Names::from([ALL.into()]);
        [
            Self { verbs: all(), groups: all(), resources: all(), ..Self::default() },
            Self { verbs: all(), paths: all(), ..Self::default() },
        ]
    }

    pub(crate) fn allows(&self, action: Action<'_>) -> bool {
        if !has_or_all(&self.verbs, action.verb) {
            return false;
        }
        match action.on {
            ActionOn::Path(path) => {
                self.paths.iter().any(|own| own.as_ref() == ALL || path_covers(own, path))
            }
            ActionOn::Resource { group, resource, name, .. } => {
                has_or_all(&self.groups, group)
                    && covers_resource(&self.resources, resource)
                    && (self.names.is_empty() || has(&self.names, name))
            }
        }
    }

    /// Splits the rule into parts with one verb, one resource and one name each: a part is either covered by
    /// a single rule or not covered at all.
    fn parts(&self) -> impl Iterator<Item = Self> {
        let one = |name: &str| Names::from([name.into()]);
        let mut parts = Vec::new();
        for group in &self.groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let part = Self {
                        verbs: one(verb),
                        groups: one(group),
                        resources: one(resource),
                        ..Self::default()
                    };
                    if self.names.is_empty() {
                        parts.push(part);
                    } else {
                        parts.extend(self.names.iter().map(|name| Self { names: one(name), ..part.clone() }));
                    }
                }
            }
        }
        for path in &self.paths {
            for verb in &self.verbs {
                parts.push(Self { verbs: one(verb), paths: one(path), ..Self::default() });
            }
        }
        parts.into_iter()
    }

    /// Whether this rule allows everything that `part` allows.
    fn covers(&self, part: &Self) -> bool {
        let all_or_each = |own: &[Box<str>], others: &[Box<str>]| {
            has(own, ALL) || others.iter().all(|other| has(own, other))
        };
        let names = match (&*self.names, &*part.names) {
            ([], _) => true,
            (_, []) => false,
            (own, others) => others.iter().all(|other| has(own, other)),
        };
        names
            && all_or_each(&self.verbs, &part.verbs)
            && all_or_each(&self.groups, &part.groups)
            && part.resources.iter().all(|resource| covers_resource(&self.resources, resource))
            && part.paths.iter().all(|path| self.paths.iter().any(|own| path_covers(own, path)))
    }

    /// The group, resource and optional name of a rule for a single resource.
    fn simple(&self) -> Option<(&str, &str, Option<&str>)> {
        match (&*self.groups, &*self.resources, &*self.names, &*self.paths) {
            ([group], [resource], [], []) => Some((group, resource, None)),
            ([group], [resource], [name], []) => Some((group, resource, Some(name))),
            _ => None,
        }
    }

    /// The rule as Forbidden errors show it.
    fn describe(&self) -> String {
        let fields = [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.paths),
            ("ResourceNames", &self.names),
            ("Verbs", &self.verbs),
        ];
        let shown: Vec<String> = fields
            .into_iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(field, names)| format!("{field}:{}", quote_all(names)))
            .collect();
        format!("{{{}}}", shown.join(", "))
    }
}

/// The permissions of `wanted` that `held` does not cover, one per line; `None` if all are covered.
pub(crate) fn missing(held: &[&Rule], wanted: &[Rule]) -> Option<String> {
    let parts = wanted.iter().flat_map(Rule::parts);
    let missing: Vec<Rule> = parts.filter(|part| !held.iter().any(|rule| rule.covers(part))).collect();
    if missing.is_empty() {
        return None;
    }
    let lines: BTreeSet<String> = compact(missing).iter().map(Rule::describe).collect();
    Some(lines.into_iter().collect::<Vec<_>>().join("\n"))
}

/// Merges rules that differ only in their verbs.
fn compact(rules: Vec<Rule>) -> Vec<Rule> {
    let mut compacted: Vec<Rule> = Vec::with_capacity(rules.len());
    for rule in rules {
        let simple = rule.simple();
        let same = simple.and_then(|_| compacted.iter_mut().find(|other| other.simple() == simple));
        match same {
            Some(other) => other.verbs = other.verbs.iter().chain(&rule.verbs).cloned().collect(),
            None => compacted.push(rule),
        }
    }
    compacted
}

/// Formats a list of names as Go's `%q` does.
pub(crate) fn quote_all(names: &[impl AsRef<str>]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| quote(name.as_ref())).collect();
    format!("[{}]", quoted.join(" "))
}

fn has(names: &[Box<str>], name: &str) -> bool {
    names.iter().any(|own| own.as_ref() == name)
}

fn has_or_all(names: &[Box<str>], name: &str) -> bool {
    names.iter().any(|own| own.as_ref() == ALL || own.as_ref() == name)
}

fn covers_resource(own: &[Box<str>], resource: &str) -> bool {
    own.iter().any(|own| {
        own.as_ref() == ALL
            || own.as_ref() == resource
            || own.strip_prefix("*/").is_some_and(|of_all| {
                !of_all.is_empty() && resource.split_once('/').is_some_and(|(_, sub)| sub == of_all)
            })
    })
}

fn path_covers(own: &str, path: &str) -> bool {
    own == path || own.ends_with('*') && path.starts_with(own.trim_end_matches('*'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rule(value: &Value) -> Rule {
        Rule::read(value)
    }

    fn on<'a>(group: &'a str, resource: &'a str, name: &'a str) -> ActionOn<'a> {
        ActionOn::Resource { group, resource, namespace: "any", name }
    }

    #[test]
    fn a_rule_allows_only_its_verbs_resources_and_names() {
        let pods = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]});
        let logs = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"]});
        let all = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
        let scales = json!({"verbs": ["get"], "apiGroups": ["*"], "resources": ["*/scale", "*/", "pods/*"]});
        let one = json!({
            "verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"],
        });
        let health = json!({"verbs": ["get"], "nonResourceURLs": ["/healthz", "/a/*/b"]});
        let under = json!({"verbs": ["get"], "nonResourceURLs": ["/api/*", "/open*"]});
        let paths = json!({"verbs": ["get"], "nonResourceURLs": ["*"]});
        let path = ActionOn::Path;
        let cases = [
            (&pods, "get", on("", "pods", "x"), true),
            (&pods, "list", on("", "pods", ""), false),
            (&pods, "get", on("apps", "pods", ""), false),
            (&pods, "get", on("", "pods/log", "x"), false),
            (&logs, "get", on("", "pods/log", "x"), true),
            (&logs, "get", on("", "pods", "x"), false),
            (&all, "anything", on("a", "b/c", "d"), true),
            (&all, "get", path("/x"), false),
            (&scales, "get", on("apps", "deployments/scale", ""), true),
            (&scales, "get", on("apps", "deployments/status", ""), false),
            (&scales, "get", on("apps", "deployments", ""), false),
            (&scales, "get", on("apps", "deployments/", ""), false),
            (&scales, "get", on("", "pods/log", ""), false),
            (&one, "get", on("", "pods", "a"), true),
            (&one, "get", on("", "pods", "b"), false),
            (&one, "list", on("", "pods", ""), false),
            (&one, "list", on("", "pods", "a"), true),
            (&health, "get", path("/healthz"), true),
            (&health, "get", path("/healthz/"), false),
            (&health, "post", path("/healthz"), false),
            (&health, "get", path("/a/x/b"), false),
            (&under, "get", path("/api/v1"), true),
            (&under, "get", path("/api"), false),
            (&under, "get", path("/openapi/v3"), true),
            (&paths, "get", path("/x"), true),
            (&paths, "get", on("", "pods", ""), false),
        ];
        for (text, verb, on, expected) in cases {
            assert_eq!(rule(text).allows(Action { verb, on }), expected, "{text} {verb} {on:?}");
        }
    }

    #[test]
    fn missing_permissions_are_reported_by_resource() {
        let held = [rule(&json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "*/scale"]}))];
        let wanted = [
            rule(
                &json!({"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["pods", "secrets"]}),
            ),
            rule(&json!({"verbs": ["get"], "apiGroups": [""], "resources": ["services/scale"]})),
            rule(
                &json!({"verbs": ["get"], "apiGroups": [""], "resources": ["nodes"], "resourceNames": ["a", "b"]}),
            ),
            rule(&json!({"verbs": ["get", "post"], "nonResourceURLs": ["/x/*"]})),
        ];
        insta::assert_snapshot!(missing(&held.iter().collect::<Vec<_>>(), &wanted).unwrap(), @r#"
        {APIGroups:[""], Resources:["nodes"], ResourceNames:["a"], Verbs:["get"]}
        {APIGroups:[""], Resources:["nodes"], ResourceNames:["b"], Verbs:["get"]}
        {APIGroups:[""], Resources:["pods"], Verbs:["list" "watch"]}
        {APIGroups:[""], Resources:["secrets"], Verbs:["get" "list" "watch"]}
        {NonResourceURLs:["/x/*"], Verbs:["get"]}
        {NonResourceURLs:["/x/*"], Verbs:["post"]}
        "#);
        assert_eq!(missing(&wanted.iter().collect::<Vec<_>>(), &wanted[..1]), None);
        assert_eq!(missing(&Rule::everything().iter().collect::<Vec<_>>(), &wanted), None);
    }

    #[test]
    fn permission_for_some_names_does_not_cover_all_names() {
        let all = [rule(&json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}))];
        let one = [rule(
            &json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}),
        )];
        assert!(missing(&one.iter().collect::<Vec<_>>(), &all).is_some());
        assert!(missing(&all.iter().collect::<Vec<_>>(), &one).is_none());
    }

    fn names(from: &'static [&'static str]) -> impl Strategy<Value = Names> {
        proptest::collection::vec(proptest::sample::select(from), 0..3)
            .prop_map(|names| names.into_iter().map(Into::into).collect())
    }

    fn any_rule() -> impl Strategy<Value = Rule> {
        let verbs = names(&["get", "list", "*"]);
        let resources = names(&["pods", "pods/log", "*/log", "*"]);
        (verbs, names(&["", "apps", "*"]), resources, names(&["a", "b"]), names(&["/a", "/a/*", "*"]))
            .prop_map(|(verbs, groups, resources, names, paths)| Rule {
                verbs,
                groups,
                resources,
                names,
                paths,
            })
    }

    proptest! {
        /// Rules that pass the escalation check grant no new permissions.
        #[test]
        fn covered_rules_allow_nothing_more(
            held in proptest::collection::vec(any_rule(), 0..4),
            wanted in proptest::collection::vec(any_rule(), 0..3),
        ) {
            if missing(&held.iter().collect::<Vec<_>>(), &wanted).is_some() {
                return Ok(());
            }
            for verb in ["get", "list", "other"] {
                for on in [
                    on("", "pods", "a"), on("", "pods", ""), on("apps", "pods/log", "b"), on("x", "y/log", "c"),
                    on("x", "y", "c"), ActionOn::Path("/a"), ActionOn::Path("/a/b"), ActionOn::Path("/c"),
                ] {
                    let action = Action { verb, on };
                    if wanted.iter().any(|rule| rule.allows(action)) {
                        prop_assert!(held.iter().any(|rule| rule.allows(action)), "{action:?}");
                    }
                }
            }
        }

        #[test]
        fn a_rule_round_trips_through_json(rule in any_rule()) {
            prop_assert_eq!(Rule::read(&rule.to_value()), rule);
        }
    }
}
