//! The EndpointSlice and Endpoints controllers.
//!
//! `build` computes both as pure functions. Other clients manage the Endpoints of Services without a selector;
//! [`mirror`] copies them into slices.

mod build;
pub mod mirror;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Endpoints, Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_runtime::client::{self, ignore_not_found};
use kubewright_runtime::owner::{is_controlled_by, set_controller_reference};
use kubewright_runtime::{
    Context, Delete, Key, LabelSelector, ListOptions, Manager, Object, Outcome, Patch, Reconciler,
    RegisterError, Result,
};
use serde_json::json;

use crate::{adoption, kubelet};

const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const SLICE_CONTROLLER: &str = "endpointslice-controller.k8s.io";
const ENDPOINTS_MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const HEADLESS: &str = "service.kubernetes.io/headless";
const ZONE: &str = "topology.kubernetes.io/zone";

/// Registers the endpoints controller.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager
        .controller(Services)
        .named("endpoints")
        .owns::<EndpointSlice>()
        .watches::<Endpoints>(|endpoints, _| vec![Key::of(endpoints)])
        .watches::<Pod>(|pod, cache| adoption::selecting::<Service>(pod, cache, selector))
        .concurrency(2)
        .register()
}

/// The selector of a Service; `None` if its endpoints are not managed here.
fn selector(service: &Service) -> Option<LabelSelector> {
    let spec = service.spec.as_ref().filter(|spec| spec.type_.as_deref() != Some("ExternalName"))?;
    let selector = spec.selector.clone().filter(|selector| !selector.is_empty())?;
    Some(LabelSelector::equal(selector))
}

struct Services;

impl Reconciler for Services {
    type Object = Service;

    async fn reconcile(&self, service: &Service, cx: &Context) -> Result<Outcome> {
        let Some(selector) = selector(service).filter(|_| service.metadata.deletion_timestamp.is_none())
        else {
            return Ok(Outcome::done());
        };
        let namespace = service.metadata.namespace.clone().unwrap_or_default();
        let pods = cx.client().list::<Pod>(&ListOptions::namespace(&namespace).matching(&selector)).await?;
        let mut zones = BTreeMap::new();
        for name in pods.iter().filter_map(|pod| kubelet::node_name(pod)) {
            if !zones.contains_key(name) {
                let node = cx.client().get_opt::<Node>(&Key::cluster(name)).await?;
                let zone = node.and_then(|node| node.metadata.labels.as_ref()?.get(ZONE).cloned());
                zones.insert(name.to_owned(), zone);
            }
        }
        let mut labels = labels(service);
        labels.insert(SERVICE_NAME.to_owned(), cx.key().name().to_owned());
        labels.insert(MANAGED_BY.to_owned(), SLICE_CONTROLLER.to_owned());
        let metadata = ObjectMeta { labels: Some(labels), ..ObjectMeta::default() };
        write_slices(service, &metadata, &build::slices(service, &pods, &zones), cx).await?;
        write_endpoints(service, &build::subsets(service, &pods), cx).await?;
        Ok(Outcome::done())
    }

    /// Endpoints have no owner reference; they are deleted with the Service of the same name.
    async fn deleted(&self, key: &Key, cx: &Context) -> Result<Outcome> {
        if let Some(endpoints) = cx.client().get_opt::<Endpoints>(key).await? {
            let labels = endpoints.metadata.labels.as_ref();
            if labels.is_some_and(|labels| labels.contains_key(ENDPOINTS_MANAGED_BY)) {
                ignore_not_found(cx.client().delete(&*endpoints).await)?;
            }
        }
        Ok(Outcome::done())
    }
}

/// Creates, updates and deletes the slices of `owner`, and keeps those that are up to date. New slices get the labels and
/// annotations of `metadata`.
async fn write_slices<O: Object>(
    owner: &O,
    metadata: &ObjectMeta,
    wanted: &[build::Slice],
    cx: &Context,
) -> Result<(), client::Error> {
    let (namespace, name) = (cx.key().namespace().unwrap_or_default(), cx.key().name());
    let label = |name: &str| metadata.labels.as_ref().and_then(|labels| labels.get(name));
    let manager = label(MANAGED_BY).map(String::as_str).unwrap_or_default();
    let list =
        ListOptions::namespace(namespace).labels(format!("{SERVICE_NAME}={name},{MANAGED_BY}={manager}"));
    let mut existing = cx.client().list::<EndpointSlice>(&list).await?;
    existing.retain(|slice| is_controlled_by(&**slice, owner));
    let mut missing = Vec::new();
    for slice in wanted {
        match existing.iter().position(|old| slice.is(old)) {
            Some(at) => drop(existing.remove(at)),
            None => missing.push(slice),
        }
    }
    for slice in missing {
        // The address type of a slice cannot change.
        let reusable = existing.iter().rposition(|old| old.address_type == slice.address_type);
        if let Some(old) = reusable.map(|at| existing.remove(at)) {
            let patch = Patch::merge(json!({ "endpoints": slice.endpoints, "ports": slice.ports }));
            ignore_not_found(cx.client().patch(&*old, &patch).await)?;
            continue;
        }
        let mut new = EndpointSlice {
            metadata: ObjectMeta {
                namespace: Some(namespace.to_owned()),
                generate_name: Some(format!("{name}-")),
                ..metadata.clone()
            },
            address_type: slice.address_type.to_owned(),
            // Optional since Kubernetes 1.36.
            endpoints: slice.endpoints.clone().into(),
            ports: Some(slice.ports.clone()),
        };
        // Cannot fail: the slice is new and in the same namespace.
        let _ = set_controller_reference(owner, &mut new);
        cx.client().create(&new).await?;
    }
    for old in existing {
        let how = Delete::new().uid(old.metadata.uid.clone().unwrap_or_default());
        ignore_not_found(cx.client().delete_with(&*old, &how).await)?;
    }
    Ok(())
}

async fn write_endpoints(
    service: &Service,
    subsets: &[k8s_openapi::api::core::v1::EndpointSubset],
    cx: &Context,
) -> Result<(), client::Error> {
    let mut labels = labels(service);
    labels.insert(ENDPOINTS_MANAGED_BY.to_owned(), "endpoint-controller".to_owned());
    let old = cx.client().get_opt::<Endpoints>(cx.key()).await?;
    let Some(old) = old else {
        let metadata = ObjectMeta {
            namespace: service.metadata.namespace.clone(),
            name: service.metadata.name.clone(),
            labels: Some(labels),
            ..ObjectMeta::default()
        };
        let subsets = Some(subsets.to_vec()).filter(|subsets| !subsets.is_empty());
        cx.client().create(&Endpoints { metadata, subsets }).await?;
        return Ok(());
    };
    if old.subsets.as_deref().unwrap_or_default() != subsets || old.metadata.labels.as_ref() != Some(&labels)
    {
        let patch = Patch::merge(json!({ "metadata": { "labels": labels }, "subsets": subsets }));
        ignore_not_found(cx.client().patch(&*old, &patch).await)?;
    }
    Ok(())
}

/// The labels copied from the Service.
fn labels(service: &Service) -> BTreeMap<String, String> {
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    let headless = service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()) == Some("None");
    if headless {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels
}
