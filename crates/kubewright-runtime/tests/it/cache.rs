//! Tests of the cache: its requests, its content, and its followers.

mod health;
mod indexes;
mod labels;
mod large;
mod model;
mod namespaces;
mod options;
mod panics;
mod removal;
mod stopping;
mod trouble;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::core::PartialObjectMeta;
use kubewright_runtime::cache::{Change, Follower, Informer, Occasion};
use kubewright_runtime::client::Error;
use kubewright_runtime::{CacheOptions, Gvk, Key, Kind, ListOptions};
use serde_json::json;

use crate::operator::Log;
use crate::world::{Effect, RecordedRequest, World, config_map, eventually, pod, soon, within};

/// The next changes of a follower: `+a` created, `~a` updated, `-a` deleted, `=a` resynced; marked if initial.
async fn next_changes(follower: &mut Follower) -> Vec<String> {
    let changes = soon("a change", follower.next()).await.expect("the informer runs");
    changes.iter().map(words).collect()
}

fn words(change: &Change) -> String {
    let name = change.latest().key().name();
    let what = match (&change.old, &change.new, change.occasion) {
        (_, _, Occasion::Resync) => '=',
        (None, _, _) => '+',
        (_, None, _) => '-',
        _ => '~',
    };
    let initial = if change.occasion == Occasion::Initial { " (initial)" } else { "" };
    format!("{what}{name}{initial}")
}

/// The names of an informer's objects in the default namespace.
fn names(informer: &Informer) -> Vec<String> {
    let entries = informer.entries(&ListOptions::namespace("default")).expect("the selector is valid");
    entries.iter().map(|entry| entry.key().name().to_owned()).collect()
}

async fn label(world: &World, name: &str, value: &str) -> Result<()> {
    let patch = Patch::Merge(json!({"metadata": {"labels": {"x": value}}}));
    world.api::<ConfigMap>().patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

async fn delete(world: &World, name: &str) -> Result<()> {
    world.api::<ConfigMap>().delete(name, &DeleteParams::default()).await?;
    Ok(())
}

/// More objects than fit on two pages.
async fn many(world: &World) -> Result<()> {
    for at in 0..1_201 {
        world.api().create(&PostParams::default(), &config_map(&format!("many-{at:04}"))).await?;
    }
    Ok(())
}

fn is_map_watch(asked: &RecordedRequest) -> bool {
    asked.is_watch() && asked.path.ends_with("/configmaps")
}

#[tokio::test(start_paused = true)]
async fn a_list_is_streamed_and_continues_as_a_watch() -> Result<()> {
    let world = World::new();
    many(&world).await?;
    let running = world.cache(CacheOptions::default());
    let informer = running.cache.informer::<ConfigMap>();
    soon("the list", informer.synced()).await?;
    assert!(informer.is_synced() && running.cache.unsynced().is_empty());
    assert_eq!(names(&informer).len(), 1_201);
    world.config_maps(&["later"]).await?;
    eventually("the event", || informer.entry(&Key::namespaced("default", "later")).is_some()).await;
    let asked = world.faults.requests();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0].line(), "GET /api/v1/configmaps");
    assert_eq!(asked[0].parameter("sendInitialEvents"), Some("true"));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn without_streaming_lists_the_list_is_read_in_pages() -> Result<()> {
    let full = World::new();
    many(&full).await?;
    for refusal in [
        Effect::Status(422, "Invalid"),
        Effect::Status(400, "BadRequest"),
        // A server that shuts down ends the watch without the bookmark that ends the list.
        Effect::Answer(200, String::new()),
        // An older server sends nothing: to it this is a watch without events.
        Effect::Mute,
    ] {
        let (log, ends_early) = (Log::keep()?, matches!(refusal, Effect::Answer(..)));
        let world = World::on(full.server.fork());
        world.faults.every(refusal.clone(), |asked| asked.parameter("sendInitialEvents").is_some());
        let running = world.cache(CacheOptions::default());
        let informer = running.cache.informer::<ConfigMap>();
        within(Duration::from_secs(61), "the list", informer.synced()).await?;
        assert_eq!(names(&informer).len(), 1_201);
        world.config_maps(&["later"]).await?;
        eventually("the event", || informer.entry(&Key::namespaced("default", "later")).is_some()).await;

        let asked = world.faults.requests();
        let pages: Vec<&RecordedRequest> =
            asked.iter().filter(|asked| asked.parameter("limit").is_some()).collect();
        assert_eq!(pages.len(), 3);
        assert!(pages.iter().all(|page| page.parameter("limit") == Some("500")));
        assert!(pages[0].parameter("continue").is_none() && pages[2].parameter("continue").is_some());
        // The watch starts at the version of the list, without a delay.
        let last = asked.last().unwrap();
        assert!(last.is_watch() && last.parameter("resourceVersion").is_some());
        assert_eq!(last.at, pages[2].at);
        assert_eq!(asked.len(), 5, "streamed, three pages, watched");
        let reason = match &refusal {
            Effect::Answer(..) => "Server ended the streamed list before it was complete",
            Effect::Mute => "Server did not complete the streamed list",
            _ => "Server does not support streaming lists",
        };
        assert_eq!(log.saying("streamed list").len() + log.saying("streaming lists").len(), 1);
        assert_eq!(log.saying(reason).len(), 1, "{refusal:?}");
        // Streaming is not tried again soon, unless the server can stream.
        world.faults.expire(is_map_watch);
        eventually("the list again", || world.faults.count(|it| it.parameter("limit").is_some()) == 6).await;
        assert_eq!(world.faults.count(is_streamed), if ends_early { 2 } else { 1 });
    }
    Ok(())
}

fn is_streamed(asked: &RecordedRequest) -> bool {
    asked.parameter("sendInitialEvents").is_some()
}

#[tokio::test(start_paused = true)]
async fn streaming_is_tried_again_after_half_an_hour() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    world.api().create(&PostParams::default(), &pod("p")).await?;
    // For one kind only: the server may stream lists of other kinds.
    world.faults.next(1, Effect::Status(422, "Invalid"), |asked| is_streamed(asked) && is_map_watch(asked));
    let running = world.cache(CacheOptions::default());
    let (maps, pods) = (running.cache.informer::<ConfigMap>(), running.cache.informer::<Pod>());
    soon("the lists", running.cache.synced()).await?;
    let pages = || world.faults.count(|asked| asked.parameter("limit").is_some());
    let streamed = |path: &'static str| {
        world.faults.count(move |asked| is_streamed(asked) && asked.path.ends_with(path))
    };
    assert_eq!((pages(), streamed("/configmaps"), streamed("/pods")), (1, 1, 1));
    tokio::time::sleep(Duration::from_mins(29)).await;
    assert_eq!(world.faults.expire(RecordedRequest::is_watch), 2);
    eventually("the lists again", || pages() == 2 && streamed("/pods") == 2).await;
    assert_eq!(streamed("/configmaps"), 1);
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(world.faults.expire(RecordedRequest::is_watch), 2);
    eventually("the lists again", || streamed("/configmaps") == 2).await;
    assert_eq!(pages(), 2);
    assert!(maps.is_synced() && pods.is_synced());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn followers_get_existing_objects_and_changes() -> Result<()> {
    let world = World::new();
    let options = || CacheOptions { namespaces: vec!["default".to_owned()], ..CacheOptions::default() };
    world.config_maps(&["a", "b"]).await?;
    let running = world.cache(options());
    let informer = running.cache.informer::<ConfigMap>();
    let mut early = informer.follower();
    assert_eq!(next_changes(&mut early).await, ["+a (initial)", "+b (initial)"]);

    world.config_maps(&["c"]).await?;
    assert_eq!(next_changes(&mut early).await, ["+c"]);
    label(&world, "a", "1").await?;
    let changes = soon("a change", early.next()).await.unwrap();
    assert_eq!(changes.iter().map(words).collect::<Vec<_>>(), ["~a"]);
    let (old, new) = (changes[0].old.as_ref().unwrap(), changes[0].new.as_ref().unwrap());
    assert!(old.marks().labels.is_empty() && new.marks().labels["x"] == "1");
    assert!(old.version() < new.version());
    delete(&world, "b").await?;
    let changes = soon("a change", early.next()).await.unwrap();
    assert_eq!(changes.iter().map(words).collect::<Vec<_>>(), ["-b"]);
    // The last state has the resourceVersion of the deletion, so that followers know the progress of the watch.
    assert_eq!(changes[0].latest().version(), world.server.revision());

    // A late follower gets the existing objects as initial.
    let mut late = informer.follower();
    assert_eq!(late.waiting(), 2);
    assert_eq!(next_changes(&mut late).await, ["+a (initial)", "+c (initial)"]);
    // Unread changes are merged.
    for value in ["2", "3", "4"] {
        label(&world, "a", value).await?;
    }
    eventually("the last event", || {
        late.waiting() == 1 && {
            let entry = informer.entry(&Key::namespaced("default", "a"));
            entry.is_some_and(|entry| entry.marks().labels["x"] == "4")
        }
    })
    .await;
    assert_eq!(next_changes(&mut late).await, ["~a"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn typed_dynamic_and_metadata_readers_share_one_watch() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let running = world.cache(CacheOptions::default());
    let client = world.cached(&running.cache);
    let key = Key::namespaced("default", "a");
    let gvk = Gvk::new("", "v1", "ConfigMap");

    let informer = running.cache.informer::<ConfigMap>();
    let typed = soon("the object", client.get::<ConfigMap>(&key)).await?;
    let dynamic = soon("the object", client.get_dynamic(&gvk, &key)).await?;
    let metadata = soon("the object", client.get::<PartialObjectMeta<ConfigMap>>(&key)).await?;
    assert_eq!(typed.data.as_ref().unwrap()["key"], "value");
    assert_eq!(dynamic.data["data"]["key"], "value");
    assert_eq!(dynamic.types.as_ref().unwrap().api_version, "v1");
    assert_eq!(metadata.metadata.uid, typed.metadata.uid);
    assert_eq!(client.list_dynamic(&gvk, &ListOptions::namespace("default")).await?.len(), 1);
    assert_eq!(
        client.list::<PartialObjectMeta<ConfigMap>>(&ListOptions::namespace("default")).await?.len(),
        1
    );

    // The informer is shared by typed and dynamic users.
    let kind = client.kind(&gvk).await?;
    assert_eq!(kind, Kind::of::<ConfigMap>());
    assert!(Arc::ptr_eq(&informer, &running.cache.informer_of(&kind, false)));
    let objects = |asked: &RecordedRequest| asked.path.contains("configmaps");
    assert_eq!(world.faults.count(objects), 1);
    // Reads do not start a watch.
    soon("the list", client.list::<Pod>(&ListOptions::all())).await?;
    assert_eq!(world.faults.count(RecordedRequest::is_watch), 1);
    assert!(matches!(running.cache.get::<Pod>(&key), Err(Error::NotCached(_))));
    assert!(matches!(running.cache.list::<Pod>(&ListOptions::all()), Err(Error::NotCached(_))));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn only_metadata_is_requested_and_stored() -> Result<()> {
    let world = World::new();
    world.api().create(&PostParams::default(), &pod("a")).await?;
    let running = world.cache(CacheOptions::default());
    let informer = running.cache.informer::<PartialObjectMeta<Pod>>();
    soon("the list", informer.synced()).await?;
    world.api().create(&PostParams::default(), &pod("b")).await?;
    eventually("the event", || informer.len() == 2).await;
    for entry in informer.entries(&ListOptions::all())? {
        assert!(!String::from_utf8_lossy(entry.json()).contains("nginx"), "{entry:?} has a spec");
    }
    let asked = world.faults.requests();
    assert_eq!(asked.len(), 1);
    assert!(asked[0].accept.contains("as=PartialObjectMetadata;"), "{}", asked[0].accept);

    let client = world.cached(&running.cache);
    let key = Key::namespaced("default", "a");
    let metadata = client.get::<PartialObjectMeta<Pod>>(&key).await?;
    assert_eq!(metadata.metadata.name.as_deref(), Some("a"));
    // The cache has no whole Pods, so the client asks the server.
    assert!(client.get::<Pod>(&key).await?.spec.is_some());
    assert_eq!(world.faults.count(|_| true), 2);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn metadata_is_read_in_pages_too() -> Result<()> {
    let world = World::new();
    world.api().create(&PostParams::default(), &pod("a")).await?;
    world
        .faults
        .every(Effect::Status(422, "Invalid"), |asked| asked.parameter("sendInitialEvents").is_some());
    let running = world.cache(CacheOptions::default());
    let informer = running.cache.informer::<PartialObjectMeta<Pod>>();
    soon("the list", informer.synced()).await?;
    let entries = informer.entries(&ListOptions::all())?;
    assert!(entries.len() == 1 && !String::from_utf8_lossy(entries[0].json()).contains("nginx"));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn cluster_scoped_objects_are_cached_regardless_of_namespaces() -> Result<()> {
    let world = World::new();
    world.namespace("other").await?;
    let options = CacheOptions { namespaces: vec!["other".to_owned()], ..CacheOptions::default() };
    let running = world.cache(options);
    let informer = running.cache.informer::<k8s_openapi::api::core::v1::Namespace>();
    soon("the list", informer.synced()).await?;
    let there = Api::<k8s_openapi::api::core::v1::Namespace>::all(world.direct.clone())
        .list(&kube::api::ListParams::default())
        .await?;
    assert_eq!(informer.len(), there.items.len());
    let client = world.cached(&running.cache).namespaced("other");
    let namespaces = client.list::<k8s_openapi::api::core::v1::Namespace>(&ListOptions::all()).await?;
    assert_eq!(namespaces.len(), there.items.len());
    assert_eq!(world.faults.count(|_| true), 1);
    Ok(())
}
