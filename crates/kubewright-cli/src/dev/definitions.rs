//! Installs the operator's CRDs.
//!
//! CRDs that changed since the last call are applied. They are served when [`Definitions::apply`] returns.

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
pub(crate) struct Definitions {
    applied: Vec<Value>,
}

/// A kind that the operator defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Defined {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    /// Whether it has the status subresource.
    pub(crate) has_status: bool,
}

impl Definitions {
    /// Applies the CRDs. Returns how many changed.
    pub(crate) async fn apply(
        &mut self,
        client: &kube::Client,
        definitions: &[(String, Value)],
    ) -> Result<usize> {
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        let mut changed = 0;
        for (_, definition) in definitions.iter().filter(|(_, definition)| !self.applied.contains(definition))
        {
            let name = definition.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            changed += usize::from(install(&api, name, definition).await?);
        }
        self.applied = definitions.iter().map(|(_, definition)| definition.clone()).collect();
        Ok(changed)
    }

    /// The served versions of the kinds.
    pub(crate) fn kinds(&self) -> Vec<Defined> {
        self.applied.iter().flat_map(kinds).collect()
    }
}

/// Applies a CRD and waits until it is established. Returns whether it changed.
async fn install(api: &Api<CustomResourceDefinition>, name: &str, definition: &Value) -> Result<bool> {
    let failed = || format!("cannot install the CRD {name}");
    let before = api.get_opt(name).await.map_err(api_error).with_context(failed)?;
    let parameters = PatchParams::apply(MANAGER).force();
    let now = api
        .patch(name, &parameters, &Patch::Apply(definition))
        .await
        .map_err(api_error)
        .with_context(failed)
        .hint("if the change is not allowed, delete the CRD with kubectl, or use --fresh")?;
    let changed = before.is_none_or(|before| before.metadata.generation != now.metadata.generation);
    readiness::crd::wait(api, name).await.with_context(failed)?;
    Ok(changed)
}

fn kinds(definition: &Value) -> Vec<Defined> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let spec = &definition["spec"];
    let served =
        spec["versions"].as_array().into_iter().flatten().filter(|version| version["served"] == true);
    served
        .map(|version| Defined {
            group: text(&spec["group"]),
            version: text(&version["name"]),
            kind: text(&spec["names"]["kind"]),
            plural: text(&spec["names"]["plural"]),
            has_status: version["subresources"]["status"].is_object(),
        })
        .collect()
}
