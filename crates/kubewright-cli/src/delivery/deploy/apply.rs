//! Applies objects with server-side apply.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams};
use kubewright_runtime::eventually;

use super::{MANAGER, resource};
use crate::conversion::Converted;
use crate::delivery::rendered::{Object, Rendered};
use crate::dev::told;
use crate::error::Hint as _;
use crate::ui::Ui;

/// Timeout for a CRD to be established.
const PATIENCE: Duration = Duration::from_secs(30);

/// Applies all objects, and prints a line for each. CRDs are served before the next kind is applied.
pub(crate) async fn apply(client: &kube::Client, rendered: &Rendered, ui: &Ui) -> Result<()> {
    let mut unchanged = 0;
    for object in &rendered.objects {
        let change = apply_one(client, object).await?;
        if change == "unchanged" {
            unchanged += 1;
        } else {
            ui.print(format!("{change} {}\n", object.id()).as_bytes())?;
        }
        if object.kind() == "CustomResourceDefinition" {
            established(client, object.name()).await?;
        }
    }
    if unchanged > 0 {
        ui.note(&format!("{unchanged} of {} objects unchanged", rendered.objects.len()));
    }
    Ok(())
}

/// Applies an object. Returns what happened to it.
async fn apply_one(client: &kube::Client, object: &Object) -> Result<&'static str> {
    let failed = || format!("cannot apply {}", object.id());
    let api = resource::served(client, object).await?;
    let before = api.get_metadata_opt(object.name()).await.map_err(told).with_context(failed)?;
    let before = before.map(|before| before.metadata);
    if before.as_ref().is_some_and(|before| before.deletion_timestamp.is_some()) {
        return Err(anyhow!("{} is being deleted", object.id()))
            .with_context(failed)
            .hint("wait until it is gone, and try again");
    }
    release_conversion(client, object).await.with_context(failed)?;
    let parameters = PatchParams::apply(MANAGER).force();
    let after = api
        .patch(object.name(), &parameters, &Patch::Apply(object.value()))
        .await
        .map_err(told)
        .with_context(failed)?;
    Ok(match before {
        None => "created",
        Some(before) if before.resource_version == after.metadata.resource_version => "unchanged",
        Some(_) => "configured",
    })
}

/// Removes the conversion webhook of an installed CRD that is to have none. The apply itself would keep the CA that the
/// operator injected, which the API server rejects.
async fn release_conversion(client: &kube::Client, object: &Object) -> Result<()> {
    let strategy = object.value().pointer("/spec/conversion/strategy");
    if object.kind() != "CustomResourceDefinition" || strategy.is_some_and(|strategy| strategy == "Webhook") {
        return Ok(());
    }
    if let Some(converted) = Converted::find(client, object.name()).await? {
        converted.check_stored()?;
        converted.remove(client).await?;
    }
    Ok(())
}

async fn established(client: &kube::Client, name: &str) -> Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let served = eventually(PATIENCE, async || match api.get(name).await {
        Ok(definition) if is_established(&definition) => Ok(Ok(())),
        Ok(definition) => Err(obstacles(&definition)),
        Err(error) => Ok(Err(told(error))),
    });
    let served = served.await.map_err(|never| anyhow!("{never}"));
    served.and_then(|served| served).with_context(|| format!("the CRD {name} was not established"))
}

fn is_established(definition: &CustomResourceDefinition) -> bool {
    conditions(definition).any(|(kind, status, _)| (kind, status) == ("Established", "True"))
}

/// The conditions that explain why a CRD is not served.
fn obstacles(definition: &CustomResourceDefinition) -> String {
    let reasons: Vec<String> = conditions(definition)
        .filter(|(_, status, _)| *status != "True")
        .map(|(kind, _, message)| format!("{kind}: {message}"))
        .collect();
    reasons.join("; ")
}

fn conditions(definition: &CustomResourceDefinition) -> impl Iterator<Item = (&str, &str, &str)> {
    let conditions = definition.status.as_ref().and_then(|status| status.conditions.as_deref());
    conditions.unwrap_or_default().iter().map(|condition| {
        let message = condition.message.as_deref().unwrap_or_default();
        (condition.type_.as_str(), condition.status.as_str(), message)
    })
}
