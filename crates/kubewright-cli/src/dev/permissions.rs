//! The operator's permissions in the development loop.
//!
//! The operator runs as its ServiceAccount with its generated RBAC rules, so that a missing permission fails
//! here and not in production. On the embedded cluster all requests are audited: forbidden calls are reported
//! with the `#[rbac]` attribute to add, and unused permissions are listed at the end. On an existing cluster
//! only the operator's own log shows forbidden calls.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::ResourceExt as _;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kubewright_apimachinery::permission::Permission;
use kubewright_apiserver::audit::{Audit, Audited};
use kubewright_manifests::inventory::Inventory;
use kubewright_manifests::rbac::{Account, Call, Unused, Usage, bound};
use serde_json::Value;
use tokio::sync::Notify;

use super::webhooks::LABEL;

/// Field manager of applied objects.
const MANAGER: &str = "kubewright-dev";

/// The permissions of the operator, and their use.
pub(crate) struct Permissions {
    operator: String,
    account: Account,
    seen: Arc<Seen>,
    /// Objects applied last.
    applied: Vec<Value>,
}

/// The operator's requests, as audited by the API server.
pub(crate) struct Seen {
    user: String,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    calls: BTreeSet<Call>,
    usage: Option<Usage>,
    /// Forbidden permissions that were reported already.
    reported: BTreeSet<Permission>,
}

impl Audit for Seen {
    fn record(&self, request: Audited) {
        if request.user != self.user || request.resource.is_empty() {
            return;
        }
        let call = Call {
            verb: request.verb,
            group: request.group,
            resource: request.resource,
            namespace: request.namespace,
            name: request.name,
            applies: request.applies,
            code: Some(request.code),
        };
        let mut state = self.state();
        if state.calls.contains(&call) {
            return;
        }
        if let Some(usage) = &mut state.usage {
            usage.note(&call);
        }
        state.calls.insert(call);
        drop(state);
        self.changed.notify_one();
    }
}

impl Seen {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permissions {
    /// Permissions of an operator. On an existing cluster the objects get other names than those of a
    /// deployed operator.
    pub(crate) fn new(operator: &str, is_existing: bool) -> Self {
        let account =
            if is_existing { Account::of(&format!("{operator}-dev")) } else { Account::of(operator) };
        let seen = Seen { user: account.user(), state: Mutex::default(), changed: Notify::new() };
        Self { operator: operator.to_owned(), account, seen: Arc::new(seen), applied: Vec::new() }
    }

    /// The audit sink for the API server.
    pub(crate) fn audit(&self) -> Arc<Seen> {
        self.seen.clone()
    }

    /// The user that the operator impersonates.
    pub(crate) fn user(&self) -> String {
        self.account.user()
    }

    /// Applies the ServiceAccount, its roles and bindings if they changed. Returns whether they did.
    pub(crate) async fn grant(&mut self, client: &kube::Client, inventory: &Inventory) -> Result<bool> {
        let objects = bound(inventory, &self.account);
        if objects == self.applied {
            return Ok(false);
        }
        for object in &objects {
            apply(client, object, &self.operator).await?;
        }
        self.applied = objects;
        let mut state = self.seen.state();
        let mut usage = Usage::new(inventory);
        // Forget forbidden calls: the new binary may have more permissions.
        state.calls.retain(|call| call.code != Some(403));
        for call in &state.calls {
            usage.note(call);
        }
        state.usage = Some(usage);
        state.reported.clear();
        Ok(true)
    }

    /// Whether the kubeconfig user may impersonate the ServiceAccount.
    pub(crate) async fn may_impersonate(&self, client: &kube::Client) -> Result<bool> {
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    verb: Some("impersonate".to_owned()),
                    resource: Some("serviceaccounts".to_owned()),
                    namespace: Some(self.account.namespace.clone()),
                    name: Some(self.account.name()),
                    ..ResourceAttributes::default()
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
        let answer = reviews.create(&PostParams::default(), &review).await;
        let answer =
            answer.context("cannot check whether you may impersonate the operator's ServiceAccount")?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }

    /// Waits for forbidden calls and returns the missing permissions, each once.
    pub(crate) async fn refused(&self) -> Vec<Permission> {
        loop {
            let fresh = self.fresh();
            if !fresh.is_empty() {
                return fresh;
            }
            self.seen.changed.notified().await;
        }
    }

    fn fresh(&self) -> Vec<Permission> {
        let mut state = self.seen.state();
        let refused = state.usage.as_ref().map(Usage::refused).unwrap_or_default();
        let fresh: Vec<Permission> = refused.into_iter().filter(|it| !state.reported.contains(it)).collect();
        state.reported.extend(fresh.iter().cloned());
        fresh
    }

    /// All missing permissions since the roles were applied.
    pub(crate) fn all_refused(&self) -> Vec<Permission> {
        self.seen.state().usage.as_ref().map(Usage::refused).unwrap_or_default()
    }

    /// Permissions that no call used; empty if requests are not audited.
    pub(crate) fn unused(&self) -> Vec<Unused> {
        let state = self.seen.state();
        if state.calls.is_empty() {
            return Vec::new();
        }
        state.usage.as_ref().map(Usage::unused).unwrap_or_default()
    }
}

async fn apply(client: &kube::Client, object: &Value, operator: &str) -> Result<()> {
    let mut object: DynamicObject = serde_json::from_value(object.clone()).context("invalid role object")?;
    // The page hides these objects.
    object.labels_mut().insert(LABEL.to_owned(), operator.to_owned());
    let types = object.types.clone().unwrap_or_default();
    let name = object.metadata.name.clone().unwrap_or_default();
    let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &types.kind));
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let params = PatchParams::apply(MANAGER).force();
    api.patch(&name, &params, &Patch::Apply(&object))
        .await
        .with_context(|| format!("cannot apply the {} {name}", types.kind))?;
    Ok(())
}

/// Applies launch arguments to the inventory: watched namespaces and the namespace of the Lease.
pub(crate) fn as_launched(mut inventory: Inventory, arguments: &[String]) -> Inventory {
    let value = |flag: &str| {
        let mut given = arguments.iter().rev();
        given.find_map(|argument| argument.strip_prefix(flag)?.strip_prefix('=')).map(str::to_owned)
    };
    if let Some(namespaces) = value("--namespace") {
        inventory.namespaces = namespaces.split(',').map(|it| it.trim().to_owned()).collect();
        inventory.namespaces.retain(|namespace| !namespace.is_empty());
    }
    if let Some(namespace) = value("--leader-election-namespace") {
        inventory.leader_election_namespace = Some(namespace);
    }
    inventory
}

#[cfg(test)]
mod tests {
    use kubewright_manifests::declare::{Declared, Rule};

    use super::*;

    fn inventory(verbs: &[&str]) -> Inventory {
        let mut inventory = Inventory::new("shop");
        inventory.declared = vec![Declared::Rule(Rule {
            groups: vec![String::new()],
            resources: vec!["pods".into()],
            verbs: verbs.iter().map(|&verb| verb.to_owned()).collect(),
            ..Rule::default()
        })];
        inventory
    }

    async fn get_pod(server: &kubewright_apiserver::ApiServer, user: &str) -> u16 {
        let request =
            http::Request::get("/api/v1/namespaces/default/pods/a").header("impersonate-user", user);
        let request = request.body(kube::client::Body::empty()).expect("a path is a request");
        server.handle(request).await.status().as_u16()
    }

    #[tokio::test]
    async fn a_forbidden_call_is_reported_once_and_a_granted_one_counts_as_used() {
        let mut permissions = Permissions::new("shop", false);
        let options = kubewright_apiserver::Options {
            audit: Some(permissions.audit()),
            ..kubewright_apiserver::Options::default()
        };
        let server = kubewright_apiserver::ApiServer::new(options);
        let client = kube::Client::new(server.clone(), "default");
        assert!(permissions.grant(&client, &inventory(&["list"])).await.unwrap());
        assert!(!permissions.grant(&client, &inventory(&["list"])).await.unwrap());

        let user = permissions.user();
        assert_eq!(get_pod(&server, &user).await, 403);
        assert_eq!(get_pod(&server, "system:serviceaccount:default:other").await, 403);
        let refused = permissions.refused().await;
        assert_eq!(refused, [Permission::new("", "pods", "get")]);
        assert_eq!(permissions.fresh(), []);
        assert_eq!(permissions.all_refused(), refused);

        // A new binary declares the missing permission.
        assert!(permissions.grant(&client, &inventory(&["list", "get"])).await.unwrap());
        assert_eq!(permissions.all_refused(), []);
        assert_eq!(get_pod(&server, &user).await, 404);
        let unused: Vec<String> = permissions.unused().iter().map(ToString::to_string).collect();
        assert_eq!(unused, ["list pods: not used; declared by #[rbac]"]);
        assert!(permissions.may_impersonate(&client).await.unwrap());
    }

    #[test]
    fn launch_arguments_set_the_watched_namespaces() {
        let arguments = ["--namespace=a, b", "--leader-election-namespace=c"].map(str::to_owned);
        let launched = as_launched(inventory(&[]), &arguments);
        assert_eq!(launched.namespaces, ["a", "b"]);
        assert_eq!(launched.leader_election_namespace.as_deref(), Some("c"));
        assert_eq!(as_launched(inventory(&[]), &[]), inventory(&[]));
    }
}
