//! kube's discovery on the in-process server, aggregated and legacy, and dynamic objects through it.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::{self, Discovery, Scope, verbs};
use serde_json::json;

use crate::world::{alone, object};

type Found = BTreeMap<(String, String, String), (String, bool, Vec<String>, Vec<String>)>;

fn found(discovery: &Discovery) -> Found {
    let mut found = Found::new();
    for group in discovery.groups() {
        for version in group.versions() {
            for (resource, capabilities) in group.versioned_resources(version) {
                let mut operations = capabilities.operations.clone();
                operations.sort();
                let mut subresources: Vec<_> =
                    capabilities.subresources.iter().map(|(sub, _)| sub.plural.clone()).collect();
                subresources.sort();
                let namespaced = capabilities.scope == Scope::Namespaced;
                let key = (group.name().to_owned(), version.to_owned(), resource.kind.clone());
                found.insert(key, (resource.plural, namespaced, operations, subresources));
            }
        }
    }
    found
}

#[tokio::test]
async fn aggregated_and_legacy_discovery_find_the_same() -> Result<()> {
    let client = alone();
    let legacy = Discovery::new(client.clone()).run().await?;
    let aggregated = Discovery::new(client).run_aggregated().await?;
    let (legacy, aggregated) = (found(&legacy), found(&aggregated));
    assert!(legacy.len() > 50, "{}", legacy.len());
    assert_eq!(legacy, aggregated);
    Ok(())
}

#[tokio::test]
async fn groups_can_be_included_and_excluded() -> Result<()> {
    let client = alone();
    let only = Discovery::new(client.clone()).filter(&["apps", "batch"]).run().await?;
    let mut names: Vec<_> = only.groups().map(discovery::ApiGroup::name).collect();
    names.sort_unstable();
    assert_eq!(names, ["apps", "batch"]);
    let without = Discovery::new(client).exclude(&["apps"]).run_aggregated().await?;
    assert!(without.has_group("batch") && !without.has_group("apps"));
    Ok(())
}

#[tokio::test]
async fn a_discovered_kind_can_be_used_dynamically() -> Result<()> {
    let client = alone();
    let gvk = GroupVersionKind::gvk("apps", "v1", "Deployment");
    let (resource, capabilities) = discovery::pinned_kind(&client, &gvk).await?;
    assert_eq!(resource.plural, "deployments");
    assert!(capabilities.supports_operation(verbs::WATCH));
    assert_eq!(capabilities.scope, Scope::Namespaced);
    let mut subresources: Vec<_> =
        capabilities.subresources.iter().map(|(sub, _)| sub.plural.as_str()).collect();
    subresources.sort_unstable();
    assert_eq!(subresources, ["scale", "status"]);

    let deployments: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
    let web: DynamicObject = object(json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "nginx"}]},
            },
        },
    }));
    let created = deployments.create(&PostParams::default(), &web).await?;
    assert_eq!(created.data["spec"]["replicas"], 1);
    let listed = deployments.list(&ListParams::default()).await?;
    assert_eq!(listed.items.len(), 1);
    Ok(())
}

#[tokio::test]
async fn the_reported_version_is_that_of_the_recordings() -> Result<()> {
    let version = alone().apiserver_version().await?;
    assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "36"));
    Ok(())
}

/// Lists every listable resource, using only discovery.
#[tokio::test]
async fn every_listable_resource_is_listed_and_watched() -> Result<()> {
    let client = alone();
    let discovery = Discovery::new(client.clone()).run_aggregated().await?;
    let mut listed = 0;
    for group in discovery.groups() {
        for version in group.versions() {
            for (resource, capabilities) in group.versioned_resources(version) {
                if !capabilities.supports_operation(verbs::LIST) {
                    continue;
                }
                let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
                let what = || format!("{}/{}", resource.api_version, resource.plural);
                api.list(&ListParams::default().limit(1)).await.with_context(what)?;
                if capabilities.supports_operation(verbs::WATCH) {
                    api.watch(&kube::api::WatchParams::default(), "0").await.map(drop).with_context(what)?;
                }
                listed += 1;
            }
        }
    }
    assert!(listed > 50, "{listed}");
    Ok(())
}
