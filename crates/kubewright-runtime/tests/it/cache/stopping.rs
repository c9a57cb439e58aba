//! Removed informers and stopped caches: no caller waits forever.

use std::sync::Arc;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kubewright_runtime::client::Error;
use kubewright_runtime::{Cache, CacheOptions, Key, ListOptions};
use tokio_util::sync::CancellationToken;

use super::{is_map_watch, next_changes};
use crate::world::{Effect, RecordedRequest, World, eventually, soon};

fn stopped<T: std::fmt::Debug>(result: &Result<T, Error>) {
    assert!(matches!(result, Err(Error::CacheStopped(_))), "{result:?}");
}

#[tokio::test(start_paused = true)]
async fn a_removed_informer_ends_its_watch() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let running = world.cache(CacheOptions::default());
    let informer = running.cache.informer::<ConfigMap>();
    let mut follower = informer.follower();
    running.cache.informer::<Pod>();
    soon("the lists", running.cache.synced()).await?;
    assert!(!next_changes(&mut follower).await.is_empty());
    running.cache.remove::<ConfigMap>();
    assert!(soon("the end", follower.next()).await.is_none());
    eventually("the end of the watch", || world.faults.watches(is_map_watch) == 0).await;
    assert_eq!(world.faults.watches(RecordedRequest::is_watch), 1, "the other watch continues");
    let key = Key::namespaced("default", "a");
    assert!(matches!(running.cache.get::<ConfigMap>(&key), Err(Error::NotCached(_))));
    // The client reads from the server again.
    world.cached(&running.cache).get::<ConfigMap>(&key).await?;
    // A new informer starts from scratch.
    let again = running.cache.informer::<ConfigMap>();
    assert!(!Arc::ptr_eq(&informer, &again));
    soon("the list", again.synced()).await?;
    assert!(running.cache.get::<ConfigMap>(&key)?.is_some());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_is_removed_before_the_cache_runs_is_stopped() {
    let cache = Cache::new(CacheOptions::default()).unwrap();
    let informer = cache.informer::<ConfigMap>();
    cache.remove::<ConfigMap>();
    stopped(&soon("the end", informer.synced()).await);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_cache_ends_all_waits() -> Result<()> {
    let world = World::new();
    let cache = Cache::new(CacheOptions::default()).unwrap();
    let cancel = CancellationToken::new();
    world.faults.every(Effect::Hang, |asked| asked.path.contains("pods"));
    let task = tokio::spawn(cache.run(world.kube.clone(), cancel.clone()));
    let (maps, pods) = (cache.informer::<ConfigMap>(), cache.informer::<Pod>());
    let mut follower = maps.follower();
    soon("the list", maps.synced()).await?;
    let waiting = tokio::spawn(async move { pods.synced().await });
    eventually("the watch", || world.faults.count(|asked| asked.path.contains("pods")) == 1).await;
    cancel.cancel();
    soon("the end", task).await?;
    stopped(&soon("the end", waiting).await?);
    while soon("the end", follower.next()).await.is_some() {}
    // Later calls fail, too.
    stopped(&soon("the end", cache.informer::<k8s_openapi::api::core::v1::Secret>().synced()).await);
    let client = world.cached(&cache);
    stopped(&soon("the end", client.get::<Pod>(&Key::namespaced("default", "a"))).await);
    assert_eq!(world.faults.watches(|_| true), 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_dropped_cache_ends_all_waits() -> Result<()> {
    let world = World::new();
    world.faults.every(Effect::Hang, |_| true);
    let running = world.cache(CacheOptions::default());
    let informer = running.cache.informer::<Pod>();
    eventually("the watch", || world.faults.count(|_| true) == 1).await;
    running.task.abort();
    stopped(&soon("the end", informer.synced()).await);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn reads_of_a_synced_kind_fail_once_its_informer_has_stopped() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let running = world.cache(CacheOptions::default());
    let informer = running.cache.informer::<ConfigMap>();
    soon("the list", informer.synced()).await?;
    running.task.abort();
    eventually("the end", || informer.is_stopped()).await;
    let key = Key::namespaced("default", "a");
    stopped(&running.cache.get::<ConfigMap>(&key));
    stopped(&running.cache.list::<ConfigMap>(&ListOptions::all()));
    stopped(&soon("the end", world.cached(&running.cache).get::<ConfigMap>(&key)).await);
    Ok(())
}
