//! The operator's webhooks in the development loop.
//!
//! The operator serves them locally with a certificate created here, and the API server is configured to call
//! that address. Owns the certificate, the port and the configurations, and deletes the configurations at the
//! end. Object names have a prefix, so those of a deployed operator are unaffected.

use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, anyhow};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kubewright_manifests::declarations::Declarations;
use kubewright_manifests::rbac::Account;
use kubewright_manifests::webhook::{Endpoint, configurations_at, conversion};
use kubewright_runtime::internal::certificates::Material;
use kubewright_runtime::{Clock as _, SystemClock};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::answer::told;
use super::samples::MANAGER;
use crate::error::Hint as _;
use crate::secret_file;

/// Label of the loop's configurations, to find those of a crashed run.
const LABEL: &str = "kubewright.dev/dev";
const PREFIX: &str = "kubewright-dev-";

/// The webhook endpoint of an operator on this machine.
pub(crate) struct Webhooks {
    certificates: TempDir,
    /// The address that the operator listens on.
    listen: String,
    /// The URL by which the API server reaches it.
    base: String,
    ca: String,
    project: String,
    applied: Vec<Value>,
}

/// How the API server reaches this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// The API server runs in this process.
    Loopback,
    /// The API server runs elsewhere and reaches this machine by this name or address.
    Named(String),
}

impl Host {
    /// The host for an existing cluster: given by the user, or derived from the context of a local cluster.
    pub(crate) fn of_existing(given: Option<&str>, context: Option<&str>) -> Option<Self> {
        if let Some(given) = given {
            return Some(Self::Named(given.to_owned()));
        }
        let context = context?;
        if context == "minikube" {
            return Some(Self::Named("host.minikube.internal".to_owned()));
        }
        if context.starts_with("k3d-") {
            return Some(Self::Named("host.k3d.internal".to_owned()));
        }
        if context.starts_with("kind-") {
            return docker_gateway("kind").map(Self::Named);
        }
        None
    }
}

/// The gateway address of a Docker network.
fn docker_gateway(network: &str) -> Option<String> {
    let format = "{{range .IPAM.Config}}{{.Gateway}} {{end}}";
    let output = Command::new("docker")
        .args(["network", "inspect", network, "--format", format])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let gateways = String::from_utf8(output.stdout).ok()?;
    gateways.split_whitespace().find(|gateway| gateway.parse::<Ipv4Addr>().is_ok()).map(str::to_owned)
}

impl Webhooks {
    /// Creates a certificate and picks a free port.
    pub(crate) fn new(project: &str, host: &Host) -> Result<Self> {
        let (interface, name) = match host {
            Host::Loopback => (Ipv4Addr::LOCALHOST, "127.0.0.1".to_owned()),
            Host::Named(name) if name.parse().is_ok_and(|ip: Ipv4Addr| ip.is_loopback()) => {
                (Ipv4Addr::LOCALHOST, name.clone())
            }
            Host::Named(name) => (Ipv4Addr::UNSPECIFIED, name.clone()),
        };
        let port = TcpListener::bind((interface, 0)).and_then(|listener| listener.local_addr());
        let port = port.context("cannot find a free port for webhooks")?.port();
        let names = [name.clone(), "localhost".to_owned()];
        let material =
            Material::create(&names, SystemClock.now()).context("cannot create a webhook certificate")?;
        let certificates = tempfile::Builder::new().prefix("kubewright-webhook-").tempdir();
        let certificates = certificates
            .context("cannot create a directory for the webhook certificate")
            .hint("set TMPDIR to a writable directory")?;
        for (file, text) in [("tls.crt", &material.leaf.certificate), ("tls.key", &material.leaf.key)] {
            secret_file::write(&certificates.path().join(file), text)
                .with_context(|| format!("cannot write {file} of the webhook certificate"))
                .hint("check that the disk is not full, or set TMPDIR to another directory")?;
        }
        Ok(Self {
            certificates,
            listen: format!("{interface}:{port}"),
            base: format!("https://{name}:{port}"),
            ca: material.bundle(),
            project: project.to_owned(),
            applied: Vec::new(),
        })
    }

    /// Environment variables that configure the operator's webhook server.
    pub(crate) fn variables(&self) -> [(&'static str, OsString); 2] {
        [
            ("KUBEWRIGHT_WEBHOOK_ADDRESS", self.listen.clone().into()),
            ("KUBEWRIGHT_WEBHOOK_CERTS", self.certificates.path().as_os_str().to_owned()),
        ]
    }

    fn endpoint(&self) -> Endpoint<'_> {
        Endpoint::Url { base: &self.base, ca: &self.ca }
    }

    /// Points the conversion webhooks of CRDs at this endpoint.
    pub(crate) fn convert_here(&self, crds: &mut [(String, Value)]) {
        for (_, crd) in crds {
            if crd.pointer("/spec/conversion/strategy").is_some_and(|strategy| strategy == "Webhook") {
                crd["spec"]["conversion"] = conversion(self.endpoint());
            }
        }
    }

    /// Applies the configurations of the registered webhooks and deletes stale ones. Returns the number of
    /// webhooks.
    pub(crate) async fn apply(
        &mut self,
        client: &kube::Client,
        declarations: &Declarations,
    ) -> Result<usize> {
        // Names of packages may have characters that names of objects may not have.
        let prefix = format!("{PREFIX}{}", Account::of(&self.project).prefix);
        let mut wanted = configurations_at(&declarations.webhooks, self.endpoint(), &prefix);
        for configuration in &mut wanted {
            configuration["metadata"]["labels"] = json!({ LABEL: self.project });
        }
        if wanted != self.applied {
            let names: Vec<&str> = wanted.iter().filter_map(|it| it["metadata"]["name"].as_str()).collect();
            self.delete(client, &names).await?;
            for configuration in &wanted {
                apply(client, configuration).await?;
            }
            self.applied = wanted;
        }
        Ok(declarations.webhooks.len() + declarations.conversions.len())
    }

    /// Deletes the configurations, including those of a crashed run. CRDs and objects stay.
    pub(crate) async fn remove(&mut self, client: &kube::Client) -> Result<()> {
        self.applied.clear();
        self.delete(client, &[]).await
    }

    /// Deletes the configurations of this project except the given ones.
    async fn delete(&self, client: &kube::Client, except: &[&str]) -> Result<()> {
        let of_project = ListParams::default().labels(&format!("{LABEL}={}", self.project));
        let failed = "cannot delete webhook configurations";
        let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
        for found in mutating.list_metadata(&of_project).await.map_err(told).context(failed)? {
            delete(&mutating, found.metadata.name.as_deref(), except).await.context(failed)?;
        }
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
        for found in validating.list_metadata(&of_project).await.map_err(told).context(failed)? {
            delete(&validating, found.metadata.name.as_deref(), except).await.context(failed)?;
        }
        Ok(())
    }
}

async fn delete<K>(api: &Api<K>, name: Option<&str>, except: &[&str]) -> Result<()>
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let Some(name) = name.filter(|name| !except.contains(name)) else { return Ok(()) };
    match api.delete(name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        deleted => deleted.map(|_| ()).map_err(told),
    }
}

async fn apply(client: &kube::Client, configuration: &Value) -> Result<()> {
    let text = |name: &str| configuration[name].as_str().unwrap_or_default();
    let name = configuration["metadata"]["name"].as_str().unwrap_or_default();
    let (group, version) = text("apiVersion")
        .split_once('/')
        .ok_or_else(|| anyhow!("{} has no API group", text("apiVersion")))?;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("kind")));
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    api.patch(name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(configuration))
        .await
        .map_err(told)
        .with_context(|| format!("cannot install {} {name}", text("kind")))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_local_clusters_is_derived_from_the_context() {
        let host = |context| Host::of_existing(None, Some(context));
        let named = |name: &str| Some(Host::Named(name.to_owned()));
        assert_eq!(host("minikube"), named("host.minikube.internal"));
        assert_eq!(host("k3d-shop"), named("host.k3d.internal"));
        assert_eq!(host("gke_shop"), None);
        assert_eq!(Host::of_existing(Some("10.0.0.5"), Some("gke_shop")), named("10.0.0.5"));
    }

    #[test]
    fn a_conversion_webhook_is_pointed_at_this_machine() {
        let webhooks = Webhooks::new("shop", &Host::Loopback).unwrap();
        let mut crds = vec![
            ("a.yaml".to_owned(), json!({ "spec": { "conversion": { "strategy": "Webhook" } } })),
            ("b.yaml".to_owned(), json!({ "spec": { "conversion": { "strategy": "None" } } })),
        ];
        webhooks.convert_here(&mut crds);
        let url = crds[0].1["spec"]["conversion"]["webhook"]["clientConfig"]["url"].as_str().unwrap();
        assert!(url.starts_with("https://127.0.0.1:") && url.ends_with("/convert"), "{url}");
        assert_eq!(crds[1].1["spec"]["conversion"], json!({ "strategy": "None" }));
    }
}
