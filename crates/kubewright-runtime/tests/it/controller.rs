//! Controllers: sources of keys, order and concurrency of reconciles.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, DeleteParams, PostParams};
use kubewright_runtime::cache::Occasion;
use kubewright_runtime::controller::{Cause, Trigger, Watch};
use kubewright_runtime::{CacheOptions, Key, Kind, Manager, ManagerOptions, Object, Outcome};
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};

use crate::operator::{Acts, Crowd, KeyActs, Notes, Running, manager, options, owner, patch, touch};
use crate::world::{RecordedRequest, Widget, World, config_map, object, settle, widget};

/// A ConfigMap with owner references.
fn owned(name: &str, owners: Vec<OwnerReference>) -> ConfigMap {
    let mut map = config_map(name);
    map.metadata.owner_references = Some(owners);
    map
}

/// A Secret with an annotation that names its users.
fn secret(name: &str, uses: &[&str]) -> Secret {
    object(json!({
        "metadata": {"name": name, "namespace": "default", "annotations": {"uses": uses.join(",")}},
    }))
}

/// The users of a Secret.
fn users<K: Object>(secret: &K) -> Vec<Key> {
    let uses = secret.meta().annotations.as_ref().and_then(|annotations| annotations.get("uses"));
    let uses = uses.map(String::as_str).unwrap_or_default().split(',').filter(|name| !name.is_empty());
    uses.map(|name| Key::namespaced("default", name)).collect()
}

async fn create<K>(world: &World, object: &K) -> Result<K>
where
    K: Object + kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    K: std::fmt::Debug,
{
    let api: Api<K> = world.api();
    Ok(api.create(&PostParams::default(), object).await?)
}

#[tokio::test(start_paused = true)]
async fn an_object_is_reconciled_when_it_exists_changes_and_is_deleted() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    manager.controller(Acts::<ConfigMap>::noting(&notes)).register()?;
    let running = Running::start(&manager);
    settle().await;
    assert_eq!(notes.take(), ["a"]);

    world.config_maps(&["b"]).await?;
    settle().await;
    touch::<ConfigMap>(&world, "b", "1").await?;
    settle().await;
    assert_eq!(notes.take(), ["b", "b"]);
    world.api::<ConfigMap>().delete("b", &DeleteParams::default()).await?;
    settle().await;
    assert_eq!(notes.take(), ["b gone"]);
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(notes.take(), [""; 0]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn changes_reconcile_the_controller_and_not_other_owners() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    let (a, b) = (create(&world, &widget("a", "red")).await?, create(&world, &widget("b", "red")).await?);
    let (manager, notes) = (manager(&world)?, Notes::new());
    manager.controller(Acts::<Widget>::noting(&notes)).owns::<ConfigMap>().register()?;
    let running = Running::start(&manager);
    settle().await;
    assert_eq!(notes.take(), ["a", "b"]);

    create(&world, &owned("one", vec![owner(&b, false), owner(&a, true)])).await?;
    settle().await;
    assert_eq!(notes.take(), ["a"]);
    touch::<ConfigMap>(&world, "one", "1").await?;
    settle().await;
    assert_eq!(notes.take(), ["a"]);
    // The controller reference moves to another owner: both must be reconciled.
    let references = json!([owner(&b, true), owner(&a, false)]);
    patch::<ConfigMap>(&world, "one", json!({"metadata": {"ownerReferences": references}})).await?;
    settle().await;
    assert_eq!(notes.take(), ["a", "b"]);
    world.api::<ConfigMap>().delete("one", &DeleteParams::default()).await?;
    settle().await;
    assert_eq!(notes.take(), ["b"]);

    // The same kind name in another group is another kind. An object without owners reconciles nothing.
    let mut stranger = owner(&a, true);
    stranger.api_version = "example.com/v1".to_owned();
    create(&world, &owned("two", vec![stranger])).await?;
    create(&world, &config_map("three")).await?;
    // Another version of the group is the same kind.
    let mut older = owner(&a, true);
    older.api_version = "example.org/v1alpha1".to_owned();
    create(&world, &owned("four", vec![older])).await?;
    settle().await;
    assert_eq!(notes.take(), ["a"]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn every_owner_is_reconciled_if_the_watch_requests_it() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    let (a, b) = (create(&world, &widget("a", "red")).await?, create(&world, &widget("b", "red")).await?);
    let (manager, notes) = (manager(&world)?, Notes::new());
    let watch = Watch::<ConfigMap>::new().every_owner();
    manager.controller(Acts::<Widget>::noting(&notes)).owns_with(watch).register()?;
    let running = Running::start(&manager);
    settle().await;
    notes.take();
    create(&world, &owned("one", vec![owner(&b, false), owner(&a, true)])).await?;
    settle().await;
    assert_eq!(notes.take(), ["b", "a"]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_cluster_scoped_owner_of_a_namespaced_object_is_reconciled() -> Result<()> {
    let world = World::new();
    let nodes: Api<Node> = Api::all(world.direct.clone());
    let node = nodes.create(&PostParams::default(), &object(json!({"metadata": {"name": "n"}}))).await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    manager.controller(Acts::<Node>::noting(&notes)).owns::<ConfigMap>().register()?;
    let running = Running::start(&manager);
    settle().await;
    assert_eq!(notes.take(), ["n"]);
    create(&world, &owned("one", vec![owner(&node, true)])).await?;
    settle().await;
    // Not "n gone", which a key with a namespace would give.
    assert_eq!(notes.take(), ["n"]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_map_function_gets_the_object_before_and_after() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a", "b", "c"]).await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    manager
        .controller(Acts::<ConfigMap>::noting(&notes))
        .watches::<Secret>(|secret, cache| {
            // The map function can read the cache, and never waits.
            assert!(cache.get::<ConfigMap>(&Key::namespaced("default", "a")).is_ok());
            users(secret)
        })
        .register()?;
    let running = Running::start(&manager);
    settle().await;
    assert_eq!(notes.take(), ["a", "b", "c"]);

    create(&world, &secret("s", &["a", "b"])).await?;
    settle().await;
    assert_eq!(notes.take(), ["a", "b"]);
    // The Secret no longer refers to b, which must be reconciled for that.
    patch::<Secret>(&world, "s", json!({"metadata": {"annotations": {"uses": "a,c"}}})).await?;
    settle().await;
    assert_eq!(notes.take(), ["a", "b", "c"]);
    world.api::<Secret>().delete("s", &DeleteParams::default()).await?;
    settle().await;
    assert_eq!(notes.take(), ["a", "c"]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_map_function_affects_only_one_object() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    create(&world, &secret("bad", &["a"])).await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    manager
        .controller(Acts::<ConfigMap>::noting(&notes))
        .watches::<Secret>(|secret, _| {
            assert!(secret.metadata.name.as_deref() != Some("bad"), "injected by the test");
            users(secret)
        })
        .register()?;
    let running = Running::start(&manager);
    settle().await;
    assert_eq!(notes.take(), ["a"]);
    touch::<Secret>(&world, "bad", "1").await?;
    create(&world, &secret("good", &["a"])).await?;
    settle().await;
    assert_eq!(notes.take(), ["a"]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_channel_queues_keys_and_its_end_changes_nothing() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    let (ask, asked) = mpsc::channel(8);
    manager.controller(Acts::<ConfigMap>::noting(&notes)).channel(asked).register()?;
    let running = Running::start(&manager);
    settle().await;
    notes.take();
    ask.send(Key::namespaced("default", "a")).await?;
    ask.send(Key::namespaced("default", "nobody")).await?;
    settle().await;
    assert_eq!(notes.take(), ["a", "nobody gone"]);
    drop(ask);
    settle().await;
    touch::<ConfigMap>(&world, "a", "1").await?;
    settle().await;
    assert_eq!(notes.take(), ["a"]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_key_controller_reconciles_keys_of_map_functions_and_channels() -> Result<()> {
    let world = World::new();
    create(&world, &secret("s", &["x", "y"])).await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    let (ask, asked) = mpsc::channel(8);
    let noted = notes.clone();
    let acts = KeyActs::new(move |cx| {
        assert_eq!(cx.controller(), "places");
        noted.push(cx.key());
        Box::pin(async { Ok(Outcome::done()) })
    });
    manager
        .key_controller("places", acts)
        .watches::<Secret>(|secret, _| users(secret))
        .channel(asked)
        .register()?;
    let running = Running::start(&manager);
    settle().await;
    assert_eq!(notes.take(), ["default/x", "default/y"]);
    ask.send(Key::cluster("everywhere")).await?;
    settle().await;
    assert_eq!(notes.take(), ["everywhere"]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn several_controllers_of_a_kind_share_its_watch_but_not_their_queues() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let (manager, one, other) = (manager(&world)?, Notes::new(), Notes::new());
    manager.controller(Acts::<ConfigMap>::noting(&one)).register()?;
    let noted = other.clone();
    let failing = Acts::<ConfigMap>::new(move |_, _| {
        noted.push("failed");
        Box::pin(async { Err(kubewright_runtime::ReconcileError::msg("injected by the test")) })
    });
    manager.controller(failing).named("failing").register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(one.all(), ["a"]);
    assert!(other.len() > 5);
    assert_eq!(world.faults.watches(|asked| asked.path.ends_with("/configmaps")), 1);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_controller_with_a_selector_has_its_own_watch() -> Result<()> {
    let world = World::new();
    let labelled = |name: &str, app: &str| {
        let mut map = config_map(name);
        map.metadata.labels = Some([("app".to_owned(), app.to_owned())].into());
        map
    };
    create(&world, &labelled("a", "web")).await?;
    create(&world, &labelled("b", "db")).await?;
    let (manager, notes, again) = (manager(&world)?, Notes::new(), Notes::new());
    let selected = || Watch::<ConfigMap>::new().labels("app=web");
    manager.controller_with(Acts::noting(&notes), selected()).register()?;
    manager.controller_with(Acts::noting(&again), selected()).named("again").register()?;
    let running = Running::start(&manager);
    settle().await;
    assert_eq!((notes.take(), again.take()), (vec!["a".to_owned()], vec!["a".to_owned()]));
    let watches: Vec<_> = world.faults.requests().into_iter().filter(RecordedRequest::is_watch).collect();
    assert_eq!(watches.len(), 1);
    assert_eq!(watches[0].parameter("labelSelector"), Some("app=web"));

    touch::<ConfigMap>(&world, "b", "1").await?;
    settle().await;
    assert_eq!(notes.take(), [""; 0]);
    // An object that stops matching is removed from the cache, and one that starts to match is added.
    patch::<ConfigMap>(&world, "a", json!({"metadata": {"labels": {"app": "db"}}})).await?;
    patch::<ConfigMap>(&world, "b", json!({"metadata": {"labels": {"app": "web"}}})).await?;
    settle().await;
    assert_eq!(notes.take(), ["a gone", "b"]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_key_never_runs_concurrently_and_runs_again_after_a_change_during_its_run() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let (manager, notes, crowd) = (manager(&world)?, Notes::new(), Crowd::default());
    let (noted, at_once) = (notes.clone(), crowd.clone());
    let slow = Acts::<ConfigMap>::new(move |map, _| {
        let (notes, present) = (noted.clone(), at_once.enter());
        Box::pin(async move {
            let _present = present;
            let touched = map.and_then(|map| map.metadata.annotations.clone()?.remove("touched"));
            notes.push(touched.unwrap_or_default());
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(Outcome::done())
        })
    });
    manager.controller(slow).concurrency(4).register()?;
    let running = Running::start(&manager);
    settle().await;
    for value in ["1", "2", "3"] {
        touch::<ConfigMap>(&world, "a", value).await?;
        settle().await;
    }
    assert_eq!(notes.all(), [""]);
    tokio::time::sleep(Duration::from_secs(10)).await;
    // One more run for all three changes, with the last state.
    assert_eq!(notes.all(), ["", "3"]);
    assert_eq!(crowd.most(), 1);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn the_concurrency_is_the_number_of_workers() -> Result<()> {
    let world = World::new();
    let names: Vec<String> = (0..10).map(|number| format!("m{number}")).collect();
    world.config_maps(&names.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    for workers in [1, 3] {
        let (manager, crowd) = (manager(&world)?, Crowd::default());
        let at_once = crowd.clone();
        let slow = Acts::<ConfigMap>::new(move |_, _| {
            let present = at_once.enter();
            Box::pin(async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                drop(present);
                Ok(Outcome::done())
            })
        });
        manager.controller(slow).concurrency(workers).register()?;
        let running = Running::start(&manager);
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!((crowd.now(), crowd.most()), (0, workers));
        running.end().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_change_overtakes_the_initial_objects() -> Result<()> {
    let world = World::new();
    let names: Vec<String> = (0..20).map(|number| format!("m{number:02}")).collect();
    world.config_maps(&names.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    let (manager, notes, gate) = (manager(&world)?, Notes::new(), Arc::new(Semaphore::new(0)));
    let (noted, passes) = (notes.clone(), gate.clone());
    let gated = Acts::<ConfigMap>::new(move |_, cx| {
        noted.push(cx.key().name());
        let passes = passes.clone();
        Box::pin(async move {
            passes.acquire().await?.forget();
            Ok(Outcome::done())
        })
    });
    let watch = Watch::<Secret>::new().priority(10);
    manager.controller(gated).watches_with(watch, |secret, _| users(secret)).register()?;
    let running = Running::start(&manager);
    settle().await;
    assert_eq!(notes.all(), ["m00"]);
    touch::<ConfigMap>(&world, "m15", "1").await?;
    touch::<ConfigMap>(&world, "m07", "1").await?;
    settle().await;
    create(&world, &secret("s", &["m18"])).await?;
    settle().await;
    gate.add_permits(100);
    settle().await;
    assert_eq!(notes.all()[..6], ["m00", "m18", "m15", "m07", "m01", "m02"]);
    assert_eq!(notes.all().into_iter().collect::<BTreeSet<_>>().len(), 20);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_has_its_causes() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    let a = create(&world, &widget("a", "red")).await?;
    let cache = CacheOptions { resync: Some(Duration::from_hours(1)), ..CacheOptions::default() };
    let options = ManagerOptions { cache, ..options() }.namespaces(["default"]);
    let (manager, causes) = (Manager::new(world.kube.clone(), options)?, Arc::new(Mutex::new(Vec::new())));
    let noted = causes.clone();
    let noting_causes = Acts::<Widget>::new(move |_, cx| {
        let mut noted = noted.lock().unwrap();
        let run: Vec<Cause> = cx.causes().iter().cloned().collect();
        let next = match run[0].trigger {
            Trigger::Created => Ok(Outcome::requeue_after(Duration::from_secs(1))),
            Trigger::Requeued => Err(kubewright_runtime::ReconcileError::msg("injected by the test")),
            _ => Ok(Outcome::done()),
        };
        assert_eq!(cx.retries(), u32::from(run[0].trigger == Trigger::Retried));
        noted.push(run);
        Box::pin(async { next })
    });
    let (ask, asked) = mpsc::channel(8);
    manager.controller(noting_causes).owns::<ConfigMap>().channel(asked).register()?;
    let running = Running::start(&manager);
    let new_causes = async || {
        tokio::time::sleep(Duration::from_secs(2)).await;
        std::mem::take(&mut *causes.lock().unwrap())
    };
    let (key, child) = (Key::namespaced("default", "a"), Key::namespaced("default", "one"));
    let cause = |what, kind: Option<Kind>, object: &Key| Cause::new(what, kind, object.clone());
    let (widgets, maps) = (Some(Kind::of::<Widget>()), Some(Kind::of::<ConfigMap>()));

    assert_eq!(new_causes().await, [[cause(Trigger::Initial, widgets.clone(), &key)]]);
    create(&world, &owned("one", vec![owner(&a, true)])).await?;
    assert_eq!(
        new_causes().await,
        [
            [cause(Trigger::Created, maps.clone(), &child)],
            [cause(Trigger::Requeued, widgets.clone(), &key)],
            [cause(Trigger::Retried, widgets.clone(), &key)],
        ]
    );
    patch::<Widget>(&world, "a", json!({"spec": {"color": "blue"}})).await?;
    touch::<ConfigMap>(&world, "one", "1").await?;
    let both =
        [cause(Trigger::Modified, widgets.clone(), &key), cause(Trigger::Modified, maps.clone(), &child)];
    let seen = new_causes().await.concat();
    assert_eq!(seen.len(), 2);
    assert!(both.iter().all(|cause| seen.contains(cause)), "{seen:?}");
    ask.send(key.clone()).await?;
    assert_eq!(new_causes().await, [[cause(Trigger::Channel, None, &key)]]);
    tokio::time::sleep(Duration::from_hours(1)).await;
    let resync = new_causes().await;
    assert_eq!(resync.len(), 1);
    assert_eq!(resync[0][0].trigger, Trigger::Resync);
    world.api::<ConfigMap>().delete("one", &DeleteParams::default()).await?;
    assert_eq!(new_causes().await, [[cause(Trigger::Deleted, maps, &child)]]);
    world.api::<Widget>().delete("a", &DeleteParams::default()).await?;
    assert_eq!(new_causes().await, [[cause(Trigger::Deleted, widgets, &key)]]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn events_have_their_type_and_decode_on_access() -> Result<()> {
    use kubewright_runtime::controller::Predicate;
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let (manager, notes, runs) = (manager(&world)?, Notes::new(), Notes::new());
    let noted = notes.clone();
    let noting_events = Predicate::<ConfigMap>::new(move |event| {
        let version = |map: Option<Arc<ConfigMap>>| map.and_then(|map| map.metadata.resource_version.clone());
        let (old, new, now) = (version(event.old()), version(event.new_object()), version(event.object()));
        assert_eq!(now, new.clone().or(old.clone()));
        assert_eq!(old.is_some(), event.old_entry().is_some());
        assert_eq!(new.is_some(), event.new_entry().is_some());
        let words = [event.is_create(), event.is_update(), event.is_delete()].map(u8::from);
        let initial = event.occasion() == Occasion::Initial;
        noted.push(format!("{} {words:?} {}", event.key(), if initial { "initial" } else { "event" }));
        true
    });
    manager.controller_with(Acts::noting(&runs), Watch::new().filter(noting_events)).register()?;
    let running = Running::start(&manager);
    settle().await;
    world.config_maps(&["b"]).await?;
    settle().await;
    touch::<ConfigMap>(&world, "b", "1").await?;
    settle().await;
    world.api::<ConfigMap>().delete("b", &DeleteParams::default()).await?;
    settle().await;
    assert_eq!(
        notes.all(),
        [
            "default/a [1, 0, 0] initial",
            "default/b [1, 0, 0] event",
            "default/b [0, 1, 0] event",
            "default/b [0, 0, 1] event"
        ]
    );
    running.end().await
}
