//! The webhooks of an operator that runs as a process on this machine.
//!
//! Owns the certificate and the port of its webhook server, and points webhook configurations and CRDs at them: in the
//! manifests they reference a Service, which does not exist in a test. What an existing cluster gets, and its removal, is
//! the [`Session`]'s.

use std::fmt::{self, Debug};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kubewright_manifests::webhook::{Endpoint, conversion, redirect};
use kubewright_runtime::internal::certificates::{IssueError, Material};
use kubewright_runtime::{Client, Clock as _, SystemClock, eventually};
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::environment::Environment;
use crate::install::{self, InstallError};
use crate::webhooks::existing::Session;
use crate::webhooks::{WebhookError, has_conversion_webhook};
use crate::yaml::{self, FixtureError};

/// How long the operator may take until it serves webhooks.
const STARTED_WITHIN: Duration = Duration::from_mins(1);

/// The webhook server of an operator process; see [`Environment::operator_webhooks`].
#[must_use = "without `install`, the API server does not call the webhooks"]
pub struct OperatorWebhooks {
    admin: kube::Client,
    /// The session of an existing cluster.
    session: Option<Arc<Session>>,
    /// The address that the operator listens on.
    address: SocketAddr,
    ca: String,
    certificates: TempDir,
}

impl Debug for OperatorWebhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperatorWebhooks").field("address", &self.address).finish_non_exhaustive()
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
    /// An existing cluster cannot call the operator, or rejected its webhooks.
    #[error(transparent)]
    Existing(Box<dyn std::error::Error + Send + Sync>),
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

impl OperatorWebhooksError {
    fn existing(error: WebhookError) -> Self {
        Self::Existing(Box::new(error))
    }
}

impl Environment {
    /// A certificate and a free port for the webhooks of an operator that runs as a process on this machine.
    ///
    /// An existing cluster calls them as those of [`Environment::manager`]: at
    /// [`Builder::webhook_host`](crate::Builder::webhook_host) or `KUBEWRIGHT_WEBHOOK_HOST`, for objects in namespaces of
    /// [`Environment::namespace`], until the environment is dropped. Without a host, this fails. The operator converts the
    /// CRDs that the environment installed, and not those of other operators.
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
        let session = self.session();
        let (listen, names) = match &session {
            Some(session) => {
                let host = session.host().map_err(OperatorWebhooksError::existing)?;
                (host.listen(), vec![host.name()])
            }
            None => ("127.0.0.1:0", vec!["127.0.0.1".to_owned(), "localhost".to_owned()]),
        };
        let material = Material::create(&names, SystemClock.now())?;
        let prepare = || {
            let certificates = tempfile::Builder::new().prefix("kubewright-webhook-").tempdir()?;
            std::fs::write(certificates.path().join("tls.crt"), &material.leaf.certificate)?;
            std::fs::write(certificates.path().join("tls.key"), &material.leaf.key)?;
            let address = TcpListener::bind(listen)?.local_addr()?;
            Ok((certificates, address))
        };
        let (certificates, address) = prepare().map_err(OperatorWebhooksError::Prepare)?;
        Ok(OperatorWebhooks { admin: self.client(), session, address, ca: material.bundle(), certificates })
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
    ///
    /// On an existing cluster this fails, and removes them again, if the cluster does not reach the operator.
    pub async fn install(&self, manifests: impl AsRef<Path>) -> Result<(), OperatorWebhooksError> {
        self.started().await?;
        let manifests = manifests.as_ref();
        let mut configurations = if manifests.exists() { yaml::load(manifests)? } else { Vec::new() };
        configurations.retain(|object| {
            object.types.as_ref().is_some_and(|types| types.kind.ends_with("WebhookConfiguration"))
        });
        match &self.session {
            Some(session) => {
                let value = |object| serde_json::to_value(object).expect("an object is valid JSON");
                let configurations = configurations.iter().map(value).collect();
                let port = self.address.port();
                let installed = session.install_operator(&self.admin, configurations, port, &self.ca);
                Box::pin(installed).await.map_err(OperatorWebhooksError::existing)
            }
            None => self.install_on_loopback(configurations).await,
        }
    }

    /// Waits until the operator listens.
    async fn started(&self) -> Result<(), OperatorWebhooksError> {
        let address = connectable(self.address);
        let connected = eventually(STARTED_WITHIN, async || TcpStream::connect(address).await.map(|_| ()));
        connected.await.map_err(|error| OperatorWebhooksError::NotStarted {
            address: self.address,
            source: io::Error::other(error.to_string()),
        })
    }

    async fn install_on_loopback(
        &self,
        configurations: Vec<DynamicObject>,
    ) -> Result<(), OperatorWebhooksError> {
        let base = format!("https://{}", self.address);
        let endpoint = Endpoint::Url { base: &base, ca: &self.ca };
        self.convert(endpoint).await?;
        let client = Client::new(self.admin.clone());
        for mut configuration in configurations {
            redirect(&mut configuration.data, endpoint);
            install::object(&client, configuration, None).await?;
        }
        Ok(())
    }

    async fn convert(&self, endpoint: Endpoint<'_>) -> Result<(), OperatorWebhooksError> {
        let failed = |name: &str| {
            let name = name.to_owned();
            move |source| OperatorWebhooksError::Conversion { name, source }
        };
        let crds: Api<CustomResourceDefinition> = Api::all(self.admin.clone());
        for crd in crds.list(&ListParams::default()).await.map_err(failed("CRDs"))? {
            if !has_conversion_webhook(&crd) {
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

/// An address to connect to a server that may listen on all interfaces.
fn connectable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() {
            Ipv4Addr::LOCALHOST.into()
        } else {
            Ipv6Addr::LOCALHOST.into()
        });
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_on_all_interfaces_is_found_on_loopback() {
        let found = |address: &str| connectable(address.parse().unwrap()).to_string();
        assert_eq!(found("0.0.0.0:4711"), "127.0.0.1:4711");
        assert_eq!(found("[::]:4711"), "[::1]:4711");
        assert_eq!(found("127.0.0.1:4711"), "127.0.0.1:4711");
    }
}
