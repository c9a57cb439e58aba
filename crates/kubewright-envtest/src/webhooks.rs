//! Webhooks of managers in an environment.
//!
//! Owns their configurations, the conversion of CRDs, and the route to the manager: the embedded server calls the
//! handlers in the process, and kube-apiserver of envtest's assets calls them over TLS on loopback. Tests need no setup for
//! it. An existing cluster calls them at a host that the user names ([`existing`]).

pub(crate) mod existing;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kubewright_apiserver::{ApiServer, WebhookAddress};
use kubewright_manifests::rbac::Account;
use kubewright_manifests::webhook::{Endpoint, SERVICE, configurations_at, conversion};
use kubewright_runtime::internal::ManagerManifest;
use kubewright_runtime::internal::certificates::Material;
use kubewright_runtime::internal::certs::Certificates;
use kubewright_runtime::internal::serve::{BindAddress, Handler, Server};
use kubewright_runtime::webhook::Webhooks;
use kubewright_runtime::{Client, Clock as _, SystemClock};
use serde_json::json;
use tokio::task::JoinSet;

use self::existing::Session;
use crate::install::{self, InstallError};

/// The field manager of `spec.conversion`.
const OWNER: &str = "kubewright-envtest-webhooks";

/// The webhook servers of an environment, stopped when it is dropped.
#[derive(Clone, Default)]
pub(crate) struct Servers(Arc<Mutex<JoinSet<()>>>);

/// How the API server reaches a manager.
#[derive(Clone)]
pub(crate) enum Route {
    /// Within the process.
    Embedded(ApiServer),
    /// Over TLS on loopback.
    Loopback(Servers),
    /// Over TLS, at the host of the session.
    Existing(Arc<Session>),
}

/// Webhooks could not be installed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WebhookError {
    #[error(
        "an existing cluster cannot call the webhooks of this process without its address; set KUBEWRIGHT_WEBHOOK_HOST \
         to a name or address at which the cluster reaches this machine, or unset USE_EXISTING_CLUSTER"
    )]
    ExistingCluster,
    #[error(
        "the cluster cannot reach the webhooks of this process at {url} ({reason}); they were removed again. Set \
         KUBEWRIGHT_WEBHOOK_HOST to a name or address at which the API server reaches this machine, or open the port \
         in the firewall"
    )]
    Unreachable { url: String, reason: String },
    #[error("failed to test whether the cluster reaches the webhooks of this process")]
    Probe(#[source] kube::Error),
    #[error("the environment was dropped while its webhooks were installed")]
    Closed,
    #[error("failed to create the webhook certificate")]
    Issue(#[from] kubewright_runtime::internal::certificates::IssueError),
    #[error("failed to load the webhook certificate")]
    Certificate(#[from] kubewright_runtime::internal::certs::CertificateError),
    #[error("failed to start the thread of the webhook server")]
    Thread(#[source] std::io::Error),
    #[error("failed to open a port for the environment")]
    ProcessPort(#[source] std::io::Error),
    #[error("failed to serve webhooks")]
    Bind(#[from] kubewright_runtime::internal::serve::BindError),
    #[error("failed to install a webhook configuration")]
    Install(#[from] InstallError),
    #[error("failed to set the conversion of {0}")]
    Conversion(String, #[source] kube::Error),
}

impl Route {
    /// Installs the configurations of a manager's webhooks and the conversions of its CRDs.
    pub(crate) async fn install(
        &self,
        admin: &kube::Client,
        webhooks: &Webhooks,
        manifest: &ManagerManifest,
    ) -> Result<(), WebhookError> {
        if webhooks.is_empty() {
            return Ok(());
        }
        // Names of managers may have characters that names of objects may not have.
        let Account { namespace, prefix } = Account::of(&manifest.name);
        match self {
            Self::Embedded(server) => {
                let address =
                    WebhookAddress::Service { namespace: namespace.clone(), name: SERVICE.to_owned() };
                server.add_webhook_handler(address, webhooks.clone());
                let endpoint = Endpoint::Service { namespace: &namespace, name: SERVICE };
                configure(admin, manifest, endpoint, &prefix).await
            }
            Self::Loopback(servers) => {
                let (address, ca) = servers.serve(webhooks).await?;
                let base = format!("https://{address}");
                configure(admin, manifest, Endpoint::Url { base: &base, ca: &ca }, &prefix).await
            }
            Self::Existing(session) => session.install_manager(admin, webhooks, manifest).await,
        }
    }
}

impl Servers {
    /// Serves webhooks on a port of 127.0.0.1. Returns their address, and the CA of their certificate.
    async fn serve(&self, webhooks: &Webhooks) -> Result<(SocketAddr, String), WebhookError> {
        let (server, ca) = bind("127.0.0.1:0", &["127.0.0.1".to_owned(), "localhost".to_owned()]).await?;
        let address = server.address();
        let mut servers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        servers.spawn(server.run(handler(webhooks), std::future::pending()));
        Ok((address, ca))
    }
}

/// A webhook server with a certificate for `names`, and the CA of the certificate.
async fn bind(listen: &str, names: &[String]) -> Result<(Server, String), WebhookError> {
    let material = Material::create(names, SystemClock.now())?;
    let leaf = &material.leaf;
    let certificates = Certificates::from_pem(leaf.certificate.as_bytes(), leaf.key.as_bytes())?;
    let address: BindAddress = listen.parse().expect("the address is valid");
    let server = Server::bind(&address, "--webhook-bind-address").await?;
    let server = server.expect("the address is not off").with_tls(certificates);
    Ok((server, material.bundle()))
}

fn handler(webhooks: &Webhooks) -> Handler {
    let webhooks = webhooks.clone();
    Handler::new(move |request| {
        let webhooks = webhooks.clone();
        async move { webhooks.handle(request).await }
    })
}

async fn configure(
    admin: &kube::Client,
    manifest: &ManagerManifest,
    endpoint: Endpoint<'_>,
    prefix: &str,
) -> Result<(), WebhookError> {
    let client = Client::new(admin.clone());
    for configuration in configurations_at(&manifest.webhooks, endpoint, prefix) {
        let object: DynamicObject =
            serde_json::from_value(configuration).expect("a webhook configuration is an object");
        install::object(&client, object, None).await?;
    }
    let crds: Api<CustomResourceDefinition> = Api::all(admin.clone());
    for name in converted(admin, manifest).await? {
        let wanted = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": name },
            "spec": { "conversion": conversion(endpoint) },
        });
        let applied = crds.patch(&name, &PatchParams::apply(OWNER).force(), &Patch::Apply(wanted)).await;
        applied.map_err(|error| WebhookError::Conversion(name, error))?;
    }
    Ok(())
}

/// The names of the installed CRDs whose versions a manager converts.
async fn converted(admin: &kube::Client, manifest: &ManagerManifest) -> Result<Vec<String>, WebhookError> {
    if manifest.conversions.is_empty() {
        return Ok(Vec::new());
    }
    let crds: Api<CustomResourceDefinition> = Api::all(admin.clone());
    let installed = crds.list(&kube::api::ListParams::default()).await;
    let installed = installed.map_err(|error| WebhookError::Conversion("CRDs".to_owned(), error))?;
    let is_converted = |crd: &CustomResourceDefinition| {
        let mut conversions = manifest.conversions.iter();
        conversions.any(|it| it.group == crd.spec.group && it.kind == crd.spec.names.kind)
    };
    Ok(installed.into_iter().filter(is_converted).filter_map(|crd| crd.metadata.name).collect())
}

/// Whether a webhook converts the versions of a CRD.
pub(crate) fn has_conversion_webhook(crd: &CustomResourceDefinition) -> bool {
    crd.spec.conversion.as_ref().is_some_and(|conversion| conversion.strategy == "Webhook")
}
