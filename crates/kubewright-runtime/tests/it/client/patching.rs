//! All patch types, and server-side apply.

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_runtime::{CacheOptions, Client, Patch};
use serde_json::json;

use super::{dynamic_widget, key, managers};
use crate::world::{RecordedRequest, Widget, World, config_map, eventually, object, soon, widget};

fn deployment(name: &str) -> Deployment {
    object(json!({
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "one"}, {"name": "side", "image": "one"}]},
            },
        },
    }))
}

fn images(deployment: &Deployment) -> Vec<&str> {
    let containers = &deployment.spec.as_ref().unwrap().template.spec.as_ref().unwrap().containers;
    containers.iter().filter_map(|container| container.image.as_deref()).collect()
}

#[tokio::test(start_paused = true)]
async fn every_patch_type_has_its_own_list_semantics() -> Result<()> {
    let world = World::new();
    let client = world.client();
    let there = client.create(&deployment("web")).await?;
    let containers = |image: &str| json!([{"name": "main", "image": image}]);
    let spec = |containers| json!({"spec": {"template": {"spec": {"containers": containers}}}});
    // Lists are merged by their keys ...
    let patched = client.patch(&there, &Patch::strategic(spec(containers("two")))).await?;
    assert_eq!(images(&patched), ["two", "one"]);
    // ... or replaced ...
    let patched = client.patch(&there, &Patch::merge(spec(containers("three")))).await?;
    assert_eq!(images(&patched), ["three"]);
    // ... or changed in place.
    let path = "/spec/template/spec/containers/0/image";
    let operations = json!([
        {"op": "test", "path": path, "value": "three"},
        {"op": "replace", "path": path, "value": "four"},
    ]);
    let patched = client.patch(&there, &Patch::json_from(&operations)?).await?;
    assert_eq!(images(&patched), ["four"]);
    assert!(client.patch(&there, &Patch::json_from(&operations)?).await.unwrap_err().is_invalid());
    let types: Vec<String> =
        world.faults.requests().iter().skip(1).map(|it| it.content_type.clone()).collect();
    assert_eq!(
        types[..3],
        [
            "application/strategic-merge-patch+json",
            "application/merge-patch+json",
            "application/json-patch+json"
        ]
    );
    // kube's patches are accepted as well.
    let patch = kube::api::Patch::Merge(json!({"metadata": {"labels": {"x": "1"}}}));
    let patched = client.patch(&there, &patch.try_into()?).await?;
    assert_eq!(patched.metadata.labels.unwrap()["x"], "1");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_patch_of_the_difference_keeps_other_fields() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    let client = world.client();
    let before = client.create(&widget("a", "red")).await?;
    let mut now = before.clone();
    now.spec.color = "blue".to_owned();
    let patch = Patch::between(&before, &now)?;
    // Another client writes in between.
    client.patch(&before, &Patch::merge(json!({"spec": {"replicas": 5}}))).await?;
    let version = before.metadata.resource_version.as_deref().unwrap();
    let refused = client.patch(&now, &patch.clone().optimistic(version)).await;
    assert!(refused.unwrap_err().is_conflict());
    let patched = client.patch(&now, &patch).await?;
    assert_eq!((&*patched.spec.color, patched.spec.replicas), ("blue", 5));
    let version = patched.metadata.resource_version.as_deref().unwrap();
    client.patch(&now, &patch.optimistic(version)).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn apply_creates_changes_and_removes_fields() -> Result<()> {
    let world = World::new();
    let client = world.client().field_owner("mine");
    let mut wanted = config_map("a");
    let created = client.apply(&wanted).await?;
    assert_eq!(managers(&created), ["mine by Apply"]);
    wanted.data = Some([("other".to_owned(), "1".to_owned())].into());
    let applied = client.apply(&wanted).await?;
    // Fields that are no longer applied are removed.
    assert_eq!(applied.data.unwrap().into_keys().collect::<Vec<_>>(), ["other"]);
    let asked = world.faults.requests();
    assert_eq!(asked[0].content_type, "application/apply-patch+yaml");
    assert_eq!(asked[0].parameter("fieldManager"), Some("mine"));
    assert_eq!(asked[0].parameter("force"), Some("true"));
    // An object that the server returned can be applied again.
    client.apply(&applied_back(&created)).await?;
    Ok(())
}

/// An object that the server returned, without its outdated resourceVersion.
fn applied_back(map: &ConfigMap) -> ConfigMap {
    let mut map = map.clone();
    map.metadata.resource_version = None;
    assert!(map.metadata.managed_fields.is_some());
    map
}

#[tokio::test(start_paused = true)]
async fn fields_of_other_managers_are_taken_over_or_conflict() -> Result<()> {
    let world = World::new();
    let client = world.client();
    let theirs = client.field_owner("theirs").apply(&config_map("a")).await?;
    let mut wanted = config_map("a");
    wanted.data = Some([("key".to_owned(), "mine".to_owned())].into());
    let mine = client.field_owner("mine");
    let polite = mine.patch(&theirs, &Patch::apply(&wanted)?).await.unwrap_err();
    assert!(polite.is_conflict() && polite.to_string().contains("theirs"), "{polite}");
    let applied = mine.apply(&wanted).await?;
    assert_eq!(applied.data.as_ref().unwrap()["key"], "mine");
    assert_eq!(managers(&applied), ["mine by Apply"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_apply_that_would_change_nothing_is_not_sent() -> Result<()> {
    let world = World::new();
    let running = world.cache(CacheOptions::default());
    let client = world.cached(&running.cache).field_owner("mine");
    let informer = running.cache.informer::<ConfigMap>();
    soon("the list", informer.synced()).await?;
    let applies = || world.faults.count(RecordedRequest::is_write);
    let seen = async |map: &ConfigMap| {
        let version: u64 = map.metadata.resource_version.as_deref().unwrap().parse().unwrap();
        eventually("the event", || informer.entry(&key("a")).is_some_and(|it| it.version() == version)).await;
    };
    let wanted = config_map("a");
    let first = client.apply(&wanted).await?;
    // The cache has not seen the first apply yet, so it is sent again.
    client.apply(&wanted).await?;
    assert_eq!(applies(), 2);
    seen(&first).await;
    for _ in 0..3 {
        let again = client.apply(&wanted).await?;
        assert_eq!(again.metadata.resource_version, first.metadata.resource_version);
    }
    assert_eq!(applies(), 2);

    // Another intent, another field manager, a dry run and a client without cache do send.
    let mut other = wanted.clone();
    other.data = None;
    let applied = client.apply(&other).await?;
    seen(&applied).await;
    let applied = client.apply(&wanted).await?;
    seen(&applied).await;
    client.field_owner("another").apply(&wanted).await?;
    client.dry_run().apply(&wanted).await?;
    client.uncached().apply(&wanted).await?;
    assert_eq!(applies(), 7);

    // The same intent is sent again after another client changed the object.
    let changed =
        client.field_owner("else").patch(&wanted, &Patch::merge(json!({"data": {"key": "x"}}))).await?;
    seen(&changed).await;
    let applied = client.apply(&wanted).await?;
    assert_eq!(applied.data.as_ref().unwrap()["key"], "value");
    assert_eq!(applies(), 9);
    seen(&applied).await;
    client.apply(&wanted).await?;
    assert_eq!(applies(), 9);
    // Or after the object was deleted.
    client.delete(&wanted).await?;
    eventually("the event", || informer.entry(&key("a")).is_none()).await;
    client.apply(&wanted).await?;
    assert!(client.uncached().get_opt::<ConfigMap>(&key("a")).await?.is_some());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_apply_is_not_sent_after_changes_of_other_fields() -> Result<()> {
    let world = World::new();
    let running = world.cache(CacheOptions::default());
    let client = world.cached(&running.cache).field_owner("mine");
    let informer = running.cache.informer::<Deployment>();
    soon("the list", informer.synced()).await?;
    let applies = || world.faults.count(RecordedRequest::is_write);
    let others = Client::new(world.direct.clone()).field_owner("others");
    let seen = async |version: &Option<String>| {
        let version: u64 = version.as_deref().unwrap().parse().unwrap();
        eventually("the event", || informer.entry(&key("a")).is_some_and(|it| it.version() >= version)).await;
    };
    let wanted = deployment("a");
    client.apply(&wanted).await?;

    let ready = Patch::merge(json!({"status": {"replicas": 1, "readyReplicas": 1}}));
    seen(&others.status().patch(&wanted, &ready).await?.metadata.resource_version).await;
    let applied = client.apply(&wanted).await?;
    assert_eq!(applied.status.unwrap().ready_replicas, Some(1));
    let revision = Patch::merge(json!({"metadata": {"annotations": {"revision": "1"}}}));
    seen(&others.patch(&wanted, &revision).await?.metadata.resource_version).await;
    client.apply(&wanted).await?;
    assert_eq!(applies(), 1);

    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "two"}]}}}});
    seen(&others.patch(&wanted, &Patch::strategic(image)).await?.metadata.resource_version).await;
    assert_eq!(images(&client.apply(&wanted).await?), ["one", "one"]);
    assert_eq!(applies(), 2);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn dynamic_and_custom_objects_are_applied() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    let client = world.client();
    let typed = client.apply(&widget("a", "red")).await?;
    assert_eq!(typed.spec.color, "red");
    let wanted = dynamic_widget("a", "blue");
    let applied = client.patch(&wanted, &Patch::apply(&wanted)?.force()).await?;
    assert_eq!(applied.data["spec"]["color"], "blue");
    assert_eq!(client.get::<Widget>(&key("a")).await?.spec.color, "blue");
    Ok(())
}
