//! Reads of map functions and reconcilers from the cache, and when they are possible.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::api::PostParams;
use kube::core::PartialObjectMeta;
use kubewright_runtime::client::Error;
use kubewright_runtime::controller::{ControllerError, Watch};
use kubewright_runtime::{
    Cache, CacheOptions, Key, Kind, KindOptions, ListOptions, ManagerError, ManagerOptions, Outcome,
    RegisterError,
};
use serde_json::json;

use crate::operator::{Acts, KeyActs, Notes, Running, manager, options};
use crate::world::{Effect, RecordedRequest, Widget, World, config_map, object, pod, settle, soon, widget};

/// A key reconciler that notes each key.
fn noting(notes: &Notes) -> KeyActs {
    let notes = notes.clone();
    KeyActs::new(move |cx| {
        notes.push(cx.key().name());
        Box::pin(async { Ok(Outcome::done()) })
    })
}

async fn secret(world: &World, name: &str) -> Result<()> {
    let secret: Secret = object(json!({"metadata": {"name": name, "namespace": "default"}}));
    world.api().create(&PostParams::default(), &secret).await?;
    Ok(())
}

/// The keys of all ConfigMaps.
fn maps(cache: &Cache) -> Vec<Key> {
    let maps = cache.list::<ConfigMap>(&ListOptions::all()).expect("ConfigMaps are cached and listed");
    maps.iter().map(|map| Key::of(&**map)).collect()
}

fn delay_maps(world: &World) {
    world.faults.every(Effect::Delay(Duration::from_secs(20)), |asked| asked.path.contains("configmaps"));
}

#[tokio::test(start_paused = true)]
async fn a_map_function_runs_after_the_kinds_it_reads_are_listed() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a", "b"]).await?;
    secret(&world, "s").await?;
    delay_maps(&world);
    let (manager, notes) = (manager(&world)?, Notes::new());
    manager
        .key_controller("keys", noting(&notes))
        .watches::<Secret>(|_, cache| maps(cache))
        .reads::<ConfigMap>()
        .register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(notes.take(), ["a", "b"]);
    // Events of a kind that is only read reconcile nothing.
    world.config_maps(&["c"]).await?;
    settle().await;
    assert_eq!(notes.take(), [""; 0]);
    secret(&world, "t").await?;
    settle().await;
    assert_eq!(notes.take(), ["a", "b", "c"]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_map_function_of_a_late_controller_runs_after_the_kinds_it_reads_are_listed() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a", "b"]).await?;
    secret(&world, "s").await?;
    delay_maps(&world);
    let (manager, notes) = (manager(&world)?, Notes::new());
    let running = Running::start(&manager);
    settle().await;
    manager
        .key_controller("keys", noting(&notes))
        .watches::<Secret>(|_, cache| maps(cache))
        .reads::<ConfigMap>()
        .register()?;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(notes.take(), ["a", "b"]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_source_of_another_cluster_waits_for_the_other_kinds_of_a_late_controller() -> Result<()> {
    let (here, there) = (World::new(), World::new());
    here.config_maps(&["a"]).await?;
    secret(&there, "s").await?;
    delay_maps(&here);
    let (manager, notes) = (manager(&here)?, Notes::new());
    let running = Running::start(&manager);
    settle().await;
    let remote = manager.attach("remote", there.kube.clone(), CacheOptions::default())?;
    manager
        .key_controller("keys", noting(&notes))
        .watches_in::<Secret>(&remote, Watch::new(), |_, cache| maps(cache))
        .reads::<ConfigMap>()
        .register()?;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(notes.take(), ["a"]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_map_function_waits_for_the_kinds_of_other_controllers() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    secret(&world, "s").await?;
    delay_maps(&world);
    let (manager, notes) = (manager(&world)?, Notes::new());
    manager.key_controller("keys", noting(&notes)).watches::<Secret>(|_, cache| maps(cache)).register()?;
    manager.controller(Acts::<ConfigMap>::noting(&Notes::new())).register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(notes.take(), ["a"]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn the_error_names_a_kind_that_is_read_but_not_served() -> Result<()> {
    let world = World::new();
    let manager = manager(&world)?;
    manager.controller(Acts::<ConfigMap>::noting(&Notes::new())).reads::<Widget>().register()?;
    let error = Running::start(&manager).failed().await?;
    let ManagerError::Controller(ControllerError::NotSynced { kind, .. }) = &error else {
        panic!("{error}");
    };
    assert_eq!(kind.kind, "Widget");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_only_reads_is_rejected_and_reads_are_in_the_manifest() -> Result<()> {
    let world = World::new();
    let manager = manager(&world)?;
    let keys = manager.key_controller("keys", noting(&Notes::new())).reads::<ConfigMap>();
    assert!(matches!(keys.register(), Err(RegisterError::NoSource(_))));
    manager.controller(Acts::<ConfigMap>::noting(&Notes::new())).reads::<Secret>().register()?;
    let manifest = manager.manifest();
    let [controller] = &manifest.controllers[..] else { panic!("{manifest:?}") };
    let reads: Vec<&str> = controller.reads.iter().map(Kind::name).collect();
    assert_eq!((reads, controller.watches.len()), (vec!["Secret"], 0));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn reading_an_uncached_kind_in_a_map_function_is_an_error() -> Result<()> {
    let world = World::new();
    secret(&world, "s").await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    let noted = notes.clone();
    manager
        .key_controller("keys", noting(&Notes::new()))
        .watches::<Secret>(move |_, cache| {
            let error = cache.list::<Pod>(&ListOptions::all()).expect_err("Pods are not watched");
            noted.push(format!("{}: {error}", matches!(error, Error::NotCached(_))));
            Vec::new()
        })
        .register()?;
    let running = Running::start(&manager);
    settle().await;
    let text = "true: the cache does not watch v1, Kind=Pod: declare it with reads() or watches() on a controller, or \
                read it with the client";
    assert_eq!(notes.take(), [text]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_read_before_the_start_is_an_error() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let manager = manager(&world)?;
    manager.cache().index::<ConfigMap>("x", |_| Vec::new())?;
    let key = Key::namespaced("default", "a");
    let not_started = |error: Error| {
        assert!(matches!(error, Error::CacheNotStarted(_)), "{error:?}");
        assert!(error.to_string().starts_with("the manager has not started"), "{error}");
    };
    not_started(soon("an answer", manager.client().get::<ConfigMap>(&key)).await.unwrap_err());
    not_started(
        soon("an answer", manager.client().list::<ConfigMap>(&ListOptions::all())).await.unwrap_err(),
    );
    not_started(manager.cache().get::<ConfigMap>(&key).unwrap_err());
    not_started(manager.cache().list::<Pod>(&ListOptions::all()).unwrap_err());
    // A kind that is not cached is read from the server.
    world.api().create(&PostParams::default(), &pod("p")).await?;
    soon("an answer", manager.client().get::<Pod>(&Key::namespaced("default", "p"))).await?;
    let running = Running::start(&manager);
    soon("the list", manager.cache().synced()).await?;
    assert!(manager.cache().get::<ConfigMap>(&key)?.is_some());
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_read_of_a_registered_kind_before_the_start_is_an_error() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let cache = CacheOptions { namespaces: vec!["default".to_owned()], ..CacheOptions::default() };
    let options = ManagerOptions { cache, ..options() };
    let manager = kubewright_runtime::Manager::new(world.kube.clone(), options)?;
    let builder = manager.controller(Acts::<ConfigMap>::noting(&Notes::new()));
    let watch = kubewright_runtime::controller::Watch::<Pod>::new().labels("app");
    let handle = builder.reads::<Secret>().owns_with::<Pod>(watch).build()?;
    let (client, key, all) = (manager.client(), Key::namespaced("default", "a"), ListOptions::all());
    let not_started = |error: Error| assert!(matches!(error, Error::CacheNotStarted(_)), "{error:?}");
    let gvk = Kind::of::<ConfigMap>().gvk().clone();
    not_started(soon("an answer", client.get::<ConfigMap>(&key)).await.unwrap_err());
    not_started(soon("an answer", client.list::<ConfigMap>(&all)).await.unwrap_err());
    not_started(soon("an answer", client.get_dynamic(&gvk, &key)).await.unwrap_err());
    not_started(soon("an answer", client.list_dynamic(&gvk, &all)).await.unwrap_err());
    not_started(soon("an answer", client.get::<PartialObjectMeta<ConfigMap>>(&key)).await.unwrap_err());
    not_started(soon("an answer", client.list::<Secret>(&all)).await.unwrap_err());
    // These reads are never served by the cache: without the cache, of another namespace, of a selection.
    soon("an answer", client.uncached().get::<ConfigMap>(&key)).await?;
    let elsewhere = Key::namespaced("kube-system", "none");
    assert_eq!(soon("an answer", client.get_opt::<ConfigMap>(&elsewhere)).await?, None);
    assert_eq!(soon("an answer", client.list::<Pod>(&all)).await?.len(), 0);
    // Writes do not depend on the cache.
    soon("an answer", client.apply(&config_map("b"))).await?;

    handle.remove().await;
    soon("an answer", client.get::<ConfigMap>(&key)).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn waiting_for_the_cache_includes_its_start() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let manager = manager(&world)?;
    manager.controller(Acts::<ConfigMap>::noting(&Notes::new())).register()?;
    let running = Running::start(&manager);
    soon("the list", manager.cache().synced()).await?;
    assert_eq!(maps(manager.cache()).len(), 1);
    running.end().await
}

#[tokio::test]
async fn a_manager_that_fails_to_start_stops_its_cache() -> Result<()> {
    let world = World::new();
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = taken.local_addr()?.to_string().parse()?;
    let options = ManagerOptions { health_probe_bind_address: address, ..options() };
    let manager = kubewright_runtime::Manager::new(world.kube.clone(), options)?;
    manager.controller(Acts::<ConfigMap>::noting(&Notes::new())).register()?;
    let running = Running::start(&manager);
    assert!(matches!(soon("the end", manager.cache().synced()).await, Err(Error::CacheStopped(_))));
    assert!(matches!(running.failed().await?, ManagerError::Bind(_)));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_selectors_of_the_cache_and_of_a_watch_both_apply() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    for (name, team, color) in [("a", "x", "red"), ("b", "y", "red"), ("c", "x", "blue")] {
        let mut widget = widget(name, color);
        let labels = [("team".to_owned(), team.to_owned()), ("color".to_owned(), color.to_owned())];
        widget.metadata.labels = Some(labels.into());
        world.api().create(&PostParams::default(), &widget).await?;
    }
    let kind = KindOptions::new().labels("team=x").fields("spec.color!=blue");
    let cache = CacheOptions::default().kind::<Widget>(kind);
    let options = ManagerOptions { cache, ..options() };
    let (manager, notes) = (kubewright_runtime::Manager::new(world.kube.clone(), options)?, Notes::new());
    let watch = kubewright_runtime::controller::Watch::new().labels("color").fields("metadata.name!=z");
    manager.controller_with(Acts::<Widget>::noting(&notes), watch).register()?;
    let running = Running::start(&manager);
    settle().await;
    assert_eq!(notes.take(), ["a"]);
    let asked = world.faults.requests();
    let watch = asked.iter().find(|asked| RecordedRequest::is_watch(asked)).expect("Widgets are watched");
    assert_eq!(watch.parameter("labelSelector"), Some("team=x,color"));
    assert_eq!(watch.parameter("fieldSelector"), Some("spec.color!=blue,metadata.name!=z"));
    running.end().await
}
