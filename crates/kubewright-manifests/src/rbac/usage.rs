//! Compares the requests of an operator with its generated role.
//!
//! [`Usage`] reports unused and missing permissions. The requests come from a test environment or from the
//! API server of `kubewright dev`.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use kubewright_apimachinery::permission::Permission;

use super::implied::{self, Used};
use super::{canonical_group, scope};
use crate::declare::{Item, Rule};
use crate::inventory::Inventory;

/// A request of an operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// The RBAC verb.
    pub verb: String,
    /// The API group; empty for core.
    pub group: String,
    /// The plural, also a subresource such as `pods/log`; empty for a non-resource URL.
    pub resource: String,
    /// The namespace; empty for none.
    pub namespace: String,
    /// The name; empty for none.
    pub name: String,
    /// Whether it is a server-side apply, which creates a missing object.
    pub applies: bool,
    /// The status code of the response, if any.
    pub code: Option<u16>,
}

impl Call {
    /// Whether the request uses a verb, either because it has it or because an equal request on another server would.
    pub fn uses(&self, verb: &str) -> bool {
        self.verb == verb
            || verb == "create" && self.creates()
            // A list is requested as a watch with `sendInitialEvents`. Servers without WatchList get a list instead, and
            // there the watch alone is forbidden.
            || verb == "list" && self.verb == "watch"
    }

    /// An apply that creates the object, or is rejected, also requires `create`.
    fn creates(&self) -> bool {
        self.applies && !self.resource.contains('/') && matches!(self.code, Some(201 | 403))
    }
}

/// The permissions of an operator and their use.
#[derive(Clone, Debug)]
pub struct Usage {
    grants: Vec<Grant>,
    /// Rules of the roles for leader election and secured metrics.
    support: Vec<Rule>,
    refused: BTreeSet<Permission>,
}

#[derive(Clone, Debug)]
struct Grant {
    rule: Rule,
    /// `None` for a rule of an `#[rbac]` attribute.
    derived: Option<Used>,
    /// The used permissions.
    used: BTreeSet<Permission>,
}

/// A permission that no request has used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unused {
    /// The permissions, any one of which would have been sufficient.
    pub permissions: Vec<Permission>,
    /// The `#[rbac]` attribute; `None` if it is implied by a registration.
    pub declared: Option<Item>,
}

impl Usage {
    /// Creates a usage without requests.
    pub fn new(inventory: &Inventory) -> Self {
        let placed = |rule: &Rule, derived: Option<Used>| {
            let grant = |rule| Grant { rule, derived, used: BTreeSet::new() };
            scope::placed(rule, inventory).into_iter().map(grant).collect::<Vec<_>>()
        };
        let mut grants: Vec<Grant> = inventory.rules().flat_map(|rule| placed(rule, None)).collect();
        for derived in implied::derived(inventory) {
            grants.extend(placed(&derived.rule, Some(derived.used)));
        }
        Self { grants, support: support(inventory), refused: BTreeSet::new() }
    }

    /// Records a request.
    pub fn note(&mut self, call: &Call) {
        if call.resource.is_empty() {
            return;
        }
        for verb in ["list", "create", call.verb.as_str()] {
            if call.uses(verb) {
                let permission = Permission::new(&*call.group, &*call.resource, verb);
                for grant in self.grants.iter_mut().filter(|grant| covers(&grant.rule, call, verb)) {
                    grant.used.insert(permission.clone());
                }
            }
        }
        if call.code == Some(403) {
            // The server stops at the first missing permission.
            let required = [Some(call.verb.as_str()), call.creates().then_some("create")];
            let missing = required.into_iter().flatten().find(|verb| !self.is_granted(call, verb));
            self.refused.extend(missing.map(|verb| Permission::new(&*call.group, &*call.resource, verb)));
        }
    }

    /// Whether the operator's roles grant a verb of a request.
    fn is_granted(&self, call: &Call, verb: &str) -> bool {
        let mut rules = self.grants.iter().map(|grant| &grant.rule).chain(&self.support);
        rules.any(|rule| covers(rule, call, verb))
    }

    /// The missing permissions.
    pub fn refused(&self) -> Vec<Permission> {
        self.refused.iter().cloned().collect()
    }

    /// Returns the missing permissions and clears them.
    pub fn take_forbidden(&mut self) -> Vec<Permission> {
        std::mem::take(&mut self.refused).into_iter().collect()
    }

    /// The unused permissions, without those that are only needed at times: for events, for owner references with
    /// OwnerReferencesPermissionEnforcement, and `list` on servers without streaming lists.
    pub fn unused(&self) -> Vec<Unused> {
        let mut unused = BTreeSet::new();
        for grant in &self.grants {
            let idle = |permission: &Permission| !self.is_used(permission);
            match grant.derived {
                Some(Used::Sometimes) => {}
                Some(Used::ByAny) => {
                    let permissions = permissions(&grant.rule);
                    if permissions.iter().all(idle) {
                        unused.insert(Unused { permissions, declared: None });
                    }
                }
                None => {
                    for permission in permissions(&grant.rule).into_iter().filter(idle) {
                        let declared = Some(grant.rule.item.clone());
                        unused.insert(Unused { permissions: vec![permission], declared });
                    }
                }
            }
        }
        unused.into_iter().collect()
    }

    /// Whether a request used the permission, in any namespace. A wildcard is used by every request that it
    /// matches.
    fn is_used(&self, permission: &Permission) -> bool {
        let is = |wide: &str, one: &str| wide == "*" || wide == one;
        self.grants.iter().flat_map(|grant| &grant.used).any(|used| {
            is(&permission.group, &used.group)
                && is(&permission.verb, &used.verb)
                && is_resource(&permission.resource, &used.resource)
        })
    }
}

impl fmt::Display for Unused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let permissions: Vec<String> = self.permissions.iter().map(ToString::to_string).collect();
        write!(f, "{}: ", permissions.join(" or "))?;
        match &self.declared {
            Some(Item { file, line, .. }) if !file.is_empty() => {
                write!(f, "not used; declared by #[rbac] at {file}:{line}")
            }
            Some(_) => f.write_str("not used; declared by #[rbac]"),
            None => {
                f.write_str("not used; derived from the registration of a controller")?;
                if self.is_status() { f.write_str("; omit it with .without_status()") } else { Ok(()) }
            }
        }
    }
}

impl Unused {
    /// Whether an `#[rbac]` attribute in another source file declares it. `file` is the end of a path, such as
    /// `controllers/order.rs`.
    pub fn is_declared_outside(&self, file: &str) -> bool {
        self.declared.as_ref().is_some_and(|item| !Path::new(&item.file).ends_with(file))
    }

    fn is_status(&self) -> bool {
        self.permissions.iter().all(|permission| permission.resource.ends_with("/status"))
    }
}

/// All permissions of a rule.
fn permissions(rule: &Rule) -> Vec<Permission> {
    let mut all = Vec::new();
    for group in &rule.groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                all.push(Permission::new(canonical_group(group), resource, verb));
            }
        }
    }
    all
}

fn covers(rule: &Rule, call: &Call, verb: &str) -> bool {
    let has = |words: &[String], word: &str| words.iter().any(|one| one == "*" || one == word);
    rule.groups.iter().any(|group| group == "*" || canonical_group(group) == call.group)
        && rule.resources.iter().any(|resource| is_resource(resource, &call.resource))
        && has(&rule.verbs, verb)
        && (rule.resource_names.is_empty() || rule.resource_names.contains(&call.name))
        && (rule.namespace.is_empty() || rule.namespace == call.namespace)
}

/// Whether a resource of a rule, such as `*` or `*/scale`, matches.
fn is_resource(wide: &str, one: &str) -> bool {
    let subresource = || one.split_once('/').map(|(_, subresource)| subresource);
    wide == "*" || wide == one || wide.strip_prefix("*/").is_some_and(|wide| Some(wide) == subresource())
}

/// The rules of the roles for leader election and secured metrics. The rule for Events about the Lease is omitted: it
/// holds in one namespace only, so it must not hide a missing permission for Events about other objects.
fn support(inventory: &Inventory) -> Vec<Rule> {
    let roles = [super::leader_election_role(inventory), super::metrics_auth_role(inventory)].into_iter();
    let words = |value: &serde_json::Value| {
        let words = value.as_array().into_iter().flatten();
        words.filter_map(serde_json::Value::as_str).map(str::to_owned).collect()
    };
    let rules = roles.flatten().flat_map(|role| role["rules"].as_array().cloned().unwrap_or_default());
    rules
        .filter(|rule| rule["apiGroups"][0] != "events.k8s.io")
        .map(|rule| Rule {
            groups: words(&rule["apiGroups"]),
            resources: words(&rule["resources"]),
            verbs: words(&rule["verbs"]),
            ..Rule::default()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declare::Declared;
    use crate::inventory::{ControllerDeclared, Resource};

    fn inventory() -> Inventory {
        let resource = |group: &str, plural: &str| Resource {
            group: group.into(),
            version: "v1".into(),
            plural: plural.into(),
            namespaced: true,
            ..Resource::default()
        };
        let mut inventory = Inventory::new("shop");
        inventory.events = true;
        inventory.leader_election = true;
        inventory.controllers = vec![ControllerDeclared {
            of: resource("example.com", "orders"),
            owns: vec![resource("", "configmaps")],
            ..ControllerDeclared::default()
        }];
        inventory.declared = vec![Declared::Rule(Rule {
            item: Item { file: "src/order.rs".into(), line: 7, ..Item::default() },
            groups: vec!["core".into()],
            resources: vec!["configmaps".into()],
            verbs: ["create", "patch", "delete"].map(str::to_owned).into(),
            ..Rule::default()
        })];
        inventory
    }

    fn call(verb: &str, group: &str, resource: &str, code: u16) -> Call {
        Call {
            verb: verb.into(),
            group: group.into(),
            resource: resource.into(),
            namespace: "a".into(),
            name: "x".into(),
            code: Some(code),
            ..Call::default()
        }
    }

    fn told(usage: &Usage) -> Vec<String> {
        usage.unused().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn permissions_without_requests_are_unused() {
        let mut usage = Usage::new(&inventory());
        usage.note(&call("watch", "example.com", "orders", 200));
        usage.note(&call("list", "", "configmaps", 200));
        usage.note(&Call { applies: true, ..call("patch", "", "configmaps", 200) });
        assert_eq!(
            told(&usage),
            [
                "create configmaps: not used; declared by #[rbac] at src/order.rs:7",
                "delete configmaps: not used; declared by #[rbac] at src/order.rs:7",
            ]
        );
        // An apply that creates an object needs both verbs.
        usage.note(&Call { applies: true, ..call("patch", "", "configmaps", 201) });
        assert_eq!(told(&usage), ["delete configmaps: not used; declared by #[rbac] at src/order.rs:7"]);
        assert_eq!(usage.refused(), []);
    }

    #[test]
    fn a_watch_uses_the_permission_to_list() {
        let mut inventory = inventory();
        inventory.declared = vec![Declared::Rule(Rule {
            groups: vec![String::new()],
            resources: vec!["secrets".into()],
            verbs: ["list", "watch"].map(str::to_owned).into(),
            ..Rule::default()
        })];
        let mut usage = Usage::new(&inventory);
        assert!(told(&usage).contains(&"list secrets: not used; declared by #[rbac]".to_owned()));
        usage.note(&call("watch", "", "secrets", 200));
        assert!(!told(&usage).iter().any(|line| line.contains("secrets")), "{:?}", told(&usage));
        // A list does not use the permission to watch.
        assert!(!call("list", "", "secrets", 200).uses("watch"));
        // The server only requires the verb of the request.
        usage.note(&call("watch", "", "pods", 403));
        assert_eq!(usage.refused(), [Permission::new("", "pods", "watch")]);
    }

    #[test]
    fn a_registration_of_a_kind_that_is_never_read_is_unused() {
        let mut usage = Usage::new(&inventory());
        for verb in ["create", "patch", "delete", "watch"] {
            usage.note(&call(verb, "", "configmaps", 200));
        }
        assert_eq!(
            told(&usage),
            [
                "get orders.example.com or list orders.example.com or watch orders.example.com: not used; derived from \
              the registration of a controller"
            ]
        );
    }

    #[test]
    fn an_unused_status_names_the_registration_that_omits_it() {
        let mut inventory = inventory();
        let spec = serde_json::json!({
            "group": "example.com",
            "names": { "plural": "orders" },
            "versions": [{ "name": "v1", "subresources": { "status": {} } }],
        });
        inventory.declared.push(Declared::Kind(crate::declare::Kind {
            item: Item::default(),
            definition: serde_json::json!({ "spec": spec }),
            findings: Vec::new(),
        }));
        let usage = Usage::new(&inventory);
        let text = "patch orders.example.com/status: not used; derived from the registration of a controller; omit it \
                    with .without_status()";
        let told = told(&usage);
        assert!(told.iter().any(|line| line == text), "{told:#?}");
    }

    #[test]
    fn an_unused_attribute_is_found_by_the_end_of_its_path() {
        let unused = Usage::new(&inventory()).unused();
        let outside = |file: &str| unused.iter().filter(|it| it.is_declared_outside(file)).count();
        assert_eq!((outside("order.rs"), outside("src/order.rs"), outside("r.rs")), (0, 0, 3));
    }

    #[test]
    fn a_rejected_request_reports_the_missing_permission() {
        let mut usage = Usage::new(&inventory());
        usage.note(&call("patch", "example.com", "orders", 403));
        usage.note(&call("update", "", "configmaps", 403));
        // The role grants this request: admission or a quota rejected it.
        usage.note(&call("create", "", "configmaps", 403));
        usage.note(&call("update", "coordination.k8s.io", "leases", 403));
        let refused: Vec<String> = usage.refused().iter().map(ToString::to_string).collect();
        assert_eq!(refused, ["update configmaps", "patch orders.example.com"]);
        assert_eq!(usage.take_forbidden().len(), 2);
        assert_eq!(usage.refused(), []);
    }

    #[test]
    fn an_apply_without_create_permission_reports_create() {
        let mut inventory = inventory();
        inventory.declared = vec![Declared::Rule(Rule {
            groups: vec![String::new()],
            resources: vec!["secrets".into()],
            verbs: vec!["patch".into()],
            ..Rule::default()
        })];
        let mut usage = Usage::new(&inventory);
        usage.note(&Call { applies: true, ..call("patch", "", "secrets", 403) });
        assert_eq!(usage.refused(), [Permission::new("", "secrets", "create")]);
    }

    #[test]
    fn a_role_grants_nothing_in_other_namespaces() {
        let mut inventory = inventory();
        inventory.namespaces = vec!["a".into()];
        let mut usage = Usage::new(&inventory);
        usage.note(&Call { namespace: "b".into(), ..call("delete", "", "configmaps", 403) });
        assert_eq!(usage.refused(), [Permission::new("", "configmaps", "delete")]);
        usage.note(&call("delete", "", "configmaps", 200));
        assert!(!told(&usage).iter().any(|line| line.starts_with("delete")), "{:?}", told(&usage));
    }
}
