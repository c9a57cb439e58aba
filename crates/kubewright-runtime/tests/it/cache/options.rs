//! Cache options: selectors, namespaces, transforms, managed fields, resync.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::core::PartialObjectMeta;
use kubewright_runtime::cache::NamespaceOptions;
use kubewright_runtime::{
    Cache, CacheOptions, Key, KindOptions, ListOptions, Manager, ManagerError, ManagerOptions,
};
use serde_json::json;
use tokio::time::Instant;

use super::{label, names, next_changes};
use crate::world::{
    RecordedRequest, Widget, World, config_map, eventually, object, pod, settle, soon, widget,
};

#[tokio::test(start_paused = true)]
async fn label_selectors_are_evaluated_by_the_server() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a", "b"]).await?;
    label(&world, "a", "in").await?;
    let options = CacheOptions::default().kind::<ConfigMap>(KindOptions::new().labels("x in (in,also)"));
    let running = world.cache(options);
    let informer = running.cache.informer::<ConfigMap>();
    let mut follower = informer.follower();
    assert_eq!(next_changes(&mut follower).await, ["+a (initial)"]);
    assert_eq!(world.faults.requests()[0].parameter("labelSelector"), Some("x in (in,also)"));
    // Objects that start to match are added, those that no longer match are removed.
    label(&world, "b", "also").await?;
    assert_eq!(next_changes(&mut follower).await, ["+b"]);
    label(&world, "b", "in").await?;
    assert_eq!(next_changes(&mut follower).await, ["~b"]);
    label(&world, "a", "out").await?;
    assert_eq!(next_changes(&mut follower).await, ["-a"]);
    assert_eq!(names(&informer), ["b"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn field_selectors_are_evaluated_by_the_server() -> Result<()> {
    let world = World::new();
    for (name, node) in [("a", "node-1"), ("b", "node-2")] {
        let mut pod = pod(name);
        pod.spec.as_mut().unwrap().node_name = Some(node.to_owned());
        world.api().create(&PostParams::default(), &pod).await?;
    }
    let options = CacheOptions::default().kind::<Pod>(KindOptions::new().fields("spec.nodeName=node-2"));
    let running = world.cache(options);
    let informer = running.cache.informer::<Pod>();
    soon("the list", informer.synced()).await?;
    assert_eq!(names(&informer), ["b"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn one_informer_watches_several_namespaces_and_no_other() -> Result<()> {
    let world = World::new();
    for namespace in ["one", "two", "three"] {
        world.namespace(namespace).await?;
        let maps: Api<ConfigMap> = Api::namespaced(world.direct.clone(), namespace);
        let mut map = config_map("a");
        map.metadata.namespace = None;
        maps.create(&PostParams::default(), &map).await?;
    }
    // A duplicate namespace is watched once.
    let namespaces = ["one", "two", "one"].map(str::to_owned).to_vec();
    let running = world.cache(CacheOptions { namespaces, ..CacheOptions::default() });
    let informer = running.cache.informer::<ConfigMap>();
    let mut follower = informer.follower();
    soon("the list", informer.synced()).await?;
    let keys = |list: &ListOptions| -> Result<Vec<String>> {
        Ok(informer.entries(list)?.iter().map(|entry| entry.key().to_string()).collect())
    };
    assert_eq!(keys(&ListOptions::all())?, ["one/a", "two/a"]);
    assert_eq!(keys(&ListOptions::namespace("two"))?, ["two/a"]);
    assert_eq!(world.faults.watches(RecordedRequest::is_watch), 2);
    let paths: Vec<String> = world.faults.requests().iter().map(RecordedRequest::line).collect();
    assert_eq!(paths, ["GET /api/v1/namespaces/one/configmaps", "GET /api/v1/namespaces/two/configmaps"]);

    // Listing one namespace again does not remove objects of the other.
    let first = next_changes(&mut follower).await;
    assert_eq!(first, ["+a (initial)", "+a (initial)"]);
    world.faults.expire(|asked| asked.path.contains("/one/"));
    eventually("the list again", || world.faults.count(RecordedRequest::is_list) == 3).await;
    settle().await;
    assert_eq!((informer.len(), follower.waiting()), (2, 0));

    // The client reads unwatched namespaces from the server, and watched ones from the cache.
    let client = world.cached(&running.cache);
    world.faults.forget();
    client.get::<ConfigMap>(&Key::namespaced("two", "a")).await?;
    assert_eq!(client.list::<ConfigMap>(&ListOptions::all()).await?.len(), 2);
    assert_eq!(world.faults.count(|_| true), 0);
    client.get::<ConfigMap>(&Key::namespaced("three", "a")).await?;
    assert_eq!(client.list::<ConfigMap>(&ListOptions::namespace("three")).await?.len(), 1);
    assert_eq!(world.faults.count(|_| true), 2);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_empty_namespace_means_all() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let running = world.cache(CacheOptions { namespaces: vec![String::new()], ..CacheOptions::default() });
    let informer = running.cache.informer::<ConfigMap>();
    soon("the list", informer.synced()).await?;
    assert_eq!(names(&informer), ["a"]);
    assert_eq!(world.faults.requests()[0].path, "/api/v1/configmaps");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_kind_may_have_namespaces_of_its_own() -> Result<()> {
    let world = World::new();
    let options = CacheOptions { namespaces: vec!["elsewhere".to_owned()], ..CacheOptions::default() };
    let running = world.cache(options.kind::<ConfigMap>(KindOptions::new().namespaces(["default"])));
    let (maps, pods) = (running.cache.informer::<ConfigMap>(), running.cache.informer::<Pod>());
    soon("the lists", running.cache.synced()).await?;
    assert!(maps.is_synced() && pods.is_synced());
    let paths: Vec<String> = world.faults.requests().into_iter().map(|asked| asked.path).collect();
    assert_eq!(paths, ["/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/elsewhere/pods"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn managed_fields_are_dropped_by_default() -> Result<()> {
    for keep in [false, true] {
        let world = World::new();
        world.config_maps(&["a"]).await?;
        let kind = if keep { KindOptions::new().keep_managed_fields() } else { KindOptions::new() };
        let running = world.cache(CacheOptions::default().kind::<ConfigMap>(kind));
        let informer = running.cache.informer::<ConfigMap>();
        soon("the list", informer.synced()).await?;
        let map = running.cache.get::<ConfigMap>(&Key::namespaced("default", "a"))?.unwrap();
        assert_eq!(map.metadata.managed_fields.is_some(), keep);
        assert!(informer.bytes() > 0);
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn objects_are_transformed_before_they_are_stored() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    let options = CacheOptions::default()
        .kind::<ConfigMap>(KindOptions::new().transform(|map: &mut ConfigMap| map.data = None))
        .kind::<Widget>(KindOptions::new().transform(|widget: &mut Widget| widget.spec.color.clear()));
    world.config_maps(&["a"]).await?;
    world.api().create(&PostParams::default(), &widget("w", "red")).await?;
    let running = world.cache(options);
    let informer = running.cache.informer::<ConfigMap>();
    running.cache.informer::<Widget>();
    // Metadata objects are not Widgets, so the transform does not apply to them.
    running.cache.informer::<PartialObjectMeta<Widget>>();
    soon("the lists", running.cache.synced()).await?;
    world.config_maps(&["b"]).await?;
    eventually("the event", || names(&informer) == ["a", "b"]).await;
    for map in running.cache.list::<ConfigMap>(&ListOptions::namespace("default"))? {
        assert!(map.data.is_none() && map.metadata.resource_version.is_some());
    }
    assert_eq!(running.cache.list::<Widget>(&ListOptions::all())?[0].spec.color, "");
    let metadata = running.cache.informer::<PartialObjectMeta<Widget>>();
    assert_eq!(metadata.len(), 1);
    // A broken watch continues at its last version.
    settle().await;
    world.faults.cut(RecordedRequest::is_watch);
    world.config_maps(&["c"]).await?;
    eventually("the event", || names(&informer) == ["a", "b", "c"]).await;
    assert_eq!(world.faults.count(|asked| asked.path.ends_with("configmaps") && asked.is_list()), 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_decoded_is_an_error_of_the_read() -> Result<()> {
    /// A type with a required field that the objects do not have.
    #[derive(serde::Deserialize, Debug)]
    struct Picky {
        #[serde(rename = "missing")]
        _missing: String,
    }
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let running = world.cache(CacheOptions::default());
    let informer = running.cache.informer::<ConfigMap>();
    soon("the list", informer.synced()).await?;
    let entry = informer.entry(&Key::namespaced("default", "a")).unwrap();
    let error = informer.decode::<Picky>(&entry).unwrap_err();
    assert_eq!(error.to_string(), "failed to decode ConfigMap default/a");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_resync_delivers_all_objects_again() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a", "b"]).await?;
    let options = CacheOptions { resync: Some(Duration::from_hours(1)), ..CacheOptions::default() };
    let options = options
        .kind::<Pod>(KindOptions::new().resync(None))
        .kind::<ConfigMap>(KindOptions::new().namespaces(["default"]));
    world.api().create(&PostParams::default(), &pod("p")).await?;
    let running = world.cache(options);
    let (mut maps, mut pods) =
        (running.cache.informer::<ConfigMap>().follower(), running.cache.informer::<Pod>().follower());
    assert_eq!(next_changes(&mut maps).await, ["+a (initial)", "+b (initial)"]);
    assert_eq!(next_changes(&mut pods).await, ["+p (initial)"]);
    let mut last: Option<Instant> = None;
    for _ in 0..3 {
        let changes = maps.next().await.unwrap();
        assert_eq!(changes.iter().map(super::words).collect::<Vec<_>>(), ["=a", "=b"]);
        let change = &changes[0];
        assert_eq!(change.old.as_ref().unwrap().version(), change.new.as_ref().unwrap().version());
        assert!(last.is_none_or(|last| last.elapsed() == Duration::from_hours(1)));
        last = Some(Instant::now());
    }
    assert_eq!(pods.waiting(), 0);
    assert_eq!(world.faults.count(RecordedRequest::is_list), 2, "the server gets no requests");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_resync_does_not_hide_changes() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let options = CacheOptions { resync: Some(Duration::from_mins(1)), ..CacheOptions::default() };
    let running = world.cache(options.kind::<ConfigMap>(KindOptions::new().namespaces(["default"])));
    let informer = running.cache.informer::<ConfigMap>();
    let mut follower = informer.follower();
    assert_eq!(next_changes(&mut follower).await, ["+a (initial)"]);
    label(&world, "a", "1").await?;
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(next_changes(&mut follower).await, ["~a"]);
    assert_eq!(next_changes(&mut follower).await, ["=a"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_cache_evaluates_label_selectors_of_lists() -> Result<()> {
    let world = World::new();
    for (name, labels) in
        [("a", json!({"app": "web"})), ("b", json!({"app": "db", "old": "1"})), ("c", json!({}))]
    {
        let map: ConfigMap = object(json!({"metadata": {"name": name, "labels": labels}}));
        world.api().create(&PostParams::default(), &map).await?;
    }
    let running = world.cache(CacheOptions::default());
    running.cache.informer::<ConfigMap>();
    let client = world.cached(&running.cache);
    for selector in ["app=web", "app in (web, db)", "!app", "app!=web", "app,!old", "app notin (db)", ""] {
        let list = ListOptions::namespace("default").labels(selector);
        let names = |maps: Vec<std::sync::Arc<ConfigMap>>| -> Vec<String> {
            maps.iter().map(|map| map.metadata.name.clone().unwrap()).collect()
        };
        let cached = names(soon("the list", client.list(&list)).await?);
        let asked = names(soon("the list", client.uncached().list(&list)).await?);
        assert_eq!(cached, asked, "{selector}");
    }
    assert!(client.list::<ConfigMap>(&ListOptions::all().labels("a b")).await.is_err());
    let limited = client.list::<ConfigMap>(&ListOptions::namespace("default").limit(2)).await?;
    assert_eq!(limited.len(), 2);
    world
        .api::<ConfigMap>()
        .patch("a", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"labels": null}})))
        .await?;
    let web = ListOptions::namespace("default").labels("app=web");
    eventually("the event", || running.cache.list::<ConfigMap>(&web).unwrap().is_empty()).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_resync_period_of_zero_is_rejected() -> Result<()> {
    let all = CacheOptions { resync: Some(Duration::ZERO), ..CacheOptions::default() };
    let error = Cache::new(all.clone()).err().map(|error| error.to_string());
    let text = "the resync period is zero: set a positive period, or None for no resync";
    assert_eq!(error.as_deref(), Some(text));
    let one = CacheOptions::default().kind::<Pod>(KindOptions::new().resync(Some(Duration::ZERO)));
    let error = Cache::new(one).err().map(|error| error.to_string());
    let text = "the resync period of v1, Kind=Pod is zero: set a positive period, or None for no resync";
    assert_eq!(error.as_deref(), Some(text));
    let namespace = NamespaceOptions::new().resync(Some(Duration::ZERO));
    let one = CacheOptions::default().kind::<Pod>(KindOptions::new().namespace("a", namespace.clone()));
    assert_eq!(Cache::new(one).err().map(|error| error.to_string()).as_deref(), Some(text));
    assert!(Cache::new(CacheOptions::default().namespace("a", namespace)).is_err());
    let options = ManagerOptions { cache: all, ..ManagerOptions::new("test") };
    let refused = Manager::new(World::new().kube, options).err();
    assert!(matches!(refused, Some(ManagerError::Cache(_))), "{refused:?}");
    Ok(())
}
