//! `create_or_update` and `create_or_patch`.

use anyhow::Result;
use kubewright_runtime::client::Error;
use kubewright_runtime::{CacheOptions, Patch, Upsert};
use serde_json::json;

use super::key;
use crate::world::{RecordedRequest, Widget, WidgetStatus, World, config_map, eventually, soon, widget};

fn wants(color: &'static str) -> impl FnOnce(&mut Widget) -> Result<()> {
    move |widget| {
        color.clone_into(&mut widget.spec.color);
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_is_created_then_updated_then_unchanged() -> Result<()> {
    for patches in [false, true] {
        let world = World::new();
        world.widgets().await?;
        let client = world.client();
        let upsert = async |color: &'static str| {
            let object = widget("a", "given");
            if patches {
                client.create_or_patch(object, wants(color)).await
            } else {
                client.create_or_update(object, wants(color)).await
            }
        };
        let (done, created) = upsert("red").await?;
        assert_eq!((done, &*created.spec.color), (Upsert::Created, "red"));
        let (done, updated) = upsert("blue").await?;
        assert_eq!((done, &*updated.spec.color), (Upsert::Updated, "blue"));
        assert_eq!(created.metadata.uid, updated.metadata.uid);
        world.faults.forget();
        let (done, same) = upsert("blue").await?;
        assert_eq!((done, &*same.spec.color), (Upsert::Unchanged, "blue"));
        assert_eq!(world.faults.count(RecordedRequest::is_write), 0);
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_function_that_fails_or_renames_the_object_changes_nothing() -> Result<()> {
    let world = World::new();
    let client = world.client();
    for there in [false, true] {
        if there {
            world.config_maps(&["a"]).await?;
        }
        let failed = client.create_or_update(config_map("a"), |_| anyhow::bail!("not today")).await;
        assert_eq!(failed.unwrap_err().to_string(), "not today");
        let moved = client
            .create_or_update(config_map("a"), |map| {
                map.metadata.name = Some("b".to_owned());
                Ok(())
            })
            .await;
        let moved = moved.unwrap_err();
        assert!(matches!(moved.downcast_ref(), Some(Error::Moved { .. })));
        assert_eq!(
            moved.to_string(),
            "the object was renamed from default/a to default/b: name and namespace must not change"
        );
    }
    assert_eq!(world.faults.count(RecordedRequest::is_write), 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn with_a_stale_cache_an_update_conflicts_and_a_patch_does_not() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    let running = world.cache(CacheOptions::default());
    let client = world.cached(&running.cache);
    client.create(&widget("a", "red")).await?;
    running.cache.informer::<Widget>();
    soon("the list", running.cache.synced()).await?;
    world.faults.stall(|_| true);
    client.patch(&widget("a", ""), &Patch::merge(json!({"spec": {"replicas": 5}}))).await?;
    let stale = client.create_or_update(widget("a", "red"), wants("blue")).await;
    assert!(stale.unwrap_err().downcast_ref().is_some_and(Error::is_conflict));
    let (done, patched) = client.create_or_patch(widget("a", "red"), wants("blue")).await?;
    assert_eq!((done, &*patched.spec.color, patched.spec.replicas), (Upsert::Updated, "blue", 5));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn only_the_changed_fields_of_a_status_are_patched() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    let running = world.cache(CacheOptions::default());
    let client = world.cached(&running.cache);
    let mut there = client.create(&widget("a", "red")).await?;
    there.status = Some(WidgetStatus { replicas: 1, phase: Some("Old".to_owned()) });
    client.status().update(&there).await?;
    running.cache.informer::<Widget>();
    soon("the list", running.cache.synced()).await?;
    let (done, patched) = client
        .create_or_patch(widget("a", "red"), |widget| {
            widget.status.get_or_insert_default().phase = Some("New".to_owned());
            Ok(())
        })
        .await?;
    assert_eq!(done, Upsert::Updated);
    assert_eq!(patched.status, Some(WidgetStatus { replicas: 1, phase: Some("New".to_owned()) }));
    let seen = || running.cache.get::<Widget>(&key("a")).unwrap().unwrap();
    eventually("the event", || seen().status == patched.status).await;

    // Another client changes the status, and the cache has not seen it.
    world.faults.stall(|_| true);
    client.status().patch(&there, &Patch::merge(json!({"status": {"replicas": 7}}))).await?;
    world.faults.forget();
    let (_, patched) = client.create_or_patch(widget("a", "red"), wants("blue")).await?;
    assert_eq!(patched.status.as_ref().unwrap().replicas, 7);
    assert_eq!(world.faults.count(|asked| asked.path.ends_with("/status")), 0);
    let (_, patched) = client
        .create_or_patch(widget("a", "red"), |widget| {
            widget.spec.color = "green".to_owned();
            widget.status.get_or_insert_default().phase = Some("Newer".to_owned());
            Ok(())
        })
        .await?;
    assert_eq!(patched.status, Some(WidgetStatus { replicas: 7, phase: Some("Newer".to_owned()) }));
    assert_eq!(patched.spec.color, "green");
    Ok(())
}
