//! kube's watcher and reflector on the in-process server, and the watch below them.
//!
//! Time is tokio's and paused: a watch of five minutes takes no time.

use std::pin::pin;
use std::time::Duration;

use anyhow::{Result, bail};
use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{self, Config, Event, watcher};
use kube::runtime::{WatchStreamExt as _, reflector, watcher::watch_object};
use kube::{Client, ResourceExt as _};
use kubewright_apiserver::storage::Limits;
use kubewright_apiserver::{ApiServer, Options};
use serde_json::json;
use tokio::time::Instant;

use crate::world::{alone, client, config_map, options, server, soon};

async fn create(client: &Client, names: &[&str]) -> Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    for name in names {
        maps.create(&PostParams::default(), &config_map(name)).await?;
    }
    Ok(())
}

async fn label(client: &Client, name: &str, value: &str) -> Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let patch = Patch::Merge(json!({"metadata": {"labels": {"x": value}}}));
    maps.patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// The next events of a watcher, as text.
async fn next<K: kube::Resource>(
    stream: &mut (impl Stream<Item = watcher::Result<Event<K>>> + Unpin),
    count: usize,
) -> Result<Vec<String>> {
    let events: Vec<Event<K>> = soon("a watch event", stream.take(count).try_collect()).await?;
    Ok(events.iter().map(ToString::to_string).collect())
}

#[tokio::test(start_paused = true)]
async fn a_watcher_lists_and_then_follows() -> Result<()> {
    let client = alone();
    create(&client, &["a", "b", "c"]).await?;
    // A page size below the number of objects makes the watcher list in pages.
    let config = Config::default().page_size(2);
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let mut stream = pin!(watcher(maps.clone(), config));
    assert_eq!(
        next(&mut stream, 5).await?,
        ["Init", "InitApply(a)", "InitApply(b)", "InitApply(c)", "InitDone"]
    );
    create(&client, &["d"]).await?;
    label(&client, "a", "1").await?;
    maps.delete("b", &DeleteParams::default()).await?;
    assert_eq!(next(&mut stream, 3).await?, ["Apply(d)", "Apply(a)", "Delete(b)"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_watcher_streams_its_first_list() -> Result<()> {
    let client = alone();
    create(&client, &["a", "b"]).await?;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let mut stream = pin!(watcher(maps.clone(), Config::default().streaming_lists()));
    assert_eq!(next(&mut stream, 4).await?, ["Init", "InitApply(a)", "InitApply(b)", "InitDone"]);
    maps.delete("a", &DeleteParams::default()).await?;
    assert_eq!(next(&mut stream, 1).await?, ["Delete(a)"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_empty_streamed_list_ends_with_a_bookmark() -> Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(alone());
    let mut stream = pin!(watcher(maps, Config::default().streaming_lists()));
    assert_eq!(next(&mut stream, 2).await?, ["Init", "InitDone"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_object_that_no_longer_matches_is_reported_as_deleted() -> Result<()> {
    let client = alone();
    create(&client, &["a", "b"]).await?;
    label(&client, "a", "1").await?;
    for config in [Config::default(), Config::default().streaming_lists()] {
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let mut stream = pin!(watcher(maps, config.labels("x=1")));
        assert_eq!(next(&mut stream, 3).await?, ["Init", "InitApply(a)", "InitDone"]);
        label(&client, "b", "1").await?;
        label(&client, "a", "2").await?;
        label(&client, "a", "1").await?;
        label(&client, "b", "2").await?;
        assert_eq!(next(&mut stream, 4).await?, ["Apply(b)", "Delete(a)", "Apply(a)", "Delete(b)"]);
    }
    Ok(())
}

/// More non-matching events than a watch reads at a time, and no event after the matching one.
#[tokio::test(start_paused = true)]
async fn a_matching_event_is_sent_at_once_after_many_non_matching_ones() -> Result<()> {
    let server = server();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
    let one = WatchParams::default().fields("metadata.name=z").timeout(30);
    let mut watch = pin!(maps.watch(&one, &server.revision().to_string()).await?);
    for at in 0..600 {
        maps.create(&PostParams::default(), &config_map(&format!("a{at}"))).await?;
    }
    maps.create(&PostParams::default(), &config_map("z")).await?;
    let event = watch.try_next().await?;
    assert!(matches!(event, Some(WatchEvent::Added(map)) if map.name_any() == "z"));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_watcher_restarts_its_watch_without_listing_again() -> Result<()> {
    let client = alone();
    create(&client, &["a"]).await?;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let mut stream = pin!(watcher(maps, Config::default().timeout(30)));
    next(&mut stream, 3).await?;
    for round in 0..5 {
        // Longer than a watch lasts: it ends and restarts in between.
        let name = format!("n{round}");
        let later = async {
            tokio::time::sleep(Duration::from_secs(100)).await;
            create(&client, &[&name]).await
        };
        let (events, created) = tokio::join!(async { stream.next().await }, later);
        created?;
        let Some(Ok(event)) = events else { bail!("no event: {events:?}") };
        assert_eq!(event.to_string(), format!("Apply({name})"));
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_at_its_timeout() -> Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(alone());
    let start = Instant::now();
    let params = WatchParams::default().timeout(42).disable_bookmarks();
    let events: Vec<_> = maps.watch(&params, "0").await?.try_collect().await?;
    assert_eq!(events.len(), 0, "{events:?}");
    assert_eq!(start.elapsed(), Duration::from_secs(42));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn bookmarks_advance_a_watch_without_events() -> Result<()> {
    let client = alone();
    create(&client, &["a"]).await?;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let from = maps.get("a").await?.resource_version().unwrap_or_default();
    let start = Instant::now();
    let mut stream = pin!(maps.watch(&WatchParams::default().timeout(200), &from).await?);
    // Another resource advances the revision without events for this watch.
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client);
    let created = namespaces
        .create(&PostParams::default(), &crate::world::object(json!({"metadata": {"name": "n"}})))
        .await?;
    let Some(WatchEvent::Bookmark(bookmark)) = stream.try_next().await? else { bail!("no bookmark") };
    assert_eq!(bookmark.metadata.resource_version, created.resource_version().unwrap_or_default());
    assert_eq!(bookmark.types.kind, "ConfigMap");
    let passed = start.elapsed();
    assert!(passed <= Duration::from_secs(75), "the first bookmark came after {passed:?}");
    Ok(())
}

/// A server that keeps few events.
fn forgetful() -> ApiServer {
    ApiServer::new(Options { limits: Limits { events: 4, bytes: 1 << 20 }, ..options() })
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_an_expired_revision_gets_410() -> Result<()> {
    let client = client(&forgetful());
    create(&client, &["a"]).await?;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let from = maps.get("a").await?.resource_version().unwrap_or_default();
    for round in 0..10 {
        label(&client, "a", &round.to_string()).await?;
    }
    let mut stream = pin!(maps.watch(&WatchParams::default(), &from).await?);
    let Some(WatchEvent::Error(status)) = stream.try_next().await? else { bail!("no error") };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_missed_events_lists_again() -> Result<()> {
    let client = client(&forgetful());
    create(&client, &["a"]).await?;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let mut stream = pin!(watcher(maps.clone(), Config::default()).default_backoff());
    assert_eq!(next(&mut stream, 3).await?, ["Init", "InitApply(a)", "InitDone"]);
    label(&client, "a", "0").await?;
    assert_eq!(next(&mut stream, 1).await?, ["Apply(a)"]);
    // The stream is not read while more events occur than the server keeps.
    for round in 1..10 {
        label(&client, "a", &round.to_string()).await?;
    }
    maps.delete("a", &DeleteParams::default()).await?;
    create(&client, &["b"]).await?;
    assert!(
        matches!(stream.next().await, Some(Err(watcher::Error::WatchError(status))) if status.code == 410)
    );
    assert_eq!(next(&mut stream, 3).await?, ["Init", "InitApply(b)", "InitDone"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_unread_watch_loses_no_event() -> Result<()> {
    let client = alone();
    create(&client, &["a"]).await?;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let mut stream = pin!(maps.watch(&WatchParams::default(), "0").await?);
    for round in 0..2_000 {
        label(&client, "a", &round.to_string()).await?;
    }
    let mut seen = 0;
    let mut last = 0;
    while seen < 2_001 {
        let Some(event) = soon("a late event", stream.try_next()).await? else { bail!("the watch ended") };
        let (WatchEvent::Added(map) | WatchEvent::Modified(map)) = event else { bail!("{event:?}") };
        let version: u64 = map.resource_version().unwrap_or_default().parse()?;
        assert!(version > last, "{version} after {last}");
        last = version;
        seen += 1;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_reflector_store_has_the_servers_objects() -> Result<()> {
    let client = alone();
    create(&client, &["a", "b"]).await?;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let (store, writer) = reflector::store();
    let mut stream =
        pin!(watcher(maps.clone(), Config::default()).default_backoff().reflect(writer).touched_objects());
    let follow = async {
        while let Some(object) = stream.try_next().await? {
            if object.name_any() == "end" {
                return Ok(());
            }
        }
        bail!("the watch ended");
    };
    let act = async {
        store.wait_until_ready().await?;
        assert_eq!(store.len(), 2);
        label(&client, "a", "1").await?;
        maps.delete("b", &DeleteParams::default()).await?;
        create(&client, &["c", "end"]).await
    };
    let (followed, acted) = soon("the reflector", async { tokio::join!(follow, act) }).await;
    followed?;
    acted?;
    let mut names: Vec<_> = store.state().iter().map(|map| map.name_any()).collect();
    names.sort();
    assert_eq!(names, ["a", "c", "end"]);
    let a = store.get(&reflector::ObjectRef::new("a").within("default")).expect("a is in the store");
    assert_eq!(*a, maps.get("a").await?);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_is_watched() -> Result<()> {
    let client = alone();
    create(&client, &["a"]).await?;
    for config in [Config::default(), Config::default().streaming_lists()] {
        let metas: Api<PartialObjectMeta<ConfigMap>> = Api::default_namespaced(client.clone());
        let mut stream = pin!(watcher(metas, config));
        assert_eq!(next(&mut stream, 3).await?, ["Init", "InitApply(a)", "InitDone"]);
        label(&client, "a", "1").await?;
        label(&client, "a", "2").await?;
        assert_eq!(next(&mut stream, 2).await?, ["Apply(a)", "Apply(a)"]);
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn one_object_is_watched_from_creation_to_deletion() -> Result<()> {
    let client = alone();
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let mut stream = pin!(watch_object(maps.clone(), "a"));
    assert!(stream.try_next().await?.flatten().is_none());
    create(&client, &["b", "a"]).await?;
    assert_eq!(stream.try_next().await?.flatten().map(|map| map.name_any()).as_deref(), Some("a"));
    maps.delete("a", &DeleteParams::default()).await?;
    assert!(stream.try_next().await?.flatten().is_none());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn many_watchers_see_the_same_events_in_the_same_order() -> Result<()> {
    let server = server();
    let client = client(&server);
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let watching = (0..100).map(|_| {
        let maps = maps.clone();
        async move {
            let stream = pin!(maps.watch(&WatchParams::default(), "0").await?);
            let events: Vec<_> = stream.take(20).try_collect().await?;
            let versions = events.iter().map(|event| match event {
                WatchEvent::Added(map) | WatchEvent::Modified(map) => map.resource_version(),
                _ => None,
            });
            anyhow::Ok(versions.collect::<Vec<_>>())
        }
    });
    let writing = async {
        for round in 0..20 {
            create(&client, &[&format!("m{round}")]).await?;
        }
        anyhow::Ok(())
    };
    let (seen, written) =
        soon("a hundred watches", async { tokio::join!(futures_util::future::join_all(watching), writing) })
            .await;
    written?;
    let seen = seen.into_iter().collect::<Result<Vec<_>>>()?;
    assert!(seen[0].iter().all(Option::is_some));
    assert!(seen.iter().all(|versions| *versions == seen[0]));
    Ok(())
}
