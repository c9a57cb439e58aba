//! Tests of informers without a manager: handlers, listers, indexes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams};
use kubewright_runtime::client::Error;
use kubewright_runtime::informer::{EventHandler, Informer};
use kubewright_runtime::{CacheOptions, Key, KindOptions, ListOptions};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::world::{World, eventually, soon};

/// Records its calls: `+a` added, `~a` updated, `-a` deleted, marked if initial.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<String>>>);

impl Calls {
    fn add(&self, what: &str, map: &ConfigMap) {
        let name = map.metadata.name.clone().unwrap_or_default();
        assert_ne!(name, "panics");
        self.0.lock().unwrap().push(format!("{what}{name}"));
    }

    async fn become_(&self, expected: &[&str]) {
        eventually("the calls", || *self.0.lock().unwrap() == expected).await;
    }
}

impl EventHandler<ConfigMap> for Calls {
    fn on_add(&self, map: &ConfigMap, is_in_initial_list: bool) {
        self.add(if is_in_initial_list { "initial +" } else { "+" }, map);
    }

    fn on_update(&self, old: &ConfigMap, new: &ConfigMap) {
        let is_resync = old.metadata.resource_version == new.metadata.resource_version;
        self.add(if is_resync { "=" } else { "~" }, new);
    }

    fn on_delete(&self, map: &ConfigMap) {
        self.add("-", map);
    }
}

/// Only the namespace of the tests: the server has ConfigMaps of its own in kube-system.
fn options() -> CacheOptions {
    CacheOptions { namespaces: vec!["default".to_owned()], ..CacheOptions::default() }
}

async fn label(world: &World, name: &str, value: &str) -> Result<()> {
    let patch = Patch::Merge(json!({"metadata": {"labels": {"x": value}}}));
    world.api::<ConfigMap>().patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_handler_gets_existing_objects_and_then_every_change() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a", "b"]).await?;
    let running = world.cache(options());
    let maps = Informer::<ConfigMap>::new(&running.cache);
    let calls = Calls::default();
    tokio::spawn(maps.add_event_handler(calls.clone()));
    soon("the list", maps.synced()).await?;
    calls.become_(&["initial +a", "initial +b"]).await;

    world.config_maps(&["c"]).await?;
    calls.become_(&["initial +a", "initial +b", "+c"]).await;
    label(&world, "a", "1").await?;
    calls.become_(&["initial +a", "initial +b", "+c", "~a"]).await;
    world.api::<ConfigMap>().delete("b", &DeleteParams::default()).await?;
    calls.become_(&["initial +a", "initial +b", "+c", "~a", "-b"]).await;

    // A later handler gets the current objects.
    let later = Calls::default();
    tokio::spawn(maps.add_event_handler(later.clone()));
    later.become_(&["initial +a", "initial +c"]).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_handler_misses_nothing_before_its_future_runs() -> Result<()> {
    let world = World::new();
    let running = world.cache(options());
    let maps = Informer::<ConfigMap>::new(&running.cache);
    soon("the list", maps.synced()).await?;
    let calls = Calls::default();
    let delivery = maps.add_event_handler(calls.clone());
    world.config_maps(&["a"]).await?;
    let lister = maps.lister();
    eventually("the event", || lister.list(&ListOptions::all()).is_ok_and(|all| all.len() == 1)).await;
    tokio::spawn(delivery);
    calls.become_(&["+a"]).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_handler_drops_one_event() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a", "panics", "z"]).await?;
    let running = world.cache(options());
    let maps = Informer::<ConfigMap>::new(&running.cache);
    let calls = Calls::default();
    tokio::spawn(maps.add_event_handler(calls.clone()));
    calls.become_(&["initial +a", "initial +z"]).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_resync_delivers_updates_without_a_change() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let often = KindOptions::new().resync(Some(Duration::from_mins(1)));
    let running = world.cache(options().kind::<ConfigMap>(often));
    let maps = Informer::<ConfigMap>::new(&running.cache);
    let calls = Calls::default();
    tokio::spawn(maps.add_event_handler(calls.clone()));
    calls.become_(&["initial +a"]).await;
    tokio::time::sleep(Duration::from_secs(61)).await;
    calls.become_(&["initial +a", "=a"]).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn reads_fail_before_the_first_list_and_after_the_stop() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let cache = kubewright_runtime::Cache::new(options())?;
    let maps = Informer::<ConfigMap>::new(&cache);
    let (store, lister, indexer) = (maps.store(), maps.lister(), maps.indexer());
    indexer.add_index("data.keys", |map| map.data.iter().flatten().map(|(key, _)| key.clone()).collect())?;
    let key = Key::namespaced("default", "a");
    assert!(matches!(lister.get(&key), Err(Error::CacheNotStarted(_))));

    let cancel = CancellationToken::new();
    let delivery = tokio::spawn(maps.add_event_handler(Calls::default()));
    let run = tokio::spawn(cache.run(world.client().kube().clone(), cancel.clone()));
    soon("the list", cache.synced()).await?;
    assert!(maps.has_synced() && lister.get(&key)?.is_some() && store.get_by_key(&key)?.is_some());
    assert_eq!(store.list_keys()?, std::slice::from_ref(&key));
    assert_eq!(indexer.index_keys("data.keys", "none")?, []);
    assert!(matches!(indexer.by_index("data.values", "x"), Err(Error::NoIndex { .. })));

    cancel.cancel();
    soon("the cache", run).await?;
    soon("the delivery", delivery).await?;
    assert!(matches!(lister.get(&key), Err(Error::CacheStopped(_))));
    assert!(matches!(store.list(), Err(Error::CacheStopped(_))));
    Ok(())
}
