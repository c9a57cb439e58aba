//! Options per namespace: selectors, transforms and resync periods that differ from those of the kind.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kubewright_runtime::cache::{Informer, NamespaceOptions, Removal};
use kubewright_runtime::{CacheOptions, Key, KindOptions, ListOptions};
use serde_json::json;
use tokio::time::timeout;

use crate::world::{RecordedRequest, RunningCache, World, config_map, eventually, settle, soon};

/// Three namespaces with the ConfigMaps `in` and `out`, which have the labels `x=in` and `x=out`.
async fn world() -> Result<World> {
    let world = World::new();
    for namespace in ["one", "two", "three"] {
        world.namespace(namespace).await?;
        for name in ["in", "out"] {
            create(&world, namespace, name).await?;
        }
    }
    Ok(world)
}

fn maps(world: &World, namespace: &str) -> Api<ConfigMap> {
    Api::namespaced(world.direct.clone(), namespace)
}

async fn create(world: &World, namespace: &str, name: &str) -> Result<()> {
    let mut map = config_map(name);
    map.metadata.namespace = None;
    map.metadata.labels = Some([("x".to_owned(), name.to_owned())].into());
    maps(world, namespace).create(&PostParams::default(), &map).await?;
    Ok(())
}

fn keys(informer: &Informer) -> Result<Vec<String>> {
    Ok(informer.entries(&ListOptions::all())?.iter().map(|entry| entry.key().to_string()).collect())
}

fn drop_data(map: &mut ConfigMap) {
    map.data = None;
}

fn data(running: &RunningCache, namespace: &str) -> Result<bool> {
    let map = running.cache.get::<ConfigMap>(&Key::namespaced(namespace, "in"))?;
    Ok(map.expect("it is cached").data.is_some())
}

#[tokio::test(start_paused = true)]
async fn each_namespace_of_a_kind_may_have_its_own_selectors_and_transform() -> Result<()> {
    let world = world().await?;
    let kind = KindOptions::new()
        .labels("x=out")
        .namespaces(["three"])
        .namespace("one", NamespaceOptions::new().labels("x=in").transform(drop_data))
        .namespace("two", NamespaceOptions::new().labels("").fields("metadata.name=in"));
    let running = world.cache(CacheOptions::default().kind::<ConfigMap>(kind));
    let informer = running.cache.informer::<ConfigMap>();
    soon("the lists", informer.synced()).await?;
    assert_eq!(keys(&informer)?, ["one/in", "three/out", "two/in"]);
    assert_eq!((data(&running, "one")?, data(&running, "two")?), (false, true));
    let mut asked: Vec<String> = world
        .faults
        .requests()
        .iter()
        .map(|it| {
            let selector = |name| it.parameter(name).unwrap_or("-").to_owned();
            format!("{} {} {}", it.path, selector("labelSelector"), selector("fieldSelector"))
        })
        .collect();
    asked.sort();
    assert_eq!(
        asked,
        [
            "/api/v1/namespaces/one/configmaps x=in -",
            "/api/v1/namespaces/three/configmaps x=out -",
            "/api/v1/namespaces/two/configmaps - metadata.name=in",
        ]
    );
    // An object that no longer matches the selector of its namespace is removed; selectors of other namespaces do not
    // matter.
    let mut follower = informer.follower();
    follower.next().await;
    let patch = Patch::Merge(json!({"metadata": {"labels": {"x": "out"}}}));
    for namespace in ["one", "two"] {
        maps(&world, namespace).patch("in", &PatchParams::default(), &patch).await?;
    }
    eventually("the events", || keys(&informer).is_ok_and(|keys| keys == ["three/out", "two/in"])).await;
    settle().await;
    let changes = follower.next().await.unwrap_or_default();
    let removed: Vec<_> =
        changes.iter().filter_map(|it| Some((it.latest().key().to_string(), it.removal?))).collect();
    assert_eq!(removed, [("one/in".to_owned(), Removal::Deselected)]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn default_namespaces_apply_to_kinds_without_namespaces_of_their_own() -> Result<()> {
    let world = world().await?;
    let options = CacheOptions { namespaces: vec!["two".to_owned()], ..CacheOptions::default() }.namespace(
        "one",
        NamespaceOptions::new().labels("x=in").transform_json(|it| it["data"] = json!({"k": "v"})),
    );
    let running = world.cache(options.clone());
    let informer = running.cache.informer::<ConfigMap>();
    // Namespaces are cluster-scoped.
    running.cache.informer::<Namespace>();
    soon("the lists", running.cache.synced()).await?;
    assert_eq!(keys(&informer)?, ["one/in", "two/in", "two/out"]);
    let map = running.cache.get::<ConfigMap>(&Key::namespaced("one", "in"))?.unwrap();
    assert_eq!(map.data.as_ref().unwrap()["k"], "v");
    assert!(running.cache.get::<Namespace>(&Key::cluster("three"))?.is_some());
    // A kind with its own namespaces uses the default options of a namespace, unless it has its own.
    for (own, expected) in [
        (KindOptions::new().namespaces(["one", "three"]), vec!["one/in", "three/in", "three/out"]),
        (KindOptions::new().namespace("one", NamespaceOptions::new().labels("x=out")), vec!["one/out"]),
    ] {
        let running = world.cache(options.clone().kind::<ConfigMap>(own));
        let informer = running.cache.informer::<ConfigMap>();
        soon("the lists", running.cache.synced()).await?;
        assert_eq!(keys(&informer)?, expected);
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_empty_namespace_has_the_options_of_all_other_namespaces() -> Result<()> {
    let world = world().await?;
    let kind = KindOptions::new()
        .namespace("one", NamespaceOptions::new())
        .namespace("", NamespaceOptions::new().labels("x=in"));
    let running = world.cache(CacheOptions::default().kind::<ConfigMap>(kind));
    let informer = running.cache.informer::<ConfigMap>();
    soon("the lists", informer.synced()).await?;
    let known = ["one/in", "one/out", "three/in", "two/in"];
    assert_eq!(keys(&informer)?, known);
    let all = world.faults.requests().into_iter().find(|it| it.path == "/api/v1/configmaps").unwrap();
    assert_eq!(all.parameter("fieldSelector"), Some("metadata.namespace!=one"));
    // A new list of one scope does not remove the objects of the other.
    for path in ["/api/v1/configmaps", "/api/v1/namespaces/one/configmaps"] {
        let lists = world.faults.count(RecordedRequest::is_list);
        world.faults.expire(|asked| asked.path == path);
        eventually("the list again", || world.faults.count(RecordedRequest::is_list) > lists).await;
        settle().await;
        assert_eq!(keys(&informer)?, known, "after a list of {path}");
    }
    // Each object is reported once, by the watch of its namespace.
    let mut follower = informer.follower();
    follower.next().await;
    for namespace in ["one", "two"] {
        maps(&world, namespace).delete("in", &DeleteParams::default()).await?;
    }
    eventually("the events", || informer.len() == 2).await;
    let changes = follower.next().await.unwrap_or_default();
    assert!(changes.iter().all(|change| change.removal == Some(Removal::Deleted)), "{changes:?}");
    assert_eq!(changes.len(), 2);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_selector_of_a_watch_applies_in_addition_to_that_of_the_namespace() -> Result<()> {
    use kubewright_runtime::controller::Watch;
    use kubewright_runtime::{Context, Manager, ManagerOptions, Outcome, Reconciler};

    struct Nothing;
    impl Reconciler for Nothing {
        type Object = ConfigMap;
        async fn reconcile(&self, _: &ConfigMap, _: &Context) -> kubewright_runtime::Result<Outcome> {
            Ok(Outcome::done())
        }
    }

    let world = world().await?;
    let kind = KindOptions::new().labels("x=out").namespace("one", NamespaceOptions::new().labels("x"));
    let cache = CacheOptions::default().kind::<ConfigMap>(kind);
    let manager = Manager::new(
        world.kube.clone(),
        ManagerOptions { cache, seed: Some(1), ..ManagerOptions::new("operator") },
    )?;
    // It equals the kind's selector, which the namespace replaces, so it must not be dropped as a repetition.
    manager.controller_with(Nothing, Watch::new().labels("x=out")).named("nothing").register()?;
    let listed = eventually("the list", || world.faults.count(RecordedRequest::is_list) > 0);
    manager.run_until(listed).await?;
    assert_eq!(world.faults.requests()[0].parameter("labelSelector"), Some("x,x=out"));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn each_namespace_may_have_its_own_resync_period() -> Result<()> {
    let world = world().await?;
    let minutes = |minutes| Some(Duration::from_mins(minutes));
    let kind = KindOptions::new()
        .labels("x=in")
        .resync(minutes(30))
        .namespace("one", NamespaceOptions::new().resync(minutes(10)))
        .namespace("two", NamespaceOptions::new().resync(None))
        .namespace("", NamespaceOptions::new());
    let running = world.cache(CacheOptions::default().kind::<ConfigMap>(kind));
    let mut follower = running.cache.informer::<ConfigMap>().follower();
    let mut resyncs = BTreeMap::new();
    let counting = async {
        while let Some(changes) = follower.next().await {
            for change in changes.iter().filter(|change| super::words(change).starts_with('=')) {
                let key = change.new.as_ref().expect("a resync has an object").key().to_string();
                *resyncs.entry(key).or_insert(0) += 1;
            }
        }
    };
    assert!(timeout(Duration::from_mins(61), counting).await.is_err(), "the cache runs");
    assert_eq!(resyncs, BTreeMap::from([("one/in".to_owned(), 6), ("three/in".to_owned(), 2)]));
    Ok(())
}
