//! CPU cost of idle watches.
//!
//! Each watch is for a different namespace, so that both sides have the same number of watches. The figures
//! include the in-process server's cost, which is the same for both.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use kube::runtime::watcher;
use kubewright_runtime::{Cache, CacheOptions};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::world::World;
use super::{PEER, on_threads};
use crate::process;
use crate::row::{Rows, Unit};
use crate::suites::Bench;

const WATCHES: usize = 10_000;
/// Duration of the idle period.
const IDLE: Duration = Duration::from_secs(5);

pub(super) fn measure(bench: &Bench, rows: &mut Rows) -> Result<()> {
    let world = on_threads(World::filled(0))?;
    for round in 1..=bench.rounds {
        bench.progress.say(&format!("runtime: idle watches, round {round} of {}", bench.rounds));
        let (ours, peer) = (on_threads(ours(world.copy()))?, on_threads(peer(world.copy()))?);
        rows.sample_beside("CPU of 10,000 idle watches, per s", Unit::Millis, ours, (PEER, peer));
    }
    Ok(())
}

/// CPU seconds per second of a cache that watches all namespaces.
async fn ours(world: World) -> Result<f64> {
    let namespaces = (0..WATCHES).map(namespace).collect();
    let cache = Cache::new(CacheOptions { namespaces, ..CacheOptions::default() })?;
    let cancel = CancellationToken::new();
    let running = tokio::spawn(cache.run(world.client(), cancel.clone()));
    cache.informer::<ConfigMap>();
    cache.synced().await?;
    let cpu = idle().await;
    ensure!(cache.health().is_ok(), "{:?}", cache.health());
    cancel.cancel();
    running.await?;
    Ok(cpu)
}

/// CPU seconds per second of the same number of kube-rs watchers.
async fn peer(world: World) -> Result<f64> {
    let (listed, mut lists) = tokio::sync::mpsc::unbounded_channel();
    let mut watches = JoinSet::new();
    for at in 0..WATCHES {
        let maps: Api<ConfigMap> = Api::namespaced(world.client(), &namespace(at));
        let listed = listed.clone();
        watches.spawn(async move {
            let mut events = watcher(maps, watcher::Config::default()).boxed();
            while let Some(event) = events.next().await {
                if matches!(event, Ok(watcher::Event::InitDone)) {
                    let _ = listed.send(());
                }
            }
        });
    }
    for _ in 0..WATCHES {
        lists.recv().await.context("a watch ended")?;
    }
    let cpu = idle().await;
    watches.shutdown().await;
    Ok(cpu)
}

fn namespace(at: usize) -> String {
    format!("namespace-{at}")
}

/// CPU seconds of this process per idle second.
async fn idle() -> f64 {
    // Let startup work finish.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = process::own_cpu_time();
    tokio::time::sleep(IDLE).await;
    process::own_cpu_time().saturating_sub(before).as_secs_f64() / IDLE.as_secs_f64()
}
