//! A cluster for one test: the embedded API server behind TLS, and a kubeconfig for it.
//!
//! The operator runs as its ServiceAccount with its generated role. [`Cluster::refused`] and
//! [`Cluster::unused`] report missing and unused permissions.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use futures_util::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kubewright::kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kubewright::kube::core::{ApiResource, GroupVersionKind};
use kubewright::kube::{self, ResourceExt as _};
use kubewright_apiserver::audit::{Audit, Audited};
use kubewright_apiserver::serve::Listening;
use kubewright_apiserver::{ApiServer, Options};
use kubewright_manifests::inventory::Inventory;
use kubewright_manifests::rbac::{Account, Call, Usage, bound};

use crate::program::Program;

const LABEL: &str = "config-map-labeller.example.com/keys";

/// A cluster that stops on drop.
pub(crate) struct Cluster {
    listening: Listening,
    folder: tempfile::TempDir,
    /// Calls the server directly, without a socket.
    kube: kube::Client,
    calls: Arc<Calls>,
    inventory: Inventory,
}

/// Requests of the operator.
#[derive(Default)]
struct Calls(Mutex<Vec<Call>>);

impl Audit for Calls {
    fn record(&self, request: Audited) {
        if request.user == account().user() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Call {
                verb: request.verb,
                group: request.group,
                resource: request.resource,
                namespace: request.namespace,
                name: request.name,
                applies: request.applies,
                code: Some(request.code),
            });
        }
    }
}

/// The ServiceAccount of the operator.
pub(crate) fn account() -> Account {
    Account::of("config-map-labeller")
}

impl Cluster {
    pub(crate) async fn start() -> Result<Self> {
        let calls = Arc::new(Calls::default());
        let server = ApiServer::new(Options { audit: Some(calls.clone()), ..Options::default() });
        let kube = kube::Client::new(server.clone(), "default");
        let declared = Program::start(&["manifests"], &[])?.end().await?;
        let inventory = Inventory {
            leader_election_namespace: Some("default".to_owned()),
            ..Inventory::read(&declared.stdout)?
        };
        let cluster = Self {
            listening: Listening::open(server, 0).await?,
            folder: tempfile::tempdir()?,
            kube,
            calls,
            inventory,
        };
        std::fs::write(cluster.folder.path().join("config"), cluster.listening.kubeconfig())?;
        for object in bound(&cluster.inventory, &account()) {
            cluster.apply(serde_json::from_value(object)?).await?;
        }
        Ok(cluster)
    }

    async fn apply(&self, object: DynamicObject) -> Result<()> {
        let types = object.types.clone().context("the role has no kind")?;
        let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &types.kind));
        let api: Api<DynamicObject> = match &object.metadata.namespace {
            Some(namespace) => Api::namespaced_with(self.kube.clone(), namespace, &resource),
            None => Api::all_with(self.kube.clone(), &resource),
        };
        api.patch(&object.name_any(), &PatchParams::apply("test"), &Patch::Apply(&object)).await?;
        Ok(())
    }

    fn usage(&self) -> Usage {
        let mut usage = Usage::new(&self.inventory);
        for call in self.calls.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            usage.note(call);
        }
        usage
    }

    /// Permissions that the operator lacks, each as the `#[rbac]` attribute that grants it.
    pub(crate) fn refused(&self) -> Vec<String> {
        let mut attributes = Vec::new();
        for permission in self.usage().refused() {
            attributes.push(permission.attribute());
        }
        attributes
    }

    /// Permissions that the operator has not used.
    pub(crate) fn unused(&self) -> Vec<String> {
        self.usage().unused().iter().map(ToString::to_string).collect()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.listening.address()
    }

    /// The kubeconfig of the cluster administrator.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("config")
    }

    /// A kubeconfig with another server address.
    pub(crate) fn kubeconfig_by(&self, other: SocketAddr) -> Result<PathBuf> {
        let path = self.folder.path().join("other");
        let config = std::fs::read_to_string(self.kubeconfig())?;
        std::fs::write(&path, config.replace(&self.address().to_string(), &other.to_string()))?;
        Ok(path)
    }

    /// An empty directory.
    pub(crate) fn empty_home(&self) -> Result<PathBuf> {
        let home = self.folder.path().join("home");
        std::fs::create_dir_all(&home)?;
        Ok(home)
    }

    pub(crate) async fn create_namespace(&self, name: &str) -> Result<()> {
        let namespace = Namespace { metadata: named(name), ..Namespace::default() };
        Api::all(self.kube.clone()).create(&PostParams::default(), &namespace).await?;
        Ok(())
    }

    /// Creates a ConfigMap with this number of keys.
    pub(crate) async fn create(&self, namespace: &str, name: &str, keys: usize) -> Result<()> {
        let data = (0..keys).map(|key| (format!("key-{key}"), "value".to_owned())).collect();
        let map = ConfigMap { metadata: named(name), data: Some(data), ..ConfigMap::default() };
        self.maps(namespace).create(&PostParams::default(), &map).await?;
        Ok(())
    }

    /// Waits until a ConfigMap has the label.
    pub(crate) async fn labelled(&self, namespace: &str, name: &str, keys: &str) -> Result<ConfigMap> {
        let params = WatchParams::default().fields(&format!("metadata.name={name}"));
        let mut events = self.maps(namespace).watch(&params, "0").await?.boxed();
        while let Some(event) = events.try_next().await? {
            if let WatchEvent::Added(map) | WatchEvent::Modified(map) = event
                && map.labels().get(LABEL).is_some_and(|label| label == keys)
            {
                return Ok(map);
            }
        }
        anyhow::bail!("the watch ended before {namespace}/{name} had its label")
    }

    pub(crate) async fn label(&self, namespace: &str, name: &str) -> Result<Option<String>> {
        Ok(self.maps(namespace).get(name).await?.labels().get(LABEL).cloned())
    }

    /// The holder of the operator's Lease; empty if it was released.
    pub(crate) async fn holder(&self) -> Result<String> {
        let leases: Api<Lease> = Api::namespaced(self.kube.clone(), "default");
        let lease = leases.get("config-map-labeller").await?;
        Ok(lease.spec.context("the Lease has no spec")?.holder_identity.unwrap_or_default())
    }

    fn maps(&self, namespace: &str) -> Api<ConfigMap> {
        Api::namespaced(self.kube.clone(), namespace)
    }
}

fn named(name: &str) -> kube::api::ObjectMeta {
    kube::api::ObjectMeta { name: Some(name.to_owned()), ..kube::api::ObjectMeta::default() }
}

/// The `--kubeconfig` flag for this path.
pub(crate) fn kubeconfig_flag(path: &Path) -> String {
    format!("--kubeconfig={}", path.display())
}
