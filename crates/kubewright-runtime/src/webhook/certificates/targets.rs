//! The objects whose `caBundle` must contain the CA: webhook configurations and CRDs that name the operator's Service.
//!
//! They are found by the Service and not by name, so that name prefixes of kustomize and Helm do not matter. Injection
//! is a server-side apply that owns `caBundle` only.

use std::fmt;
use std::sync::Arc;

use futures_util::stream::{BoxStream, StreamExt as _};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

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
    /// The webhooks that reference the Service; for a CRD, its conversion webhook under an empty name.
    clients: Vec<(String, Option<Vec<u8>>)>,
}

impl Found {
    /// Whether every client configuration has exactly this bundle.
    pub(super) fn trusts(&self, bundle: &str) -> bool {
        self.clients.iter().all(|(_, known)| known.as_deref() == Some(bundle.as_bytes()))
    }
}

/// The kinds of objects that can be targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetKinds {
    /// MutatingWebhookConfigurations.
    pub mutating: bool,
    /// ValidatingWebhookConfigurations.
    pub validating: bool,
    /// CustomResourceDefinitions.
    pub crds: bool,
}

impl Default for TargetKinds {
    fn default() -> Self {
        Self { mutating: true, validating: true, crds: true }
    }
}

/// Reads the targets from the API server.
pub(super) async fn find(
    client: &Client,
    service: &Service,
    kinds: TargetKinds,
) -> Result<Vec<Found>, (&'static str, Error)> {
    async fn list<K: Object>(client: &Client, wanted: bool) -> Result<Vec<Arc<K>>, Error> {
        if wanted { client.list::<K>(&ListOptions::all()).await } else { Ok(Vec::new()) }
    }
    let mut found = Vec::new();
    let mutating = list::<MutatingWebhookConfiguration>(client, kinds.mutating).await;
    for configuration in mutating.map_err(|error| ("MutatingWebhookConfigurations", error))? {
        let hooks = configuration.webhooks.iter().flatten();
        let clients = hooks.filter_map(|hook| admission(&hook.name, &hook.client_config, service)).collect();
        found.extend(target(&*configuration, clients));
    }
    let validating = list::<ValidatingWebhookConfiguration>(client, kinds.validating).await;
    for configuration in validating.map_err(|error| ("ValidatingWebhookConfigurations", error))? {
        let hooks = configuration.webhooks.iter().flatten();
        let clients = hooks.filter_map(|hook| admission(&hook.name, &hook.client_config, service)).collect();
        found.extend(target(&*configuration, clients));
    }
    let crds = list::<CustomResourceDefinition>(client, kinds.crds).await;
    for crd in crds.map_err(|error| ("CustomResourceDefinitions", error))? {
        let webhook = crd.spec.conversion.as_ref().and_then(|conversion| conversion.webhook.as_ref());
        let clients = webhook.and_then(|webhook| webhook.client_config.as_ref()).and_then(|config| {
            let named = config.service.as_ref().map(|named| (&*named.namespace, &*named.name));
            is(named, service).then(|| vec![(String::new(), bundle_of(config.ca_bundle.as_ref()))])
        });
        found.extend(target(&*crd, clients.unwrap_or_default()));
    }
    Ok(found)
}

/// Applies the bundle to the client configurations that reference the Service. Fails with a conflict if the target
/// changed since it was read.
pub(super) async fn inject(client: &Client, found: &Found, bundle: &str) -> Result<(), Error> {
    let Target { kind, name } = &found.target;
    let bundle = serde_json::to_value(ByteString(bundle.as_bytes().to_vec())).expect("bytes are JSON");
    let mut wanted = if kind.name() == "CustomResourceDefinition" {
        json!({ "spec": { "conversion": { "webhook": { "clientConfig": { "caBundle": bundle } } } } })
    } else {
        let hooks = found.clients.iter();
        let hooks: Vec<Value> =
            hooks.map(|(name, _)| json!({ "name": name, "clientConfig": { "caBundle": bundle } })).collect();
        json!({ "webhooks": hooks })
    };
    wanted["apiVersion"] = kind.gvk().api_version().into();
    wanted["kind"] = kind.name().into();
    wanted["metadata"] = json!({ "name": name, "resourceVersion": found.version });
    client.write_patch(kind, &Key::cluster(name), &Patch::apply(wanted)?.force(), None).await.map(|_| ())
}

/// Watches webhook configurations and CRDs.
pub(super) fn changes(client: &Client, kinds: TargetKinds) -> Vec<BoxStream<'static, ()>> {
    fn watch<K: Object>(client: &Client, wanted: bool) -> Option<BoxStream<'static, ()>> {
        if !wanted {
            return None;
        }
        client.watch::<K>(&ListOptions::all()).ok().map(|events| events.map(|_| ()).boxed())
    }
    let watches = [
        watch::<MutatingWebhookConfiguration>(client, kinds.mutating),
        watch::<ValidatingWebhookConfiguration>(client, kinds.validating),
        watch::<CustomResourceDefinition>(client, kinds.crds),
    ];
    watches.into_iter().flatten().collect()
}

fn target<K: Object>(object: &K, clients: Vec<(String, Option<Vec<u8>>)>) -> Option<Found> {
    let name = object.meta().name.clone().unwrap_or_default();
    let version = object.meta().resource_version.clone().unwrap_or_default();
    let target = Target { kind: Kind::of::<K>(), name };
    (!clients.is_empty()).then_some(Found { target, version, clients })
}

fn admission(
    name: &str,
    config: &WebhookClientConfig,
    service: &Service,
) -> Option<(String, Option<Vec<u8>>)> {
    let named = config.service.as_ref().map(|named| (&*named.namespace, &*named.name));
    is(named, service).then(|| (name.to_owned(), bundle_of(config.ca_bundle.as_ref())))
}

fn is(named: Option<(&str, &str)>, service: &Service) -> bool {
    named == Some((service.namespace.as_str(), service.name.as_str()))
}

fn bundle_of(bundle: Option<&ByteString>) -> Option<Vec<u8>> {
    bundle.map(|bundle| bundle.0.clone())
}
