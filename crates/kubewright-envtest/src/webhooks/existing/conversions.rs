//! `spec.conversion` of CRDs on an existing cluster.
//!
//! A CRD has one conversion webhook, but several environments can use the CRD at the same time. An annotation keeps the
//! conversion from before the first environment, and one entry per session. The last session's webhook converts; when
//! that session ends, the one before it does. The annotation and `spec.conversion` are always changed by the same write,
//! so a killed process leaves nothing that cannot be restored.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{LABEL, OWNER, Origin};

/// The annotation with the [`Record`] of a CRD.
const ANNOTATION: &str = "kubewright.dev/envtest-conversion";
/// How often a write that conflicts is tried. Each round of concurrent writes has one that succeeds.
pub(super) const ATTEMPTS: usize = 50;

/// The conversions of a CRD while environments use it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Record {
    /// `spec.conversion` before the first session.
    previous: Value,
    sessions: Vec<Entry>,
}

/// The conversion of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Entry {
    #[serde(flatten)]
    origin: Origin,
    conversion: Value,
}

fn crds(client: &kube::Client) -> Api<DynamicObject> {
    let crd = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    Api::all_with(client.clone(), &ApiResource::from_gvk(&crd))
}

/// Sets the conversion of a CRD for a session.
pub(super) async fn set(
    client: &kube::Client,
    name: &str,
    origin: &Origin,
    conversion: &Value,
) -> Result<(), kube::Error> {
    let change = |record: &mut Record| {
        record.sessions.retain(|entry| entry.origin.session != origin.session);
        record.sessions.push(Entry { origin: origin.clone(), conversion: conversion.clone() });
    };
    edit(client, name, change).await
}

/// Removes sessions from all CRDs. After its last session, a CRD has its previous conversion.
pub(super) async fn remove_where(
    client: &kube::Client,
    is_removed: impl Fn(&Origin) -> bool,
) -> Result<(), kube::Error> {
    let is_removed = |entry: &Entry| is_removed(&entry.origin);
    for crd in crds(client).list(&ListParams::default().labels(LABEL)).await? {
        // A record that another client has damaged cannot be restored.
        let Ok(Some(record)) = Record::read(&crd) else { continue };
        if record.sessions.iter().any(is_removed) {
            let name = crd.metadata.name.unwrap_or_default();
            edit(client, &name, |record| record.sessions.retain(|entry| !is_removed(entry))).await?;
        }
    }
    Ok(())
}

/// Replaces `spec.conversion` of a CRD that is about to be applied by that of the cluster, if a session has set it: an
/// apply would add a Service to the URL, or remove the fields that an earlier apply owned. The apply then conflicts if the
/// CRD changes before it, for example because the session ends.
pub(crate) async fn keep(
    client: &kube::Client,
    crd: &mut CustomResourceDefinition,
) -> Result<(), kube::Error> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let Some(live) = api.get_opt(crd.metadata.name.as_deref().unwrap_or_default()).await? else {
        return Ok(());
    };
    crd.metadata.resource_version = live.metadata.resource_version;
    if live.metadata.annotations.is_some_and(|annotations| annotations.contains_key(ANNOTATION)) {
        crd.spec.conversion = live.spec.conversion;
    }
    Ok(())
}

/// Changes the record of a CRD, if the CRD still exists.
async fn edit(client: &kube::Client, name: &str, change: impl Fn(&mut Record)) -> Result<(), kube::Error> {
    let api = crds(client);
    let mut attempt = 1;
    loop {
        let Some(crd) = api.get_opt(name).await? else { return Ok(()) };
        let before = Record::read(&crd)?;
        let mut record = before.clone().unwrap_or_else(|| Record::of(live(&crd)));
        change(&mut record);
        if before.as_ref() == Some(&record) || before.is_none() && record.sessions.is_empty() {
            return Ok(());
        }
        let parameters = PatchParams { field_manager: Some(OWNER.to_owned()), ..PatchParams::default() };
        let patch = serde_json::from_value(record.patch(&crd)).map_err(kube::Error::SerdeError)?;
        match api.patch(name, &parameters, &Patch::<()>::Json(patch)).await {
            Ok(_) => return Ok(()),
            // Another client has changed the CRD: a conflict, or a failed test of the patch.
            Err(kube::Error::Api(status)) if matches!(status.code, 409 | 422) && attempt < ATTEMPTS => {
                attempt += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// `spec.conversion` of a CRD.
fn live(crd: &DynamicObject) -> Value {
    crd.data.pointer("/spec/conversion").cloned().unwrap_or_else(|| json!({ "strategy": "None" }))
}

fn url(conversion: &Value) -> Option<&Value> {
    conversion.pointer("/webhook/clientConfig/url")
}

impl Record {
    fn of(previous: Value) -> Self {
        Self { previous, sessions: Vec::new() }
    }

    fn read(crd: &DynamicObject) -> Result<Option<Self>, kube::Error> {
        let annotations = crd.metadata.annotations.as_ref();
        let Some(text) = annotations.and_then(|annotations| annotations.get(ANNOTATION)) else {
            return Ok(None);
        };
        let mut record: Self = serde_json::from_str(text).map_err(kube::Error::SerdeError)?;
        let live = live(crd);
        // Another client has set a conversion since. It stays.
        if record.sessions.last().is_some_and(|entry| url(&entry.conversion) != url(&live)) {
            record.previous = live;
        }
        Ok(Some(record))
    }

    /// The JSON patch of a CRD to this record. It fails if the CRD has changed.
    fn patch(&self, crd: &DynamicObject) -> Value {
        let mut annotations = crd.metadata.annotations.clone().unwrap_or_default();
        let mut labels = crd.metadata.labels.clone().unwrap_or_default();
        let conversion = if let Some(entry) = self.sessions.last() {
            annotations.insert(ANNOTATION.to_owned(), json!(self).to_string());
            labels.insert(LABEL.to_owned(), entry.origin.session.clone());
            &entry.conversion
        } else {
            annotations.remove(ANNOTATION);
            labels.remove(LABEL);
            &self.previous
        };
        let map = |field: &str, known: bool, map: &BTreeMap<String, String>| {
            let path = format!("/metadata/{field}");
            match (map.is_empty(), known) {
                (false, _) => Some(json!({ "op": "add", "path": path, "value": map })),
                (true, true) => Some(json!({ "op": "remove", "path": path })),
                (true, false) => None,
            }
        };
        let version = &crd.metadata.resource_version;
        let operations = [
            Some(json!({ "op": "test", "path": "/metadata/resourceVersion", "value": version })),
            map("annotations", crd.metadata.annotations.is_some(), &annotations),
            map("labels", crd.metadata.labels.is_some(), &labels),
            Some(json!({ "op": "add", "path": "/spec/conversion", "value": conversion })),
        ];
        operations.into_iter().flatten().collect()
    }
}
