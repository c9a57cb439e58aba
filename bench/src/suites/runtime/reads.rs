//! Cost of cache reads: lists by label, and gets while an index is built.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use kube::runtime::{reflector, watcher};
use kubewright_bench_work::{NAMESPACE, Widget};
use kubewright_runtime::{Cache, CacheOptions, Key, KindOptions, ListOptions};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::world::World;
use super::{PEER, on_threads};
use crate::row::{Rows, Unit};
use crate::samples::Samples;
use crate::suites::Bench;

const PODS: usize = 2_000;
/// Number of label values. Each label value is on one of this many Pods.
const APPS: usize = 10;
const LISTS: usize = 200;
const INDEXED: usize = 100_000;

pub(super) fn measure(bench: &Bench, rows: &mut Rows) -> Result<()> {
    bench.progress.say("runtime: creating Pods");
    let server = on_threads(async {
        let world = World::filled(0).await?;
        world.fill_labeled_pods(PODS, APPS).await?;
        Ok(world)
    })?;
    for round in 1..=bench.rounds {
        bench.progress.say(&format!("runtime: lists by label, round {round} of {}", bench.rounds));
        let peer = on_threads(filtered(server.copy(), Some("app-3")))?.median();
        let ours = on_threads(listed(server.copy(), KindOptions::new(), "app=app-3", PODS / APPS))?.median();
        rows.sample_beside("list 200 of 2,000 Pods by label", Unit::Micros, ours, (PEER, peer));
        let peer = on_threads(filtered(server.copy(), None))?.median();
        let kept = KindOptions::new().keep_decoded();
        let ours = on_threads(listed(server.copy(), kept, "app", PODS))?.median();
        rows.sample_beside(
            "list 2,000 of 2,000 Pods by label, keep_decoded",
            Unit::Micros,
            ours,
            (PEER, peer),
        );
    }
    bench.progress.say("runtime: creating objects for the index");
    let server = on_threads(World::filled(INDEXED))?;
    for round in 1..=bench.rounds {
        bench.progress.say(&format!("runtime: gets during indexing, round {round} of {}", bench.rounds));
        let reads = on_threads(gets_during_indexing(server.copy()))?;
        rows.sample("get while indexing 100,000 objects, p99", Unit::Micros, reads.quantile(0.99)).target =
            Some(100.0);
    }
    Ok(())
}

/// A cache that runs until the guard is dropped.
fn cache(world: &World, options: CacheOptions) -> Result<(Cache, DropGuard)> {
    let cache = Cache::new(options)?;
    let cancel = CancellationToken::new();
    tokio::spawn(cache.run(world.client(), cancel.clone()));
    Ok((cache, cancel.drop_guard()))
}

/// Durations of lists by a label selector, in seconds.
async fn listed(world: World, kind: KindOptions, selector: &str, expected: usize) -> Result<Samples> {
    let (cache, _stop) = cache(&world, CacheOptions::default().kind::<Pod>(kind))?;
    cache.informer::<Pod>();
    cache.synced().await?;
    let list = ListOptions::all().labels(selector);
    let mut times = Samples::default();
    for _ in 0..LISTS {
        let started = Instant::now();
        let found = cache.list::<Pod>(&list)?;
        times.push(started.elapsed().as_secs_f64());
        ensure!(found.len() == expected, "unexpected number of Pods: {}", found.len());
    }
    Ok(times)
}

/// Durations of filtering kube-rs' store by the label `app`, in seconds: one value, or any.
async fn filtered(world: World, app: Option<&str>) -> Result<Samples> {
    let (store, writer) = reflector::store::<Pod>();
    let pods: Api<Pod> = Api::namespaced(world.client(), NAMESPACE);
    let mut events = std::pin::pin!(reflector(writer, watcher(pods, watcher::Config::default())));
    while store.len() < PODS {
        events.next().await.context("the watch ended")??;
    }
    let mut times = Samples::default();
    for _ in 0..LISTS {
        let started = Instant::now();
        let mut found: Vec<Arc<Pod>> = store.state();
        found.retain(|pod| {
            let value = pod.metadata.labels.as_ref().and_then(|labels| labels.get("app"));
            value.is_some_and(|value| app.is_none_or(|app| app == value))
        });
        times.push(started.elapsed().as_secs_f64());
        ensure!(
            found.len() == if app.is_some() { PODS / APPS } else { PODS },
            "unexpected number of Pods: {}",
            found.len()
        );
    }
    Ok(times)
}

/// Durations of gets while an index over all objects is built, in seconds.
async fn gets_during_indexing(world: World) -> Result<Samples> {
    let (cache, _stop) = cache(&world, CacheOptions::default())?;
    cache.informer::<Widget>();
    cache.synced().await?;
    let indexing = tokio::task::spawn_blocking({
        let cache = cache.clone();
        move || {
            cache.index::<Widget>("generation", |it| {
                it.metadata.generation.iter().map(ToString::to_string).collect()
            })
        }
    });
    let keys: Vec<Key> = world.names.iter().map(|name| Key::namespaced(NAMESPACE, name)).collect();
    let mut times = Samples::default();
    for key in keys.iter().cycle() {
        let started = Instant::now();
        let found = cache.get::<Widget>(key)?;
        times.push(started.elapsed().as_secs_f64());
        ensure!(found.is_some(), "{key} is not cached");
        if indexing.is_finished() {
            break;
        }
    }
    indexing.await??;
    Ok(times)
}
