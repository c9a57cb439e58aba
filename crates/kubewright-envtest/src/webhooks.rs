//! Webhooks of managers in an environment.
//!
//! Owns their configurations, the conversion of CRDs, and the route to the manager: the embedded server calls the
//! handlers in the process, and kube-apiserver of envtest's assets calls them over TLS on loopback. Tests need no setup for
//! it. An existing cluster cannot reach them.

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
}

/// Webhooks could not be installed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WebhookError {
    #[error(
        "an existing cluster cannot call the webhooks of this process, so its writes would bypass them; unset \
         USE_EXISTING_CLUSTER to run this test on the embedded API server, or test the deployed operator"
    )]
    ExistingCluster,
    #[error("failed to create the webhook certificate")]
    Issue(#[from] kubewright_runtime::internal::certificates::IssueError),
    #[error("failed to load the webhook certificate")]
    Certificate(#[from] kubewright_runtime::internal::certs::CertificateError),
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
                let (base, ca) = servers.serve(webhooks).await?;
                configure(admin, manifest, Endpoint::Url { base: &base, ca: &ca }, &prefix).await
            }
        }
    }
}

impl Servers {
    /// Serves webhooks on a port of 127.0.0.1. Returns their address, and the CA of their certificate.
    async fn serve(&self, webhooks: &Webhooks) -> Result<(String, String), WebhookError> {
        let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let material = Material::create(&names, SystemClock.now())?;
        let leaf = &material.leaf;
        let certificates = Certificates::from_pem(leaf.certificate.as_bytes(), leaf.key.as_bytes())?;
        let address: BindAddress = "127.0.0.1:0".parse().expect("the address is valid");
        let server = Server::bind(&address, "--webhook-bind-address").await?;
        let server = server.expect("the address is not off").with_tls(certificates);
        let base = format!("https://{}", server.address());
        let webhooks = webhooks.clone();
        let handler = Handler::new(move |request| {
            let webhooks = webhooks.clone();
            async move { webhooks.handle(request).await }
        });
        let mut servers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        servers.spawn(server.run(handler, std::future::pending()));
        Ok((base, material.bundle()))
    }
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
    if manifest.conversions.is_empty() {
        return Ok(());
    }
    let crds: Api<CustomResourceDefinition> = Api::all(admin.clone());
    let installed = crds.list(&kube::api::ListParams::default()).await;
    let installed = installed.map_err(|error| WebhookError::Conversion("CRDs".to_owned(), error))?;
    for crd in installed {
        let converts = |it: &kubewright_runtime::internal::ConversionManifest| {
            it.group == crd.spec.group && it.kind == crd.spec.names.kind
        };
        let name = crd.metadata.name.clone().unwrap_or_default();
        if manifest.conversions.iter().any(converts) {
            let wanted = json!({
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": { "name": name },
                "spec": { "conversion": conversion(endpoint) },
            });
            let applied = crds.patch(&name, &PatchParams::apply(OWNER).force(), &Patch::Apply(wanted)).await;
            applied.map_err(|error| WebhookError::Conversion(name, error))?;
        }
    }
    Ok(())
}
