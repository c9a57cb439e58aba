//! Webhooks on an existing cluster.
//!
//! The API server calls this process by the host that the user names ([`Host`]). Owns what that needs in the cluster:
//! webhook configurations, and `spec.conversion` of CRDs ([`conversions`]). Invariant: a test that was killed does not
//! block the cluster. Everything has the label of its [`Session`], admission webhooks of namespaced resources apply to
//! namespaces of the session only, and the next start on this machine removes what a killed process left behind. It must
//! not touch what a live process of this machine, or any process of another one, has installed.

mod conversions;
mod host;
mod operator;
mod server;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, ObjectMeta, PartialObjectMeta};
use kubewright_manifests::rbac::Account;
use kubewright_manifests::webhook::{Endpoint, configurations, conversion, redirect};
use kubewright_runtime::internal::ManagerManifest;
use kubewright_runtime::internal::probe::{Outcome, Probe};
use kubewright_runtime::webhook::Webhooks;
use kubewright_runtime::{Client, client, connect};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use self::host::Host;
pub use self::host::WebhookHostError;
use self::server::WebhookServer;
use super::{OWNER, WebhookError, converted, has_conversion_webhook};
use crate::install::{self, InstallError};

/// Label of namespaces, configurations and CRDs. Its value is the session.
pub(crate) const LABEL: &str = "kubewright.dev/envtest";
/// Annotations of configurations: the machine of the process, a port that the process listens on, and the URL of the
/// webhook server.
const HOST: &str = "kubewright.dev/envtest-host";
const PORT: &str = "kubewright.dev/envtest-port";
const URL: &str = "kubewright.dev/envtest-url";
/// Label of the ConfigMap that tests whether the API server reaches the webhooks.
const PROBE_LABEL: &str = "kubewright.dev/envtest-probe";
const PROBE_NAME: &str = "kubewright-envtest-probe";
/// How long the API server may take to call the webhook of the test.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long the removal at the end of an environment may take.
const REMOVED_WITHIN: Duration = Duration::from_secs(10);

/// An environment on an existing cluster.
pub(crate) struct Session {
    id: String,
    /// Connects again in [`Session::close`]: a client belongs to the runtime that created it.
    config: kube::Config,
    host: Option<Host>,
    /// The namespace of fixtures.
    fixtures: OnceCell<String>,
    /// The CRDs of the environment, and whether they were installed with a conversion webhook.
    crds: Mutex<BTreeMap<String, bool>>,
    /// The servers of managers, and other ports by which the next start recognizes that this process lives. They are
    /// closed when they are dropped.
    servers: Mutex<Vec<Box<dyn Send>>>,
    /// Whether there may be something to remove.
    is_installed: AtomicBool,
    is_closed: AtomicBool,
}

/// The process that installed a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Origin {
    session: String,
    /// The host name of its machine; empty if unknown.
    host: String,
    /// A port that it listens on.
    port: u16,
    /// The URL of the webhook server.
    url: String,
}

/// The webhooks of a server on this machine.
struct Installation<'a> {
    /// The prefix of the names of configurations, before that of the session.
    prefix: &'a str,
    /// Configurations that reference a Service.
    configurations: Vec<Value>,
    /// The names of the CRDs to convert.
    crds: Vec<String>,
    /// The port of the webhook server.
    port: u16,
    /// The CA of its certificate.
    ca: &'a str,
    /// The port of the [`Origin`].
    process_port: u16,
}

impl Session {
    /// A session with a random id. `host` is that of [`Builder::webhook_host`](crate::Builder::webhook_host).
    pub(crate) fn new(config: kube::Config, host: Option<String>) -> Result<Self, WebhookHostError> {
        // Not seeded by the environment: two runs with one seed are two sessions.
        let mut rng = fastrand::Rng::new();
        Ok(Self {
            id: std::iter::repeat_with(|| rng.lowercase()).take(8).collect(),
            config,
            host: Host::find(host)?,
            fixtures: OnceCell::new(),
            crds: Mutex::default(),
            servers: Mutex::default(),
            is_installed: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
        })
    }

    pub(crate) fn client(&self) -> Result<kube::Client, connect::ConnectError> {
        connect::client(self.config.clone(), connect::Options::default())
    }

    /// The host by which the API server calls webhooks.
    pub(crate) fn host(&self) -> Result<&Host, WebhookError> {
        self.host.as_ref().ok_or(WebhookError::ExistingCluster)
    }

    /// The metadata of a new namespace of this session.
    pub(crate) fn namespace(&self) -> ObjectMeta {
        ObjectMeta {
            generate_name: Some("test-".to_owned()),
            labels: Some([(LABEL.to_owned(), self.id.clone())].into()),
            ..ObjectMeta::default()
        }
    }

    /// The namespace of fixtures that name none. `None` if webhooks apply to all namespaces, or there are none.
    pub(crate) async fn fixtures_namespace(
        &self,
        create: impl Future<Output = Result<String, client::Error>>,
    ) -> Result<Option<&String>, client::Error> {
        if !self.is_installed.load(Ordering::SeqCst) {
            return Ok(None);
        }
        self.fixtures.get_or_try_init(|| create).await.map(Some)
    }

    /// Installs CRDs. Those that a session converts keep its conversion.
    pub(crate) async fn install_crds(
        &self,
        client: &kube::Client,
        crds: &[CustomResourceDefinition],
    ) -> Result<(), InstallError> {
        let names =
            crds.iter().filter_map(|crd| Some((crd.metadata.name.clone()?, has_conversion_webhook(crd))));
        self.crds.lock().unwrap_or_else(PoisonError::into_inner).extend(names);
        let mut attempt = 1;
        loop {
            let mut crds = crds.to_vec();
            for crd in &mut crds {
                conversions::keep(client, crd).await.map_err(|source| {
                    let name = crd.metadata.name.clone().unwrap_or_default();
                    InstallError::DefinitionRefused { name, source }
                })?;
            }
            match install::definitions(client, &crds).await {
                Err(InstallError::DefinitionRefused { source: kube::Error::Api(status), .. })
                    if status.code == 409 && attempt < conversions::ATTEMPTS =>
                {
                    attempt += 1;
                }
                installed => return installed,
            }
        }
    }

    /// Serves a manager's webhooks and installs them.
    pub(crate) async fn install_manager(
        &self,
        admin: &kube::Client,
        webhooks: &Webhooks,
        manifest: &ManagerManifest,
    ) -> Result<(), WebhookError> {
        let host = self.host()?;
        let crds = converted(admin, manifest).await?;
        let server = WebhookServer::start(host.listen(), host.name(), webhooks).await?;
        let (port, ca) = (server.address.port(), server.ca.clone());
        let installation = Installation {
            prefix: &Account::of(&manifest.name).prefix,
            configurations: configurations(&manifest.webhooks),
            crds,
            port,
            ca: &ca,
            process_port: port,
        };
        self.install(admin, installation, Box::new(server)).await
    }

    /// Installs webhooks, and keeps `server` until they are removed. Fails, and leaves nothing behind, if the API server
    /// does not reach them.
    async fn install(
        &self,
        admin: &kube::Client,
        installation: Installation<'_>,
        server: Box<dyn Send>,
    ) -> Result<(), WebhookError> {
        self.is_installed.store(true, Ordering::SeqCst);
        let mut installed = self.apply(admin, installation).await;
        self.servers.lock().unwrap_or_else(PoisonError::into_inner).push(server);
        if self.is_closed.load(Ordering::SeqCst) {
            installed = Err(WebhookError::Closed);
        }
        if installed.is_err() {
            if let Err(error) = remove(admin, &self.id).await {
                self.report(&chain(&error));
            }
            self.stop_servers();
        }
        installed
    }

    async fn apply(&self, admin: &kube::Client, installation: Installation<'_>) -> Result<(), WebhookError> {
        let url = self.host()?.url(installation.port);
        let endpoint = Endpoint::Url { base: &url, ca: installation.ca };
        let origin = Origin {
            session: self.id.clone(),
            host: host::machine().unwrap_or_default(),
            port: installation.process_port,
            url: url.clone(),
        };
        let prefix = format!("{}{}-", installation.prefix, self.id);
        let client = Client::new(admin.clone());
        let mut has_mutating = false;
        for mut configuration in installation.configurations {
            has_mutating |= configuration["kind"] == "MutatingWebhookConfiguration";
            let name = configuration["metadata"]["name"].as_str().unwrap_or_default();
            configuration["metadata"]["name"] = format!("{prefix}{name}").into();
            redirect(&mut configuration, endpoint);
            for webhook in configuration["webhooks"].as_array_mut().into_iter().flatten() {
                origin.limit(webhook);
            }
            origin.apply(&client, configuration).await?;
        }
        for name in installation.crds {
            let set = conversions::set(admin, &name, &origin, &conversion(endpoint)).await;
            set.map_err(|error| WebhookError::Conversion(name, error))?;
        }
        // The API server reads the two kinds of configurations independently of each other.
        let kinds: &[bool] = if has_mutating { &[true, false] } else { &[false] };
        let probe = Probe { name: PROBE_NAME, label: (PROBE_LABEL, &self.id), patience: PATIENCE };
        for is_mutating in kinds {
            let name = format!("{prefix}{}-probe", if *is_mutating { "mutating" } else { "validating" });
            let configuration = probe.configuration(*is_mutating, &name, &url, installation.ca);
            origin.apply(&client, configuration).await?;
            let reason = match probe.call(admin).await.map_err(WebhookError::Probe)? {
                // Whether the webhooks are reached is unknown if the user may not create ConfigMaps.
                Outcome::Reached | Outcome::Refused => None,
                Outcome::Failed(reason) => Some(reason),
                Outcome::NotCalled => Some(format!("it has called no webhook after {PATIENCE:?}")),
            };
            if let Some(reason) = reason {
                return Err(WebhookError::Unreachable { url, reason });
            }
            let deleted = if *is_mutating {
                delete::<MutatingWebhookConfiguration>(admin, &name).await
            } else {
                delete::<ValidatingWebhookConfiguration>(admin, &name).await
            };
            deleted.map_err(WebhookError::Probe)?;
        }
        Ok(())
    }

    /// Removes what killed processes of this machine left in the cluster. A failure is logged, because this environment
    /// can still work.
    pub(crate) async fn remove_leftovers(&self, client: &kube::Client) {
        let machine = host::machine();
        if self.host.is_none() || machine.is_none() {
            return;
        }
        // The URL tells machines with the same host name apart.
        let is_left = |origin: &Origin| {
            Some(&origin.host) == machine.as_ref()
                && !host::may_listen(origin.port)
                && !host::is_open(&origin.url)
        };
        if let Err(error) = remove_where(client, LABEL, is_left).await {
            let error = chain(&error);
            tracing::warn!(error, "Failed to remove webhooks that a killed test left in the cluster");
        }
    }

    /// Removes everything from the cluster. Called when the environment is dropped, on any thread and any runtime: the
    /// work is done by another thread with a runtime and a client of its own, and this one waits for a limited time.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        if !self.is_installed.load(Ordering::SeqCst) {
            return;
        }
        let (config, id) = (self.config.clone(), self.id.clone());
        let (done, result) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("kubewright-envtest-cleanup".to_owned());
        let removed = match thread.spawn(move || done.send(remove_on_own_runtime(config, &id))) {
            Ok(_) => result
                .recv_timeout(REMOVED_WITHIN)
                .unwrap_or_else(|_| Err(format!("timed out after {REMOVED_WITHIN:?}"))),
            Err(error) => Err(error.to_string()),
        };
        match removed {
            Ok(()) => self.is_installed.store(false, Ordering::SeqCst),
            Err(error) => self.report(&error),
        }
        self.stop_servers();
    }

    fn stop_servers(&self) {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn report(&self, error: &str) {
        let id = &self.id;
        tracing::error!(
            error,
            "Failed to remove the webhooks of a test from the cluster. The next test with KUBEWRIGHT_WEBHOOK_HOST on \
             this machine removes them. To remove them now, run `kubectl delete \
             mutatingwebhookconfigurations,validatingwebhookconfigurations -l {LABEL}={id}`, and restore spec.conversion \
             of the CRDs of `kubectl get crds -l {LABEL}={id}` with `kubectl edit crd`"
        );
    }
}

impl Origin {
    /// The origin of a configuration. `None` if another client has removed its annotations.
    fn of(metadata: &ObjectMeta) -> Option<Self> {
        let annotations = metadata.annotations.as_ref()?;
        Some(Self {
            session: metadata.labels.as_ref()?.get(LABEL)?.clone(),
            host: annotations.get(HOST)?.clone(),
            port: annotations.get(PORT)?.parse().ok()?,
            url: annotations.get(URL)?.clone(),
        })
    }

    /// Limits a webhook to the namespaces of the session. The API server ignores the selector for objects that are in no
    /// namespace.
    fn limit(&self, webhook: &mut Value) {
        let selector = &mut webhook["namespaceSelector"];
        if !selector.is_object() {
            *selector = json!({});
        }
        let requirement = json!({ "key": LABEL, "operator": "In", "values": [self.session] });
        match selector["matchExpressions"].as_array_mut() {
            Some(expressions) => expressions.push(requirement),
            None => selector["matchExpressions"] = json!([requirement]),
        }
    }

    async fn apply(&self, client: &Client, mut configuration: Value) -> Result<(), InstallError> {
        let metadata = &mut configuration["metadata"];
        metadata["labels"][LABEL] = self.session.as_str().into();
        metadata["annotations"][HOST] = self.host.as_str().into();
        metadata["annotations"][PORT] = self.port.to_string().into();
        metadata["annotations"][URL] = self.url.as_str().into();
        let object: DynamicObject =
            serde_json::from_value(configuration).expect("a webhook configuration is an object");
        install::object(client, object, None).await.map(drop)
    }
}

/// Runs [`remove`] on a thread without a runtime.
fn remove_on_own_runtime(config: kube::Config, session: &str) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(async {
        let client = connect::client(config, connect::Options::default());
        let client = client.map_err(|error| chain(&error))?;
        let removed = tokio::time::timeout(REMOVED_WITHIN, remove(&client, session)).await;
        removed.map_err(|error| error.to_string())?.map_err(|error| chain(&error))
    })
}

/// An error with its causes, for the log.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        // kube's errors repeat their cause.
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}

/// Removes everything of a session.
async fn remove(client: &kube::Client, session: &str) -> Result<(), kube::Error> {
    remove_where(client, &format!("{LABEL}={session}"), |origin| origin.session == session).await
}

/// Deletes configurations, and then restores conversions: a webhook may apply to CRDs. If one step fails, the others are
/// done anyway.
async fn remove_where(
    client: &kube::Client,
    selector: &str,
    is_removed: impl Fn(&Origin) -> bool,
) -> Result<(), kube::Error> {
    let steps = [
        delete_where::<MutatingWebhookConfiguration>(client, selector, &is_removed).await,
        delete_where::<ValidatingWebhookConfiguration>(client, selector, &is_removed).await,
        conversions::remove_where(client, &is_removed).await,
    ];
    steps.into_iter().collect()
}

async fn delete_where<K>(
    client: &kube::Client,
    selector: &str,
    is_removed: &impl Fn(&Origin) -> bool,
) -> Result<(), kube::Error>
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::ClusterResourceScope>,
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let api: Api<K> = Api::all(client.clone());
    for found in api.list_metadata(&ListParams::default().labels(selector)).await? {
        let PartialObjectMeta { metadata, .. } = found;
        if Origin::of(&metadata).as_ref().is_some_and(is_removed) {
            delete::<K>(client, metadata.name.as_deref().unwrap_or_default()).await?;
        }
    }
    Ok(())
}

async fn delete<K>(client: &kube::Client, name: &str) -> Result<(), kube::Error>
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::ClusterResourceScope>,
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let api: Api<K> = Api::all(client.clone());
    match api.delete(name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        deleted => deleted.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selector_of_a_webhook_is_extended_by_the_session() {
        let origin = Origin {
            session: "abc".to_owned(),
            host: "here".to_owned(),
            port: 1,
            url: "https://127.0.0.1:1".to_owned(),
        };
        let ours = json!({ "key": LABEL, "operator": "In", "values": ["abc"] });
        let limited = |selector: Value| {
            let mut webhook = json!({ "namespaceSelector": selector });
            origin.limit(&mut webhook);
            webhook["namespaceSelector"].clone()
        };
        assert_eq!(limited(Value::Null), json!({ "matchExpressions": [ours] }));
        let labels = json!({ "tier": "x" });
        assert_eq!(
            limited(json!({ "matchLabels": labels })),
            json!({ "matchLabels": labels, "matchExpressions": [ours] })
        );
        let other = json!({ "key": "a", "operator": "Exists" });
        assert_eq!(
            limited(json!({ "matchExpressions": [other] })),
            json!({ "matchExpressions": [other, ours] })
        );
    }
}
