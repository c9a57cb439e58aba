//! Lists by label: their results, and how much is decoded.

use std::sync::Arc;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use kubewright_runtime::{CacheOptions, Key, KindOptions, LabelSelector, ListOptions};

use crate::world::{RunningCache, World, eventually, pod, soon};

const PODS: usize = 120;

/// A cache with Pods of ten apps, of which some have a tier.
async fn pods(options: CacheOptions) -> Result<(World, RunningCache)> {
    let world = World::new();
    for at in 0..PODS {
        create(&world, at).await?;
    }
    let running = world.cache(options);
    running.cache.informer::<Pod>();
    soon("the list", running.cache.synced()).await?;
    Ok((world, running))
}

async fn create(world: &World, at: usize) -> Result<()> {
    let mut pod = pod(&format!("pod-{at:03}"));
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert("app".to_owned(), format!("app-{}", at % 10));
    if at.is_multiple_of(3) {
        labels.insert("tier".to_owned(), ["front", "back"][at % 2].to_owned());
    }
    world.api().create(&PostParams::default(), &pod).await?;
    Ok(())
}

fn names(pods: &[Arc<Pod>]) -> Vec<&str> {
    pods.iter().filter_map(|pod| pod.metadata.name.as_deref()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_list_by_label_equals_a_filter_over_all_objects() -> Result<()> {
    let (world, running) = pods(CacheOptions::default()).await?;
    let check = || -> Result<()> {
        let all = running.cache.list::<Pod>(&ListOptions::all())?;
        for selector in ["app=app-3", "tier", "!tier", "app in (app-1,app-2),tier=front", "app!=app-0,tier"] {
            let parsed: LabelSelector = selector.parse()?;
            let matching =
                all.iter().filter(|pod| parsed.matches(&pod.metadata.labels.clone().unwrap_or_default()));
            let matching: Vec<Arc<Pod>> = matching.cloned().collect();
            assert!(!matching.is_empty(), "{selector}");
            for list in [ListOptions::all(), ListOptions::namespace("default")] {
                let found = running.cache.list::<Pod>(&list.clone().labels(selector))?;
                assert_eq!(names(&found), names(&matching), "{selector}");
                let some = running.cache.list::<Pod>(&list.labels(selector).limit(2))?;
                assert_eq!(names(&some), names(&matching[..2]), "{selector}");
            }
        }
        assert!(running.cache.list::<Pod>(&ListOptions::namespace("other").labels("tier"))?.is_empty());
        assert!(running.cache.list::<Pod>(&ListOptions::all().labels("tier in (")).is_err());
        Ok(())
    };
    check()?;
    for at in PODS..PODS + 20 {
        create(&world, at).await?;
    }
    let informer = running.cache.informer::<Pod>();
    eventually("the events", || informer.len() == PODS + 20).await;
    check()
}

/// The number of objects that a second list shares with the first one.
fn shared(running: &RunningCache, list: &ListOptions) -> Result<usize> {
    // An object is kept when it is decoded for the second time.
    running.cache.list::<Pod>(list)?;
    let first = running.cache.list::<Pod>(list)?;
    let second = running.cache.list::<Pod>(list)?;
    Ok(first.iter().zip(&second).filter(|(one, other)| Arc::ptr_eq(one, other)).count())
}

#[tokio::test(start_paused = true)]
async fn decoded_objects_are_kept_within_the_budget() -> Result<()> {
    let some = ListOptions::all().labels("app=app-3");
    let (_world, running) = pods(CacheOptions::default()).await?;
    assert_eq!(shared(&running, &some)?, PODS / 10);
    assert_eq!(shared(&running, &ListOptions::all())?, PODS);
    // A list that exceeds the budget keeps nothing; a small one is kept.
    let bytes = running.cache.informer::<Pod>().bytes();
    let (_world, running) =
        pods(CacheOptions { decoded_budget: bytes / 4, ..CacheOptions::default() }).await?;
    assert_eq!(shared(&running, &ListOptions::all())?, 0);
    assert_eq!(shared(&running, &some)?, PODS / 10);
    let (_world, running) = pods(CacheOptions { decoded_budget: 0, ..CacheOptions::default() }).await?;
    assert_eq!(shared(&running, &some)?, 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_kept_decoded_is_decoded_once_per_change() -> Result<()> {
    let kind = KindOptions::new().keep_decoded();
    let options = CacheOptions { decoded_budget: 0, ..CacheOptions::default() }.kind::<Pod>(kind);
    let (world, running) = pods(options).await?;
    let before = running.cache.list::<Pod>(&ListOptions::all())?;
    let again = running.cache.list::<Pod>(&ListOptions::all())?;
    assert!(before.iter().zip(&again).all(|(one, other)| Arc::ptr_eq(one, other)));
    let key = Key::namespaced("default", "pod-007");
    let patch = kube::api::Patch::Merge(serde_json::json!({"metadata": {"labels": {"app": "other"}}}));
    world.api::<Pod>().patch("pod-007", &kube::api::PatchParams::default(), &patch).await?;
    eventually("the event", || {
        running.cache.list::<Pod>(&ListOptions::all().labels("app=other")).is_ok_and(|found| found.len() == 1)
    })
    .await;
    let after = running.cache.list::<Pod>(&ListOptions::all())?;
    let changed: Vec<Key> = before
        .iter()
        .zip(&after)
        .filter(|(one, other)| !Arc::ptr_eq(one, other))
        .map(|(_, pod)| Key::of(&**pod))
        .collect();
    assert_eq!(changed, [key]);
    Ok(())
}
