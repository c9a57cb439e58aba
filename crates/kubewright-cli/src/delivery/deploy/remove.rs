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
#[derive(Default)]
struct Existing {
    count: usize,
    /// Those of the given namespaces that contain objects.
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
    let namespaces: Vec<&Object> = rendered.of_kind("Namespace").collect();
    for object in rendered.of_kind("CustomResourceDefinition") {
        let existing = existing(client, object, &namespaces).await?;
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
        for namespace in &namespaces {
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
async fn existing(client: &kube::Client, object: &Object, namespaces: &[&Object]) -> Result<Existing> {
    let failed = || format!("cannot list the objects of {}", object.id());
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let Some(definition) = api.get_opt(object.name()).await.map_err(api_error).with_context(failed)? else {
        return Ok(Existing::default());
    };
    let spec = &definition.spec;
    // Objects in the storage version need no conversion, for which the operator must run.
    let served = || spec.versions.iter().filter(|version| version.served);
    let Some(version) = served().find(|version| version.storage).or_else(|| served().next()) else {
        return Ok(Existing::default());
    };
    let kind = GroupVersionKind::gvk(&spec.group, &version.name, &spec.names.kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, &spec.names.plural);
    let count = async |api: Api<DynamicObject>| {
        let list = api.list_metadata(&ListParams::default().limit(1)).await;
        let list = list.map_err(api_error).with_context(failed)?;
        let further = list.metadata.remaining_item_count.unwrap_or_default();
        anyhow::Ok(list.items.len() + usize::try_from(further).unwrap_or_default())
    };
    let mut existing =
        Existing { count: count(Api::all_with(client.clone(), &resource)).await?, ..Existing::default() };
    if existing.count > 0 && spec.scope == "Namespaced" {
        for namespace in namespaces {
            let api = Api::namespaced_with(client.clone(), namespace.name(), &resource);
            if count(api).await? > 0 {
                existing.namespaces.push(namespace.name().to_owned());
            }
        }
    }
    Ok(existing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A CRD with the versions v1 and v2, converted by a Service that does not exist.
    fn orders(storage: &str) -> String {
        let version = |name: &str| {
            json!({
                "name": name, "served": true, "storage": name == storage,
                "schema": { "openAPIV3Schema": { "type": "object" } },
            })
        };
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "orders.example.com" },
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": { "kind": "Order", "plural": "orders" },
                "versions": [version("v1"), version("v2")],
                "conversion": {
                    "strategy": "Webhook",
                    "webhook": {
                        "conversionReviewVersions": ["v1"],
                        "clientConfig": { "service": { "namespace": "shop-system", "name": "webhook-service" } },
                    },
                },
            },
        });
        crd.to_string()
    }

    fn namespace(name: &str) -> String {
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }).to_string()
    }

    fn order(namespace: &str, number: usize) -> String {
        let metadata = json!({ "name": format!("order-{number}"), "namespace": namespace });
        json!({ "apiVersion": "example.com/v2", "kind": "Order", "metadata": metadata }).to_string()
    }

    async fn install(client: &kube::Client, documents: &[String]) -> Rendered {
        let rendered = Rendered::parse(&documents.join("\n---\n")).unwrap();
        for object in &rendered.objects {
            let api = resource::served(client, object).await.unwrap();
            let patch = kube::api::Patch::Apply(object.value());
            api.patch(object.name(), &kube::api::PatchParams::apply("test"), &patch).await.unwrap();
        }
        rendered
    }

    #[tokio::test]
    async fn the_namespace_of_the_operator_is_found_behind_many_objects() {
        let server = kubewright_apiserver::ApiServer::new(kubewright_apiserver::Options::default());
        let client = kube::Client::new(server, "default");
        install(&client, &[namespace("a-ns"), namespace("other")]).await;
        let operator = install(&client, &[namespace("shop-system"), orders("v2")]).await;
        let mut all: Vec<String> = (0..501).map(|number| order("a-ns", number)).collect();
        all.push(order("shop-system", 0));
        install(&client, &all).await;
        let crd = operator.of_kind("CustomResourceDefinition").next().unwrap();
        let other = Rendered::parse(&namespace("other")).unwrap();
        let namespaces: Vec<&Object> =
            operator.of_kind("Namespace").chain(other.of_kind("Namespace")).collect();
        let existing = existing(&client, crd, &namespaces).await.unwrap();
        assert_eq!((existing.count, existing.namespaces), (502, vec!["shop-system".to_owned()]));
    }

    #[tokio::test]
    async fn objects_are_counted_without_the_conversion_webhook() {
        let server = kubewright_apiserver::ApiServer::new(kubewright_apiserver::Options::default());
        let client = kube::Client::new(server, "default");
        let operator = install(&client, &[namespace("shop-system"), orders("v2")]).await;
        install(&client, &[order("shop-system", 0)]).await;
        let crd = operator.of_kind("CustomResourceDefinition").next().unwrap();
        let namespaces: Vec<&Object> = operator.of_kind("Namespace").collect();
        let existing = existing(&client, crd, &namespaces).await.unwrap();
        assert_eq!((existing.count, existing.namespaces), (1, vec!["shop-system".to_owned()]));
    }
}
