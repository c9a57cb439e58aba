//! The objects whose `caBundle` must contain the CA: webhook configurations, CRDs and APIServices that name the operator's
//! Service.
//!
//! Configurations are found by the Service and not by name, so that name prefixes of kustomize and Helm do not matter.
//! CRDs and APIServices are read by name, which has no prefix: a cluster may have hundreds of them. Injection owns
//! `caBundle` only.

use std::fmt;
use std::sync::Arc;

use futures_util::stream::{BoxStream, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use serde_json::{Value, json};

use super::bundle;
use crate::client::{Client, Error, Patch};
use crate::kind::{Kind, Object};
use crate::{Key, ListOptions};

/// The Service in front of the replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl Service {
    /// The DNS name that the API server verifies.
    pub(super) fn host(&self) -> String {
        format!("{}.{}.svc", self.name, self.namespace)
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// An object that must trust the CA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    kind: Kind,
    name: String,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.name(), self.name)
    }
}

/// A target and its current trust.
pub(super) struct Found {
    pub(super) target: Target,
    /// The version that was read.
    pub(super) version: String,
    /// The client configurations that reference the Service.
    pub(super) clients: Vec<ClientConfig>,
}

/// A client configuration of a target.
pub(super) struct ClientConfig {
    /// The name of the webhook; empty for the conversion webhook of a CRD and for an APIService.
    name: String,
    /// The path that the API server calls.
    pub(super) path: String,
    /// Whether the API server calls it with GET, because it belongs to an APIService.
    pub(super) is_api: bool,
    /// The `caBundle`.
    pub(super) bundle: Vec<u8>,
}

impl ClientConfig {
    /// Whether it is the one of a CRD or an APIService. Only those that the operator serves are read.
    pub(super) fn is_expected(&self) -> bool {
        self.name.is_empty()
    }
}

impl Found {
    /// Whether every client configuration trusts the operator's own bundle.
    pub(super) fn trusts(&self, own: &str) -> bool {
        self.clients.iter().all(|config| bundle::trusts(own, &config.bundle))
    }
}

/// The targets that the registered webhooks need. Only kinds with an entry are read and watched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExpectedTargets {
    /// The paths of mutating webhooks.
    pub mutating: Vec<String>,
    /// The paths of validating webhooks.
    pub validating: Vec<String>,
    /// The names of CRDs with a conversion webhook.
    pub crds: Vec<String>,
    /// The names of APIServices.
    pub api_services: Vec<String>,
}

impl ExpectedTargets {
    /// Whether the operator serves an admission webhook at this path.
    pub(super) fn has_admission(&self, path: &str) -> bool {
        self.mutating.iter().chain(&self.validating).any(|known| known == path)
    }

    /// What no object in `found` covers, for messages.
    pub(super) fn missing(&self, found: &[Found]) -> Vec<String> {
        let of_kind = |kind: &str| {
            let found: Vec<&Found> = found.iter().filter(|found| found.target.kind.name() == kind).collect();
            found
        };
        let mut missing = Vec::new();
        for (kind, paths) in [
            ("MutatingWebhookConfiguration", &self.mutating),
            ("ValidatingWebhookConfiguration", &self.validating),
        ] {
            let found = of_kind(kind);
            let served = |path: &String| {
                found.iter().flat_map(|found| &found.clients).any(|config| config.path == *path)
            };
            missing.extend(
                paths.iter().filter(|path| !served(path)).map(|path| format!("a {kind} with path {path}")),
            );
        }
        for (kind, what, names) in [
            ("CustomResourceDefinition", "the conversion of CustomResourceDefinition", &self.crds),
            ("APIService", "APIService", &self.api_services),
        ] {
            let found = of_kind(kind);
            let absent = names.iter().filter(|name| found.iter().all(|found| found.target.name != **name));
            missing.extend(absent.map(|name| format!("{what} {name}")));
        }
        missing
    }
}

/// Reads the targets from the API server.
pub(super) async fn find(
    client: &Client,
    service: &Service,
    expected: &ExpectedTargets,
) -> Result<Vec<Found>, (&'static str, Error)> {
    async fn list<K: Object>(client: &Client, expected: &[String]) -> Result<Vec<Arc<K>>, Error> {
        if expected.is_empty() { Ok(Vec::new()) } else { client.list::<K>(&ListOptions::all()).await }
    }
    async fn get<K: Object>(client: &Client, expected: &[String]) -> Result<Vec<Arc<K>>, Error> {
        let mut found = Vec::new();
        for name in expected {
            found.extend(client.get_opt::<K>(&Key::cluster(name)).await?);
        }
        Ok(found)
    }
    let mut found = Vec::new();
    let mutating = list::<MutatingWebhookConfiguration>(client, &expected.mutating).await;
    for configuration in mutating.map_err(|error| ("MutatingWebhookConfigurations", error))? {
        let hooks = configuration.webhooks.iter().flatten();
        let clients = hooks.filter_map(|hook| admission(&hook.name, &hook.client_config, service)).collect();
        found.extend(target(&*configuration, clients));
    }
    let validating = list::<ValidatingWebhookConfiguration>(client, &expected.validating).await;
    for configuration in validating.map_err(|error| ("ValidatingWebhookConfigurations", error))? {
        let hooks = configuration.webhooks.iter().flatten();
        let clients = hooks.filter_map(|hook| admission(&hook.name, &hook.client_config, service)).collect();
        found.extend(target(&*configuration, clients));
    }
    let crds = get::<CustomResourceDefinition>(client, &expected.crds).await;
    for crd in crds.map_err(|error| ("CustomResourceDefinitions", error))? {
        let webhook = crd.spec.conversion.as_ref().and_then(|conversion| conversion.webhook.as_ref());
        let config = webhook.and_then(|webhook| webhook.client_config.as_ref());
        let config = config.and_then(|config| {
            let named = config.service.as_ref()?;
            let is_ours = is(&named.namespace, &named.name, service);
            is_ours.then(|| client_config("", named.path.as_deref(), config.ca_bundle.as_ref()))
        });
        found.extend(target(&*crd, config.into_iter().collect()));
    }
    let api_services = get::<APIService>(client, &expected.api_services).await;
    for api_service in api_services.map_err(|error| ("APIServices", error))? {
        let config = api_service.spec.as_ref().and_then(|spec| {
            let named = spec.service.as_ref()?;
            let is_ours = is(named.namespace.as_deref()?, named.name.as_deref()?, service);
            let path = format!("/apis/{}/{}", spec.group.as_deref()?, spec.version.as_deref()?);
            let config = client_config("", Some(&path), spec.ca_bundle.as_ref());
            is_ours.then_some(ClientConfig { is_api: true, ..config })
        });
        found.extend(target(&*api_service, config.into_iter().collect()));
    }
    Ok(found)
}

/// Sets the bundle of the client configurations that reference the Service. Fails with a conflict if the target changed
/// since it was read.
///
/// CRDs and APIServices are applied. Webhooks are entries of a list with the key `name`: an apply would also own the key,
/// and then the entry stays with name and `caBundle` only when another field manager applies the configuration without
/// the webhook. The API server rejects such an entry, and with it that apply. A strategic merge patch owns `caBundle` only.
pub(super) async fn inject(client: &Client, found: &Found, own: &str, now: Timestamp) -> Result<(), Error> {
    let Target { kind, name } = &found.target;
    let wanted = |config: &ClientConfig| {
        let bundle = bundle::merged(own, &config.bundle, now);
        serde_json::to_value(ByteString(bundle.into_bytes())).expect("bytes are JSON")
    };
    let apply = |mut wanted: Value| {
        wanted["apiVersion"] = kind.gvk().api_version().into();
        wanted["kind"] = kind.name().into();
        wanted["metadata"] = json!({ "name": name, "resourceVersion": found.version });
        Patch::apply(wanted).map(Patch::force)
    };
    let patch = match kind.name() {
        "CustomResourceDefinition" => {
            let bundle = found.clients.first().map(wanted);
            apply(
                json!({ "spec": { "conversion": { "webhook": { "clientConfig": { "caBundle": bundle } } } } }),
            )?
        }
        "APIService" => apply(json!({ "spec": { "caBundle": found.clients.first().map(wanted) } }))?,
        _ => {
            let hooks = found
                .clients
                .iter()
                .map(|config| json!({ "name": config.name, "clientConfig": { "caBundle": wanted(config) } }));
            let patch = Patch::strategic(json!({ "webhooks": hooks.collect::<Vec<Value>>() }));
            patch.optimistic(&found.version)
        }
    };
    client.write_patch(kind, &Key::cluster(name), &patch, None).await.map(|_| ())
}

/// Watches the targets, and all webhook configurations.
pub(super) fn changes(client: &Client, expected: &ExpectedTargets) -> Vec<BoxStream<'static, ()>> {
    fn watch<K: Object>(client: &Client, list: &ListOptions) -> Option<BoxStream<'static, ()>> {
        client.watch::<K>(list).ok().map(|events| events.map(|_| ()).boxed())
    }
    let all = ListOptions::all();
    let named = |name: &String| ListOptions::all().field("metadata.name", name);
    let mutating =
        (!expected.mutating.is_empty()).then(|| watch::<MutatingWebhookConfiguration>(client, &all));
    let validating =
        (!expected.validating.is_empty()).then(|| watch::<ValidatingWebhookConfiguration>(client, &all));
    let crds = expected.crds.iter().map(|name| watch::<CustomResourceDefinition>(client, &named(name)));
    let api_services = expected.api_services.iter().map(|name| watch::<APIService>(client, &named(name)));
    mutating.into_iter().chain(validating).chain(crds).chain(api_services).flatten().collect()
}

fn target<K: Object>(object: &K, clients: Vec<ClientConfig>) -> Option<Found> {
    let name = object.meta().name.clone().unwrap_or_default();
    let version = object.meta().resource_version.clone().unwrap_or_default();
    let target = Target { kind: Kind::of::<K>(), name };
    (!clients.is_empty()).then_some(Found { target, version, clients })
}

fn admission(name: &str, config: &WebhookClientConfig, service: &Service) -> Option<ClientConfig> {
    let named = config.service.as_ref()?;
    let is_ours = is(&named.namespace, &named.name, service);
    is_ours.then(|| client_config(name, named.path.as_deref(), config.ca_bundle.as_ref()))
}

fn is(namespace: &str, name: &str, service: &Service) -> bool {
    (namespace, name) == (service.namespace.as_str(), service.name.as_str())
}

fn client_config(name: &str, path: Option<&str>, bundle: Option<&ByteString>) -> ClientConfig {
    ClientConfig {
        name: name.to_owned(),
        path: path.unwrap_or("/").to_owned(),
        is_api: false,
        bundle: bundle.map(|bundle| bundle.0.clone()).unwrap_or_default(),
    }
}
