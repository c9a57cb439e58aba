//! Tests of merged and normalized rules.

use proptest::prelude::*;

use super::*;
use crate::declare::{Declared, Item, Kind};
use crate::inventory::{ControllerDeclared, Resource};

fn words(text: &str) -> Vec<String> {
    text.split([',', ';']).filter(|word| !word.is_empty()).map(|word| word.trim().to_owned()).collect()
}

/// Parses `groups | resources | verbs`, with `core` for the core group.
fn rule(text: &str) -> Rule {
    let mut parts = text.split('|').map(words);
    let mut next = || parts.next().unwrap_or_default();
    Rule { groups: next(), resources: next(), verbs: next(), ..Rule::default() }
}

/// One line per rule.
fn rendered(rules: &[Value]) -> String {
    let list = |rule: &Value, name: &str| {
        let words: Vec<&str> =
            rule[name].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        format!("{words:?}").replace('"', "'")
    };
    let line = |rule: &Value| {
        let names: Vec<String> = rule
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| format!("{name}: {}", list(rule, name)))
            .collect();
        names.join(", ") + "\n"
    };
    rules.iter().map(line).collect()
}

fn normalised(rules: &[&str]) -> String {
    let rules = rules.iter().flat_map(|text| PolicyRule::of(&rule(text)));
    rendered(&normalise(rules).iter().map(PolicyRule::to_value).collect::<Vec<_>>())
}

#[test]
fn verbs_for_the_same_resources_are_merged() {
    insta::assert_snapshot!(normalised(&["apps|deployments|get,list", "apps|deployments|watch,get"]), @"apiGroups: ['apps'], resources: ['deployments'], verbs: ['get', 'list', 'watch']");
}

#[test]
fn resources_and_then_groups_with_the_same_verbs_are_merged() {
    insta::assert_snapshot!(
        normalised(&["apps|deployments|get", "apps|statefulsets|get", "batch|jobs|get", "batch|cronjobs|list"]),
        @r"
        apiGroups: ['apps'], resources: ['deployments', 'statefulsets'], verbs: ['get']
        apiGroups: ['batch'], resources: ['cronjobs'], verbs: ['list']
        apiGroups: ['batch'], resources: ['jobs'], verbs: ['get']
        "
    );
    insta::assert_snapshot!(normalised(&["core|events|create,patch", "events.k8s.io|events|patch,create"]), @"apiGroups: ['', 'events.k8s.io'], resources: ['events'], verbs: ['create', 'patch']");
}

#[test]
fn a_wildcard_replaces_all_other_values() {
    insta::assert_snapshot!(normalised(&["apps|deployments|get,*", "apps|deployments|list", "apps|*,pods|get"]), @r"
    apiGroups: ['apps'], resources: ['*'], verbs: ['get']
    apiGroups: ['apps'], resources: ['deployments'], verbs: ['*']
    ");
}

/// A single pass would leave two rules for `x`, of which controller-gen keeps only one.
#[test]
fn permissions_are_kept_when_merged_groups_overlap() {
    insta::assert_snapshot!(normalised(&["a|x|get", "b|x|get", "a,b|x|list"]), @"apiGroups: ['a', 'b'], resources: ['x'], verbs: ['get', 'list']");
}

#[test]
fn resources_and_urls_are_never_in_the_same_rule() {
    let both = Rule { urls: words("/metrics,/healthz"), ..rule("core|pods|get") };
    insta::assert_snapshot!(rendered(&normalise(PolicyRule::of(&both)).iter().map(PolicyRule::to_value).collect::<Vec<_>>()), @r"
    nonResourceURLs: ['/healthz', '/metrics'], verbs: ['get']
    apiGroups: [''], resources: ['pods'], verbs: ['get']
    ");
}

#[test]
fn names_restrict_only_the_rule_that_has_them() {
    let named = Rule { resource_names: words("one,two"), ..rule("core|secrets|get") };
    let rules = [named, rule("core|configmaps|get"), rule("core|secrets|list")];
    insta::assert_snapshot!(rendered(roles(&rules)[0]["rules"].as_array().unwrap()), @r"
    apiGroups: [''], resources: ['configmaps'], verbs: ['get']
    apiGroups: [''], resources: ['secrets'], verbs: ['list']
    apiGroups: [''], resourceNames: ['one', 'two'], resources: ['secrets'], verbs: ['get']
    ");
}

/// A version of the operator's own kind, with the fields that roles depend on.
fn kind_with_status(group: &str, plural: &str) -> Kind {
    Kind {
        item: Item::default(),
        definition: json!({"spec": {
            "group": group,
            "names": {"plural": plural},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "subresources": {"status": {}}}],
        }}),
        findings: Vec::new(),
    }
}

fn guestbook() -> Inventory {
    let resource = |group: &str, kind: &str, plural: &str, namespaced| Resource {
        group: group.into(),
        version: "v1".into(),
        kind: kind.into(),
        plural: plural.into(),
        namespaced,
    };
    let mut inventory = Inventory::new("guestbook");
    inventory.events = true;
    inventory.controllers = vec![ControllerDeclared {
        name: "guestbook".into(),
        of: resource("example.com", "Guestbook", "guestbooks", true),
        owns: vec![
            resource("apps", "Deployment", "deployments", true),
            resource("", "Service", "services", true),
        ],
        watches: vec![resource("", "Namespace", "namespaces", false)],
        ..ControllerDeclared::default()
    }];
    inventory.declared = vec![
        Declared::Kind(kind_with_status("example.com", "guestbooks")),
        Declared::Rule(rule("apps|deployments|create,patch,delete")),
        Declared::Rule(Rule { urls: words("/version"), ..rule("core|nodes,secrets|get") }),
        Declared::Rule(Rule {
            namespace: "infra".into(),
            role_name: "reader".into(),
            ..rule("core|secrets|get")
        }),
    ];
    inventory
}

fn all(inventory: &Inventory) -> String {
    let role = |role: &Value| {
        let metadata = &role["metadata"];
        let place = metadata["namespace"].as_str().unwrap_or("-");
        let rules = rendered(role["rules"].as_array().unwrap());
        format!("{} {place} {}\n{rules}", role["kind"].as_str().unwrap(), metadata["name"].as_str().unwrap())
    };
    roles(&rules(inventory)).iter().map(role).collect()
}

#[test]
fn a_controller_gets_implied_permissions() {
    insta::assert_snapshot!(all(&guestbook()), @r"
    ClusterRole - manager-role
    nonResourceURLs: ['/version'], verbs: ['get']
    apiGroups: [''], resources: ['namespaces', 'services'], verbs: ['get', 'list', 'watch']
    apiGroups: [''], resources: ['nodes', 'secrets'], verbs: ['get']
    apiGroups: ['apps'], resources: ['deployments'], verbs: ['create', 'delete', 'get', 'list', 'patch', 'watch']
    apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch']
    apiGroups: ['example.com'], resources: ['guestbooks'], verbs: ['get', 'list', 'watch']
    apiGroups: ['example.com'], resources: ['guestbooks/finalizers'], verbs: ['update']
    apiGroups: ['example.com'], resources: ['guestbooks/status'], verbs: ['patch']
    Role infra reader
    apiGroups: [''], resources: ['secrets'], verbs: ['get']
    ");
}

#[test]
fn an_operator_with_namespaces_has_a_role_in_each() {
    let mut inventory = guestbook();
    inventory.namespaces = words("team-a,team-b");
    insta::assert_snapshot!(all(&inventory), @r"
    ClusterRole - manager-role
    nonResourceURLs: ['/version'], verbs: ['get']
    apiGroups: [''], resources: ['namespaces'], verbs: ['get', 'list', 'watch']
    apiGroups: [''], resources: ['nodes'], verbs: ['get']
    Role infra reader
    apiGroups: [''], resources: ['secrets'], verbs: ['get']
    Role team-a manager-role
    apiGroups: [''], resources: ['secrets'], verbs: ['get']
    apiGroups: [''], resources: ['services'], verbs: ['get', 'list', 'watch']
    apiGroups: ['apps'], resources: ['deployments'], verbs: ['create', 'delete', 'get', 'list', 'patch', 'watch']
    apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch']
    apiGroups: ['example.com'], resources: ['guestbooks'], verbs: ['get', 'list', 'watch']
    apiGroups: ['example.com'], resources: ['guestbooks/finalizers'], verbs: ['update']
    apiGroups: ['example.com'], resources: ['guestbooks/status'], verbs: ['patch']
    Role team-b manager-role
    apiGroups: [''], resources: ['secrets'], verbs: ['get']
    apiGroups: [''], resources: ['services'], verbs: ['get', 'list', 'watch']
    apiGroups: ['apps'], resources: ['deployments'], verbs: ['create', 'delete', 'get', 'list', 'patch', 'watch']
    apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch']
    apiGroups: ['example.com'], resources: ['guestbooks'], verbs: ['get', 'list', 'watch']
    apiGroups: ['example.com'], resources: ['guestbooks/finalizers'], verbs: ['update']
    apiGroups: ['example.com'], resources: ['guestbooks/status'], verbs: ['patch']
    ");
}

/// All derived rules, one line each.
fn derived(inventory: &Inventory) -> Vec<String> {
    implied_rules(inventory)
        .iter()
        .map(|rule| format!("{}/{}: {}", rule.groups[0], rule.resources[0], rule.verbs.join(",")))
        .collect()
}

fn pods() -> Inventory {
    let mut inventory = Inventory::new("auditor");
    inventory.controllers = vec![ControllerDeclared {
        name: "pod".into(),
        of: Resource {
            version: "v1".into(),
            kind: "Pod".into(),
            plural: "pods".into(),
            namespaced: true,
            ..Resource::default()
        },
        ..ControllerDeclared::default()
    }];
    inventory
}

#[test]
fn a_controller_of_pods_only_gets_read_permissions() {
    assert_eq!(derived(&pods()), ["/pods: get,list,watch"]);
}

#[test]
fn only_the_status_of_own_kinds_can_be_written() {
    let mut inventory = guestbook();
    inventory.controllers[0].owns.clear();
    inventory.controllers[0].watches.clear();
    inventory.events = false;
    let read_and_status = ["example.com/guestbooks: get,list,watch", "example.com/guestbooks/status: patch"];
    assert_eq!(derived(&inventory), read_and_status);
    inventory.controllers[0].without_status = true;
    assert_eq!(derived(&inventory), read_and_status[..1]);
    inventory.controllers[0].without_status = false;
    inventory.declared.clear();
    assert_eq!(derived(&inventory), read_and_status[..1]);
}

/// OwnerReferencesPermissionEnforcement requires it if a child blocks its owner's deletion.
#[test]
fn owning_objects_grants_update_of_finalizers() {
    let mut inventory = pods();
    inventory.controllers[0].owns =
        vec![Resource { version: "v1".into(), plural: "configmaps".into(), ..Resource::default() }];
    assert_eq!(
        derived(&inventory),
        ["/pods: get,list,watch", "/configmaps: get,list,watch", "/pods/finalizers: update"]
    );
}

#[test]
fn events_are_granted_unless_nothing_records_any() {
    let mut inventory = pods();
    inventory.events = true;
    let read_and_events = ["/pods: get,list,watch", "events.k8s.io/events: create,patch"];
    assert_eq!(derived(&inventory), read_and_events);
    inventory.controllers[0].without_events = true;
    assert_eq!(derived(&inventory), read_and_events[..1]);
    // One of two controllers records events.
    inventory
        .controllers
        .push(ControllerDeclared { without_events: false, ..inventory.controllers[0].clone() });
    assert!(derived(&inventory).contains(&read_and_events[1].to_owned()));
    inventory.controllers.pop();
    // The manager records events for the certificates of its webhooks.
    inventory.conversions = vec![crate::inventory::ConversionDeclared::default()];
    assert_eq!(derived(&inventory), read_and_events);
    // Tasks may record events.
    inventory.conversions.clear();
    inventory.controllers.clear();
    assert_eq!(derived(&inventory), read_and_events[1..]);
}

#[test]
fn a_finalizer_grants_patch() {
    let mut inventory = pods();
    inventory.controllers[0].finalizers = vec!["example.com/cleanup".into()];
    assert_eq!(derived(&inventory), ["/pods: get,list,watch", "/pods: patch"]);
}

#[test]
fn a_controller_of_keys_has_no_kind() {
    let mut inventory = pods();
    inventory.controllers[0].watches = vec![std::mem::take(&mut inventory.controllers[0].of)];
    assert_eq!(derived(&inventory), ["/pods: get,list,watch"]);
}

#[test]
fn the_leader_election_role_grants_what_leader_election_needs() {
    let mut inventory = pods();
    inventory.leader_election = true;
    let role = leader_election_role(&inventory).unwrap();
    insta::assert_snapshot!(rendered(role["rules"].as_array().unwrap()), @r"
    apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create', 'get', 'update']
    apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch']
    ");
}

#[test]
fn a_role_has_the_form_of_the_api() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&roles(&[rule("core|pods|get")])).unwrap(), @r#"
    [
      {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {
          "name": "manager-role"
        },
        "rules": [
          {
            "apiGroups": [
              ""
            ],
            "resources": [
              "pods"
            ],
            "verbs": [
              "get"
            ]
          }
        ]
      }
    ]
    "#);
}

#[test]
fn support_roles_exist_if_needed() {
    let mut inventory = guestbook();
    let support = |of: &Inventory| {
        [leader_election_role(of), metrics_auth_role(of), metrics_reader_role(of), debug_page_reader_role(of)]
    };
    assert_eq!(support(&inventory), [None, None, None, None]);
    inventory.leader_election = true;
    inventory.secure_metrics = true;
    let names: Vec<String> = support(&inventory)
        .into_iter()
        .flatten()
        .map(|role| format!("{} {}", role["kind"], role["metadata"]["name"]))
        .collect();
    insta::assert_snapshot!(names.join("\n"), @r#"
    "Role" "leader-election-role"
    "ClusterRole" "metrics-auth-role"
    "ClusterRole" "metrics-reader"
    "ClusterRole" "debug-page-reader"
    "#);
}

/// All granted permissions, without those that a wildcard includes.
fn granted(rules: &[PolicyRule]) -> BTreeSet<[String; 5]> {
    let or_any = |set: &BTreeSet<String>| {
        if set.is_empty() { vec![String::from("(any)")] } else { set.iter().cloned().collect() }
    };
    let mut all = BTreeSet::new();
    for rule in rules {
        for group in or_any(&rule.groups) {
            for resource in or_any(&rule.resources) {
                for name in or_any(&rule.names) {
                    for url in or_any(&rule.urls) {
                        for verb in &rule.verbs {
                            let one = [&group, &resource, &name, &url, verb].map(Clone::clone);
                            all.insert(one);
                        }
                    }
                }
            }
        }
    }
    let covers = |wide: &[String; 5], one: &[String; 5]| {
        wide != one && wide.iter().zip(one).all(|(wide, one)| wide == one || wide == "*")
    };
    all.iter().filter(|one| !all.iter().any(|wide| covers(wide, one))).cloned().collect()
}

fn some(words: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    proptest::sample::subsequence(words, 1..=words.len().min(3))
        .prop_map(|words| words.into_iter().map(str::to_owned).collect())
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let resources = (
        some(&["", "core", "a", "b", "*"]),
        some(&["x", "y", "z", "x/status", "*"]),
        proptest::option::weighted(0.2, some(&["one", "two"])),
        some(&["get", "list", "watch", "*"]),
        proptest::option::weighted(0.2, some(&["/metrics", "/version"])),
    );
    let paths = (some(&["/metrics", "/version", "/healthz"]), some(&["get", "post", "*"]));
    prop_oneof![
        5 => resources.prop_map(|(groups, resources, names, verbs, urls)| Rule {
            groups,
            resources,
            verbs,
            resource_names: names.unwrap_or_default(),
            urls: urls.unwrap_or_default(),
            ..Rule::default()
        }),
        1 => paths.prop_map(|(urls, verbs)| Rule { verbs, urls, ..Rule::default() }),
    ]
}

proptest! {
    #[test]
    fn exactly_the_declared_permissions_are_granted_in_any_order(
        rules in proptest::collection::vec(any_rule(), 0..8).prop_shuffle(),
    ) {
        let given: Vec<PolicyRule> = rules.iter().flat_map(PolicyRule::of).collect();
        let result = normalise(given.clone());
        prop_assert_eq!(granted(&result), granted(&given));
        prop_assert_eq!(normalise(result.clone()), result.clone());
        prop_assert_eq!(normalise(given.into_iter().rev()), result.clone());
        prop_assert!(result.iter().all(|rule| rule.resources.is_empty() || rule.urls.is_empty()));
    }
}
