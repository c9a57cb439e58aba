//! Tests of cache indexes.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::{DeleteParams, DynamicObject, PostParams};
use kubewright_runtime::cache::Index;
use kubewright_runtime::client::Error;
use kubewright_runtime::{Cache, CacheOptions, Gvk, Key, ListOptions, RegisterError};
use tokio_util::sync::CancellationToken;

use crate::world::{World, eventually, pod, soon, widget};

fn names(pods: &[Arc<Pod>]) -> Vec<&str> {
    pods.iter().map(|pod| pod.metadata.name.as_deref().unwrap()).collect()
}

async fn create(world: &World, name: &str, node: &str) -> Result<()> {
    let mut pod = pod(name);
    pod.spec.as_mut().unwrap().node_name = Some(node.to_owned());
    world.api().create(&PostParams::default(), &pod).await?;
    Ok(())
}

fn node(pod: &Pod) -> Vec<String> {
    pod.spec.iter().filter_map(|spec| spec.node_name.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn an_index_finds_objects_by_a_field() -> Result<()> {
    let world = World::new();
    create(&world, "a", "node-1").await?;
    let running = world.cache(CacheOptions::default());
    // One object before the index exists, and one after.
    running.cache.index("spec.nodeName", node)?;
    let client = world.cached(&running.cache);
    let on = |node: &str| ListOptions::all().field("spec.nodeName", node);
    assert_eq!(names(&soon("the list", client.list::<Pod>(&on("node-1"))).await?), ["a"]);
    running.cache.index("image", |pod: &Pod| {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        containers.filter_map(|container| container.image.clone()).collect()
    })?;
    create(&world, "b", "node-1").await?;
    create(&world, "c", "node-2").await?;
    let informer = running.cache.informer::<Pod>();
    eventually("the events", || informer.len() == 3).await;
    assert_eq!(names(&client.list::<Pod>(&on("node-1")).await?), ["a", "b"]);
    assert_eq!(names(&client.list::<Pod>(&on("node-2")).await?), ["c"]);
    assert_eq!(names(&client.list::<Pod>(&on("node-3")).await?), Vec::<&str>::new());
    let both = on("node-1").field("image", "nginx");
    assert_eq!(names(&client.list::<Pod>(&both).await?), ["a", "b"]);
    assert_eq!(names(&client.list::<Pod>(&both.limit(1)).await?), ["a"]);
    let none = on("node-1").field("image", "other");
    assert!(client.list::<Pod>(&none).await?.is_empty());
    let elsewhere = ListOptions::namespace("elsewhere").field("spec.nodeName", "node-1");
    assert!(client.list::<Pod>(&elsewhere).await?.is_empty());
    // Names and namespaces need no index.
    assert_eq!(names(&client.list::<Pod>(&ListOptions::all().field("metadata.name", "b")).await?), ["b"]);
    let here = ListOptions::namespace("default");
    assert_eq!(names(&client.list::<Pod>(&here.clone().field("metadata.name", "b")).await?), ["b"]);
    assert_eq!(client.list::<Pod>(&here.clone().field("metadata.namespace", "default")).await?.len(), 3);
    assert_eq!(
        client.list::<Pod>(&ListOptions::all().field("metadata.namespace", "default")).await?.len(),
        3
    );
    assert_eq!(client.list::<Pod>(&here.field("metadata.namespace", "other")).await?.len(), 0);

    world.api::<Pod>().delete("a", &DeleteParams::default().grace_period(0)).await?;
    eventually("the event", || informer.len() == 2).await;
    assert_eq!(names(&client.list::<Pod>(&on("node-1")).await?), ["b"]);
    assert_eq!(world.faults.count(|_| true), 1, "no further requests");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_field_without_an_index_is_an_error_with_advice() -> Result<()> {
    let world = World::new();
    create(&world, "a", "node-1").await?;
    let running = world.cache(CacheOptions::default());
    running.cache.informer::<Pod>();
    let client = world.cached(&running.cache);
    let list = ListOptions::all().field("spec.nodeName", "node-1");
    let error = soon("the list", client.list::<Pod>(&list)).await.unwrap_err();
    assert!(matches!(&error, Error::NoIndex { index, .. } if index == "spec.nodeName"));
    assert!(error.to_string().contains("Cache::index"), "{error}");
    // The server supports this field.
    assert_eq!(names(&client.uncached().list::<Pod>(&list).await?), ["a"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_second_index_of_the_same_name_is_rejected() -> Result<()> {
    let world = World::new();
    create(&world, "a", "node-1").await?;
    let running = world.cache(CacheOptions::default());
    running.cache.index("node", node)?;
    let error = running.cache.index::<Pod>("node", |_| Vec::new()).unwrap_err();
    assert!(matches!(error, RegisterError::IndexTaken { .. }));
    assert_eq!(error.to_string(), "v1, Kind=Pod already has an index named \"node\": choose another name");
    // Another type may use the name, and the first index is kept.
    running.cache.index::<ConfigMap>("node", |_| Vec::new())?;
    soon("the lists", running.cache.synced()).await?;
    let list = ListOptions::all().field("node", "node-1");
    assert_eq!(names(&running.cache.list::<Pod>(&list)?), ["a"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_index_handle_finds_objects_of_its_type() -> Result<()> {
    let world = World::new();
    for (name, node) in [("a", "node-1"), ("b", "node-1"), ("c", "node-2")] {
        create(&world, name, node).await?;
    }
    let cache = Cache::new(CacheOptions { seed: Some(1), ..CacheOptions::default() })?;
    // Registered before the cache starts; reads then fail.
    let by_node: Index<Pod> = cache.index("node", node)?;
    assert!(matches!(by_node.get("node-1"), Err(Error::CacheNotStarted(_))));
    let cancel = CancellationToken::new();
    let task = tokio::spawn(cache.run(world.kube.clone(), cancel.clone()));
    assert!(matches!(by_node.get("node-1"), Err(Error::CacheNotSynced(_))));
    soon("the list", cache.synced()).await?;
    assert_eq!(names(&by_node.get("node-1")?), ["a", "b"]);
    assert_eq!(names(&by_node.list("node-1", &ListOptions::namespace("default").limit(1))?), ["a"]);
    assert!(by_node.list("node-1", &ListOptions::all().labels("app=web"))?.is_empty());
    assert!(by_node.get("node-3")?.is_empty());
    // A list by the index name uses the same index. An index that is added later has all objects.
    assert_eq!(names(&cache.list::<Pod>(&ListOptions::all().field(by_node.name(), "node-2"))?), ["c"]);
    let by_image = cache.index::<Pod>("image", |_| vec!["nginx".to_owned()])?;
    assert_eq!(by_image.get("nginx")?.len(), 3);
    create(&world, "d", "node-2").await?;
    eventually("the event", || by_node.get("node-2").is_ok_and(|found| found.len() == 2)).await;
    // A type that is no longer watched is an error, not an empty result.
    cache.remove::<Pod>();
    assert!(matches!(by_node.get("node-1"), Err(Error::CacheStopped(_))));
    cancel.cancel();
    task.await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_same_function_is_indexed_once() -> Result<()> {
    let world = World::new();
    create(&world, "a", "node-1").await?;
    let running = world.cache(CacheOptions::default());
    let first: Index<Pod> = running.cache.index("node", node)?;
    let second: Index<Pod> = running.cache.index("node", node)?;
    soon("the list", running.cache.synced()).await?;
    assert_eq!(names(&first.get("node-1")?), names(&second.get("node-1")?));
    // Closures with captures may differ although they have the same type.
    let constant = |value: &'static str| move |_: &Pod| vec![value.to_owned()];
    running.cache.index("constant", constant("x"))?;
    let error = running.cache.index("constant", constant("y")).unwrap_err();
    assert!(matches!(error, RegisterError::IndexTaken { .. }));
    Ok(())
}

/// Blocks an index function until the test opens the gate.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<(bool, bool)>, Condvar)>);

impl Gate {
    /// Waits until the gate is open. Fails after a timeout, so that a failing test does not hang.
    fn pass(&self) {
        let (state, changed) = &*self.0;
        let mut state = state.lock().unwrap();
        state.0 = true;
        while !state.1 {
            let (next, waited) = changed.wait_timeout(state, Duration::from_secs(20)).unwrap();
            assert!(!waited.timed_out(), "the gate was not opened");
            state = next;
        }
    }

    fn is_reached(&self) -> bool {
        self.0.0.lock().unwrap().0
    }

    fn open(&self) {
        self.0.0.lock().unwrap().1 = true;
        self.0.1.notify_all();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_slow_index_function_blocks_neither_reads_nor_readiness() -> Result<()> {
    let world = World::new();
    world.namespace("slow").await?;
    let running = world.cache(CacheOptions::default());
    let (event, added) = (Gate::default(), Gate::default());
    let gate = event.clone();
    running.cache.index::<Namespace>("name", move |namespace| {
        if namespace.metadata.name.as_deref() == Some("later") {
            gate.pass();
        }
        namespace.metadata.name.clone().into_iter().collect()
    })?;
    soon("the list", running.cache.synced()).await?;
    let found = |name: &str| running.cache.list::<Namespace>(&ListOptions::all().field("name", name));
    let reads = || -> Result<()> {
        assert_eq!(found("slow")?.len(), 1);
        assert!(running.cache.get::<Namespace>(&Key::cluster("slow"))?.is_some());
        assert_eq!(running.cache.health(), Ok(()));
        Ok(())
    };
    // An event that needs indexing.
    world.namespace("later").await?;
    eventually("the index function", || event.is_reached()).await;
    reads()?;
    assert!(found("later")?.is_empty());
    event.open();
    eventually("the event", || found("later").is_ok_and(|found| found.len() == 1)).await;
    // A new index.
    let (cache, gate) = (running.cache.clone(), added.clone());
    let adding = tokio::task::spawn_blocking(move || {
        cache.index::<Namespace>("slow", move |_| {
            gate.pass();
            vec!["x".to_owned()]
        })
    });
    eventually("the index function", || added.is_reached()).await;
    reads()?;
    added.open();
    adding.await??;
    assert_eq!(
        running.cache.list::<Namespace>(&ListOptions::all().field("slow", "x"))?.len(),
        running.cache.informer::<Namespace>().len()
    );
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_known_only_at_run_time_can_be_indexed() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    for (name, color) in [("a", "red"), ("b", "blue"), ("c", "red")] {
        world.api().create(&PostParams::default(), &widget(name, color)).await?;
    }
    let gvk = Gvk::new("example.org", "v1", "Widget");
    let kind = world.client().kind(&gvk).await?;
    let running = world.cache(CacheOptions::default());
    let color = |widget: &DynamicObject| {
        widget.data["spec"]["color"].as_str().map(str::to_owned).into_iter().collect()
    };
    let by_color = running.cache.index_kind(&kind, "color", color)?;
    soon("the list", running.cache.synced()).await?;
    let names = |widgets: Vec<Arc<DynamicObject>>| -> Vec<String> {
        widgets.iter().filter_map(|widget| widget.metadata.name.clone()).collect()
    };
    assert_eq!(names(by_color.get("red")?), ["a", "c"]);
    let list = ListOptions::namespace("default").field("color", "blue");
    world.faults.forget();
    assert_eq!(names(world.cached(&running.cache).list_dynamic(&gvk, &list).await?), ["b"]);
    assert_eq!(
        world.faults.count(|asked| asked.path.contains("widgets")),
        0,
        "the list is served by the cache"
    );
    running.cache.remove_kind(&kind, false);
    assert!(matches!(by_color.get("red"), Err(Error::CacheStopped(_))));
    Ok(())
}
