//! Mistakes in `#[rbac]`.

use serde_json::json;

use super::{guestbook, item, told};
use crate::declare::{Declared, Rule};

fn findings(rule: Rule) -> String {
    let (mut declarations, _) = guestbook(&json!({}));
    declarations.declared.push(Declared::Rule(Rule { item: item("guestbook::Reconciler", 30), ..rule }));
    told(&declarations, &[])
}

fn words(text: &str) -> Vec<String> {
    text.split(',').map(|word| word.trim().to_owned()).collect()
}

fn rule(groups: &str, resources: &str, verbs: &str) -> Rule {
    Rule { groups: words(groups), resources: words(resources), verbs: words(verbs), ..Rule::default() }
}

#[test]
fn good_rights_are_good() {
    assert_eq!(findings(rule("apps,core", "deployments, pods/log", "get, list")), "");
    assert_eq!(findings(rule("example.com", "guestbooks, guestbooks/status, guestbooks/*", "get")), "");
    assert_eq!(
        findings(rule("cert-manager.io", "certificates", "create")),
        "",
        "of others, nothing is known"
    );
    assert_eq!(findings(rule("core", "users", "impersonate")), "", "there to be named in rights only");
    let urls = Rule { urls: words("/metrics"), verbs: words("get"), ..Rule::default() };
    assert_eq!(findings(urls), "");
}

#[test]
fn wildcards_are_told_one_by_one() {
    insta::assert_snapshot!(findings(rule("*", "*", "*")), @r"
    warning[KW301] src/lib.rs:30 guestbook::Reconciler groups: `*` grants every API group, and so every resource of these names that is ever installed
      help: name what the operator needs; nobody can install it who does not have the same rights
    warning[KW301] src/lib.rs:30 guestbook::Reconciler resources: `*` grants every resource of the groups, Secrets and subresources included
      help: name what the operator needs; nobody can install it who does not have the same rights
    warning[KW301] src/lib.rs:30 guestbook::Reconciler verbs: `*` grants everything, also `escalate`, `bind` and `impersonate`
      help: name what the operator needs; nobody can install it who does not have the same rights
    ");
}

#[test]
fn a_rule_that_grants_nothing_is_an_error() {
    insta::assert_snapshot!(findings(Rule { verbs: Vec::new(), ..rule("apps", "deployments", "") }), @r#"
    error[KW302] src/lib.rs:30 guestbook::Reconciler verbs: Required value: verbs must contain at least one value
      help: say what may be done: `verbs = "get, list, watch"`
    "#);
    insta::assert_snapshot!(findings(Rule { resources: Vec::new(), ..rule("apps", "", "get") }), @r#"
    error[KW303] src/lib.rs:30 guestbook::Reconciler resources: Required value: resource rules must supply at least one resource
      help: name groups and resources, as `groups = "apps", resources = "deployments"` (the core group is `""`), or paths, as `urls = "/metrics"`
    "#);
    insta::assert_snapshot!(findings(Rule { verbs: words("get"), ..Rule::default() }), @r#"
    error[KW303] src/lib.rs:30 guestbook::Reconciler resources: Required value: resource rules must supply at least one resource
      help: name groups and resources, as `groups = "apps", resources = "deployments"` (the core group is `""`), or paths, as `urls = "/metrics"`
    "#);
}

#[test]
fn paths_are_in_no_namespace() {
    let urls =
        Rule { urls: words("/metrics"), verbs: words("get"), namespace: "infra".into(), ..Rule::default() };
    insta::assert_snapshot!(findings(urls), @r#"
    error[KW304] src/lib.rs:30 guestbook::Reconciler urls: Invalid value: ["/metrics"]: namespaced rules cannot apply to non-resource URLs
      help: leave out `namespace`: paths are in no namespace, and only a ClusterRole can grant them
    "#);
}

#[test]
fn a_resource_that_does_not_exist_is_told_with_the_nearest() {
    insta::assert_snapshot!(findings(rule("apps", "deployment", "get")), @r"
    warning[KW305] src/lib.rs:30 guestbook::Reconciler resources: there is no `deployment` in `apps`: the right is for nothing
      help: write the plural in lower case; did you mean `deployments`?
    ");
    insta::assert_snapshot!(findings(rule("example.com", "guestbook", "get")), @r"
    warning[KW305] src/lib.rs:30 guestbook::Reconciler resources: there is no `guestbook` in `example.com`: the right is for nothing
      help: write the plural in lower case; did you mean `guestbooks`?
    ");
    insta::assert_snapshot!(findings(rule("example.com", "guestbooks/state", "get")), @r"
    warning[KW305] src/lib.rs:30 guestbook::Reconciler resources: there is no `guestbooks/state` in `example.com`: the right is for nothing
      help: custom kinds have `status`, `scale` and `finalizers`
    ");
}

#[test]
fn a_name_cannot_restrict_creation() {
    insta::assert_snapshot!(
        findings(Rule { resource_names: words("one"), ..rule("core", "configmaps", "get,create") }),
        @r"
        warning[KW306] src/lib.rs:30 guestbook::Reconciler resource_names: `create` with `resource_names` is never granted: the name is not part of such a request, so it matches none
          help: give `create` in a rule of its own without `resource_names`
        "
    );
}

#[test]
fn names_that_an_api_server_refuses_are_told() {
    insta::assert_snapshot!(findings(Rule { namespace: "Team A".into(), ..rule("core", "pods", "get") }), @r#"
    error[KW300] src/lib.rs:30 guestbook::Reconciler namespace: Invalid value: "Team A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
      help: write the name of a namespace, as `team-a`
    "#);
    insta::assert_snapshot!(findings(Rule { role_name: "a/b".into(), ..rule("core", "pods", "get") }), @r#"
    error[KW300] src/lib.rs:30 guestbook::Reconciler role_name: Invalid value: "a/b": may not contain '/'
      help: write the name of a role, as `secret-reader`
    "#);
}
