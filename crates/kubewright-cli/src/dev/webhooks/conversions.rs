//! The conversion webhooks of CRDs on an existing cluster.
//!
//! While `dev` runs, the API server calls this machine to convert objects. The previous `spec.conversion` is stored in an
//! annotation of the CRD by the same write that replaces it, so it can be restored at the end of the run or, after a
//! crash, at the start of the next one. A CRD that did not exist before gets the strategy `None`: its objects stay
//! readable without this machine.

use anyhow::{Context as _, Result};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use super::LABEL;
use crate::dev::api_error;
use crate::dev::samples::MANAGER;

/// The annotation with the previous `spec.conversion`.
const PREVIOUS: &str = "kubewright.dev/dev-previous-conversion";

fn crds(client: &kube::Client) -> Api<DynamicObject> {
    let crd = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    Api::all_with(client.clone(), &ApiResource::from_gvk(&crd))
}

/// Adds the annotation and the label of the project to a CRD that is about to be applied. A CRD of the cluster gets its
/// new `spec.conversion` here: an apply would keep fields of other field managers, such as `service` beside `url`.
pub(super) async fn remember(client: &kube::Client, project: &str, crd: &mut Value) -> Result<()> {
    let name = crd.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let api = crds(client);
    let found = api.get_opt(&name).await.map_err(api_error);
    let found = found.with_context(|| format!("cannot read the CRD {name}"))?;
    let known = found.as_ref().and_then(|crd| crd.metadata.annotations.as_ref()?.get(PREVIOUS).cloned());
    let is_known = known.is_some();
    let previous = known.unwrap_or_else(|| {
        let conversion = found.as_ref().and_then(|crd| crd.data.pointer("/spec/conversion"));
        conversion.cloned().unwrap_or_else(|| json!({ "strategy": "None" })).to_string()
    });
    if let Some(found) = found.filter(|_| !is_known) {
        let mut metadata = json!({
            "annotations": found.metadata.annotations.unwrap_or_default(),
            "labels": found.metadata.labels.unwrap_or_default(),
        });
        metadata["annotations"][PREVIOUS] = previous.clone().into();
        metadata["labels"][LABEL] = project.into();
        let patch = json!([
            { "op": "test", "path": "/metadata/resourceVersion", "value": found.metadata.resource_version },
            { "op": "add", "path": "/metadata/annotations", "value": metadata["annotations"] },
            { "op": "add", "path": "/metadata/labels", "value": metadata["labels"] },
            { "op": "add", "path": "/spec/conversion", "value": crd["spec"]["conversion"] },
        ]);
        let failed = || format!("cannot set the conversion of the CRD {name}");
        patch_crd(&api, &name, patch).await.with_context(failed)?;
    }
    crd["metadata"]["annotations"][PREVIOUS] = previous.into();
    crd["metadata"]["labels"][LABEL] = project.into();
    Ok(())
}

async fn patch_crd(api: &Api<DynamicObject>, name: &str, patch: Value) -> Result<()> {
    let patch = serde_json::from_value(patch).context("invalid JSON patch")?;
    let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    api.patch(name, &parameters, &Patch::<()>::Json(patch)).await.map(|_| ()).map_err(api_error)
}

/// Restores `spec.conversion` of the project's CRDs. Returns how many were changed.
pub(super) async fn restore(client: &kube::Client, project: &str) -> Result<usize> {
    let api = crds(client);
    let of_project = ListParams::default().labels(&format!("{LABEL}={project}"));
    let found = api.list(&of_project).await.map_err(api_error).context("cannot list CRDs")?;
    let mut restored = 0;
    for crd in found {
        let name = crd.metadata.name.unwrap_or_default();
        let annotations = crd.metadata.annotations.unwrap_or_default();
        let Some(text) = annotations.get(PREVIOUS) else { continue };
        let previous: Value = serde_json::from_str(text)
            .with_context(|| format!("the annotation {PREVIOUS} of the CRD {name} is not JSON"))?;
        let pointer = |map: &str, key: &str| format!("/metadata/{map}/{}", key.replace('/', "~1"));
        let patch = json!([
            { "op": "test", "path": pointer("annotations", PREVIOUS), "value": text },
            { "op": "add", "path": "/spec/conversion", "value": previous },
            { "op": "remove", "path": pointer("annotations", PREVIOUS) },
            { "op": "remove", "path": pointer("labels", LABEL) },
        ]);
        let failed = || format!("cannot restore the conversion of the CRD {name}");
        patch_crd(&api, &name, patch).await.with_context(failed)?;
        restored += 1;
    }
    Ok(restored)
}
