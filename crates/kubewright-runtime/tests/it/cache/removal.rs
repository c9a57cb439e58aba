//! Why an object was removed from the cache: it was deleted, or no longer matches the selector.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{DeleteParams, PostParams};
use kubewright_runtime::cache::{Follower, Removal};
use kubewright_runtime::controller::{Predicate, Trigger, Watch};
use kubewright_runtime::{CacheOptions, KindOptions, Manager, Outcome};

use super::{delete, is_map_watch, label};
use crate::operator::{Acts, Notes, Running, manager};
use crate::world::{Effect, RecordedRequest, World, eventually, pod, settle, soon};

/// ConfigMaps of the default namespace with `x=in`.
fn selected() -> CacheOptions {
    let options = KindOptions::new().labels("x=in").namespaces(["default"]);
    CacheOptions::default().kind::<ConfigMap>(options)
}

/// Creates ConfigMaps that match the selector.
async fn inside(world: &World, names: &[&str]) -> Result<()> {
    world.config_maps(names).await?;
    for name in names {
        label(world, name, "in").await?;
    }
    Ok(())
}

/// The removed objects and the reasons.
async fn gone(follower: &mut Follower) -> Vec<(String, Removal)> {
    let changes = soon("a change", follower.next()).await.expect("the informer runs");
    let gone = changes.iter().filter_map(|change| {
        assert_eq!(change.removal.is_some(), change.new.is_none());
        Some((change.latest().key().name().to_owned(), change.removal?))
    });
    gone.collect()
}

fn is_lookup(asked: &RecordedRequest) -> bool {
    asked.path.contains("/configmaps/")
}

#[tokio::test(start_paused = true)]
async fn a_deselected_object_is_distinguished_from_a_deleted_one() -> Result<()> {
    let world = World::new();
    inside(&world, &["left", "deleted", "replaced", "unclear"]).await?;
    let running = world.cache(selected());
    let mut follower = running.cache.informer::<ConfigMap>().follower();
    assert_eq!(gone(&mut follower).await, []);

    label(&world, "left", "out").await?;
    assert_eq!(gone(&mut follower).await, [("left".to_owned(), Removal::Deselected)]);
    delete(&world, "deleted").await?;
    assert_eq!(gone(&mut follower).await, [("deleted".to_owned(), Removal::Deleted)]);
    let lookup = world.faults.requests().into_iter().find(is_lookup).expect("the server was asked");
    assert!(lookup.accept.contains("as=PartialObjectMetadata;"), "{}", lookup.accept);

    // A recreated object that does not match the selector is a different object.
    delete(&world, "replaced").await?;
    world.config_maps(&["replaced"]).await?;
    assert_eq!(gone(&mut follower).await, [("replaced".to_owned(), Removal::Deleted)]);

    for (effect, at_most) in [
        (Effect::Status(403, "Forbidden"), 1),
        (Effect::Hang, 6),
        (Effect::Answer(200, "no JSON".to_owned()), 1),
    ] {
        world.faults.next(1, effect, is_lookup);
        let started = tokio::time::Instant::now();
        label(&world, "unclear", "out").await?;
        assert_eq!(gone(&mut follower).await, [("unclear".to_owned(), Removal::Unknown)]);
        assert!(started.elapsed() < Duration::from_secs(at_most), "{:?}", started.elapsed());
        label(&world, "unclear", "in").await?;
        assert_eq!(gone(&mut follower).await, []);
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_mass_deletion_sends_few_lookups() -> Result<()> {
    let world = World::new();
    let names: Vec<String> = (0..40).map(|number| format!("map-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    inside(&world, &names).await?;
    let running = world.cache(selected());
    let informer = running.cache.informer::<ConfigMap>();
    soon("the list", informer.synced()).await?;
    world.faults.forget();
    for name in &names {
        delete(&world, name).await?;
    }
    eventually("the end of all", || informer.is_empty()).await;
    let lookups = world.faults.count(is_lookup);
    assert!((1..=20).contains(&lookups), "{lookups} lookups for 40 objects");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_object_that_a_field_selector_no_longer_matches_is_deselected() -> Result<()> {
    let world = World::new();
    world.api().create(&PostParams::default(), &pod("a")).await?;
    world.api().create(&PostParams::default(), &pod("b")).await?;
    let options = KindOptions::new().fields("status.phase!=Running");
    let running = world.cache(CacheOptions::default().kind::<Pod>(options));
    let mut follower = running.cache.informer::<Pod>().follower();
    assert_eq!(gone(&mut follower).await, []);
    let running_now = kube::api::Patch::Merge(serde_json::json!({"status": {"phase": "Running"}}));
    world.api::<Pod>().patch_status("a", &kube::api::PatchParams::default(), &running_now).await?;
    assert_eq!(gone(&mut follower).await, [("a".to_owned(), Removal::Deselected)]);
    world.api::<Pod>().delete("b", &DeleteParams::default().grace_period(0)).await?;
    assert_eq!(gone(&mut follower).await, [("b".to_owned(), Removal::Deleted)]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn without_a_selector_a_removed_object_was_deleted() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a", "b"]).await?;
    let here = KindOptions::new().namespaces(["default"]);
    let running = world.cache(CacheOptions::default().kind::<ConfigMap>(here));
    let mut follower = running.cache.informer::<ConfigMap>().follower();
    assert_eq!(gone(&mut follower).await, []);
    delete(&world, "a").await?;
    assert_eq!(gone(&mut follower).await, [("a".to_owned(), Removal::Deleted)]);
    world.faults.stall(is_map_watch);
    delete(&world, "b").await?;
    world.faults.expire(is_map_watch);
    assert_eq!(gone(&mut follower).await, [("b".to_owned(), Removal::Deleted)]);
    assert_eq!(world.faults.count(is_lookup), 0, "the server is not asked");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_object_missing_from_a_new_list_with_a_selector_is_unknown() -> Result<()> {
    let world = World::new();
    inside(&world, &["a", "b"]).await?;
    let running = world.cache(selected());
    let mut follower = running.cache.informer::<ConfigMap>().follower();
    assert_eq!(gone(&mut follower).await, []);
    world.faults.stall(is_map_watch);
    delete(&world, "a").await?;
    label(&world, "b", "out").await?;
    world.faults.expire(is_map_watch);
    let unknown = |name: &str| (name.to_owned(), Removal::Unknown);
    assert_eq!(gone(&mut follower).await, [unknown("a"), unknown("b")]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn no_lookup_is_sent_if_the_event_has_the_new_state() -> Result<()> {
    let world = World::new();
    let object = |value: &str, version: u64| {
        format!(
            r#"{{"metadata":{{"name":"a","namespace":"default","uid":"u","resourceVersion":"{version}","labels":{{"x":"{value}"}}}}}}"#
        )
    };
    let end = r#"{"metadata":{"resourceVersion":"2","annotations":{"k8s.io/initial-events-end":"true"}}}"#;
    let lines = [("ADDED", &*object("in", 1)), ("BOOKMARK", end), ("DELETED", &*object("out", 3))];
    let lines = lines.map(|(what, object)| format!("{{\"type\":\"{what}\",\"object\":{object}}}\n"));
    world.faults.next(1, Effect::Answer(200, lines.concat()), is_map_watch);
    let running = world.cache(selected());
    let mut follower = running.cache.informer::<ConfigMap>().follower();
    assert_eq!(gone(&mut follower).await, [("a".to_owned(), Removal::Deselected)]);
    assert_eq!(world.faults.count(is_lookup), 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_reason_is_known_even_if_a_transform_drops_labels_and_uid() -> Result<()> {
    let world = World::new();
    inside(&world, &["left", "deleted"]).await?;
    let options = KindOptions::new().labels("x=in").transform(|map: &mut ConfigMap| {
        (map.metadata.labels, map.metadata.uid) = (None, None);
    });
    let running = world.cache(CacheOptions::default().kind::<ConfigMap>(options));
    let mut follower = running.cache.informer::<ConfigMap>().follower();
    assert_eq!(gone(&mut follower).await, []);
    label(&world, "left", "out").await?;
    assert_eq!(gone(&mut follower).await, [("left".to_owned(), Removal::Deselected)]);
    delete(&world, "deleted").await?;
    assert_eq!(gone(&mut follower).await, [("deleted".to_owned(), Removal::Deleted)]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn predicates_and_causes_have_the_reason() -> Result<()> {
    let world = World::new();
    inside(&world, &["left", "deleted"]).await?;
    let (manager, notes): (Manager, Notes) = (manager(&world)?, Notes::new());
    let (noted, seen) = (notes.clone(), notes.clone());
    let acts = Acts::<ConfigMap>::new(move |object, cx| {
        let causes: Vec<Trigger> = cx.causes().iter().map(|cause| cause.trigger).collect();
        if object.is_none() {
            noted.push(format!("{} {causes:?}", cx.key().name()));
        }
        Box::pin(async { Ok(Outcome::done()) })
    });
    let watch = Watch::new().labels("x=in").filter(Predicate::new(move |event| {
        if let Some(removal) = event.removal() {
            seen.push(format!("{removal:?} {}", event.is_delete()));
        }
        true
    }));
    manager.controller_with(acts, watch).register()?;
    let running = Running::start(&manager);
    settle().await;
    label(&world, "left", "out").await?;
    settle().await;
    assert_eq!(notes.take(), ["Deselected true", "left [Deselected]"]);
    delete(&world, "deleted").await?;
    eventually("the reconcile", || notes.len() == 2).await;
    assert_eq!(notes.take(), ["Deleted true", "deleted [Deleted]"]);
    running.end().await
}
