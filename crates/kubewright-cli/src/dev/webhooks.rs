//! The operator's webhooks in the development loop.
//!
//! The operator serves them locally with a certificate created here, and the API server is configured to call
//! that address. Owns the certificate, the port and the configurations. At the end it deletes the configurations
//! and restores the conversion of CRDs. Object names have a prefix, so those of a deployed operator are
//! unaffected.

mod conversions;
mod docker;

use std::ffi::OsString;
use std::fmt;
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kubewright_manifests::inventory::Inventory;
use kubewright_manifests::rbac::Account;
use kubewright_manifests::webhook::{Endpoint, configurations_at, conversion};
use kubewright_runtime::internal::certificates::Material;
use kubewright_runtime::internal::probe::{Outcome, Probe};
use kubewright_runtime::{Clock as _, SystemClock};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::api_error::api_error;
use super::samples::MANAGER;
use crate::delivery::deploy::context::Local;
use crate::delivery::image::load::Cluster;
use crate::error::Hint as _;
use crate::secret_file;

/// Label of what the loop applies so that the operator can run. Webhook configurations of a crashed run are found by it.
pub(crate) use kubewright_page::model::system_objects::LABEL;
const PREFIX: &str = "kubewright-dev-";
/// Label of the ConfigMap that tests whether the API server reaches this machine.
const PROBE_LABEL: &str = "kubewright.dev/dev-probe";
const PROBE_NAME: &str = "kubewright-dev-probe";
/// How long the API server may take to call the webhook of the test.
const PATIENCE: Duration = Duration::from_secs(15);

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
    /// Whether CRDs have a conversion to restore: on an existing cluster.
    is_existing: bool,
    /// Whether there is something to delete or restore at the end.
    is_installed: bool,
    /// Whether the API server reaches this machine; `None` until it was tested.
    is_reachable: Option<bool>,
}

/// The API server cannot call this machine.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unreachable {
    base: String,
    reason: String,
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { base, reason } = self;
        write!(
            f,
            "removed again: the cluster cannot reach this machine at {base} ({reason}); set --webhook-host to a name or \
             address that the API server reaches, open the port in the firewall, or run `kubewright dev` without \
             --existing-cluster"
        )
    }
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
    /// The host for an existing cluster: given by the user, or by the tool of a local cluster.
    pub(crate) fn of_existing(given: Option<&str>, local: Option<&Local>) -> Option<Self> {
        if let Some(given) = given {
            return Some(Self::Named(given.to_owned()));
        }
        match local?.cluster {
            Cluster::Minikube => Some(Self::Named("host.minikube.internal".to_owned())),
            Cluster::K3d => Some(Self::Named("host.k3d.internal".to_owned())),
            Cluster::Kind => docker::kind_host().map(Self::Named),
            Cluster::Containerd => None,
        }
    }
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
            is_existing: *host != Host::Loopback,
            is_installed: false,
            is_reachable: (*host == Host::Loopback).then_some(true),
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

    /// Points the conversion webhooks of CRDs at this endpoint. On an existing cluster, the CRDs keep their previous
    /// conversion in an annotation.
    pub(crate) async fn convert_here(
        &mut self,
        client: &kube::Client,
        crds: &mut [(String, Value)],
    ) -> Result<()> {
        for (_, crd) in crds {
            if crd.pointer("/spec/conversion/strategy").is_some_and(|strategy| strategy == "Webhook") {
                if self.is_reachable == Some(false) {
                    return Err(anyhow!("the operator converts versions, and the cluster cannot reach it"))
                        .hint("restart `kubewright dev` with a --webhook-host that the cluster reaches");
                }
                crd["spec"]["conversion"] = conversion(self.endpoint());
                if self.is_existing {
                    self.is_installed = true;
                    conversions::remember(client, &self.project, crd).await?;
                }
            }
        }
        Ok(())
    }

    /// Applies the configurations of the registered webhooks and deletes stale ones. Returns the number of
    /// webhooks.
    pub(crate) async fn apply(&mut self, client: &kube::Client, inventory: &Inventory) -> Result<usize> {
        if self.is_reachable == Some(false) {
            return Ok(0);
        }
        let mut wanted = configurations_at(&inventory.webhooks, self.endpoint(), &self.prefix());
        for configuration in &mut wanted {
            configuration["metadata"]["labels"] = json!({ LABEL: self.project });
        }
        if wanted != self.applied {
            self.is_installed = true;
            let names: Vec<&str> = wanted.iter().filter_map(|it| it["metadata"]["name"].as_str()).collect();
            delete_all(client, &self.project, &names).await?;
            for configuration in &wanted {
                apply(client, configuration).await?;
            }
            self.applied = wanted;
        }
        Ok(inventory.webhooks.len() + inventory.conversions.len())
    }

    /// The prefix of the names of configurations. Names of packages may have characters that names of objects may not
    /// have.
    fn prefix(&self) -> String {
        format!("{PREFIX}{}", Account::of(&self.project).prefix)
    }

    /// Tests once whether the API server reaches this machine. If not, removes what was installed and returns the reason.
    /// The operator must already serve.
    pub(crate) async fn check_reachable(&mut self, client: &kube::Client) -> Result<Option<Unreachable>> {
        if self.is_reachable.is_some() {
            return Ok(None);
        }
        let reason = self.probe(client).await?;
        self.is_reachable = Some(reason.is_none());
        let Some(reason) = reason else { return Ok(None) };
        self.remove(client).await?;
        Ok(Some(Unreachable { base: self.base.clone(), reason }))
    }

    /// Returns why the API server does not reach this machine. `None` if it does, or if that is unknown: the user may not
    /// create ConfigMaps, or the API server calls no webhook in time.
    async fn probe(&self, client: &kube::Client) -> Result<Option<String>> {
        let probe = Probe { name: PROBE_NAME, label: (PROBE_LABEL, &self.project), patience: PATIENCE };
        let name = format!("{}probe", self.prefix());
        let mut configuration = probe.configuration(false, &name, &self.base, &self.ca);
        configuration["metadata"]["labels"] = json!({ LABEL: self.project });
        apply(client, &configuration).await?;
        let outcome = probe.call(client).await;
        let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
        delete(&api, Some(&name), &[]).await?;
        Ok(match outcome {
            Ok(Outcome::Failed(reason)) => Some(reason),
            Ok(Outcome::Reached | Outcome::Refused | Outcome::NotCalled) | Err(_) => None,
        })
    }

    /// Deletes the configurations and restores the conversion of CRDs. Objects stay.
    pub(crate) async fn remove(&mut self, client: &kube::Client) -> Result<()> {
        if !self.is_installed {
            return Ok(());
        }
        clean_up(client, &self.project).await?;
        self.applied.clear();
        self.is_installed = false;
        Ok(())
    }
}

/// Deletes the webhook configurations of a project and restores the conversion of its CRDs, for example after a crash.
/// Returns how many objects were changed.
pub(crate) async fn clean_up(client: &kube::Client, project: &str) -> Result<usize> {
    let restored = conversions::restore(client, project).await?;
    let deleted = delete_all(client, project, &[]).await.hint(format!(
        "delete them with `kubectl delete mutatingwebhookconfigurations,validatingwebhookconfigurations -l {LABEL}={project}`"
    ))?;
    Ok(restored + deleted)
}

/// Deletes the webhook configurations of a project except the given ones. Returns how many.
async fn delete_all(client: &kube::Client, project: &str, except: &[&str]) -> Result<usize> {
    let of_project = ListParams::default().labels(&format!("{LABEL}={project}"));
    let failed = "cannot delete webhook configurations";
    let mut deleted = 0;
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    for found in mutating.list_metadata(&of_project).await.map_err(api_error).context(failed)? {
        deleted += delete(&mutating, found.metadata.name.as_deref(), except).await.context(failed)?;
    }
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    for found in validating.list_metadata(&of_project).await.map_err(api_error).context(failed)? {
        deleted += delete(&validating, found.metadata.name.as_deref(), except).await.context(failed)?;
    }
    Ok(deleted)
}

async fn delete<K>(api: &Api<K>, name: Option<&str>, except: &[&str]) -> Result<usize>
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let Some(name) = name.filter(|name| !except.contains(name)) else { return Ok(0) };
    match api.delete(name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(0),
        deleted => deleted.map(|_| 1).map_err(api_error),
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
        .map_err(api_error)
        .with_context(|| format!("cannot install {} {name}", text("kind")))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_local_clusters_is_derived_from_their_tool() {
        let local = |cluster| Local { cluster, name: "shop".to_owned() };
        let host = |cluster| Host::of_existing(None, Some(&local(cluster)));
        let named = |name: &str| Some(Host::Named(name.to_owned()));
        assert_eq!(host(Cluster::Minikube), named("host.minikube.internal"));
        assert_eq!(host(Cluster::K3d), named("host.k3d.internal"));
        assert_eq!(Host::of_existing(None, None), None);
        assert_eq!(Host::of_existing(Some("10.0.0.5"), Some(&local(Cluster::K3d))), named("10.0.0.5"));
    }

    fn cluster() -> kube::Client {
        let options = kubewright_apiserver::Options::default();
        kube::Client::new(kubewright_apiserver::ApiServer::new(options), "default")
    }

    fn crds() -> Vec<(String, Value)> {
        let crd = |plural: &str, conversion: Value| {
            let version = |name: &str| {
                json!({
                    "name": name, "served": true, "storage": name == "v1",
                    "schema": { "openAPIV3Schema": { "type": "object" } },
                })
            };
            let crd = json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": { "name": format!("{plural}.example.com") },
                "spec": {
                    "group": "example.com", "scope": "Namespaced", "conversion": conversion,
                    "names": { "kind": plural.to_uppercase(), "plural": plural },
                    "versions": [version("v1"), version("v2")],
                },
            });
            (format!("{plural}.yaml"), crd)
        };
        let endpoint = Endpoint::Service { namespace: "system", name: "webhook-service" };
        vec![crd("orders", conversion(endpoint)), crd("plain", json!({ "strategy": "None" }))]
    }

    async fn install(client: &kube::Client, crds: &[(String, Value)]) {
        for (_, crd) in crds {
            apply(client, crd).await.unwrap();
        }
    }

    fn definitions(client: &kube::Client) -> Api<DynamicObject> {
        let crd = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        Api::all_with(client.clone(), &ApiResource::from_gvk(&crd))
    }

    async fn installed(client: &kube::Client) -> Value {
        serde_json::to_value(definitions(client).get("orders.example.com").await.unwrap()).unwrap()
    }

    #[tokio::test]
    async fn a_conversion_webhook_is_pointed_at_this_machine() {
        let mut webhooks = Webhooks::new("shop", &Host::Loopback).unwrap();
        let mut crds = crds();
        let others = crds[1].clone();
        webhooks.convert_here(&cluster(), &mut crds).await.unwrap();
        let url = crds[0].1["spec"]["conversion"]["webhook"]["clientConfig"]["url"].as_str().unwrap();
        assert!(url.starts_with("https://127.0.0.1:") && url.ends_with("/convert"), "{url}");
        assert_eq!(
            crds[0].1["metadata"].get("annotations"),
            None,
            "an embedded cluster has nothing to restore"
        );
        assert_eq!(crds[1], others);
    }

    #[tokio::test]
    async fn an_existing_cluster_gets_its_conversion_back_also_after_a_crash() {
        let client = cluster();
        // As `make deploy` installs it: another field manager owns `service`.
        for (_, crd) in crds() {
            let name = crd["metadata"]["name"].as_str().unwrap().to_owned();
            let parameters = PatchParams::apply("kubectl");
            definitions(&client).patch(&name, &parameters, &Patch::Apply(&crd)).await.unwrap();
        }
        let before = installed(&client).await;
        let host = Host::Named("10.0.0.5".to_owned());
        for crashes in [false, true] {
            let mut webhooks = Webhooks::new("shop", &host).unwrap();
            // A second deployment of the same run must not remember the first one's address.
            for _ in 0..2 {
                let mut crds = crds();
                webhooks.convert_here(&client, &mut crds).await.unwrap();
                install(&client, &crds).await;
            }
            let now = installed(&client).await;
            let url = now["spec"]["conversion"]["webhook"]["clientConfig"]["url"].as_str().unwrap();
            assert!(url.starts_with("https://10.0.0.5:"), "{url}");
            if crashes {
                drop(webhooks);
                assert_eq!(clean_up(&client, "other").await.unwrap(), 0, "of another project");
                assert_eq!(clean_up(&client, "shop").await.unwrap(), 1);
            } else {
                webhooks.remove(&client).await.unwrap();
            }
            let after = installed(&client).await;
            assert_eq!(after["spec"], before["spec"]);
            assert_eq!(after["metadata"].get("annotations"), before["metadata"].get("annotations"));
            assert_eq!(after["metadata"].get("labels"), before["metadata"].get("labels"));
            assert_eq!(clean_up(&client, "shop").await.unwrap(), 0);
        }
    }

    #[tokio::test]
    async fn a_new_crd_is_left_without_a_conversion_webhook() {
        let client = cluster();
        let mut webhooks = Webhooks::new("shop", &Host::Named("10.0.0.5".to_owned())).unwrap();
        let mut crds = crds();
        webhooks.convert_here(&client, &mut crds).await.unwrap();
        install(&client, &crds).await;
        webhooks.remove(&client).await.unwrap();
        assert_eq!(installed(&client).await["spec"]["conversion"], json!({ "strategy": "None" }));
    }

    fn inventory() -> Inventory {
        let webhook = kubewright_manifests::declare::Webhook {
            name: "vorder.example.com".into(),
            path: "/validate-order".into(),
            groups: vec!["example.com".into()],
            versions: vec!["v1".into()],
            resources: vec!["orders".into()],
            ..kubewright_manifests::declare::Webhook::default()
        };
        Inventory { webhooks: vec![webhook.with_defaults()], ..Inventory::new("shop") }
    }

    async fn configurations(client: &kube::Client) -> usize {
        let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
        api.list(&ListParams::default()).await.unwrap().items.len()
    }

    #[tokio::test]
    async fn configurations_of_a_killed_run_are_deleted_at_the_next_start() {
        let client = cluster();
        let mut webhooks = Webhooks::new("shop", &Host::Named("10.0.0.5".to_owned())).unwrap();
        assert_eq!(webhooks.apply(&client, &inventory()).await.unwrap(), 1);
        assert_eq!(configurations(&client).await, 1);
        // A killed process removes nothing.
        drop(webhooks);
        assert_eq!(configurations(&client).await, 1);
        assert_eq!(clean_up(&client, "shop").await.unwrap(), 1);
        assert_eq!(configurations(&client).await, 0);
    }

    #[tokio::test]
    async fn webhooks_that_the_cluster_cannot_reach_are_removed_again() {
        let client = cluster();
        install(&client, &crds()).await;
        let before = installed(&client).await;
        // Nothing listens on the port.
        let mut webhooks = Webhooks::new("shop", &Host::Named("127.0.0.1".to_owned())).unwrap();
        let mut converted = crds();
        webhooks.convert_here(&client, &mut converted).await.unwrap();
        install(&client, &converted).await;
        webhooks.apply(&client, &inventory()).await.unwrap();
        let message = webhooks.check_reachable(&client).await.unwrap().expect("unreachable").to_string();
        assert!(message.contains("cannot reach this machine at https://127.0.0.1:"), "{message}");
        assert!(message.contains("--webhook-host"), "{message}");
        assert_eq!(configurations(&client).await, 0);
        assert_eq!(installed(&client).await["spec"], before["spec"]);
        // Later deployments of the run install nothing.
        assert_eq!(webhooks.apply(&client, &inventory()).await.unwrap(), 0);
        webhooks.convert_here(&client, &mut crds()).await.unwrap_err();
        assert_eq!(configurations(&client).await, 0);
        assert_eq!(installed(&client).await["spec"], before["spec"]);
    }

    #[tokio::test]
    async fn webhooks_that_the_cluster_reaches_stay() {
        use kubewright_runtime::internal::certs::Certificates;
        use kubewright_runtime::internal::serve::{Handler, Server, not_found};

        let client = cluster();
        let mut webhooks = Webhooks::new("shop", &Host::Named("127.0.0.1".to_owned())).unwrap();
        let folder = webhooks.certificates.path();
        let certificates = Certificates::from_files(folder.join("tls.crt"), folder.join("tls.key")).unwrap();
        let server = Server::bind(&webhooks.listen.parse().unwrap(), "address").await.unwrap().unwrap();
        let handler = Handler::new(|_| async { not_found() });
        let serving = tokio::spawn(server.with_tls(certificates).run(handler, std::future::pending::<()>()));
        webhooks.apply(&client, &inventory()).await.unwrap();
        assert_eq!(webhooks.check_reachable(&client).await.unwrap(), None);
        assert_eq!(configurations(&client).await, 1, "the webhooks stay, the probe is deleted");
        serving.abort();
    }
}
