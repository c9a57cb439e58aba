//! The ServiceAccount of an operator in an environment, and its RBAC rules.
//!
//! A manager runs as its ServiceAccount, with the roles and bindings that `kubewright manifests` would generate for it.
//! Owns the account, the roles, and the record of calls. Before the manager runs, its registrations are not complete,
//! so its client acts as the administrator.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::HeaderValue;
use kube::api::DynamicObject;
use kubewright_apimachinery::permission::{Permission, attributes};
use kubewright_manifests::declare::{self, Declared, Rule};
use kubewright_manifests::inventory::{ControllerDeclared, Inventory, Resource};
use kubewright_manifests::rbac::{Account, Call, Unused, Usage, bound};
use kubewright_runtime::internal::{ControllerManifest, ManagerManifest};
use kubewright_runtime::{Client, Kind, Scope};

use crate::faults::RecordedRequest;
use crate::install::{self, InstallError};

/// One operator of an environment. Managers of the same name are replicas of one operator.
pub(crate) struct Operator {
    account: Account,
    user: HeaderValue,
    /// Whether it acts as its ServiceAccount.
    is_granted: AtomicBool,
    /// Whether it is a single reconcile, whose registration is unknown.
    is_single: bool,
    state: Mutex<State>,
}

struct State {
    inventory: Inventory,
    calls: BTreeSet<Call>,
}

impl Operator {
    /// `kinds` are the operator's own kinds, used if the program declares none with `crds!`.
    pub(crate) fn new(name: &str, kinds: &[declare::Kind], is_single: bool) -> Self {
        let account = Account::of(name);
        let user = HeaderValue::from_str(&account.user()).expect("an account has letters, digits, - and :");
        let mut declared = declare::all();
        if !declared.iter().any(|it| matches!(it, Declared::Kind(_))) {
            declared.extend(kinds.iter().cloned().map(Declared::Kind));
        }
        let inventory = Inventory {
            leader_election: true,
            secure_metrics: true,
            events: true,
            declared,
            ..Inventory::new(name)
        };
        Self {
            account,
            user,
            is_granted: AtomicBool::new(false),
            is_single,
            state: Mutex::new(State { inventory, calls: BTreeSet::new() }),
        }
    }

    /// The user to impersonate; `None` while the operator acts as the administrator.
    pub(crate) fn user(&self) -> Option<&HeaderValue> {
        self.is_granted.load(Ordering::Relaxed).then_some(&self.user)
    }

    /// Records the namespace of the leader election Lease.
    pub(crate) fn elects_in(&self, namespace: Option<String>) {
        if namespace.is_some() {
            self.state().inventory.leader_election_namespace = namespace;
        }
    }

    /// Declares a reconciler of a kind without a registration. It may read everything, because what it owns and watches
    /// is unknown.
    pub(crate) fn declare_single(&self, kind: &Kind) {
        let everything = || vec!["*".to_owned()];
        let inventory = &mut self.state().inventory;
        inventory.controllers.push(ControllerDeclared {
            of: resource(kind),
            finalizers: everything(),
            ..ControllerDeclared::default()
        });
        inventory.declared.push(Declared::Rule(Rule {
            groups: everything(),
            resources: everything(),
            verbs: ["get", "list", "watch"].map(str::to_owned).into(),
            ..Rule::default()
        }));
    }

    /// Creates the ServiceAccount with its roles. From then on the operator impersonates it.
    pub(crate) async fn grant(&self, admin: &Client, manifest: &ManagerManifest) -> Result<(), InstallError> {
        let objects = {
            let inventory = &mut self.state().inventory;
            add(inventory, manifest, self.is_single);
            bound(inventory, &self.account)
        };
        for object in objects {
            let object: DynamicObject =
                serde_json::from_value(object).expect("roles and bindings are objects");
            install::object(admin, object, None).await?;
        }
        self.is_granted.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Records a call that the operator made as its ServiceAccount.
    pub(crate) fn note(&self, request: &RecordedRequest, code: u16) {
        let resource = match request.subresource.as_str() {
            "" => request.resource.clone(),
            subresource => format!("{}/{subresource}", request.resource),
        };
        self.state().calls.insert(Call {
            verb: request.verb.to_owned(),
            group: request.group.clone(),
            resource,
            namespace: request.namespace.clone().unwrap_or_default(),
            name: request.name.clone().unwrap_or_default(),
            applies: request.content_type.contains("apply-patch"),
            code: Some(code),
        });
    }

    /// The permissions that the operator lacked. Each is returned once.
    pub(crate) fn take_forbidden(&self) -> Vec<Permission> {
        let mut state = self.state();
        let refused = usage(&state).take_forbidden();
        state.calls.retain(|call| call.code != Some(403));
        refused
    }

    /// The permissions that no call has used.
    pub(crate) fn unused(&self) -> Vec<Unused> {
        let state = self.state();
        if self.is_single || self.user().is_none() { Vec::new() } else { usage(&state).unused() }
    }

    /// Panics if a call of the operator was forbidden. Logs instead if the test already panics.
    pub(crate) fn check(&self) {
        let refused = self.take_forbidden();
        if refused.is_empty() {
            return;
        }
        let message = self.message(&refused);
        if std::thread::panicking() {
            let permissions: Vec<String> = refused.iter().map(ToString::to_string).collect();
            let operator = self.account.user();
            tracing::error!(operator, ?permissions, "Operator lacks permissions in its generated role");
        } else {
            panic!("{message}");
        }
    }

    fn message(&self, refused: &[Permission]) -> String {
        let mut message = format!(
            "{} lacks permissions in its generated role. Add these attributes to a reconciler and run `kubewright manifests`:",
            self.account.user()
        );
        for attribute in attributes(refused) {
            let _ = write!(message, "\n  {attribute}");
        }
        let state = self.state();
        let is_own = |it: &&Permission| {
            let mut controllers = state.inventory.controllers.iter();
            it.verb == "patch"
                && controllers.any(|known| known.of.group == it.group && known.of.plural == it.resource)
        };
        if let Some(own) = refused.iter().find(is_own) {
            let _ = write!(
                message,
                "\nIf `{own}` is for a finalizer, register the controller with .finalizer(\"...\") instead."
            );
        }
        message
            .push_str("\nTo run managers as administrator instead, use Environment::builder().as_admin().");
        message
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn usage(state: &State) -> Usage {
    let mut usage = Usage::new(&state.inventory);
    for call in &state.calls {
        usage.note(call);
    }
    usage
}

/// Adds the registrations of a manager to the inventory.
fn add(inventory: &mut Inventory, manifest: &ManagerManifest, is_single: bool) {
    let is_first = inventory.controllers.is_empty() && inventory.cached.is_empty();
    if is_first || manifest.namespaces.is_empty() {
        inventory.namespaces.clone_from(&manifest.namespaces);
    } else if !inventory.namespaces.is_empty() {
        inventory.namespaces.extend(manifest.namespaces.iter().cloned());
        inventory.namespaces.sort();
        inventory.namespaces.dedup();
    }
    if is_single {
        return;
    }
    for controller in manifest.controllers.iter().map(declared) {
        if !inventory.controllers.contains(&controller) {
            inventory.controllers.push(controller);
        }
    }
    inventory.webhooks.clone_from(&manifest.webhooks);
    for kind in manifest.cached.iter().map(resource) {
        if !inventory.cached.contains(&kind) {
            inventory.cached.push(kind);
        }
    }
}

fn declared(controller: &ControllerManifest) -> ControllerDeclared {
    ControllerDeclared {
        name: controller.name.clone(),
        of: controller.kind.as_ref().map(resource).unwrap_or_default(),
        owns: controller.owns.iter().map(resource).collect(),
        watches: controller.watches.iter().chain(&controller.reads).map(resource).collect(),
        finalizers: controller.finalizers.clone(),
        without_status: controller.without_status,
        without_events: controller.without_events,
    }
}

fn resource(kind: &Kind) -> Resource {
    let gvk = kind.gvk();
    Resource {
        group: gvk.group.clone(),
        version: gvk.version.clone(),
        kind: gvk.kind.clone(),
        plural: kind.plural().to_owned(),
        namespaced: kind.scope() == Scope::Namespaced,
    }
}

/// The operators of an environment, in creation order.
#[derive(Default)]
pub(crate) struct Operators(Mutex<Vec<(String, Arc<Operator>)>>);

impl Operators {
    /// The operator with this name; `make` creates it if it does not exist.
    pub(crate) fn of(&self, name: &str, make: impl FnOnce() -> Operator) -> Arc<Operator> {
        let mut all = self.all();
        if let Some((_, operator)) = all.iter().find(|(known, _)| known == name) {
            return operator.clone();
        }
        let operator = Arc::new(make());
        all.push((name.to_owned(), operator.clone()));
        operator
    }

    pub(crate) fn find(&self, name: &str) -> Option<Arc<Operator>> {
        self.all().iter().find(|(known, _)| known == name).map(|(_, operator)| operator.clone())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Arc<Operator>> {
        let all: Vec<Arc<Operator>> = self.all().iter().map(|(_, operator)| operator.clone()).collect();
        all.into_iter()
    }

    fn all(&self) -> MutexGuard<'_, Vec<(String, Arc<Operator>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
