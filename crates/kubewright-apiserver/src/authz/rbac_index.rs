//! Roles and bindings, indexed by the subjects of the bindings.
//!
//! Pure: a function of the given objects. Permissions are additive, so the order of bindings only affects
//! which one is given as the reason: the first by name. Roles are decoded on first use.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use kubewright_apimachinery::field::quote;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::selector::LabelSelector;
use serde_json::Value;

use super::rule::Rule;
use super::{Action, ActionOn, Decision};
use crate::authn::User;
use crate::storage::StoredObject;

/// The kinds of RBAC objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Role,
    ClusterRole,
    RoleBinding,
    ClusterRoleBinding,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] =
        [Self::Role, Self::ClusterRole, Self::RoleBinding, Self::ClusterRoleBinding];

    /// The resource's name in storage.
    pub(crate) fn storage(self) -> &'static str {
        match self {
            Self::Role => "rbac.authorization.k8s.io/roles",
            Self::ClusterRole => "rbac.authorization.k8s.io/clusterroles",
            Self::RoleBinding => "rbac.authorization.k8s.io/rolebindings",
            Self::ClusterRoleBinding => "rbac.authorization.k8s.io/clusterrolebindings",
        }
    }
}

/// A Role or ClusterRole.
#[derive(Debug)]
pub(crate) struct Role {
    version: Arc<StoredObject>,
    rules: OnceLock<Box<[Rule]>>,
    aggregation_rule: OnceLock<Option<Box<[LabelSelector]>>>,
}

impl Role {
    fn new(version: &Arc<StoredObject>) -> Self {
        Self { version: version.clone(), rules: OnceLock::new(), aggregation_rule: OnceLock::new() }
    }

    pub(crate) fn rules(&self) -> &[Rule] {
        self.rules.get_or_init(|| Rule::all_of(&self.version.object()))
    }

    /// The selectors of the role's `aggregationRule`; `None` if it has none.
    pub(crate) fn aggregation_rule(&self) -> Option<&[LabelSelector]> {
        // Few roles are aggregated: avoid decoding the others.
        const FIELD: &[u8] = b"\"aggregationRule\"";
        let read = || {
            self.version.json.windows(FIELD.len()).any(|window| window == FIELD).then_some(())?;
            let object = self.version.object();
            let rule = object.at("aggregationRule");
            let selectors = rule.list_at("clusterRoleSelectors").iter().map(LabelSelector::from_object);
            // As upstream, an invalid selector disables aggregation for this role.
            if rule.is_null() { None } else { selectors.collect::<Result<_, _>>().ok() }
        };
        self.aggregation_rule.get_or_init(read).as_deref()
    }

    pub(crate) fn version(&self) -> &Arc<StoredObject> {
        &self.version
    }
}

/// The role that a binding refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RoleRef {
    pub(crate) kind: Box<str>,
    pub(crate) name: Box<str>,
    /// The role's storage key: a Role is in the namespace of its binding.
    key: Box<str>,
}

impl RoleRef {
    /// The roleRef of a binding in `namespace`; empty for a ClusterRoleBinding.
    pub(crate) fn of(binding: &Value, namespace: &str) -> Self {
        let (kind, name) = (binding.str_at("roleRef.kind"), binding.str_at("roleRef.name"));
        let key = if kind == "Role" { format!("{namespace}/{name}") } else { name.to_owned() };
        Self { kind: kind.into(), name: name.into(), key: key.into() }
    }
}

/// Why a roleRef cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unresolved {
    /// The role does not exist.
    Missing(RoleRef),
    /// The kind is neither Role nor ClusterRole.
    Kind(Box<str>),
}

impl Unresolved {
    /// The text for errors. `resource`, if given, replaces the kind of the missing role.
    pub(crate) fn describe(&self, resource: Option<&str>) -> String {
        match self {
            Self::Missing(role) => {
                let resource = resource.map_or_else(|| role.kind.to_lowercase(), str::to_owned);
                format!("{resource}.rbac.authorization.k8s.io {} not found", quote(&role.name))
            }
            Self::Kind(kind) => format!("unsupported role reference kind: {}", quote(kind)),
        }
    }
}

#[derive(Debug)]
enum Subject {
    User(Box<str>),
    Group(Box<str>),
    ServiceAccount { namespace: Box<str>, name: Box<str>, user: Box<str> },
}

impl Subject {
    /// A subject of a binding in `namespace`; `None` for unknown kinds.
    fn read(subject: &Value, namespace: &str) -> Option<Self> {
        let name = subject.str_at("name");
        match subject.str_at("kind") {
            "User" => Some(Self::User(name.into())),
            "Group" => Some(Self::Group(name.into())),
            "ServiceAccount" => {
                let namespace = match subject.str_at("namespace") {
                    "" => namespace,
                    own => own,
                };
                let user = format!("system:serviceaccount:{namespace}:{name}").into();
                let account = Self::ServiceAccount { namespace: namespace.into(), name: name.into(), user };
                (!namespace.is_empty()).then_some(account)
            }
            _ => None,
        }
    }

    fn is(&self, user: &User) -> bool {
        match self {
            Self::User(name) | Self::ServiceAccount { user: name, .. } => user.name == **name,
            Self::Group(group) => user.is_in(group),
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::User(name) => format!("User {}", quote(name)),
            Self::Group(name) => format!("Group {}", quote(name)),
            Self::ServiceAccount { namespace, name, .. } => {
                format!("ServiceAccount {}", quote(&format!("{name}/{namespace}")))
            }
        }
    }
}

/// A RoleBinding or ClusterRoleBinding.
#[derive(Debug)]
pub(crate) struct Binding {
    /// Empty for a ClusterRoleBinding.
    namespace: Box<str>,
    name: Box<str>,
    role: RoleRef,
    subjects: Box<[Subject]>,
}

impl Binding {
    fn read(version: &StoredObject) -> Self {
        let object = version.object();
        let (namespace, name) = version.namespace_and_name();
        let subjects = object.list_at("subjects").iter();
        Self {
            namespace: namespace.into(),
            name: name.into(),
            role: RoleRef::of(&object, namespace),
            subjects: subjects.filter_map(|subject| Subject::read(subject, namespace)).collect(),
        }
    }

    /// The reason that access reviews give for an allowed action.
    fn describe(&self, user: &User) -> String {
        let kind = if self.namespace.is_empty() { "ClusterRoleBinding" } else { "RoleBinding" };
        let name = match &*self.namespace {
            "" => quote(&self.name),
            namespace => quote(&format!("{}/{namespace}", self.name)),
        };
        let subject = self.subjects.iter().find(|subject| subject.is(user)).map(Subject::describe);
        let subject = subject.unwrap_or_default();
        format!("{kind} {name} of {} {} to {subject}", self.role.kind, quote(&self.role.name))
    }
}

/// Bindings by subject name.
type Index = HashMap<Box<str>, Vec<Arc<Binding>>>;

/// The bindings of one namespace, or the ClusterRoleBindings.
#[derive(Debug, Clone, Default)]
struct Bindings {
    all: HashMap<Box<str>, Arc<Binding>>,
    /// Includes service accounts, by their user names.
    users: Index,
    groups: Index,
}

impl Bindings {
    fn put(&mut self, binding: Binding) {
        self.remove(&binding.name);
        let binding = Arc::new(binding);
        for subject in &binding.subjects {
            let (index, name) = self.index(subject);
            index.entry(name.into()).or_default().push(binding.clone());
        }
        self.all.insert(binding.name.clone(), binding);
    }

    fn remove(&mut self, name: &str) {
        let Some(binding) = self.all.remove(name) else { return };
        for subject in &binding.subjects {
            let (index, name) = self.index(subject);
            if let Some(bindings) = index.get_mut(name) {
                bindings.retain(|other| !Arc::ptr_eq(other, &binding));
                if bindings.is_empty() {
                    index.remove(name);
                }
            }
        }
    }

    fn index<'a>(&mut self, subject: &'a Subject) -> (&mut Index, &'a str) {
        match subject {
            Subject::User(name) | Subject::ServiceAccount { user: name, .. } => (&mut self.users, name),
            Subject::Group(name) => (&mut self.groups, name),
        }
    }

    /// The bindings of a user; a binding that names the user twice is returned twice.
    fn of<'a>(&'a self, user: &'a User) -> impl Iterator<Item = &'a Binding> {
        let groups = user.groups.iter().filter_map(|group| self.groups.get(group.as_str()));
        self.users.get(user.name.as_str()).into_iter().chain(groups).flatten().map(|binding| &**binding)
    }
}

/// All roles and bindings of a server.
#[derive(Debug, Clone, Default)]
pub(crate) struct RbacIndex {
    roles: HashMap<Box<str>, Arc<Role>>,
    cluster_roles: BTreeMap<Box<str>, Arc<Role>>,
    cluster: Bindings,
    namespaces: HashMap<Box<str>, Bindings>,
}

/// The permissions of a user in one namespace.
pub(crate) struct Held<'a> {
    pub(crate) rules: Vec<&'a Rule>,
    pub(crate) unresolved: Vec<Unresolved>,
}

impl RbacIndex {
    /// Adds or replaces a role or binding. Idempotent.
    pub(crate) fn put(&mut self, kind: Kind, version: &Arc<StoredObject>) {
        let role = || Arc::new(Role::new(version));
        match kind {
            Kind::Role => drop(self.roles.insert((*version.key).into(), role())),
            Kind::ClusterRole => drop(self.cluster_roles.insert((*version.key).into(), role())),
            Kind::ClusterRoleBinding => self.cluster.put(Binding::read(version)),
            Kind::RoleBinding => {
                let binding = Binding::read(version);
                self.namespaces.entry(binding.namespace.clone()).or_default().put(binding);
            }
        }
    }

    /// Removes the object with the storage key `key`.
    pub(crate) fn remove(&mut self, kind: Kind, key: &str) {
        match kind {
            Kind::Role => drop(self.roles.remove(key)),
            Kind::ClusterRole => drop(self.cluster_roles.remove(key)),
            Kind::ClusterRoleBinding => self.cluster.remove(key),
            Kind::RoleBinding => {
                let (namespace, name) = key.split_once('/').unwrap_or(("", key));
                if let Some(bindings) = self.namespaces.get_mut(namespace) {
                    bindings.remove(name);
                    if bindings.all.is_empty() {
                        self.namespaces.remove(namespace);
                    }
                }
            }
        }
    }

    /// Whether `user` may perform `action`.
    pub(crate) fn allows(&self, user: &User, action: Action<'_>) -> bool {
        self.bindings(user, namespace_of(action))
            .filter_map(|binding| self.role(&binding.role).ok())
            .any(|role| role.rules().iter().any(|rule| rule.allows(action)))
    }

    /// As [`RbacIndex::allows`], with the reason; slower.
    pub(crate) fn decide(&self, user: &User, action: Action<'_>) -> Decision {
        let mut errors = Vec::new();
        for binding in self.sorted_bindings(user, namespace_of(action)) {
            match self.role(&binding.role) {
                Ok(role) if role.rules().iter().any(|rule| rule.allows(action)) => {
                    let reason = format!("RBAC: allowed by {}", binding.describe(user));
                    return Decision { allowed: true, reason };
                }
                Ok(_) => {}
                Err(error) => errors.push(error),
            }
        }
        let reason = describe_all(&errors, None).map(|why| format!("RBAC: {why}")).unwrap_or_default();
        Decision { allowed: false, reason }
    }

    /// All rules that apply to a user in a namespace; only cluster-wide ones if `namespace` is empty.
    pub(crate) fn held(&self, user: &User, namespace: &str) -> Held<'_> {
        let mut held = Held { rules: Vec::new(), unresolved: Vec::new() };
        for binding in self.sorted_bindings(user, namespace) {
            match self.role(&binding.role) {
                Ok(role) => held.rules.extend(role.rules()),
                Err(error) => held.unresolved.push(error),
            }
        }
        held
    }

    /// Resolves a roleRef.
    pub(crate) fn role(&self, role: &RoleRef) -> Result<&Role, Unresolved> {
        let found = match &*role.kind {
            "Role" => self.roles.get(&role.key),
            "ClusterRole" => self.cluster_roles.get(&role.key),
            _ => return Err(Unresolved::Kind(role.kind.clone())),
        };
        found.map(|role| &**role).ok_or_else(|| Unresolved::Missing(role.clone()))
    }

    /// All ClusterRoles, ordered by name.
    pub(crate) fn cluster_roles(&self) -> impl Iterator<Item = &Arc<Role>> {
        self.cluster_roles.values()
    }

    fn bindings<'a>(&'a self, user: &'a User, namespace: &str) -> impl Iterator<Item = &'a Binding> {
        // No binding is stored under the empty namespace, so cluster-wide bindings are not visited twice.
        let local = self.namespaces.get(namespace).into_iter().flat_map(|bindings| bindings.of(user));
        self.cluster.of(user).chain(local)
    }

    /// Each binding once: ClusterRoleBindings first, then by name.
    fn sorted_bindings<'a>(
        &'a self,
        user: &'a User,
        namespace: &str,
    ) -> impl Iterator<Item = &'a Binding> + use<'a> {
        let sorted: BTreeMap<(&str, &str), &Binding> = self
            .bindings(user, namespace)
            .map(|binding| ((&*binding.namespace, &*binding.name), binding))
            .collect();
        sorted.into_values()
    }
}

fn namespace_of(action: Action<'_>) -> &str {
    match action.on {
        ActionOn::Path(_) => "",
        ActionOn::Resource { namespace, .. } => namespace,
    }
}

/// Joins errors as Go's error aggregates do; `None` if there are none.
pub(crate) fn describe_all(errors: &[Unresolved], resource: Option<&str>) -> Option<String> {
    let mut seen = BTreeSet::new();
    let mut texts: Vec<String> = errors.iter().map(|error| error.describe(resource)).collect();
    texts.retain(|text| seen.insert(text.clone()));
    match texts.len() {
        0 | 1 => texts.pop(),
        _ => Some(format!("[{}]", texts.join(", "))),
    }
}

#[cfg(test)]
mod tests;
