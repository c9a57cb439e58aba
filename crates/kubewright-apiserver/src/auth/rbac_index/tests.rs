//! Tables of who may do what, and that rights only add up.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::storage::Attributes;

fn version(key: &str, object: &Value) -> Arc<StoredObject> {
    let json = Bytes::from(object.to_string());
    Arc::new(StoredObject::new(key.into(), 1, Attributes::default(), json))
}

fn rights(objects: &[(Kind, &str, Value)]) -> RbacIndex {
    let mut rights = RbacIndex::default();
    for (kind, key, object) in objects {
        rights.put(*kind, &version(key, object));
    }
    rights
}

fn role(verbs: &[&str], resources: &[&str]) -> Value {
    json!({"rules": [{"verbs": verbs, "apiGroups": [""], "resources": resources}]})
}

fn binding(kind: &str, role: &str, subjects: &Value) -> Value {
    json!({"roleRef": {"kind": kind, "name": role}, "subjects": subjects})
}

fn user(name: &str, groups: &[&str]) -> User {
    User {
        name: name.to_owned(),
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        ..User::anonymous()
    }
}

fn on<'a>(namespace: &'a str, resource: &'a str) -> ActionOn<'a> {
    ActionOn::Resource { group: "", resource, namespace, name: "" }
}

/// A small cluster: who may read pods everywhere, who in one namespace, and who is bound to nothing.
fn cluster() -> RbacIndex {
    rights(&[
        (Kind::ClusterRole, "reader", role(&["get", "list"], &["pods"])),
        (
            Kind::ClusterRole,
            "prober",
            json!({"rules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz*"]}]}),
        ),
        (Kind::Role, "a/writer", role(&["create"], &["pods"])),
        (
            Kind::ClusterRoleBinding,
            "ops",
            binding("ClusterRole", "reader", &json!([{"kind": "Group", "name": "ops"}])),
        ),
        (
            Kind::ClusterRoleBinding,
            "probes",
            binding("ClusterRole", "prober", &json!([{"kind": "User", "name": "kubelet"}])),
        ),
        (
            Kind::ClusterRoleBinding,
            "local",
            binding("Role", "writer", &json!([{"kind": "User", "name": "jane"}])),
        ),
        (
            Kind::RoleBinding,
            "a/read",
            binding(
                "ClusterRole",
                "reader",
                &json!([
                    {"kind": "Group", "name": "devs"}, {"kind": "User", "name": "jane"},
                ]),
            ),
        ),
        (
            Kind::RoleBinding,
            "a/write",
            binding(
                "Role",
                "writer",
                &json!([
                    {"kind": "ServiceAccount", "name": "robot"}, {"kind": "ServiceAccount", "name": "robot", "namespace": "b"},
                ]),
            ),
        ),
        (Kind::RoleBinding, "b/write", binding("Role", "writer", &json!([{"kind": "User", "name": "jane"}]))),
        (Kind::RoleBinding, "b/odd", binding("Robot", "writer", &json!([{"kind": "User", "name": "jane"}]))),
        (
            Kind::RoleBinding,
            "b/probe",
            binding("ClusterRole", "prober", &json!([{"kind": "User", "name": "jane"}])),
        ),
    ])
}

#[test]
fn bindings_give_their_subjects_the_rights_of_their_roles() {
    let rights = cluster();
    let cases = [
        ("max", &["ops"][..], "get", on("", "pods"), true),
        ("max", &["ops"], "get", on("b", "pods"), true),
        ("max", &["ops"], "create", on("b", "pods"), false),
        ("max", &[], "get", on("b", "pods"), false),
        ("ops", &[], "get", on("b", "pods"), false),
        ("jane", &[], "get", on("a", "pods"), true),
        ("jane", &[], "get", on("b", "pods"), false),
        ("jane", &[], "get", on("", "pods"), false),
        ("jane", &[], "create", on("b", "pods"), false),
        ("eve", &["devs"], "list", on("a", "pods"), true),
        ("system:serviceaccount:a:robot", &[], "create", on("a", "pods"), true),
        ("system:serviceaccount:b:robot", &[], "create", on("a", "pods"), true),
        ("system:serviceaccount:c:robot", &[], "create", on("a", "pods"), false),
        ("robot", &[], "create", on("a", "pods"), false),
        ("kubelet", &[], "get", ActionOn::Path("/healthz/ping"), true),
        ("jane", &[], "get", ActionOn::Path("/healthz"), false),
    ];
    for (name, groups, verb, on, expected) in cases {
        let user = user(name, groups);
        let action = Action { verb, on };
        assert_eq!(rights.allows(&user, action), expected, "{name} {groups:?} {action:?}");
        assert_eq!(rights.decide(&user, action).allowed, expected, "{name} {groups:?} {action:?}");
    }
}

#[test]
fn a_decision_says_what_allows_it_or_which_roles_are_not_there() {
    let rights = cluster();
    let why =
        |name, groups: &[&str], verb, on| rights.decide(&user(name, groups), Action { verb, on }).reason;
    assert_eq!(
        why("max", &["ops"], "get", on("b", "pods")),
        r#"RBAC: allowed by ClusterRoleBinding "ops" of ClusterRole "reader" to Group "ops""#
    );
    // The first subject that fits is named, not the one that was looked for first.
    assert_eq!(
        why("jane", &["devs"], "get", on("a", "pods")),
        r#"RBAC: allowed by RoleBinding "read/a" of ClusterRole "reader" to Group "devs""#
    );
    assert_eq!(
        why("system:serviceaccount:a:robot", &[], "create", on("a", "pods")),
        r#"RBAC: allowed by RoleBinding "write/a" of Role "writer" to ServiceAccount "robot/a""#
    );
    assert_eq!(why("max", &[], "get", on("b", "pods")), "");
    assert_eq!(
        why("jane", &[], "create", on("b", "pods")),
        "RBAC: [role.rbac.authorization.k8s.io \"writer\" not found, unsupported role reference kind: \"Robot\"]"
    );
}

#[test]
fn the_rules_of_a_binding_are_held_once_however_often_it_names_somebody() {
    let rights = cluster();
    assert_eq!(rights.held(&user("jane", &["devs"]), "a").rules.len(), 1);
    assert_eq!(rights.held(&user("jane", &["devs", "ops"]), "a").rules.len(), 2);
}

#[test]
fn what_is_removed_gives_nothing_any_more() {
    let mut rights = cluster();
    let (jane, action) = (user("jane", &["devs"]), Action { verb: "get", on: on("a", "pods") });
    rights.remove(Kind::RoleBinding, "a/read");
    assert!(!rights.allows(&jane, action));
    rights.put(
        Kind::RoleBinding,
        &version("a/read", &binding("ClusterRole", "reader", &json!([{"kind": "User", "name": "jane"}]))),
    );
    assert!(rights.allows(&jane, action));
    // Bound again to somebody else.
    rights.put(
        Kind::RoleBinding,
        &version("a/read", &binding("ClusterRole", "reader", &json!([{"kind": "User", "name": "max"}]))),
    );
    assert!(!rights.allows(&jane, action) && rights.allows(&user("max", &[]), action));
    rights.remove(Kind::ClusterRole, "reader");
    assert!(!rights.allows(&user("max", &[]), action));
}

const NAMES: [&str; 3] = ["x", "y", "z"];
const VERBS: [&str; 3] = ["get", "list", "*"];
const RESOURCES: [&str; 4] = ["pods", "pods/log", "*/log", "*"];

/// A role and a binding to it, somewhere, for somebody.
fn any_grant() -> impl Strategy<Value = (usize, bool, &'static str, &'static str, &'static str, &'static str)>
{
    use proptest::sample::select;
    (
        0..20_usize,
        any::<bool>(),
        select(&NAMES[..]),
        select(&["User", "Group"][..]),
        select(&VERBS[..]),
        select(&RESOURCES[..]),
    )
}

fn grant(
    rights: &mut RbacIndex,
    at: usize,
    (place, local, name, kind, verb, resource): (usize, bool, &str, &str, &str, &str),
) {
    let subject = json!([{"kind": kind, "name": name}]);
    let role_name = format!("role-{at}");
    rights.put(Kind::ClusterRole, &version(&role_name, &role(&[verb], &[resource])));
    let bound = binding("ClusterRole", &role_name, &subject);
    if local {
        rights.put(Kind::RoleBinding, &version(&format!("{}/b{at}", NAMES[place % NAMES.len()]), &bound));
    } else {
        rights.put(Kind::ClusterRoleBinding, &version(&format!("b{at}"), &bound));
    }
}

/// Everything that some users may do.
fn everything_allowed(rights: &RbacIndex) -> BTreeSet<(String, &'static str, &'static str, &'static str)> {
    let mut allowed = BTreeSet::new();
    for name in NAMES {
        for group in NAMES {
            let user = user(name, &[group]);
            for namespace in ["", "x", "y", "z"] {
                for verb in ["get", "list", "watch"] {
                    for resource in ["pods", "pods/log", "nodes/log", "nodes"] {
                        let action = Action { verb, on: on(namespace, resource) };
                        let may = rights.allows(&user, action);
                        assert_eq!(rights.decide(&user, action).allowed, may);
                        let held = rights.held(&user, namespace);
                        assert_eq!(held.rules.iter().any(|rule| rule.allows(action)), may);
                        if may {
                            allowed.insert((format!("{name}/{group}"), namespace, verb, resource));
                        }
                    }
                }
            }
        }
    }
    allowed
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_binding_more_takes_no_right_away(grants in proptest::collection::vec(any_grant(), 1..8)) {
        let mut rights = RbacIndex::default();
        let mut before = BTreeSet::new();
        for (at, given) in grants.into_iter().enumerate() {
            grant(&mut rights, at, given);
            let after = everything_allowed(&rights);
            prop_assert!(after.is_superset(&before));
            before = after;
        }
    }

    #[test]
    fn what_many_bindings_give_is_the_union_of_what_each_gives(grants in proptest::collection::vec(any_grant(), 0..6)) {
        let mut together = RbacIndex::default();
        let mut union = BTreeSet::new();
        for (at, given) in grants.into_iter().enumerate() {
            grant(&mut together, at, given);
            let mut alone = RbacIndex::default();
            grant(&mut alone, at, given);
            union.extend(everything_allowed(&alone));
        }
        prop_assert_eq!(everything_allowed(&together), union);
    }

    #[test]
    fn what_was_put_and_removed_leaves_nothing(grants in proptest::collection::vec(any_grant(), 1..6)) {
        let mut rights = RbacIndex::default();
        for (at, given) in grants.iter().enumerate() {
            grant(&mut rights, at, *given);
        }
        for (at, (place, local, ..)) in grants.iter().enumerate() {
            rights.remove(Kind::ClusterRole, &format!("role-{at}"));
            if *local {
                rights.remove(Kind::RoleBinding, &format!("{}/b{at}", NAMES[place % NAMES.len()]));
            } else {
                rights.remove(Kind::ClusterRoleBinding, &format!("b{at}"));
            }
        }
        prop_assert!(rights.roles.is_empty() && rights.cluster_roles.is_empty() && rights.namespaces.is_empty());
        prop_assert!(rights.cluster.all.is_empty() && rights.cluster.users.is_empty() && rights.cluster.groups.is_empty());
    }
}
