//! The environment: one control plane, and what a test wants of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::DynamicObject;
use kubewright_apimachinery::permission::Permission;
use kubewright_apiserver::serve::ServeError;
use kubewright_apiserver::{ApiServer, Options, VersionError};
use kubewright_manifests::crd;
use kubewright_manifests::declare::{Item, Kind};
use kubewright_manifests::lint::Level;
use kubewright_manifests::rbac::Unused;
use kubewright_runtime::{
    Client, Key, List, Manager, ManagerError, ManagerOptions, Object, Outcome, Reconciler, client,
};
use schemars::JsonSchema;

use crate::assets::{Assets, AssetsError};
use crate::faults::{Faults, Target};
use crate::install::{self, InstallError};
use crate::mode::{Mode, ModeError};
use crate::operator::{Operator, Operators};
use crate::plane::Plane;
use crate::running::Running;
use crate::user::Rights;
use crate::webhooks::{Route, Servers};
use crate::yaml::{self, FixtureError};

/// The name of the operator that is a single reconcile.
const SINGLE: &str = "reconcile-once";

/// Why an environment did not start, or something could not be put into it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A variable cannot be understood.
    #[error(transparent)]
    Mode(#[from] ModeError),
    /// The version to pose as is none.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// The embedded server cannot listen.
    #[error("the embedded API server cannot listen")]
    Listen(#[from] ServeError),
    /// A folder for the kubeconfig could not be made.
    #[error("the kubeconfig cannot be written")]
    Kubeconfig(#[source] std::io::Error),
    /// The binaries did not start.
    #[error(transparent)]
    Assets(#[from] AssetsError),
    /// There is no cluster to use.
    #[error("there is no existing cluster to use; set KUBECONFIG, or unset USE_EXISTING_CLUSTER")]
    Existing(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A client could not be made.
    #[error("the client cannot be made")]
    Client(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The cluster did not start.
    #[cfg(feature = "cluster")]
    #[error("the controllers of the cluster cannot start")]
    Cluster(#[from] kubewright_cluster::RunError),
    /// A fixture cannot be used.
    #[error(transparent)]
    Fixture(#[from] FixtureError),
    /// A fixture is no definition.
    #[error("{} is no CustomResourceDefinition: {why}", path.display())]
    NoDefinition {
        /// The file or folder.
        path: PathBuf,
        /// What it is.
        why: String,
    },
    /// A type has no definition that a cluster would take.
    #[error(
        "a type cannot be a kind as it is; mend it, or give kube's own definition with definition(K::crd()):\n{0}"
    )]
    Type(String),
    /// Something was refused.
    #[error(transparent)]
    Install(#[from] InstallError),
}

/// What an environment can do, where control planes differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Owned objects go with their owners. Only a cluster with its controllers, or the embedded server, does that.
    pub garbage_collection: bool,
    /// A deleted namespace goes, with what is in it.
    pub namespace_deletion: bool,
    /// Time can be paused, and the same seed gives the same run.
    pub paused_clock: bool,
    /// Reads can be answered from the past, with [`Environment::freeze_reads`].
    pub stale_reads: bool,
    /// Managers run under their generated role, unless [`Builder::as_admin`] was asked for. On an existing cluster they
    /// run as the user of the kubeconfig.
    pub generated_role: bool,
}

/// How an environment is made.
#[derive(Default)]
#[must_use = "nothing starts before start()"]
pub struct Builder {
    mode: Option<Mode>,
    /// The types whose definitions were asked for.
    kinds: Vec<Kind>,
    definitions: Vec<CustomResourceDefinition>,
    definition_paths: Vec<PathBuf>,
    fixtures: Vec<PathBuf>,
    https: bool,
    as_admin: bool,
    seed: Option<u64>,
    version: Option<String>,
    server: Option<Options>,
    #[cfg(feature = "cluster")]
    cluster: Option<kubewright_cluster::Options>,
}

impl Builder {
    /// Uses this control plane, whatever the variables say.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Installs the definition of a type: the one that `kubewright manifests` writes. The types of several versions of a
    /// kind make one definition.
    ///
    /// For a type whose schema is not derived there is [`Builder::definition`].
    pub fn crd<K: kube::CustomResourceExt + JsonSchema>(mut self) -> Self {
        let item = Item { path: std::any::type_name::<K>().to_owned(), ..Item::default() };
        self.kinds.push(crd::kind::<K>(item));
        self
    }

    /// Installs a definition.
    pub fn definition(mut self, definition: CustomResourceDefinition) -> Self {
        self.definitions.push(definition);
        self
    }

    /// Installs the definitions of a file, or of all YAML files of a folder, such as `config/crd/bases`.
    pub fn crds_from(mut self, path: impl Into<PathBuf>) -> Self {
        self.definition_paths.push(path.into());
        self
    }

    /// Applies the objects of a YAML file, or of all YAML files of a folder.
    pub fn fixtures(mut self, path: impl Into<PathBuf>) -> Self {
        self.fixtures.push(path.into());
        self
    }

    /// Runs managers as the administrator, and not as their ServiceAccount with the generated role. For tests that are
    /// not about an operator as it is deployed.
    pub fn as_admin(mut self) -> Self {
        self.as_admin = true;
        self
    }

    /// Listens on a port of 127.0.0.1, for kubectl and other processes. The embedded server needs none otherwise.
    pub fn https(mut self) -> Self {
        self.https = true;
        self
    }

    /// Makes the embedded server the same each time: uids, generated names, and the time at which it begins.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Has the embedded server say that it is this version, such as `1.34`. Kinds, fields and rules stay those of
    /// v1.36: this is for operators that ask for the version, not a way to test on an older API.
    pub fn kubernetes_version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Gives the embedded server other options; clock and seed stay the environment's.
    pub fn server_options(mut self, options: Options) -> Self {
        self.server = Some(options);
        self
    }

    /// Runs the controllers of a cluster: Deployments become pods that run, on a simulated node. An existing cluster has
    /// its own.
    ///
    /// [`Environment::faults`] do not concern them. Needs the feature `cluster`.
    #[cfg(feature = "cluster")]
    pub fn with_cluster(self) -> Self {
        self.with_cluster_options(kubewright_cluster::Options::default())
    }

    /// The same with other nodes, or with some of the controllers.
    #[cfg(feature = "cluster")]
    pub fn with_cluster_options(mut self, options: kubewright_cluster::Options) -> Self {
        self.cluster = Some(options);
        self
    }

    /// Starts the control plane, installs definitions and applies fixtures.
    pub async fn start(self) -> Result<Environment, StartError> {
        let mut definitions = of_types(self.kinds.clone())?;
        definitions.extend(self.definitions);
        let mode = self.mode.map_or_else(Mode::from_env, Ok)?;
        let faults = Faults::default();
        let mut options = self.server.unwrap_or_default();
        if let Some(version) = &self.version {
            options.version = version.parse()?;
        }
        let (plane, target) = match mode {
            Mode::Embedded => Plane::embedded(options, self.seed, self.https).await?,
            Mode::Assets(folder) => {
                let assets = Assets::start(&folder).await?;
                let client = assets.client().map_err(|error| StartError::Client(Box::new(error)))?;
                (Plane::Assets(Box::new(assets)), Target::Remote(client))
            }
            Mode::Existing => {
                let config =
                    kubewright_runtime::connect::infer(&kubewright_runtime::connect::Source::default()).await;
                let config = config.map_err(|error| StartError::Existing(Box::new(error)))?;
                let client = kubewright_runtime::connect::client(
                    config,
                    kubewright_runtime::connect::Options::default(),
                );
                (
                    Plane::Existing,
                    Target::Remote(client.map_err(|error| StartError::Client(Box::new(error)))?),
                )
            }
        };
        let kube = kube::Client::new(faults.connection(target.clone()), "default");
        #[cfg(feature = "cluster")]
        let cluster = match self.cluster.filter(|_| !matches!(plane, Plane::Existing)) {
            Some(mut options) => {
                if let Some(authority) = plane.authority().filter(|_| options.root_ca.is_empty()) {
                    authority.clone_into(&mut options.root_ca);
                }
                let direct = kube::Client::new(Faults::default().connection(target.clone()), "default");
                let cluster =
                    kubewright_cluster::Cluster::on_clock(direct, &options, plane.clock(), self.seed)?;
                Some(Running::start(cluster.manager().clone(), None))
            }
            None => None,
        };
        let environment = Environment {
            #[cfg(feature = "cluster")]
            _cluster: cluster,
            client: Client::new(kube.clone()),
            kube,
            target,
            faults,
            seed: self.seed,
            namespaces: AtomicU64::new(0),
            kinds: self.kinds,
            operators: Operators::default(),
            webhook_servers: Servers::default(),
            as_admin: self.as_admin || matches!(plane, Plane::Existing),
            plane,
        };
        for path in &self.definition_paths {
            for object in yaml::load(path)? {
                let definition = object.try_parse().map_err(|error| StartError::NoDefinition {
                    path: path.clone(),
                    why: error.to_string(),
                })?;
                definitions.push(definition);
            }
        }
        environment.install(&definitions).await?;
        for path in self.fixtures {
            environment.apply_file(path).await?;
        }
        Ok(environment)
    }
}

/// The definitions of types, or what is wrong with these.
fn of_types(kinds: Vec<Kind>) -> Result<Vec<CustomResourceDefinition>, StartError> {
    let merged = crd::merge(kinds);
    let errors = merged.findings.iter().filter(|finding| finding.level == Level::Error);
    let mut wrong: Vec<String> = errors.map(ToString::to_string).collect();
    let mut definitions = Vec::new();
    for made in merged.definitions {
        match serde_json::from_value(made.definition) {
            Ok(definition) => definitions.push(definition),
            Err(error) => wrong.push(format!("{}: {error}", made.file)),
        }
    }
    if wrong.is_empty() { Ok(definitions) } else { Err(StartError::Type(wrong.join("\n"))) }
}

/// One control plane, and what a test wants of it. Dropping it ends what it started.
pub struct Environment {
    /// Ends with the environment.
    #[cfg(feature = "cluster")]
    _cluster: Option<Running>,
    kube: kube::Client,
    client: Client,
    target: Target,
    faults: Faults,
    seed: Option<u64>,
    namespaces: AtomicU64,
    /// The types whose definitions were asked for.
    kinds: Vec<Kind>,
    operators: Operators,
    webhook_servers: Servers,
    as_admin: bool,
    plane: Plane,
}

impl Environment {
    /// An environment as the variables ask for it, embedded if they ask for nothing. Nothing is installed.
    pub async fn start() -> Result<Self, StartError> {
        Self::builder().start().await
    }

    /// An environment with something in it.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// kube's client of the administrator, through [`Environment::faults`].
    pub fn client(&self) -> kube::Client {
        self.kube.clone()
    }

    /// The runtime's client of the administrator, without a cache.
    pub fn runtime_client(&self) -> &Client {
        &self.client
    }

    /// The connection of everything that this environment hands out: tells it how to fail, and what was asked.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// The embedded server, if it is one.
    pub fn server(&self) -> Option<&ApiServer> {
        match &self.plane {
            Plane::Embedded { server, .. } => Some(server),
            _ => None,
        }
    }

    /// A kubeconfig of the administrator, for kubectl and other processes. None for an embedded server that does not
    /// listen ([`Builder::https`]), and for an existing cluster, whose kubeconfig is yours.
    pub fn kubeconfig(&self) -> Option<PathBuf> {
        match &self.plane {
            Plane::Embedded { listening, .. } => listening.as_ref().map(|it| it.1.path().join("kubeconfig")),
            Plane::Assets(assets) => Some(assets.kubeconfig()),
            Plane::Existing => None,
        }
    }

    /// What this control plane can do.
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
            // A bare API server has no controllers.
            Plane::Assets(_) => Capabilities {
                garbage_collection: false,
                namespace_deletion: false,
                paused_clock: false,
                stale_reads: false,
                generated_role: true,
            },
            Plane::Existing => Capabilities {
                garbage_collection: true,
                namespace_deletion: true,
                paused_clock: false,
                stale_reads: false,
                generated_role: false,
            },
        }
    }

    /// Installs definitions, and waits until they are served.
    pub async fn install(&self, definitions: &[CustomResourceDefinition]) -> Result<(), InstallError> {
        install::definitions(&self.kube, definitions).await
    }

    /// A namespace that nobody else has.
    pub async fn namespace(&self) -> Result<String, client::Error> {
        let number = self.namespaces.fetch_add(1, Ordering::Relaxed) + 1;
        let mut metadata = ObjectMeta::default();
        match &self.plane {
            // Alone in its world, so that the name can be the same each time.
            Plane::Embedded { .. } => metadata.name = Some(format!("test-{number}")),
            _ => metadata.generate_name = Some("test-".to_owned()),
        }
        let created = self.client.create(&Namespace { metadata, ..Namespace::default() }).await?;
        Ok(created.metadata.name.unwrap_or_default())
    }

    /// Applies an object, to the namespace `default` if it has none and its kind needs one.
    pub async fn apply(&self, object: DynamicObject) -> Result<DynamicObject, InstallError> {
        install::object(&self.client, object, Some("default")).await
    }

    /// Applies the objects of a YAML text, to `namespace` where they have none.
    pub async fn apply_yaml(&self, namespace: &str, yaml: &str) -> Result<Vec<DynamicObject>, StartError> {
        let mut applied = Vec::new();
        for object in yaml::objects(yaml)? {
            applied.push(install::object(&self.client, object, Some(namespace)).await?);
        }
        Ok(applied)
    }

    /// Applies the objects of a file, or of all YAML files of a folder.
    pub async fn apply_file(&self, path: impl AsRef<Path>) -> Result<Vec<DynamicObject>, StartError> {
        let mut applied = Vec::new();
        for object in yaml::load(path.as_ref())? {
            applied.push(self.apply(object).await?);
        }
        Ok(applied)
    }

    /// kube's client of another user with rights of their own, by impersonation. What the user may do beyond what
    /// everybody may is decided by RBAC, as in a cluster.
    pub async fn user(&self, name: &str, rights: Rights) -> Result<kube::Client, client::Error> {
        rights.grant(&self.client, name).await?;
        let user = http::HeaderValue::from_str(name).map_err(|error| client::Error::Build(error.into()))?;
        let connection = self.faults.connection(self.target.clone());
        Ok(kube::Client::new(crate::user::As::new(connection, user), "default"))
    }

    /// A manager on this environment: seeded as it is, on its clock, serving nothing. Register controllers with it.
    ///
    /// When it runs, its webhooks and conversions are installed, and every write of the test goes through them. On an
    /// existing cluster they are not, because it cannot reach this process.
    ///
    /// It is also given the ServiceAccount, the roles and the bindings that `kubewright manifests` would write
    /// for what is registered with it, and acts as that account. Until then its client acts as the administrator.
    pub fn manager(&self, name: &str) -> Result<Manager, ManagerError> {
        self.manager_with(ManagerOptions::new(name))
    }

    /// A manager with options of its own; clock and seed are the environment's.
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
        // The faults of the test do not concern the preparation.
        let direct = kube::Client::new(Faults::default().connection(self.target.clone()), "default");
        let (as_admin, route, webhooks) = (self.as_admin, self.webhook_route(), manager.webhooks().clone());
        manager.before_run(async move |manifest| {
            if !as_admin {
                operator.grant(&Client::new(direct.clone()), &manifest).await?;
            }
            match route {
                Some(route) => route.install(&direct, &webhooks, &manifest).await?,
                None if !webhooks.is_empty() => {
                    tracing::warn!(
                        "webhooks are not installed: an existing cluster cannot reach this process"
                    );
                }
                None => {}
            }
            Ok(())
        });
        Ok(manager)
    }

    fn webhook_route(&self) -> Option<Route> {
        match &self.plane {
            Plane::Embedded { server, .. } => Some(Route::Embedded(server.clone())),
            Plane::Assets(_) => Some(Route::Loopback(self.webhook_servers.clone())),
            Plane::Existing => None,
        }
    }

    /// The permissions that operators asked for and their generated roles do not grant. A refusal that was taken here no
    /// longer fails the test.
    pub fn refused_permissions(&self) -> Vec<Permission> {
        self.operators.iter().flat_map(|operator| operator.take_refused()).collect()
    }

    /// The permissions of the generated roles that no call has used so far: those of `#[rbac]` one by one, and those of
    /// registrations whose kind was not read or whose status was not written.
    ///
    /// A test that goes through everything that the operator does can assert that there are none.
    pub fn unused_permissions(&self) -> Vec<Unused> {
        self.operators.iter().flat_map(|operator| operator.unused()).collect()
    }

    /// Runs a manager in the background until what is returned is dropped.
    pub fn run(&self, manager: Manager) -> Running {
        let operator = self.operators.find(&manager.manifest().name);
        Running::start(manager, operator)
    }

    /// Runs a reconciler once for a key, as a controller would, and says what it returned.
    ///
    /// It may read everything, and write what `#[rbac]` declares, its status and its finalizers. One that reads indexes
    /// needs the manager that they are registered with: [`Manager::reconcile_once`].
    pub async fn reconcile_once<R: Reconciler<Object: Object>>(
        &self,
        reconciler: &R,
        key: &Key,
    ) -> Result<Outcome, kubewright_runtime::Error> {
        let manager = self.manager(SINGLE).map_err(kubewright_runtime::Error::new)?;
        if let Some(operator) = self.operators.find(SINGLE) {
            operator.declare_single(&kubewright_runtime::Kind::of::<R::Object>());
        }
        manager.reconcile_once(reconciler, key).await
    }

    /// The Events of a namespace, oldest first.
    pub async fn events(&self, namespace: &str) -> Result<Vec<Arc<Event>>, client::Error> {
        let mut events = self.client.list::<Event>(&List::namespace(namespace)).await?;
        events.sort_by_key(|event| event.event_time.clone().map(|time| time.0));
        Ok(events)
    }

    /// Answers every get and list of this environment's clients as things are now, whatever happens from here on,
    /// until [`Faults::heal`]. False if this control plane cannot.
    pub fn freeze_reads(&self) -> bool {
        let Some(server) = self.server() else { return false };
        self.faults.read_from(server.fork());
        true
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        // Those that were not run with `Environment::run`.
        for operator in self.operators.iter() {
            operator.check();
        }
    }
}
