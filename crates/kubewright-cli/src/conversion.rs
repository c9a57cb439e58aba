//! Removes the conversion webhook of an installed CRD.
//!
//! The operator injects `caBundle` with its own field manager. A server-side apply of a CRD without conversion removes
//! only the fields of its own field manager, so `caBundle` stays, and the API server rejects a client configuration
//! without the strategy `Webhook`. One patch must therefore replace the whole stanza.

use anyhow::{Context as _, Result, anyhow};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::error::Hint as _;

/// An installed CRD with a conversion webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Converted {
    /// Name of the CRD.
    name: String,
    resource_version: String,
    /// The storage version.
    storage: String,
    /// `status.storedVersions`.
    stored: Vec<String>,
    /// The versions that are served.
    pub(crate) served: Vec<String>,
}

/// The kubectl command that removes the conversion webhook of a CRD.
pub(crate) fn command(crd: &str) -> String {
    format!("kubectl patch crd {crd} --type=json -p='{}'", json!([replace()]))
}

fn replace() -> Value {
    json!({ "op": "add", "path": "/spec/conversion", "value": { "strategy": "None" } })
}

impl Converted {
    /// Reads a CRD. `None` if it is not installed or has no conversion webhook.
    pub(crate) async fn find(client: &kube::Client, name: &str) -> Result<Option<Self>> {
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        let crd = api.get_opt(name).await.with_context(|| format!("cannot read the CRD {name}"))?;
        let Some(crd) = crd else { return Ok(None) };
        if crd.spec.conversion.as_ref().is_none_or(|conversion| conversion.strategy != "Webhook") {
            return Ok(None);
        }
        let versions = &crd.spec.versions;
        let served = versions.iter().filter(|version| version.served);
        let storage = versions.iter().find(|version| version.storage);
        Ok(Some(Self {
            name: name.to_owned(),
            resource_version: crd.metadata.resource_version.clone().unwrap_or_default(),
            storage: storage.map(|version| version.name.clone()).unwrap_or_default(),
            stored: crd.status.as_ref().and_then(|status| status.stored_versions.clone()).unwrap_or_default(),
            served: served.map(|version| version.name.clone()).collect(),
        }))
    }

    /// Fails if objects may be stored in a version other than the storage version.
    pub(crate) fn check_stored(&self) -> Result<()> {
        let Self { name, storage, stored, .. } = self;
        if stored.iter().all(|version| version == storage) {
            return Ok(());
        }
        Err(anyhow!(
            "{name}: objects may be stored in {}; without conversion, their fields would be lost",
            stored.join(", ")
        ))
        .hint(format!("migrate them first: `kubewright migrate {name}`"))
    }

    /// Sets the strategy to `None` and drops the client configuration with the injected CA.
    pub(crate) async fn remove(&self, client: &kube::Client) -> Result<()> {
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        // The versions were checked at this resourceVersion.
        let test =
            json!({ "op": "test", "path": "/metadata/resourceVersion", "value": self.resource_version });
        let patch = serde_json::from_value(json!([test, replace()])).context("invalid JSON patch")?;
        api.patch(&self.name, &PatchParams::default(), &Patch::<()>::Json(patch))
            .await
            .map(|_| ())
            .with_context(|| format!("cannot remove the conversion of the CRD {}", self.name))
            .hint("repeat the command")
    }
}
