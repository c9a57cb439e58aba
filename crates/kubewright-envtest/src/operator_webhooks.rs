//! The webhooks of an operator that runs as a process on this machine.
//!
//! Owns the certificate and the port of its webhook server, and points webhook configurations and CRDs at them. In a
//! cluster they reference a Service, which does not exist in a test.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kubewright_manifests::webhook::{Endpoint, conversion, redirect};
use kubewright_runtime::internal::certificates::{IssueError, Material};
use kubewright_runtime::{Client, Clock as _, SystemClock, eventually};
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::environment::Environment;
use crate::install::{self, InstallError};
use crate::yaml::{self, FixtureError};

/// How long the operator may take until it serves webhooks.
const STARTED_WITHIN: Duration = Duration::from_mins(1);

/// The webhook server of an operator process; see [`Environment::operator_webhooks`].
#[derive(Debug)]
#[must_use = "without `install`, the API server does not call the webhooks"]
pub struct OperatorWebhooks {
    admin: AdminClient,
    address: SocketAddr,
    ca: String,
    certificates: TempDir,
}

/// A client without `Debug`.
struct AdminClient(kube::Client);

impl std::fmt::Debug for AdminClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AdminClient")
    }
}

/// The webhooks of an operator process could not be installed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperatorWebhooksError {
    /// The certificate could not be issued.
    #[error("failed to create the webhook certificate")]
    Issue(#[from] IssueError),
    /// The certificate could not be written, or no port is free.
    #[error("failed to prepare the webhook server")]
    Prepare(#[source] io::Error),
    /// The operator does not listen.
    #[error(
        "the operator does not serve webhooks on {address} after {STARTED_WITHIN:?}; start it with OperatorWebhooks::args"
    )]
    NotStarted {
        /// The address that it should listen on.
        address: SocketAddr,
        /// The last error.
        #[source]
        source: io::Error,
    },
    /// The manifests are invalid.
    #[error(transparent)]
    Manifests(#[from] FixtureError),
    /// The server rejected a webhook configuration.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// The conversion of a CRD could not be set.
    #[error("failed to set the conversion of {name}")]
    Conversion {
        /// The name of the CRD.
        name: String,
        /// The cause.
        #[source]
        source: kube::Error,
    },
}

impl Environment {
    /// A certificate and a free port for the webhooks of an operator that runs as a process on this machine.
    ///
    /// An existing cluster keeps the configurations that [`OperatorWebhooks::install`] writes. Test a deployed operator
    /// there, or run its manager with [`Environment::manager`].
    ///
    /// ```no_run
    /// # async fn example(env: kubewright_envtest::Environment) -> anyhow::Result<()> {
    /// let webhooks = env.operator_webhooks()?;
    /// let operator = std::process::Command::new("operator").args(webhooks.args()).spawn()?;
    /// webhooks.install("config/webhook/manifests.yaml").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn operator_webhooks(&self) -> Result<OperatorWebhooks, OperatorWebhooksError> {
        let material =
            Material::create(&["127.0.0.1".to_owned(), "localhost".to_owned()], SystemClock.now())?;
        let prepare = || {
            let certificates = tempfile::Builder::new().prefix("kubewright-webhook-").tempdir()?;
            std::fs::write(certificates.path().join("tls.crt"), &material.leaf.certificate)?;
            std::fs::write(certificates.path().join("tls.key"), &material.leaf.key)?;
            let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
            Ok((certificates, address))
        };
        let (certificates, address) = prepare().map_err(OperatorWebhooksError::Prepare)?;
        Ok(OperatorWebhooks {
            admin: AdminClient(self.client()),
            address,
            ca: material.bundle(),
            certificates,
        })
    }
}

impl OperatorWebhooks {
    /// The arguments with which the operator serves its webhooks here.
    pub fn args(&self) -> [String; 2] {
        [
            format!("--webhook-bind-address={}", self.address),
            format!("--webhook-cert-path={}", self.certificates.path().display()),
        ]
    }

    /// Waits until the operator listens. Then installs the webhook configurations of a file, and lets the operator
    /// convert the CRDs with a conversion webhook. A project with conversions only has no such file.
    pub async fn install(&self, manifests: impl AsRef<Path>) -> Result<(), OperatorWebhooksError> {
        let address = self.address;
        let connected = eventually(STARTED_WITHIN, async || TcpStream::connect(address).await.map(|_| ()));
        connected.await.map_err(|error| OperatorWebhooksError::NotStarted {
            address,
            source: io::Error::other(error.to_string()),
        })?;
        let base = format!("https://{address}");
        let endpoint = Endpoint::Url { base: &base, ca: &self.ca };
        self.convert(endpoint).await?;
        let manifests: PathBuf = manifests.as_ref().to_owned();
        if !manifests.exists() {
            return Ok(());
        }
        let client = Client::new(self.admin.0.clone());
        for mut object in yaml::load(&manifests)? {
            if object.types.as_ref().is_some_and(|types| types.kind.ends_with("WebhookConfiguration")) {
                redirect(&mut object.data, endpoint);
                install::object(&client, object, None).await?;
            }
        }
        Ok(())
    }

    async fn convert(&self, endpoint: Endpoint<'_>) -> Result<(), OperatorWebhooksError> {
        let failed = |name: &str| {
            let name = name.to_owned();
            move |source| OperatorWebhooksError::Conversion { name, source }
        };
        let crds: Api<CustomResourceDefinition> = Api::all(self.admin.0.clone());
        for crd in crds.list(&ListParams::default()).await.map_err(failed("CRDs"))? {
            if crd.spec.conversion.is_none_or(|conversion| conversion.strategy != "Webhook") {
                continue;
            }
            let name = crd.metadata.name.unwrap_or_default();
            // A merge would keep `service` beside `url`.
            let replace = json!([{ "op": "add", "path": "/spec/conversion", "value": conversion(endpoint) }]);
            let replace = serde_json::from_value(replace).expect("a JSON patch");
            let patched = crds.patch(&name, &PatchParams::default(), &Patch::<()>::Json(replace)).await;
            patched.map_err(failed(&name))?;
        }
        Ok(())
    }
}
