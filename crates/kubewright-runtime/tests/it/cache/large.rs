//! Many objects, and slow readers.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_runtime::{CacheOptions, KindOptions};

use super::{delete, label, names};
use crate::world::{World, eventually, soon};

fn here() -> CacheOptions {
    CacheOptions::default().kind::<ConfigMap>(KindOptions::new().namespaces(["default"]))
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_objects_are_listed_quickly_after_a_restart() -> Result<()> {
    let world = World::new();
    for at in 0..10_000 {
        world.config_maps(&[&format!("map-{at}")]).await?;
    }
    let first = world.cache(here());
    soon("the list", first.cache.informer::<ConfigMap>().synced()).await?;
    drop(first);
    let second = world.cache(here());
    let informer = second.cache.informer::<ConfigMap>();
    let mut follower = informer.follower();
    let started = std::time::Instant::now();
    soon("the list", informer.synced()).await?;
    // Wall clock, in a debug build on a busy machine. Usually it takes a fifth of that.
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert_eq!(informer.len(), 10_000);
    // All in one batch.
    assert_eq!(soon("the list", follower.next()).await.unwrap().len(), 10_000);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_never_reads_delays_no_other() -> Result<()> {
    let world = World::new();
    let running = world.cache(here());
    let informer = running.cache.informer::<ConfigMap>();
    let (mut reader, sleeper) = (informer.follower(), informer.follower());
    soon("the list", informer.synced()).await?;
    world.config_maps(&["a", "b", "c"]).await?;
    let mut heard = 0;
    for round in 0..100 {
        label(&world, "a", &round.to_string()).await?;
        delete(&world, "b").await?;
        world.config_maps(&["b"]).await?;
        while reader.waiting() > 0 {
            heard += soon("the changes", reader.next()).await.unwrap().len();
        }
        tokio::task::yield_now().await;
    }
    eventually("the last event", || {
        informer.entries(&kubewright_runtime::ListOptions::all().labels("x=99")).unwrap().len() == 1
    })
    .await;
    assert!(heard > 50, "the reader got only {heard} changes");
    assert_eq!(names(&informer), ["a", "b", "c"]);
    // Three hundred changes are merged into one per object.
    assert_eq!(sleeper.waiting(), 3);
    let mut sleeper = sleeper;
    let changes = soon("the changes", sleeper.next()).await.unwrap();
    assert!(changes.len() <= 9, "{changes:?}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_dropped_follower_gets_no_changes() -> Result<()> {
    let world = World::new();
    let running = world.cache(here());
    let informer = running.cache.informer::<ConfigMap>();
    let follower = informer.follower();
    soon("the list", informer.synced()).await?;
    drop(follower);
    world.config_maps(&["a"]).await?;
    eventually("the event", || informer.len() == 1).await;
    Ok(())
}
