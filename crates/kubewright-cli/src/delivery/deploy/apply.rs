//! Applies objects with server-side apply.

use anyhow::{Context as _, Result, anyhow};
use kube::api::{Api, Patch, PatchParams};

use super::{MANAGER, resource, stale};
use crate::conversion::Converted;
use crate::delivery::rendered::{Object, Rendered};
use crate::dev::api_error;
use crate::error::Hint as _;
use crate::readiness;
use crate::ui::Ui;

/// Applies all objects and removes webhooks that are not among them, and prints a line for each. CRDs are served before the next kind is applied.
pub(crate) async fn apply(client: &kube::Client, rendered: &Rendered, ui: &Ui) -> Result<()> {
    stale::remove_entries(client, rendered).await?;
    let mut unchanged = 0;
    for object in &rendered.objects {
        let change = apply_one(client, object).await?;
        if change == "unchanged" {
            unchanged += 1;
        } else {
            ui.print(format!("{change} {}\n", object.id()).as_bytes())?;
        }
        if object.kind() == "CustomResourceDefinition" {
            readiness::crd::wait(&Api::all(client.clone()), object.name()).await?;
        }
    }
    stale::delete_configurations(client, rendered, ui).await?;
    if unchanged > 0 {
        ui.note(&format!("{unchanged} of {} objects unchanged", rendered.objects.len()));
    }
    Ok(())
}

/// Applies an object. Returns what happened to it.
async fn apply_one(client: &kube::Client, object: &Object) -> Result<&'static str> {
    let failed = || format!("cannot apply {}", object.id());
    let api = resource::served(client, object).await?;
    let before = api.get_metadata_opt(object.name()).await.map_err(api_error).with_context(failed)?;
    let before = before.map(|before| before.metadata);
    if before.as_ref().is_some_and(|before| before.deletion_timestamp.is_some()) {
        return Err(anyhow!("{} is being deleted", object.id()))
            .with_context(failed)
            .hint("wait until it is deleted, then try again");
    }
    release_conversion(client, object).await.with_context(failed)?;
    let parameters = PatchParams::apply(MANAGER).force();
    let after = api
        .patch(object.name(), &parameters, &Patch::Apply(object.value()))
        .await
        .map_err(api_error)
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
