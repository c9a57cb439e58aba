//! Writes: create, update, delete, deletecollection, dry run, field managers.

use anyhow::Result;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kubewright_runtime::client::{Error, FieldValidation, Retry, retry_on_conflict};
use kubewright_runtime::{CacheOptions, Delete, Key, ListOptions, Patch};
use serde_json::json;
use tokio::time::Instant;

use super::{dynamic_widget, key, managers, widgets};
use crate::world::{
    Effect, RecordedRequest, Widget, World, config_map, eventually, object, pod, settle, soon, widget,
};

#[tokio::test(start_paused = true)]
async fn objects_are_created_and_updated_typed_and_dynamic() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    let client = world.client();
    let mut typed = client.create(&widget("a", "red")).await?;
    assert!(typed.metadata.uid.is_some() && typed.metadata.resource_version.is_some());
    typed.spec.color = "blue".to_owned();
    let typed = client.update(&typed).await?;
    assert_eq!((&*typed.spec.color, typed.metadata.generation), ("blue", Some(2)));

    let mut dynamic = client.create(&dynamic_widget("b", "red")).await?;
    dynamic.data["spec"]["color"] = "green".into();
    let dynamic = client.update(&dynamic).await?;
    assert_eq!(dynamic.data["spec"]["color"], "green");
    assert_eq!(dynamic.types.as_ref().unwrap().kind, "Widget");
    client.delete(&dynamic).await?;
    assert!(client.get_dynamic(&widgets(), &key("b")).await.unwrap_err().is_not_found());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_server_generates_names_for_generate_name() -> Result<()> {
    let world = World::new();
    let client = world.client();
    let mut map = config_map("");
    map.metadata.name = None;
    let error = client.create(&map).await.unwrap_err();
    assert_eq!(error.to_string(), "the ConfigMap has no name: set metadata.name");
    map.metadata.generate_name = Some("made-".to_owned());
    let made = client.create(&map).await?;
    assert!(made.metadata.name.as_deref().unwrap().starts_with("made-"));
    assert!(matches!(client.update(&map).await.unwrap_err(), Error::Nameless(_)));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_namespace_is_rejected_before_it_is_sent() -> Result<()> {
    let world = World::new();
    let client = world.client();
    let mut map = config_map("a");
    map.metadata.namespace = None;
    assert!(matches!(client.create(&map).await.unwrap_err(), Error::NamespaceMissing { .. }));
    assert!(matches!(client.delete(&map).await.unwrap_err(), Error::NamespaceMissing { .. }));
    let kindless: kube::api::DynamicObject = object(json!({"metadata": {"name": "a"}}));
    assert!(matches!(client.create(&kindless).await.unwrap_err(), Error::Kindless));
    let all = client.delete_all_of::<ConfigMap>(&ListOptions::all(), &Delete::new()).await.unwrap_err();
    assert!(matches!(all, Error::NamespaceMissing { .. }));
    assert_eq!(world.faults.count(|_| true), 0);
    // A namespaced client sets the namespace.
    let created = client.namespaced("default").create(&map).await?;
    assert_eq!(created.metadata.namespace.as_deref(), Some("default"));
    let other = client.namespaced("other").update(&created).await.unwrap_err();
    assert!(matches!(other, Error::OtherNamespace { .. }));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_update_of_a_changed_object_is_a_conflict() -> Result<()> {
    let world = World::new();
    let client = world.client();
    let first = client.create(&config_map("a")).await?;
    let mut second = first.clone();
    second.data = None;
    client.update(&second).await?;
    let error = client.update(&first).await.unwrap_err();
    assert!(error.is_conflict() && !error.is_already_exists(), "{error}");
    assert!(error.to_string().contains("the object has been modified"), "{error}");
    assert!(client.create(&first).await.is_err());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_changes_nothing() -> Result<()> {
    let world = World::new();
    let client = world.client();
    let created = client.create(&config_map("a")).await?;
    let dry = client.dry_run();
    let revision = world.server.revision();
    assert!(dry.create(&config_map("b")).await?.metadata.uid.is_some());
    let mut changed = created.clone();
    changed.data = None;
    assert!(dry.update(&changed).await?.data.is_none());
    let patched = dry.patch(&created, &Patch::merge(json!({"data": {"key": "other"}}))).await?;
    assert_eq!(patched.data.unwrap()["key"], "other");
    dry.apply(&config_map("c")).await?;
    dry.delete(&created).await?;
    dry.delete_all_of::<ConfigMap>(&ListOptions::namespace("default"), &Delete::new()).await?;
    assert_eq!(world.server.revision(), revision);
    assert_eq!(client.get::<ConfigMap>(&key("a")).await?.data.as_ref().unwrap()["key"], "value");
    // It is validated all the same.
    assert!(dry.create(&config_map("a")).await.unwrap_err().is_already_exists());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn writes_have_their_field_manager() -> Result<()> {
    let world = World::new();
    let client = world.client();
    let map = client.create(&config_map("a")).await?;
    assert_eq!(managers(&map), ["kubewright by Update"]);
    let mine = client.field_owner("mine");
    let map = mine.patch(&map, &Patch::merge(json!({"data": {"other": "1"}}))).await?;
    assert_eq!(managers(&map), ["kubewright by Update", "mine by Update"]);
    let mut wanted = config_map("a");
    wanted.data = Some([("third".to_owned(), "1".to_owned())].into());
    let map = mine.apply(&wanted).await?;
    assert_eq!(managers(&map), ["mine by Apply", "kubewright by Update", "mine by Update"]);
    // A patch without a field manager uses the default one, like all other writes.
    let map = client.patch(&map, &Patch::merge(json!({"data": {"fourth": "1"}}))).await?;
    assert_eq!(managers(&map), ["mine by Apply", "kubewright by Update", "mine by Update"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_follow_the_field_validation_of_the_client() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    let client = world.client();
    let mut wrong = dynamic_widget("a", "red");
    wrong.data["spec"]["colour"] = "red".into();
    let strict = client.field_validation(FieldValidation::Strict);
    let error = strict.create(&wrong).await.unwrap_err();
    assert!(error.is_bad_request() && error.to_string().contains("spec.colour"), "{error}");
    for (validation, name) in [(FieldValidation::Ignore, "b"), (FieldValidation::Warn, "c")] {
        wrong.metadata.name = Some(name.to_owned());
        let created = client.field_validation(validation).create(&wrong).await?;
        assert!(created.data["spec"].get("colour").is_none());
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn deletes_respect_their_preconditions() -> Result<()> {
    let world = World::new();
    let client = world.client();
    let map = client.create(&config_map("a")).await?;
    let version = map.metadata.resource_version.clone().unwrap();
    client.patch(&map, &Patch::merge(json!({"data": {"x": "1"}}))).await?;
    let stale = client.delete_with(&map, &Delete::new().resource_version(version)).await;
    assert!(stale.unwrap_err().is_conflict());
    let other = client.delete_with(&map, &Delete::new().uid("another")).await;
    assert!(other.unwrap_err().is_conflict());
    let uid = map.metadata.uid.clone().unwrap();
    client.delete_key::<ConfigMap>(&key("a"), &Delete::new().uid(uid)).await?;
    assert!(client.delete(&map).await.unwrap_err().is_not_found());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn dependents_follow_the_propagation_policy() -> Result<()> {
    let world = World::new();
    let client = world.client();
    for (how, stays, marked) in [
        (Delete::background(), false, None),
        (Delete::foreground(), false, Some("foregroundDeletion")),
        (Delete::orphan(), true, None),
    ] {
        let owner = client.create(&config_map("owner")).await?;
        let mut dependent = config_map("dependent");
        dependent.metadata.owner_references = Some(vec![OwnerReference {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            name: "owner".to_owned(),
            uid: owner.metadata.uid.clone().unwrap(),
            block_owner_deletion: Some(true),
            controller: None,
        }]);
        // A finalizer on the dependent, so that the waiting owner is observable.
        if marked.is_some() {
            dependent.metadata.finalizers = Some(vec!["example.org/wait".to_owned()]);
        }
        let dependent = client.create(&dependent).await?;
        client.delete_with(&owner, &how).await?;
        settle().await;
        let owner = client.get_opt::<ConfigMap>(&key("owner")).await?;
        assert_eq!(owner.is_some(), marked.is_some(), "{how:?}");
        if let Some(marked) = marked {
            assert_eq!(owner.unwrap().metadata.finalizers.as_deref().unwrap(), [marked]);
            let patch = Patch::merge(json!({"metadata": {"finalizers": null}}));
            client.patch(&dependent, &patch).await?;
            settle().await;
            assert!(client.get_opt::<ConfigMap>(&key("owner")).await?.is_none());
        }
        let there = client.get_opt::<ConfigMap>(&key("dependent")).await?;
        assert_eq!(there.is_some(), stays, "{how:?}");
        if let Some(there) = there {
            assert!(there.metadata.owner_references.is_none());
            client.delete(&*there).await?;
        }
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_grace_period_is_respected() -> Result<()> {
    let world = World::new();
    let client = world.client();
    let mut pod = pod("a");
    pod.spec.as_mut().unwrap().node_name = Some("node-1".to_owned());
    let pod = client.create(&pod).await?;
    client.delete_with(&pod, &Delete::new().grace_period(7)).await?;
    let going = client.get::<Pod>(&key("a")).await?;
    assert_eq!(going.metadata.deletion_grace_period_seconds, Some(7));
    client.delete_with(&pod, &Delete::new().grace_period(0)).await?;
    assert!(client.get_opt::<Pod>(&key("a")).await?.is_none());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn all_objects_of_a_list_are_deleted_in_one_request() -> Result<()> {
    let world = World::new();
    let client = world.client();
    for (name, app) in [("a", "web"), ("b", "web"), ("c", "db")] {
        let mut map = config_map(name);
        map.metadata.labels = Some([("app".to_owned(), app.to_owned())].into());
        client.create(&map).await?;
    }
    world.faults.forget();
    let here = ListOptions::namespace("default");
    client.delete_all_of::<ConfigMap>(&here.clone().labels("app=web"), &Delete::background()).await?;
    assert_eq!(world.faults.requests()[0].line(), "DELETE /api/v1/namespaces/default/configmaps");
    assert_eq!(world.faults.count(|_| true), 1);
    let left = client.list::<ConfigMap>(&here).await?;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].metadata.name.as_deref(), Some("c"));
    client.namespaced("default").delete_all_of::<ConfigMap>(&ListOptions::all(), &Delete::new()).await?;
    assert!(client.list::<ConfigMap>(&here).await?.is_empty());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_cache_of_one_kind_does_not_serve_another() -> Result<()> {
    let world = World::new();
    let running = world.cache(CacheOptions::default());
    running.cache.informer::<Deployment>();
    let client = world.cached(&running.cache);
    assert!(soon("the list", client.list::<Deployment>(&ListOptions::all())).await?.is_empty());
    world.faults.forget();
    assert!(client.list::<ReplicaSet>(&ListOptions::all()).await?.is_empty());
    assert_eq!(world.faults.count(|_| true), 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_retried() -> Result<()> {
    let world = World::new();
    let client = world.client();
    client.create(&config_map("a")).await?;
    // The object changes between the read and the write, twice.
    let mut tries = 0;
    let result = retry_on_conflict(async || {
        tries += 1;
        let mut map = (*client.get::<ConfigMap>(&key("a")).await?).clone();
        if tries < 3 {
            let patch = Patch::merge(json!({"data": {"other": tries.to_string()}}));
            client.patch(&map, &patch).await?;
        }
        map.data.get_or_insert_default().insert("mine".to_owned(), "1".to_owned());
        client.update(&map).await
    });
    let map = Box::pin(soon("the write", result)).await?;
    assert_eq!(tries, 3);
    let data = map.data.unwrap();
    assert_eq!((&*data["mine"], &*data["other"]), ("1", "2"));

    // At most five times, 10 ms apart; other errors are not retried.
    let (mut tries, started) = (0, Instant::now());
    world.faults.every(Effect::Status(409, "Conflict"), RecordedRequest::is_write);
    let result: Result<ConfigMap, Error> = retry_on_conflict(async || {
        tries += 1;
        client.create(&config_map("b")).await
    })
    .await;
    assert!(result.unwrap_err().is_conflict());
    assert_eq!((tries, started.elapsed().as_millis()), (5, 40));
    let (mut tries, started) = (0, Instant::now());
    let result: Result<ConfigMap, Error> = Retry::growing()
        .on_conflict(async || {
            tries += 1;
            client.create(&config_map("b")).await
        })
        .await;
    assert!(result.unwrap_err().is_conflict());
    assert_eq!((tries, started.elapsed().as_millis()), (4, 10 + 50 + 250));
    world.faults.heal();
    let mut tries = 0;
    let result: Result<_, Error> = retry_on_conflict(async || {
        tries += 1;
        client.get::<ConfigMap>(&key("none")).await
    })
    .await;
    assert!(result.unwrap_err().is_not_found() && tries == 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn modify_reads_from_the_server_and_retries() -> Result<()> {
    let world = World::new();
    let running = world.cache(CacheOptions::default());
    let client = world.cached(&running.cache);
    client.create(&config_map("a")).await?;
    running.cache.informer::<ConfigMap>();
    soon("the list", running.cache.synced()).await?;
    // The watch stalls, so the cache is outdated.
    world.faults.stall(|_| true);
    client.patch(&config_map("a"), &Patch::merge(json!({"data": {"other": "1"}}))).await?;
    world.faults.next(2, Effect::Status(409, "Conflict"), |asked| asked.method == http::Method::PUT);
    let mut calls = 0;
    let map = client
        .modify::<ConfigMap>(&key("a"), |map| {
            calls += 1;
            map.data.get_or_insert_default().insert("mine".to_owned(), "1".to_owned());
        })
        .await?;
    assert_eq!((calls, map.data.unwrap().len()), (3, 3));
    assert!(client.modify::<ConfigMap>(&key("none"), |_| {}).await.unwrap_err().is_not_found());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn metadata_objects_are_patched_and_deleted() -> Result<()> {
    use kube::core::PartialObjectMeta;

    let world = World::new();
    world.widgets().await?;
    let client = world.client();
    client.create(&widget("a", "red")).await?;
    let metadata = client.get::<PartialObjectMeta<Widget>>(&key("a")).await?;
    let patch = Patch::merge(json!({"metadata": {"labels": {"x": "1"}}}));
    let patched = client.patch(&*metadata, &patch).await?;
    assert_eq!(patched.metadata.labels.unwrap()["x"], "1");
    assert_eq!(client.get::<Widget>(&key("a")).await?.spec.color, "red");
    client.delete(&*metadata).await?;
    assert!(client.get_opt::<Widget>(&key("a")).await?.is_none());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_cache_sees_writes_of_the_client() -> Result<()> {
    let world = World::new();
    let running = world.cache(CacheOptions::default());
    let client = world.cached(&running.cache);
    running.cache.informer::<ConfigMap>();
    soon("the list", running.cache.synced()).await?;
    client.create(&config_map("a")).await?;
    eventually("the event", || running.cache.get::<ConfigMap>(&key("a")).unwrap().is_some()).await;
    client.delete_key::<ConfigMap>(&Key::namespaced("default", "a"), &Delete::new()).await?;
    eventually("the event", || running.cache.get::<ConfigMap>(&key("a")).unwrap().is_none()).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn dynamic_objects_are_applied_and_deleted_in_bulk() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    let running = world.cache(CacheOptions::default());
    let client = world.cached(&running.cache).field_owner("mine");
    let informer = running.cache.informer::<Widget>();
    soon("the list", informer.synced()).await?;
    let wanted = dynamic_widget("a", "red");
    let applied = client.apply(&wanted).await?;
    assert_eq!(applied.data["spec"]["color"], "red");
    eventually("the event", || informer.entry(&key("a")).is_some()).await;
    // The cache shows that the apply would change nothing.
    world.faults.forget();
    let again = client.apply(&wanted).await?;
    assert_eq!(world.faults.count(RecordedRequest::is_write), 0);
    assert_eq!((&again.data["spec"]["color"], again.types), (&json!("red"), applied.types));
    client.apply(&dynamic_widget("b", "blue")).await?;
    let blue = ListOptions::namespace("default").field("spec.color", "blue");
    client.delete_all_of_dynamic(&widgets(), &blue, &Delete::new()).await?;
    let left = client.uncached().list_dynamic(&widgets(), &ListOptions::namespace("default")).await?;
    assert_eq!(left.iter().filter_map(|it| it.metadata.name.as_deref()).collect::<Vec<_>>(), ["a"]);
    let missing = kubewright_runtime::Gvk::new("example.org", "v1", "Missing");
    let error = client.delete_all_of_dynamic(&missing, &blue, &Delete::new()).await.unwrap_err();
    assert!(error.is_unknown_kind(), "{error}");
    Ok(())
}
