//! Invalid `#[rbac]` attributes.

use serde_json::json;

use super::{guestbook, item, rendered};
use crate::declare::{Declared, Rule};

fn findings(rule: Rule) -> String {
    let (mut inventory, _) = guestbook(&json!({}));
    inventory.declared.push(Declared::Rule(Rule { item: item("guestbook::Reconciler", 30), ..rule }));
    rendered(&inventory, &[])
}

fn words(text: &str) -> Vec<String> {
    text.split(',').map(|word| word.trim().to_owned()).collect()
}

fn rule(groups: &str, resources: &str, verbs: &str) -> Rule {
    Rule { groups: words(groups), resources: words(resources), verbs: words(verbs), ..Rule::default() }
}

#[test]
fn valid_rules_have_no_findings() {
    assert_eq!(findings(rule("apps,core", "deployments, pods/log", "get, list")), "");
    assert_eq!(findings(rule("example.com", "guestbooks, guestbooks/status, guestbooks/*", "get")), "");
    assert_eq!(
        findings(rule("cert-manager.io", "certificates", "create")),
        "",
        "groups of other operators are not checked"
    );
    assert_eq!(findings(rule("core", "users", "impersonate")), "", "this resource only exists in RBAC rules");
    let urls = Rule { urls: words("/metrics"), verbs: words("get"), ..Rule::default() };
    assert_eq!(findings(urls), "");
}

#[test]
fn each_wildcard_is_reported() {
    insta::assert_snapshot!(findings(rule("*", "*", "*")), @"
    warning[KW301] src/lib.rs:30 guestbook::Reconciler groups: `*` grants every API group, including resources with these names that are installed later
      help: list what the operator needs; only users with the same permissions can install it
    warning[KW301] src/lib.rs:30 guestbook::Reconciler resources: `*` grants every resource of the groups, including Secrets and subresources
      help: list what the operator needs; only users with the same permissions can install it
    warning[KW301] src/lib.rs:30 guestbook::Reconciler verbs: `*` grants everything, also `escalate`, `bind` and `impersonate`
      help: list what the operator needs; only users with the same permissions can install it
    ");
}

#[test]
fn a_rule_that_grants_nothing_is_an_error() {
    insta::assert_snapshot!(findings(Rule { verbs: Vec::new(), ..rule("apps", "deployments", "") }), @r#"
    error[KW302] src/lib.rs:30 guestbook::Reconciler verbs: Required value: verbs must contain at least one value
      help: add verbs, such as `verbs = "get, list, watch"`
    "#);
    insta::assert_snapshot!(findings(Rule { resources: Vec::new(), ..rule("apps", "", "get") }), @r#"
    error[KW303] src/lib.rs:30 guestbook::Reconciler resources: Required value: resource rules must supply at least one resource
      help: add groups and resources, such as `groups = "apps", resources = "deployments"` (the core group is `""`), or URLs, such as `urls = "/metrics"`
    "#);
    insta::assert_snapshot!(findings(Rule { verbs: words("get"), ..Rule::default() }), @r#"
    error[KW303] src/lib.rs:30 guestbook::Reconciler resources: Required value: resource rules must supply at least one resource
      help: add groups and resources, such as `groups = "apps", resources = "deployments"` (the core group is `""`), or URLs, such as `urls = "/metrics"`
    "#);
}

#[test]
fn urls_are_rejected_in_a_namespace() {
    let urls =
        Rule { urls: words("/metrics"), verbs: words("get"), namespace: "infra".into(), ..Rule::default() };
    insta::assert_snapshot!(findings(urls), @r#"
    error[KW304] src/lib.rs:30 guestbook::Reconciler urls: Invalid value: ["/metrics"]: namespaced rules cannot apply to non-resource URLs
      help: remove `namespace`: only a ClusterRole can grant non-resource URLs
    "#);
}

#[test]
fn an_unknown_resource_is_reported_with_a_suggestion() {
    insta::assert_snapshot!(findings(rule("apps", "deployment", "get")), @"
    warning[KW305] src/lib.rs:30 guestbook::Reconciler resources: no resource `deployment` in `apps`: the rule has no effect
      help: use the lower-case plural; did you mean `deployments`?
    ");
    insta::assert_snapshot!(findings(rule("example.com", "guestbook", "get")), @"
    warning[KW305] src/lib.rs:30 guestbook::Reconciler resources: no resource `guestbook` in `example.com`: the rule has no effect
      help: use the lower-case plural; did you mean `guestbooks`?
    ");
    insta::assert_snapshot!(findings(rule("example.com", "guestbooks/state", "get")), @"
    warning[KW305] src/lib.rs:30 guestbook::Reconciler resources: no resource `guestbooks/state` in `example.com`: the rule has no effect
      help: custom resources have `status`, `scale` and `finalizers`
    ");
}

#[test]
fn resource_names_cannot_restrict_create() {
    insta::assert_snapshot!(
        findings(Rule { resource_names: words("one"), ..rule("core", "configmaps", "get,create") }),
        @"
        warning[KW306] src/lib.rs:30 guestbook::Reconciler resource_names: `create` with `resource_names` is never granted, because such requests have no name
          help: add a separate rule with `create` and without `resource_names`
        "
    );
}

#[test]
fn names_that_the_api_server_rejects_are_reported() {
    insta::assert_snapshot!(findings(Rule { namespace: "Team A".into(), ..rule("core", "pods", "get") }), @r#"
    error[KW300] src/lib.rs:30 guestbook::Reconciler namespace: Invalid value: "Team A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
      help: use a namespace name such as `team-a`
    "#);
    insta::assert_snapshot!(findings(Rule { role_name: "a/b".into(), ..rule("core", "pods", "get") }), @r#"
    error[KW300] src/lib.rs:30 guestbook::Reconciler role_name: Invalid value: "a/b": may not contain '/'
      help: use a role name such as `secret-reader`
    "#);
}
