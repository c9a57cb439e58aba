//! Installs the operator's CRDs.
//!
//! CRDs that changed since the last call are applied. They are served when [`Definitions::apply`] returns.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams};
use kubewright_runtime::eventually;
use serde_json::Value;

use super::answer::told;
use super::samples::MANAGER;
use crate::error::Hint as _;

/// Timeout for a CRD to be established.
const PATIENCE: Duration = Duration::from_secs(30);

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
    let before = api.get_opt(name).await.map_err(told).with_context(failed)?;
    let parameters = PatchParams::apply(MANAGER).force();
    let now = api
        .patch(name, &parameters, &Patch::Apply(definition))
        .await
        .map_err(told)
        .with_context(failed)
        .hint("if the change is not allowed, delete the CRD with kubectl, or use --fresh")?;
    let changed = before.is_none_or(|before| before.metadata.generation != now.metadata.generation);
    if !is_established(&now) {
        // Other errors are not retried.
        let served = eventually(PATIENCE, async || match api.get(name).await {
            Ok(now) if !is_established(&now) => Err(obstacles(now)),
            answer => Ok(answer),
        });
        let served = served.await.map_err(|never| anyhow!("the CRD did not become Established: {never}"));
        served.with_context(failed)?.map_err(told).with_context(failed)?;
    }
    Ok(changed)
}

/// The conditions that explain why a CRD is not served.
fn obstacles(definition: CustomResourceDefinition) -> String {
    let conditions = definition.status.and_then(|status| status.conditions).unwrap_or_default();
    let reasons: Vec<String> = conditions
        .into_iter()
        .filter(|condition| condition.status != "True")
        .map(|condition| format!("{}: {}", condition.type_, condition.message.unwrap_or_default()))
        .collect();
    reasons.join("; ")
}

fn is_established(definition: &CustomResourceDefinition) -> bool {
    let conditions = definition.status.as_ref().and_then(|status| status.conditions.as_deref());
    definition.metadata.deletion_timestamp.is_none()
        && conditions
            .unwrap_or_default()
            .iter()
            .any(|condition| condition.type_ == "Established" && condition.status == "True")
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
