//! Tables of permissions, and properties: permissions are additive.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::storage::Attributes;

fn version(key: &str, object: &Value) -> Arc<StoredObject> {
    let json = Bytes::from(object.to_string());
    Arc::new(StoredObject::new(key.into(), 1, Attributes::default(), json))
}

fn index(objects: &[(Kind, &str, Value)]) -> RbacIndex {
    let mut index = RbacIndex::default();
    for (kind, key, object) in objects {
        index.put(*kind, &version(key, object));
    }
    index
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

/// A small cluster with a reader of pods in all namespaces, one in a single namespace, and users without
/// bindings.
fn cluster() -> RbacIndex {
    index(&[
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
fn bindings_grant_their_subjects_the_permissions_of_their_roles() {
    let index = cluster();
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
        assert_eq!(index.allows(&user, action), expected, "{name} {groups:?} {action:?}");
        assert_eq!(index.decide(&user, action).allowed, expected, "{name} {groups:?} {action:?}");
    }
}

#[test]
fn a_decision_names_the_binding_or_the_missing_roles() {
    let index = cluster();
    let why = |name, groups: &[&str], verb, on| index.decide(&user(name, groups), Action { verb, on }).reason;
    assert_eq!(
        why("max", &["ops"], "get", on("b", "pods")),
        r#"RBAC: allowed by ClusterRoleBinding "ops" of ClusterRole "reader" to Group "ops""#
    );
    // The reason names the first matching subject of the binding.
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
fn a_binding_that_names_a_user_twice_grants_its_rules_once() {
    let index = cluster();
    assert_eq!(index.held(&user("jane", &["devs"]), "a").rules.len(), 1);
    assert_eq!(index.held(&user("jane", &["devs", "ops"]), "a").rules.len(), 2);
}

#[test]
fn removed_roles_and_bindings_grant_nothing() {
    let mut index = cluster();
    let (jane, action) = (user("jane", &["devs"]), Action { verb: "get", on: on("a", "pods") });
    index.remove(Kind::RoleBinding, "a/read");
    assert!(!index.allows(&jane, action));
    index.put(
        Kind::RoleBinding,
        &version("a/read", &binding("ClusterRole", "reader", &json!([{"kind": "User", "name": "jane"}]))),
    );
    assert!(index.allows(&jane, action));
    // Replace the binding's subject.
    index.put(
        Kind::RoleBinding,
        &version("a/read", &binding("ClusterRole", "reader", &json!([{"kind": "User", "name": "max"}]))),
    );
    assert!(!index.allows(&jane, action) && index.allows(&user("max", &[]), action));
    index.remove(Kind::ClusterRole, "reader");
    assert!(!index.allows(&user("max", &[]), action));
}

const NAMES: [&str; 3] = ["x", "y", "z"];
const VERBS: [&str; 3] = ["get", "list", "*"];
const RESOURCES: [&str; 4] = ["pods", "pods/log", "*/log", "*"];

/// A random role with a binding to it.
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
    index: &mut RbacIndex,
    at: usize,
    (place, local, name, kind, verb, resource): (usize, bool, &str, &str, &str, &str),
) {
    let subject = json!([{"kind": kind, "name": name}]);
    let role_name = format!("role-{at}");
    index.put(Kind::ClusterRole, &version(&role_name, &role(&[verb], &[resource])));
    let bound = binding("ClusterRole", &role_name, &subject);
    if local {
        index.put(Kind::RoleBinding, &version(&format!("{}/b{at}", NAMES[place % NAMES.len()]), &bound));
    } else {
        index.put(Kind::ClusterRoleBinding, &version(&format!("b{at}"), &bound));
    }
}

/// Everything that a few users may do.
fn everything_allowed(index: &RbacIndex) -> BTreeSet<(String, &'static str, &'static str, &'static str)> {
    let mut allowed = BTreeSet::new();
    for name in NAMES {
        for group in NAMES {
            let user = user(name, &[group]);
            for namespace in ["", "x", "y", "z"] {
                for verb in ["get", "list", "watch"] {
                    for resource in ["pods", "pods/log", "nodes/log", "nodes"] {
                        let action = Action { verb, on: on(namespace, resource) };
                        let may = index.allows(&user, action);
                        assert_eq!(index.decide(&user, action).allowed, may);
                        let held = index.held(&user, namespace);
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
    fn adding_a_binding_revokes_no_permission(grants in proptest::collection::vec(any_grant(), 1..8)) {
        let mut index = RbacIndex::default();
        let mut before = BTreeSet::new();
        for (at, given) in grants.into_iter().enumerate() {
            grant(&mut index, at, given);
            let after = everything_allowed(&index);
            prop_assert!(after.is_superset(&before));
            before = after;
        }
    }

    #[test]
    fn several_bindings_grant_the_union_of_their_permissions(grants in proptest::collection::vec(any_grant(), 0..6)) {
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
    fn adding_and_removing_leaves_the_index_empty(grants in proptest::collection::vec(any_grant(), 1..6)) {
        let mut index = RbacIndex::default();
        for (at, given) in grants.iter().enumerate() {
            grant(&mut index, at, *given);
        }
        for (at, (place, local, ..)) in grants.iter().enumerate() {
            index.remove(Kind::ClusterRole, &format!("role-{at}"));
            if *local {
                index.remove(Kind::RoleBinding, &format!("{}/b{at}", NAMES[place % NAMES.len()]));
            } else {
                index.remove(Kind::ClusterRoleBinding, &format!("b{at}"));
            }
        }
        prop_assert!(index.roles.is_empty() && index.cluster_roles.is_empty() && index.namespaces.is_empty());
        prop_assert!(index.cluster.all.is_empty() && index.cluster.users.is_empty() && index.cluster.groups.is_empty());
    }
}
