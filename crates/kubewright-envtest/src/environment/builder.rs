//! The options of an environment, and its start.
//!
//! Owns the order of the start: control plane, clients, cluster controllers, CRDs, fixtures.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kubewright_apiserver::Options;
use kubewright_manifests::crd;
use kubewright_manifests::declare::{Item, Kind};
use kubewright_manifests::lint::Level;
use kubewright_runtime::{Client, connect};
use schemars::JsonSchema;

use super::{Environment, StartError};
use crate::assets::Assets;
use crate::faults::{Faults, Target};
use crate::mode::Mode;
use crate::operator::Operators;
use crate::plane::Plane;
#[cfg(feature = "cluster")]
use crate::running::Running;
use crate::webhooks::Servers;
use crate::webhooks::existing::Session;
use crate::yaml;

/// Builds an environment.
#[derive(Default)]
#[must_use = "nothing starts before start()"]
pub struct Builder {
    mode: Option<Mode>,
    /// The types whose CRDs are installed.
    kinds: Vec<Kind>,
    definitions: Vec<CustomResourceDefinition>,
    definition_paths: Vec<PathBuf>,
    fixtures: Vec<PathBuf>,
    https: bool,
    as_admin: bool,
    seed: Option<u64>,
    version: Option<String>,
    server: Option<Options>,
    kubeconfig: Option<PathBuf>,
    webhook_host: Option<String>,
    #[cfg(feature = "cluster")]
    cluster: Option<kubewright_cluster::Options>,
}

impl Builder {
    /// Uses this control plane, regardless of the environment variables.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Installs the CRD of a type, as `kubewright manifests` generates it. Types of several versions of a kind are
    /// merged into one CRD.
    ///
    /// For a type without a derived schema, use [`Builder::crd_object`].
    pub fn crd<K: kube::CustomResourceExt + JsonSchema>(mut self) -> Self {
        let item = Item { path: std::any::type_name::<K>().to_owned(), ..Item::default() };
        self.kinds.push(crd::kind::<K>(item));
        self
    }

    /// Installs a CRD object.
    pub fn crd_object(mut self, crd: CustomResourceDefinition) -> Self {
        self.definitions.push(crd);
        self
    }

    /// Installs the CRDs of a file, or of all YAML files of a directory, such as `config/crd/bases`.
    pub fn crds_from(mut self, path: impl Into<PathBuf>) -> Self {
        self.definition_paths.push(path.into());
        self
    }

    /// Applies the objects of a YAML file, or of all YAML files of a directory.
    pub fn fixtures(mut self, path: impl Into<PathBuf>) -> Self {
        self.fixtures.push(path.into());
        self
    }

    /// Runs managers as the administrator instead of as their ServiceAccount with the generated role. For tests that
    /// are not about permissions.
    pub fn as_admin(mut self) -> Self {
        self.as_admin = true;
        self
    }

    /// Listens on a port of 127.0.0.1, for kubectl and other processes. By default, the embedded server opens no port.
    pub fn https(mut self) -> Self {
        self.https = true;
        self
    }

    /// Makes the embedded server deterministic: UIDs, generated names and its start time.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets the version that the embedded server reports, such as `1.34`. The APIs stay those of v1.36: this is for
    /// operators that check the version, not for tests with an older API.
    pub fn kubernetes_version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Sets the options of the embedded server; clock and seed are set by the environment.
    pub fn server_options(mut self, options: Options) -> Self {
        self.server = Some(options);
        self
    }

    /// Sets the kubeconfig of an existing cluster, instead of `KUBECONFIG`. Its current context is used. Has no effect on
    /// other control planes.
    pub fn kubeconfig(mut self, path: impl Into<PathBuf>) -> Self {
        self.kubeconfig = Some(path.into());
        self
    }

    /// Sets the DNS name or address at which an existing cluster reaches this machine, instead of
    /// `KUBEWRIGHT_WEBHOOK_HOST`. Webhooks need it on an existing cluster; see [`Environment::manager`] and
    /// [`Environment::operator_webhooks`]. Has no effect on other control planes, which reach this process without it.
    ///
    /// For a loopback address or `localhost` the webhook server listens on loopback, otherwise on all interfaces, on a
    /// free port. An empty host means none.
    pub fn webhook_host(mut self, host: impl Into<String>) -> Self {
        self.webhook_host = Some(host.into());
        self
    }

    /// Runs the cluster controllers: Deployments get running Pods on a simulated node. Has no effect on an existing
    /// cluster.
    ///
    /// [`Environment::faults`] do not apply to these controllers. Needs the feature `cluster`.
    #[cfg(feature = "cluster")]
    pub fn with_cluster(self) -> Self {
        self.with_cluster_options(kubewright_cluster::Options::default())
    }

    /// Like `with_cluster`, with other nodes or only some controllers.
    #[cfg(feature = "cluster")]
    pub fn with_cluster_options(mut self, options: kubewright_cluster::Options) -> Self {
        self.cluster = Some(options);
        self
    }

    /// Starts the control plane, installs CRDs and applies fixtures.
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
                let source = connect::Source { kubeconfig: self.kubeconfig, context: None };
                let config = connect::infer(&source).await;
                let config = config.map_err(|error| StartError::Existing(Box::new(error)))?;
                let session = Session::new(config, self.webhook_host)?;
                let client = session.client().map_err(|error| StartError::Client(Box::new(error)))?;
                Box::pin(session.remove_leftovers(&client)).await;
                (Plane::Existing(Arc::new(session)), Target::Remote(client))
            }
        };
        let kube = kube::Client::new(faults.connection(target.clone()), "default");
        #[cfg(feature = "cluster")]
        let cluster = match self.cluster.filter(|_| !matches!(plane, Plane::Existing(_))) {
            Some(mut options) => {
                if let Some(authority) = plane.authority().filter(|_| options.root_ca.is_empty()) {
                    authority.clone_into(&mut options.root_ca);
                }
                let (client, clock) = (target.client(), plane.clock());
                let cluster = kubewright_cluster::Cluster::on_clock(client, &options, clock, self.seed)?;
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
            caches: Mutex::default(),
            webhook_servers: Servers::default(),
            as_admin: self.as_admin || matches!(plane, Plane::Existing(_)),
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

/// Generates the CRDs of types.
fn of_types(kinds: Vec<Kind>) -> Result<Vec<CustomResourceDefinition>, StartError> {
    let merged = crd::merge(kinds);
    let errors = merged.findings.iter().filter(|finding| finding.level == Level::Error);
    let mut wrong: Vec<String> = errors.map(ToString::to_string).collect();
    let mut definitions = Vec::new();
    for made in merged.crds {
        match serde_json::from_value(made.crd) {
            Ok(definition) => definitions.push(definition),
            Err(error) => wrong.push(format!("{}: {error}", made.file)),
        }
    }
    if wrong.is_empty() { Ok(definitions) } else { Err(StartError::Type(wrong.join("\n"))) }
}
