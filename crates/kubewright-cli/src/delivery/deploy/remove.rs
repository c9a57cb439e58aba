//! Removes the objects of a deployment.
//!
//! CRDs that have objects are kept: deleting a CRD deletes all its objects in all namespaces. On request they
//! are deleted first, while the operator still runs and can remove its finalizers.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams};
use kube::core::GroupVersionKind;

use super::resource;
use crate::delivery::rendered::{Object, Rendered};
use crate::dev::api_error;
use crate::error::Hint as _;
use crate::ui::Ui;

/// Time between two requests while an object is deleted.
const PAUSE: Duration = Duration::from_millis(500);
/// Objects in the list of a kind; more are counted by the server.
const PAGE: u32 = 500;

/// How to remove.
#[derive(Debug)]
pub(crate) struct Removal {
    /// Whether missing objects are no error.
    pub(crate) ignore_not_found: bool,
    /// Whether CRDs with objects are deleted.
    pub(crate) with_custom_resources: bool,
    /// Whether nothing is deleted, only reported.
    pub(crate) dry_run: bool,
    pub(crate) timeout: Duration,
}

/// The objects of a CRD.
struct Existing {
    count: usize,
    namespaces: Vec<String>,
}

/// Removes all objects, and prints a line for each.
pub(crate) async fn remove(
    client: &kube::Client,
    rendered: &Rendered,
    removal: &Removal,
    ui: &Ui,
) -> Result<()> {
    let mut kept: Vec<String> = Vec::new();
    let mut crds: Vec<&Object> = Vec::new();
    for object in rendered.of_kind("CustomResourceDefinition") {
        let existing = existing(client, object).await?;
        if existing.count == 0 || removal.with_custom_resources {
            crds.push(object);
            continue;
        }
        ui.warn(&format!(
            "{} is kept: it has {} {}; --delete-custom-resources deletes both",
            object.id(),
            existing.count,
            if existing.count == 1 { "object" } else { "objects" },
        ));
        if object.value().pointer("/spec/conversion/strategy").is_some_and(|it| it == "Webhook") {
            ui.warn(&format!("{} has a conversion webhook, which is removed: its objects cannot be read until the operator is deployed again", object.id()));
        }
        kept.push(object.id());
        for namespace in rendered.of_kind("Namespace") {
            if existing.namespaces.iter().any(|name| name == namespace.name())
                && !kept.contains(&namespace.id())
            {
                ui.warn(&format!("{} is kept: it has objects of this CRD", namespace.id()));
                kept.push(namespace.id());
            }
        }
    }
    let others = rendered.objects.iter().rev();
    let others = others.filter(|it| it.kind() != "CustomResourceDefinition" && !kept.contains(&it.id()));
    // CRDs with objects are deleted while the operator runs, others after it, so that it never watches a missing kind.
    let order: Vec<&Object> = if removal.with_custom_resources {
        crds.into_iter().chain(others).collect()
    } else {
        let (namespaces, others): (Vec<&Object>, Vec<&Object>) =
            others.partition(|it| it.kind() == "Namespace");
        others.into_iter().chain(crds).chain(namespaces).collect()
    };
    let mut missing = Vec::new();
    for object in order {
        if !delete(client, object, removal, ui).await? {
            missing.push(object.id());
        }
    }
    if missing.is_empty() || removal.ignore_not_found {
        return Ok(());
    }
    Err(anyhow!("not found: {}", missing.join(", "))).hint("ignore missing objects with --ignore-not-found")
}

/// Deletes an object and waits until it is deleted. Returns whether it existed.
async fn delete(client: &kube::Client, object: &Object, removal: &Removal, ui: &Ui) -> Result<bool> {
    let failed = || format!("cannot delete {}", object.id());
    let Some(api) = resource::find(client, object).await? else { return Ok(false) };
    if removal.dry_run {
        let found = api.get_metadata_opt(object.name()).await.map_err(api_error).with_context(failed)?;
        if found.is_some() {
            ui.print(format!("would delete {}\n", object.id()).as_bytes())?;
        }
        return Ok(found.is_some());
    }
    match api.delete(object.name(), &DeleteParams::background()).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(false),
        Err(error) => return Err(api_error(error)).with_context(failed),
    }
    let started = Instant::now();
    let mut said = false;
    while let Some(left) =
        api.get_metadata_opt(object.name()).await.map_err(api_error).with_context(failed)?
    {
        if started.elapsed() >= removal.timeout {
            let finalizers = left.metadata.finalizers.unwrap_or_default().join(", ");
            return Err(anyhow!(
                "{} still exists after {:?} (finalizers: {finalizers})",
                object.id(),
                removal.timeout
            ))
            .hint("check that a controller removes the finalizers, or wait longer with --timeout");
        }
        if !said && started.elapsed() > Duration::from_secs(1) {
            ui.note(&format!("waiting until {} is deleted", object.id()));
            said = true;
        }
        tokio::time::sleep(PAUSE).await;
    }
    ui.print(format!("deleted {}\n", object.id()).as_bytes())?;
    Ok(true)
}

/// The objects of a CRD in all namespaces.
async fn existing(client: &kube::Client, object: &Object) -> Result<Existing> {
    let failed = || format!("cannot list the objects of {}", object.id());
    let none = Existing { count: 0, namespaces: Vec::new() };
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let Some(definition) = api.get_opt(object.name()).await.map_err(api_error).with_context(failed)? else {
        return Ok(none);
    };
    let names = &definition.spec.names;
    // Objects can be listed in any served version.
    let Some(version) = definition.spec.versions.iter().find(|version| version.served) else {
        return Ok(none);
    };
    let kind = GroupVersionKind::gvk(&definition.spec.group, &version.name, &names.kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, &names.plural);
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let list = api
        .list_metadata(&ListParams::default().limit(PAGE))
        .await
        .map_err(api_error)
        .with_context(failed)?;
    let further = usize::try_from(list.metadata.remaining_item_count.unwrap_or_default()).unwrap_or_default();
    let namespaces = list.items.iter().filter_map(|item| item.metadata.namespace.clone()).collect();
    Ok(Existing { count: list.items.len() + further, namespaces })
}
