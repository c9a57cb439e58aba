//! The test environment: a control plane, and helpers for tests.

mod builder;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::DynamicObject;
use kubewright_apimachinery::permission::Permission;
use kubewright_apiserver::serve::ServeError;
use kubewright_apiserver::{ApiServer, VersionError};
use kubewright_manifests::declare::Kind;
use kubewright_manifests::rbac::Unused;
use kubewright_runtime::{
    Cache, Client, Key, ListOptions, Manager, ManagerError, ManagerOptions, Object, Outcome, Reconciler,
    client,
};

pub use self::builder::Builder;
use crate::account::{self, OperatorKubeconfigError};
use crate::assets::AssetsError;
use crate::faults::{Faults, Target};
use crate::install::{self, InstallError};
use crate::mode::ModeError;
use crate::operator::{Operator, Operators};
use crate::plane::Plane;
use crate::running::Running;
use crate::user::Permissions;
use crate::webhooks::existing::{Session, WebhookHostError};
use crate::webhooks::{Route, Servers};
use crate::yaml::{self, FixtureError};

/// The operator name of [`Environment::reconcile_once`].
const SINGLE: &str = "reconcile-once";

/// An environment could not be started, or objects could not be installed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// An environment variable is invalid.
    #[error(transparent)]
    Mode(#[from] ModeError),
    /// The Kubernetes version is invalid.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// The embedded API server cannot listen.
    #[error("failed to serve the embedded API server")]
    Listen(#[from] ServeError),
    /// The kubeconfig could not be written.
    #[error("failed to write the kubeconfig")]
    Kubeconfig(#[source] std::io::Error),
    /// The binaries did not start.
    #[error(transparent)]
    Assets(#[from] AssetsError),
    /// There is no existing cluster.
    #[error("no existing cluster found; set KUBECONFIG, or unset USE_EXISTING_CLUSTER")]
    Existing(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The webhook host is invalid.
    #[error(transparent)]
    WebhookHost(#[from] WebhookHostError),
    /// The client could not be created.
    #[error("failed to create the client")]
    Client(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The cluster controllers could not be started.
    #[cfg(feature = "cluster")]
    #[error("failed to start the cluster controllers")]
    Cluster(#[from] kubewright_cluster::RunError),
    /// A fixture is invalid.
    #[error(transparent)]
    Fixture(#[from] FixtureError),
    /// A file contains an object that is not a CRD.
    #[error("{} is not a CustomResourceDefinition: {why}", path.display())]
    NoDefinition {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// No valid CRD can be generated for a type.
    #[error(
        "failed to generate a CRD for a type; fix it, or install kube's CRD with crd_object(K::crd()):\n{0}"
    )]
    Type(String),
    /// An object was rejected.
    #[error(transparent)]
    Install(#[from] InstallError),
}

/// The capabilities of a control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Objects are garbage collected with their owners. Only a cluster with controllers and the embedded server do
    /// this.
    pub garbage_collection: bool,
    /// A deleted namespace is removed with its objects.
    pub namespace_deletion: bool,
    /// Time can be paused, and runs are deterministic for a seed.
    pub paused_clock: bool,
    /// Reads can be stale, with [`Environment::freeze_reads`].
    pub stale_reads: bool,
    /// Managers run under their generated role, unless [`Builder::as_admin`] is used. On an existing cluster they run
    /// as the user of the kubeconfig.
    pub generated_role: bool,
}

/// A control plane with helpers for tests. Dropping it stops everything that it started, and removes its webhooks from an
/// existing cluster, which can take up to 10 s if the cluster does not answer.
pub struct Environment {
    /// Stopped with the environment.
    #[cfg(feature = "cluster")]
    _cluster: Option<Running>,
    kube: kube::Client,
    client: Client,
    target: Target,
    faults: Faults,
    seed: Option<u64>,
    namespaces: AtomicU64,
    /// The types whose CRDs are installed.
    kinds: Vec<Kind>,
    operators: Operators,
    /// The caches of all managers, for [`Environment::reconcile_once`].
    caches: Mutex<Vec<Cache>>,
    webhook_servers: Servers,
    as_admin: bool,
    plane: Plane,
}

impl Environment {
    /// Starts an environment as selected by the environment variables; embedded by default. Nothing is installed.
    pub async fn start() -> Result<Self, StartError> {
        Self::builder().start().await
    }

    /// Builds an environment with CRDs, fixtures and options.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// kube's client, as the administrator and through [`Environment::faults`].
    pub fn client(&self) -> kube::Client {
        self.kube.clone()
    }

    /// The runtime's client, as the administrator and without a cache.
    pub fn runtime_client(&self) -> &Client {
        &self.client
    }

    /// Injects faults into the connection of all clients of this environment, and records their requests.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// The embedded server; `None` for other control planes.
    pub fn server(&self) -> Option<&ApiServer> {
        match &self.plane {
            Plane::Embedded { server, .. } => Some(server),
            _ => None,
        }
    }

    /// The URL of the API server, such as `https://127.0.0.1:40123`. `None` for an embedded server that does not listen
    /// ([`Builder::https`]) and for an existing cluster.
    ///
    /// Clients need the CA and the client certificate of [`Environment::kubeconfig`], or a bearer token such as one of
    /// `kubectl create token`.
    pub fn url(&self) -> Option<String> {
        match &self.plane {
            Plane::Embedded { listening, .. } => listening.as_ref().map(|it| it.0.url()),
            Plane::Assets(assets) => Some(assets.url()),
            Plane::Existing(_) => None,
        }
    }

    /// The file with the administrator's kubeconfig, for kubectl, other processes, and clients in this process that do
    /// not use this crate's version of kube. `None` for an embedded server that does not listen ([`Builder::https`])
    /// and for an existing cluster.
    ///
    /// [`Environment::faults`] do not apply to these clients.
    pub fn kubeconfig(&self) -> Option<PathBuf> {
        match &self.plane {
            Plane::Embedded { listening, .. } => listening.as_ref().map(|it| it.1.path().join("kubeconfig")),
            Plane::Assets(assets) => Some(assets.kubeconfig()),
            Plane::Existing(_) => None,
        }
    }

    /// The file with the kubeconfig of an operator's ServiceAccount, for an operator that runs as a process. `rbac` is the
    /// directory of the ServiceAccount, its roles and bindings, such as `config/rbac`. They are applied to `namespace`,
    /// which is the operator's namespace. The token is valid for one hour.
    ///
    /// A call that the roles do not allow is forbidden, and the operator logs the `#[rbac]` attribute to add.
    pub async fn operator_kubeconfig(
        &self,
        rbac: impl AsRef<Path>,
        namespace: &str,
    ) -> Result<PathBuf, OperatorKubeconfigError> {
        let admin = self.kubeconfig().ok_or(OperatorKubeconfigError::NoKubeconfig)?;
        account::kubeconfig(&self.kube, &admin, rbac.as_ref(), namespace).await
    }

    /// The capabilities of this control plane.
    pub fn capabilities(&self) -> Capabilities {
        match &self.plane {
            Plane::Embedded { server, .. } => {
                let core = server.controllers() != kubewright_apiserver::Controllers::None;
                Capabilities {
                    garbage_collection: core,
                    namespace_deletion: core,
                    paused_clock: true,
                    stale_reads: true,
                    generated_role: true,
                }
            }
            // A bare API server runs no controllers.
            Plane::Assets(_) => Capabilities {
                garbage_collection: false,
                namespace_deletion: false,
                paused_clock: false,
                stale_reads: false,
                generated_role: true,
            },
            Plane::Existing(_) => Capabilities {
                garbage_collection: true,
                namespace_deletion: true,
                paused_clock: false,
                stale_reads: false,
                generated_role: false,
            },
        }
    }

    /// Installs CRDs and waits until they are served.
    pub async fn install(&self, definitions: &[CustomResourceDefinition]) -> Result<(), InstallError> {
        if let Plane::Existing(session) = &self.plane {
            return Box::pin(session.install_crds(&self.kube, definitions)).await;
        }
        install::definitions(&self.kube, definitions).await
    }

    /// Creates a unique namespace. On an existing cluster, the webhooks of this environment's operators apply to these
    /// namespaces only.
    pub async fn namespace(&self) -> Result<String, client::Error> {
        let number = self.namespaces.fetch_add(1, Ordering::Relaxed) + 1;
        let mut metadata = ObjectMeta::default();
        match &self.plane {
            // Each embedded server is separate, so names can be deterministic.
            Plane::Embedded { .. } => metadata.name = Some(format!("test-{number}")),
            Plane::Assets(_) => metadata.generate_name = Some("test-".to_owned()),
            Plane::Existing(session) => metadata = session.namespace(),
        }
        let created = self.client.create(&Namespace { metadata, ..Namespace::default() }).await?;
        Ok(created.metadata.name.unwrap_or_default())
    }

    /// The session of an existing cluster.
    pub(crate) fn session(&self) -> Option<Arc<Session>> {
        match &self.plane {
            Plane::Existing(session) => Some(session.clone()),
            Plane::Embedded { .. } | Plane::Assets(_) => None,
        }
    }

    /// The namespace of fixtures that name none.
    pub(crate) async fn fixtures_namespace(&self) -> Result<&str, client::Error> {
        let own = match &self.plane {
            Plane::Existing(session) => session.fixtures_namespace(Box::pin(self.namespace())).await?,
            Plane::Embedded { .. } | Plane::Assets(_) => None,
        };
        Ok(own.map_or("default", String::as_str))
    }

    /// Applies an object. A namespaced object without a namespace is applied to `default`.
    pub async fn apply(&self, object: DynamicObject) -> Result<DynamicObject, InstallError> {
        install::object(&self.client, object, Some("default")).await
    }

    /// Applies the objects of a YAML text. Namespaced objects without a namespace are applied to `namespace`.
    pub async fn apply_yaml(&self, namespace: &str, yaml: &str) -> Result<Vec<DynamicObject>, StartError> {
        let mut applied = Vec::new();
        for object in yaml::objects(yaml)? {
            applied.push(install::object(&self.client, object, Some(namespace)).await?);
        }
        Ok(applied)
    }

    /// Applies the objects of a file, or of all YAML files of a directory.
    pub async fn apply_file(&self, path: impl AsRef<Path>) -> Result<Vec<DynamicObject>, StartError> {
        let mut applied = Vec::new();
        for object in yaml::load(path.as_ref())? {
            applied.push(self.apply(object).await?);
        }
        Ok(applied)
    }

    /// kube's client for another user, by impersonation. RBAC decides what the user may do: `permissions`, and the
    /// permissions of all authenticated users.
    pub async fn user(&self, name: &str, permissions: Permissions) -> Result<kube::Client, client::Error> {
        permissions.grant(&self.client, name).await?;
        let user = http::HeaderValue::from_str(name).map_err(|error| client::Error::Build(error.into()))?;
        let connection = self.faults.connection(self.target.clone());
        Ok(kube::Client::new(crate::user::As::new(connection, user), "default"))
    }

    /// A manager on this environment, with its seed and clock and without servers. Register controllers with it.
    ///
    /// When it runs, its webhooks and conversions are installed and apply to every write of the test.
    ///
    /// An existing cluster calls them at [`Builder::webhook_host`] or `KUBEWRIGHT_WEBHOOK_HOST`. Without it, or if the
    /// cluster does not reach this process there, a manager with webhooks fails, and [`Running::ready`] returns the
    /// error. Webhooks of namespaced resources then apply to namespaces of [`Environment::namespace`] only, so that tests
    /// on the same cluster do not affect each other; those of cluster-scoped resources apply to all objects. They are
    /// removed when the environment is dropped, or, if the process was killed, at the next start on this machine.
    ///
    /// The manager also gets the ServiceAccount, roles and bindings that `kubewright manifests` would generate, and
    /// runs as that ServiceAccount. Before it runs, its client acts as the administrator.
    pub fn manager(&self, name: &str) -> Result<Manager, ManagerError> {
        self.manager_with(ManagerOptions::new(name))
    }

    /// A manager with options; clock and seed are set by the environment.
    pub fn manager_with(&self, options: ManagerOptions) -> Result<Manager, ManagerError> {
        let mut options = ManagerOptions { seed: options.seed.or(self.seed), ..options };
        if let Plane::Embedded { .. } = &self.plane {
            options.clock = self.plane.clock();
        }
        let is_single = options.name == SINGLE;
        let operator =
            self.operators.of(&options.name, || Operator::new(&options.name, &self.kinds, is_single));
        operator.elects_in(options.leader_election.as_ref().and_then(|election| election.namespace.clone()));
        let connection = self.faults.operator_connection(self.target.clone(), operator.clone());
        let manager = Manager::new(kube::Client::new(connection, "default"), options)?;
        if !is_single {
            self.caches.lock().unwrap_or_else(PoisonError::into_inner).push(manager.cache().clone());
        }
        // Faults of the test do not affect this setup.
        let direct = self.target.client();
        let (as_admin, route, webhooks) = (self.as_admin, self.webhook_route(), manager.webhooks().clone());
        manager.before_run(async move |manifest| {
            if !as_admin {
                operator.grant(&Client::new(direct.clone()), &manifest).await?;
            }
            Ok(route.install(&direct, &webhooks, &manifest).await?)
        });
        Ok(manager)
    }

    fn webhook_route(&self) -> Route {
        match &self.plane {
            Plane::Embedded { server, .. } => Route::Embedded(server.clone()),
            Plane::Assets(_) => Route::Loopback(self.webhook_servers.clone()),
            Plane::Existing(session) => Route::Existing(session.clone()),
        }
    }

    /// The permissions that operators needed and their generated roles lack. Permissions returned here no longer fail
    /// the test.
    pub fn forbidden_permissions(&self) -> Vec<Permission> {
        self.operators.iter().flat_map(|operator| operator.take_forbidden()).collect()
    }

    /// The permissions of the generated roles that no call has used so far: each permission of `#[rbac]`, and those of
    /// registrations whose kind was not read or whose status was not written.
    ///
    /// A test that covers everything that the operator does can assert that there are none.
    pub fn unused_permissions(&self) -> Vec<Unused> {
        self.operators.iter().flat_map(|operator| operator.unused()).collect()
    }

    /// Like [`Environment::unused_permissions`], without the `#[rbac]` attributes of other source files. `file` is the
    /// end of a path, such as `controllers/order.rs`.
    ///
    /// The role of a test's manager has all `#[rbac]` attributes of the program. A test of one controller uses only those
    /// of its reconciler.
    pub fn unused_permissions_in(&self, file: &str) -> Vec<Unused> {
        let unused = self.operators.iter().flat_map(|operator| operator.unused());
        unused.filter(|unused| !unused.is_declared_outside(file)).collect()
    }

    /// Runs a manager in the background until the returned value is dropped.
    pub fn run(&self, manager: Manager) -> Running {
        let operator = self.operators.find(&manager.manifest().name);
        Running::start(manager, operator)
    }

    /// Runs a reconciler once for a key, like a controller, and returns its outcome.
    ///
    /// It may read everything, and write what `#[rbac]` declares, its status and its finalizers. It can use the indexes
    /// that are registered with any manager of this environment, by handle or by name. A reconciler that reads what its
    /// controller owns or caches needs the registration: [`Manager::reconcile_once`].
    pub async fn reconcile_once<R: Reconciler<Object: Object>>(
        &self,
        reconciler: &R,
        key: &Key,
    ) -> Result<Outcome, kubewright_runtime::ReconcileError> {
        let manager = self.manager(SINGLE).map_err(kubewright_runtime::ReconcileError::new)?;
        if let Some(operator) = self.operators.find(SINGLE) {
            operator.declare_single(&kubewright_runtime::Kind::of::<R::Object>());
        }
        let caches = self.caches.lock().unwrap_or_else(PoisonError::into_inner).clone();
        manager.reconcile_once_with(reconciler, key, &caches).await
    }

    /// The Events of a namespace, oldest first.
    pub async fn events(&self, namespace: &str) -> Result<Vec<Arc<Event>>, client::Error> {
        let mut events = self.client.list::<Event>(&ListOptions::namespace(namespace)).await?;
        events.sort_by_key(|event| event.event_time.clone().map(|time| time.0));
        Ok(events)
    }

    /// Serves every get and list of this environment's clients from the current state until [`Faults::heal`], so that
    /// later reads are stale. Returns false if the control plane does not support it.
    pub fn freeze_reads(&self) -> bool {
        let Some(server) = self.server() else { return false };
        self.faults.read_from(server.fork());
        true
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        // Before the checks, which can panic.
        if let Plane::Existing(session) = &self.plane {
            session.close();
        }
        // Managers that were not started with `Environment::run`.
        self.operators.iter().for_each(|operator| operator.check());
    }
}
