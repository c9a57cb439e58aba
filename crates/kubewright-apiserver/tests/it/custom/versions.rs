//! Changes of a CRD over time: new fields, added and removed versions, existing objects.

use std::pin::pin;

use anyhow::Result;
use futures_util::TryStreamExt as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use super::{definition, definitions, dynamic, thing, version};
use crate::world::{alone, soon};

const NAME: &str = "things.example.org";

async fn define(client: &Client, versions: &[Value]) -> Result<Api<DynamicObject>> {
    definitions(client).create(&PostParams::default(), &definition("Thing", versions)).await?;
    Ok(dynamic(client, "Thing", "v1"))
}

/// Replaces the versions of the CRD.
async fn redefine(client: &Client, versions: &[Value]) -> kube::Result<CustomResourceDefinition> {
    let patch = Patch::Merge(json!({"spec": {"versions": versions}}));
    definitions(client).patch(NAME, &PatchParams::default(), &patch).await
}

fn stored(definition: &CustomResourceDefinition) -> Vec<String> {
    definition.status.as_ref().and_then(|status| status.stored_versions.clone()).unwrap_or_default()
}

fn size() -> Value {
    json!({"size": {"type": "integer"}})
}

fn size_and_color() -> Value {
    json!({"size": {"type": "integer"}, "color": {"type": "string", "default": "red"}})
}

#[tokio::test(start_paused = true)]
async fn a_new_field_is_available_to_the_next_request() -> Result<()> {
    let client = alone();
    let things = define(&client, &[version("v1", true, &size())]).await?;
    let before =
        things.create(&PostParams::default(), &thing("a", &json!({"size": 1, "color": "blue"}))).await?;
    assert_eq!(before.data["spec"], json!({"size": 1}), "unknown fields are pruned");
    let watch = things.watch(&WatchParams::default(), &before.resource_version().unwrap_or_default()).await?;
    let outdated = watch.try_collect::<Vec<WatchEvent<DynamicObject>>>();

    redefine(&client, &[version("v1", true, &size_and_color())]).await?;
    let after =
        things.create(&PostParams::default(), &thing("b", &json!({"size": 1, "color": "blue"}))).await?;
    assert_eq!(after.data["spec"], json!({"size": 1, "color": "blue"}));
    // Watches with the old schema end.
    assert_eq!(soon("the end of the watch", outdated).await?.len(), 0);

    // Stored objects get the default on read, and keep their resourceVersion.
    let read = things.get("a").await?;
    assert_eq!(read.data["spec"], json!({"size": 1, "color": "red"}));
    assert_eq!(read.resource_version(), before.resource_version());
    let listed = things.list(&ListParams::default()).await?;
    assert_eq!(listed.items[0].data, read.data);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_watcher_continues_after_its_crd_changed() -> Result<()> {
    let client = alone();
    let things = define(&client, &[version("v1", true, &size())]).await?;
    things.create(&PostParams::default(), &thing("a", &json!({"size": 1}))).await?;
    let mut stream = pin!(watcher(things.clone(), watcher::Config::default()));
    let mut seen = Vec::new();
    while !matches!(seen.last(), Some(Event::InitDone)) {
        seen.extend(soon("the list", stream.try_next()).await?);
    }
    redefine(&client, &[version("v1", true, &size_and_color())]).await?;
    things.create(&PostParams::default(), &thing("b", &json!({"size": 1}))).await?;
    // The watcher may list again or continue; either way it reports the object with the new schema.
    loop {
        let event = soon("the new object", stream.try_next()).await?;
        if let Some(Event::Apply(found) | Event::InitApply(found)) = event
            && found.name_any() == "b"
        {
            assert_eq!(found.data["spec"], json!({"size": 1, "color": "red"}));
            return Ok(());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_survives_a_crd_change_that_affects_no_object() -> Result<()> {
    let client = alone();
    let things = define(&client, &[version("v1", true, &size())]).await?;
    let mut watch = pin!(things.watch(&WatchParams::default().timeout(60), "0").await?);
    let patch = Patch::Merge(json!({"metadata": {"labels": {"x": "y"}}}));
    definitions(&client).patch(NAME, &PatchParams::default(), &patch).await?;
    things.create(&PostParams::default(), &thing("a", &json!({"size": 1}))).await?;
    let event = soon("the event", watch.try_next()).await?;
    assert!(matches!(event, Some(WatchEvent::Added(found)) if found.name_any() == "a"));
    Ok(())
}

#[tokio::test]
async fn objects_are_served_in_all_versions_and_stored_in_one() -> Result<()> {
    let client = alone();
    let v1 = define(&client, &[version("v1", true, &size())]).await?;
    let created = v1.create(&PostParams::default(), &thing("a", &json!({"size": 1}))).await?;
    assert_eq!(stored(&definitions(&client).get(NAME).await?), ["v1"]);

    // Add a version, and then make it the storage version.
    redefine(&client, &[version("v1", true, &size()), version("v2", false, &size_and_color())]).await?;
    let v2 = dynamic(&client, "Thing", "v2");
    let read = v2.get("a").await?;
    assert_eq!(read.types.as_ref().map(|types| types.api_version.as_str()), Some("example.org/v2"));
    assert_eq!((read.uid(), read.resource_version()), (created.uid(), created.resource_version()));
    let moved =
        redefine(&client, &[version("v1", false, &size()), version("v2", true, &size_and_color())]).await?;
    assert_eq!(stored(&moved), ["v1", "v2"]);
    // Writing an object stores it in the new storage version.
    let patch = Patch::Merge(json!({"metadata": {"labels": {"moved": "yes"}}}));
    v1.patch("a", &PatchParams::default(), &patch).await?;
    assert_eq!(v2.get("a").await?.data["spec"], json!({"size": 1, "color": "red"}));
    assert_eq!(v1.get("a").await?.data["spec"], json!({"size": 1}));

    // A version cannot be removed while it is in `storedVersions`.
    let only = [version("v2", true, &size_and_color())];
    let Err(kube::Error::Api(status)) = redefine(&client, &only).await else {
        panic!("a stored version was removed");
    };
    assert!(status.message.contains("status.storedVersions[0]: Invalid value: \"v1\""), "{}", status.message);
    let patch = Patch::Merge(json!({"status": {"storedVersions": ["v2"]}}));
    definitions(&client).patch_status(NAME, &PatchParams::default(), &patch).await?;
    redefine(&client, &only).await?;
    let Err(kube::Error::Api(status)) = v1.get("a").await else { panic!("v1 is still served") };
    assert_eq!(status.code, 404);
    assert_eq!(v2.get("a").await?.uid(), created.uid());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_watch_in_one_version_reports_writes_in_another() -> Result<()> {
    let client = alone();
    let v1 =
        define(&client, &[version("v1", true, &size()), version("v2", false, &size_and_color())]).await?;
    let v2 = dynamic(&client, "Thing", "v2");
    let mut watch = pin!(v2.watch(&WatchParams::default(), "0").await?);
    v1.create(&PostParams::default(), &thing("a", &json!({"size": 1}))).await?;
    let Some(WatchEvent::Added(seen)) = soon("the event", watch.try_next()).await? else {
        panic!("no event")
    };
    assert_eq!(seen.name_any(), "a");
    assert_eq!(seen.types.map(|types| types.api_version).as_deref(), Some("example.org/v2"));
    Ok(())
}

#[tokio::test]
async fn field_ownership_carries_over_between_versions() -> Result<()> {
    let client = alone();
    let v1 =
        define(&client, &[version("v1", true, &size_and_color()), version("v2", false, &size_and_color())])
            .await?;
    let v2 = dynamic(&client, "Thing", "v2");
    let body = |version: &str, spec: Value| {
        let api_version = format!("example.org/{version}");
        let metadata = json!({"name": "a"});
        Patch::Apply(json!({"apiVersion": api_version, "kind": "Thing", "metadata": metadata, "spec": spec}))
    };
    v1.patch("a", &PatchParams::apply("one"), &body("v1", json!({"size": 1, "color": "blue"}))).await?;
    let refused = v2.patch("a", &PatchParams::apply("two"), &body("v2", json!({"size": 2}))).await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.is_conflict()));
    let moved =
        v2.patch("a", &PatchParams::apply("one"), &body("v2", json!({"size": 2, "color": "blue"}))).await?;
    assert_eq!(moved.data["spec"]["size"], 2);
    let given_up = v2.patch("a", &PatchParams::apply("one"), &body("v2", json!({"color": "blue"}))).await?;
    assert_eq!(given_up.data["spec"], json!({"color": "blue"}));
    Ok(())
}

#[tokio::test]
async fn a_version_that_is_no_longer_served_is_not_found() -> Result<()> {
    let client = alone();
    let v1 = define(&client, &[version("v1", true, &size()), version("v2", false, &size())]).await?;
    v1.create(&PostParams::default(), &thing("a", &json!({"size": 1}))).await?;
    let mut old = version("v1", true, &size());
    old["served"] = false.into();
    redefine(&client, &[old, version("v2", false, &size())]).await?;
    let Err(kube::Error::Api(status)) = v1.get("a").await else { panic!("v1 is still served") };
    assert_eq!(status.code, 404);
    assert_eq!(dynamic(&client, "Thing", "v2").get("a").await?.data["spec"], json!({"size": 1}));
    Ok(())
}
