//! Installs the operator's CRDs.
//!
//! CRDs that changed since the last call are applied. They are served when [`AppliedCrds::apply`] returns.

use anyhow::{Context as _, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams};
use serde_json::Value;

use super::api_error::api_error;
use super::samples::MANAGER;
use crate::error::Hint as _;
use crate::readiness;

/// The CRDs applied last.
#[derive(Debug, Default)]
pub(crate) struct AppliedCrds {
    applied: Vec<Value>,
}

/// A served version of a custom kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CustomKind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    /// Whether it has the status subresource.
    pub(crate) has_status: bool,
}

impl AppliedCrds {
    /// Applies the CRDs. Returns how many changed.
    pub(crate) async fn apply(&mut self, client: &kube::Client, crds: &[(String, Value)]) -> Result<usize> {
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        let mut changed = 0;
        for (_, crd) in crds.iter().filter(|(_, crd)| !self.applied.contains(crd)) {
            let name = crd.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            changed += usize::from(install(&api, name, crd).await?);
        }
        self.applied = crds.iter().map(|(_, crd)| crd.clone()).collect();
        Ok(changed)
    }

    /// The served versions of the kinds.
    pub(crate) fn kinds(&self) -> Vec<CustomKind> {
        self.applied.iter().flat_map(kinds).collect()
    }
}

/// Applies a CRD and waits until it is established. Returns whether it changed.
async fn install(api: &Api<CustomResourceDefinition>, name: &str, crd: &Value) -> Result<bool> {
    let failed = || format!("cannot install the CRD {name}");
    let before = api.get_opt(name).await.map_err(api_error).with_context(failed)?;
    let parameters = PatchParams::apply(MANAGER).force();
    let now = api
        .patch(name, &parameters, &Patch::Apply(crd))
        .await
        .map_err(api_error)
        .with_context(failed)
        .hint("if the change is not allowed, delete the CRD with kubectl, or use --fresh")?;
    let changed = before.is_none_or(|before| before.metadata.generation != now.metadata.generation);
    readiness::crd::wait(api, name).await.with_context(failed)?;
    Ok(changed)
}

fn kinds(crd: &Value) -> Vec<CustomKind> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let spec = &crd["spec"];
    let served =
        spec["versions"].as_array().into_iter().flatten().filter(|version| version["served"] == true);
    served
        .map(|version| CustomKind {
            group: text(&spec["group"]),
            version: text(&version["name"]),
            kind: text(&spec["names"]["kind"]),
            plural: text(&spec["names"]["plural"]),
            has_status: version["subresources"]["status"].is_object(),
        })
        .collect()
}
