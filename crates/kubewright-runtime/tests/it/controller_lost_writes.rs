//! Writes that a key must wait for although their response is incomplete or lost.
//!
//! The reconciler creates a child with `generateName` if the cache has none. A second create is always a duplicate: the
//! name does not prevent it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Result;
use futures_util::future::BoxFuture;
use http::Method;
use k8s_openapi::api::autoscaling::v1::HorizontalPodAutoscaler as OldAutoscaler;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, PostParams};
use kubewright_runtime::client::Error;
use kubewright_runtime::{
    Client, Context, Delete, Key, ListOptions, Manager, Outcome, Patch, Result as Reconciled,
};
use serde_json::json;
use tokio::sync::Notify;

use crate::manager::replica;
use crate::operator::{Acts, Notes, Running, manager};
use crate::world::{Effect, RecordedRequest, Widget, World, config_map, object, settle, widget};

fn is_maps(asked: &RecordedRequest) -> bool {
    asked.is_watch() && asked.path.ends_with("/configmaps")
}

fn is_create(asked: &RecordedRequest) -> bool {
    asked.method == Method::POST && asked.path.ends_with("/configmaps")
}

/// A child whose name the server generates.
fn child() -> ConfigMap {
    let mut child = config_map("");
    child.metadata.name = None;
    child.metadata.generate_name = Some("child-".to_owned());
    child
}

/// Creates a child if the cache has none.
async fn ensure_child(client: &Client) -> Reconciled<Outcome> {
    if client.list::<ConfigMap>(&ListOptions::namespace("default")).await?.is_empty() {
        client.create(&child()).await?;
    }
    // Like a reconciler that waits for the child to become ready.
    Ok(Outcome::requeue_after(Duration::from_millis(10)))
}

async fn world() -> Result<World> {
    let world = World::new();
    world.widgets().await?;
    world.api().create(&PostParams::default(), &widget("a", "red")).await?;
    Ok(world)
}

/// Runs a manager whose reconciler ensures a child with the client that `of` returns. The watch of ConfigMaps stalls
/// before the first write.
async fn ensuring(
    world: &World,
    manager: &Manager,
    of: impl Fn(&Context) -> Client + Clone + Send + Sync + 'static,
) -> Result<Running> {
    let acts = Acts::<Widget>::new(move |_, cx| {
        let client = of(cx);
        Box::pin(async move { ensure_child(&client).await })
    });
    stalled(world, manager, acts).await
}

/// Runs a manager whose watch of ConfigMaps stalls before the first reconcile.
async fn stalled(world: &World, manager: &Manager, acts: Acts<Widget>) -> Result<Running> {
    manager.controller(acts).owns::<ConfigMap>().register()?;
    // Create the Widget when the watches are open.
    let running = Running::start(manager);
    settle().await;
    assert_eq!(world.faults.stall(is_maps), 1);
    world.api().create(&PostParams::default(), &widget("b", "red")).await?;
    Ok(running)
}

async fn children(world: &World) -> Result<usize> {
    Ok(world.api::<ConfigMap>().list(&ListParams::default()).await?.items.len())
}

/// A world without objects to reconcile.
async fn empty_world() -> Result<World> {
    let world = World::new();
    world.widgets().await?;
    Ok(world)
}

#[tokio::test(start_paused = true)]
async fn a_create_with_a_lost_response_is_not_repeated() -> Result<()> {
    let world = empty_world().await?;
    let manager = manager(&world)?;
    world.faults.next(1, Effect::Lose, is_create);
    let running = ensuring(&world, &manager, |cx| cx.client().clone()).await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(world.faults.count(is_create), 1, "the cache has not seen the first child");
    world.faults.heal();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!((world.faults.count(is_create), children(&world).await?), (1, 1));
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_create_that_never_arrived_is_repeated_immediately() -> Result<()> {
    let world = empty_world().await?;
    let manager = manager(&world)?;
    world.faults.next(1, Effect::Status(504, "Timeout"), is_create);
    let running = ensuring(&world, &manager, |cx| cx.client().clone()).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((world.faults.count(is_create), children(&world).await?), (2, 1));
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_create_that_was_cancelled_is_not_repeated() -> Result<()> {
    let world = empty_world().await?;
    let manager = manager(&world)?;
    // The server creates the child, and the reconcile ends before the response.
    world.faults.next(1, Effect::Swallow, is_create);
    let acts = Acts::<Widget>::new(move |_, cx| {
        Box::pin(async move {
            let ensured = tokio::time::timeout(Duration::from_millis(100), ensure_child(cx.client())).await;
            ensured.unwrap_or_else(|_| Ok(Outcome::requeue_after(Duration::from_millis(10))))
        })
    });
    let running = stalled(&world, &manager, acts).await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(world.faults.count(is_create), 1);
    world.faults.heal();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!((world.faults.count(is_create), children(&world).await?), (1, 1));
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_key_is_held_while_the_outcome_of_a_write_cannot_be_read() -> Result<()> {
    let world = empty_world().await?;
    let manager = manager(&world)?;
    world.faults.next(1, Effect::Lose, is_create);
    let running = ensuring(&world, &manager, |cx| cx.client().clone()).await?;
    settle().await;
    world.faults.every(Effect::Refuse, |_| true);
    // Much longer than a key waits for the cache.
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(world.faults.count(is_create), 1);
    world.faults.heal();
    tokio::time::sleep(Duration::from_secs(35)).await;
    assert_eq!((world.faults.count(is_create), children(&world).await?), (1, 1));
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_for_a_delete_with_a_lost_response() -> Result<()> {
    let world = world().await?;
    world.config_maps(&["old"]).await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    let noted = notes.clone();
    let acts = Acts::<Widget>::new(move |_, cx| {
        let notes = noted.clone();
        Box::pin(async move {
            let old = Key::namespaced("default", "old");
            if cx.client().get_opt::<ConfigMap>(&old).await?.is_none() {
                notes.push("gone");
                return Ok(Outcome::done());
            }
            notes.push("there");
            cx.client().delete_key::<ConfigMap>(&old, &Delete::new()).await?;
            Ok(Outcome::done())
        })
    });
    manager.controller(acts).owns::<ConfigMap>().register()?;
    world.faults.next(1, Effect::Lose, |asked| asked.method == Method::DELETE);
    // The list is read in pages, and the following watch delivers nothing.
    world.faults.every(Effect::Status(400, "BadRequest"), |asked| {
        asked.path.ends_with("/configmaps") && asked.parameter("sendInitialEvents").is_some()
    });
    world.faults.next(1, Effect::Mute, is_maps);
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(notes.all(), ["there"]);
    world.faults.heal();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(notes.all(), ["there", "gone"]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_for_a_write_in_another_version() -> Result<()> {
    let world = empty_world().await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    let noted = notes.clone();
    let acts = Acts::<Widget>::new(move |_, cx| {
        let notes = noted.clone();
        Box::pin(async move {
            let here =
                cx.client().list::<HorizontalPodAutoscaler>(&ListOptions::namespace("default")).await?;
            notes.push(here.len());
            if here.is_empty() {
                let old: OldAutoscaler = object(json!({
                    "metadata": {"generateName": "scale-", "namespace": "default"},
                    "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
                }));
                cx.client().create(&old).await?;
                return Ok(Outcome::requeue_after(Duration::from_millis(10)));
            }
            Ok(Outcome::done())
        })
    });
    manager.controller(acts).owns::<HorizontalPodAutoscaler>().register()?;
    let running = Running::start(&manager);
    settle().await;
    assert_eq!(world.faults.stall(|asked| asked.is_watch() && asked.path.contains("autoscalers")), 1);
    world.api().create(&PostParams::default(), &widget("b", "red")).await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(notes.all(), ["0"]);
    world.faults.heal();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(notes.all(), ["0", "1"]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_for_the_writes_of_a_failed_run() -> Result<()> {
    let world = empty_world().await?;
    let manager = manager(&world)?;
    let acts = Acts::<Widget>::new(move |_, cx| {
        Box::pin(async move {
            ensure_child(cx.client()).await?;
            Err(kubewright_runtime::ReconcileError::msg("the next step failed"))
        })
    });
    let running = stalled(&world, &manager, acts).await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(world.faults.count(is_create), 1);
    running.end().await
}

type Write = fn(Client, bool) -> BoxFuture<'static, Reconciled<()>>;

/// Runs a reconciler that writes twice, with a watch that stalls between the writes. Returns what the runs saw while
/// the watch stalled, and afterwards.
async fn stalled_between(write: Write) -> Result<(Vec<String>, Vec<String>)> {
    let world = world().await?;
    let (manager, notes, gate) = (manager(&world)?, Notes::new(), Arc::new(Notify::new()));
    let (noted, opened) = (notes.clone(), gate.clone());
    let acts = Acts::<Widget>::new(move |_, cx| {
        let (notes, gate) = (noted.clone(), opened.clone());
        Box::pin(async move {
            let maps = cx.client().list::<ConfigMap>(&ListOptions::namespace("default")).await?;
            let values = maps.iter().filter_map(|map| Some(map.data.as_ref()?["key"].clone()));
            let is_first = notes.len() == 0;
            notes.push(values.collect::<Vec<_>>().join(","));
            if is_first {
                write(cx.client().clone(), true).await?;
                gate.notified().await;
                write(cx.client().clone(), false).await?;
                return Ok(Outcome::requeue_after(Duration::from_millis(10)));
            }
            Ok(Outcome::done())
        })
    });
    manager.controller(acts).owns::<ConfigMap>().register()?;
    let running = Running::start(&manager);
    settle().await;
    assert_eq!(world.faults.stall(is_maps), 1);
    gate.notify_one();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let held = notes.all();
    world.faults.heal();
    tokio::time::sleep(Duration::from_secs(1)).await;
    running.end().await?;
    Ok((held, notes.all()))
}

async fn create(client: Client, name: &str) -> Reconciled<()> {
    client.create(&config_map(name)).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_for_the_second_of_two_writes() -> Result<()> {
    // To one object, of which the cache has seen the first version.
    let (held, seen) = stalled_between(|client, first| {
        Box::pin(async move {
            if first {
                return create(client, "child").await;
            }
            client.patch(&config_map("child"), &Patch::merge(json!({"data": {"key": "second"}}))).await?;
            Ok(())
        })
    })
    .await?;
    assert_eq!((held, seen), (vec![String::new()], vec![String::new(), "second".to_owned()]));
    // To two objects, of which the cache has seen the first, in both orders of their keys.
    let writes: [Write; 2] = [
        |client, first| Box::pin(async move { create(client, if first { "a" } else { "b" }).await }),
        |client, first| Box::pin(async move { create(client, if first { "b" } else { "a" }).await }),
    ];
    for write in writes {
        let (held, seen) = stalled_between(write).await?;
        assert_eq!((held, seen), (vec![String::new()], vec![String::new(), "value,value".to_owned()]));
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_for_the_objects_of_delete_all_of() -> Result<()> {
    let world = world().await?;
    world.config_maps(&["plain", "kept"]).await?;
    crate::operator::patch::<ConfigMap>(
        &world,
        "kept",
        json!({"metadata": {"finalizers": ["example.org/test"]}}),
    )
    .await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    let noted = notes.clone();
    let acts = Acts::<Widget>::new(move |_, cx| {
        let notes = noted.clone();
        Box::pin(async move {
            let maps = cx.client().list::<ConfigMap>(&ListOptions::namespace("default")).await?;
            let seen: Vec<String> = maps
                .iter()
                .map(|map| {
                    let going = map.metadata.deletion_timestamp.is_some();
                    format!(
                        "{}{}",
                        map.metadata.name.as_deref().unwrap_or_default(),
                        if going { " going" } else { "" }
                    )
                })
                .collect();
            let is_first = notes.len() == 0;
            notes.push(seen.join(","));
            if is_first {
                cx.client()
                    .delete_all_of::<ConfigMap>(&ListOptions::namespace("default"), &Delete::new())
                    .await?;
                return Ok(Outcome::requeue_after(Duration::from_millis(10)));
            }
            Ok(Outcome::done())
        })
    });
    manager.controller(acts).owns::<ConfigMap>().register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(notes.all(), ["kept,plain", "kept going"]);
    running.end().await
}

/// The number of creates in a virtual minute, with a stalled watch. The key waits 10 s for each.
async fn creates_in_a_minute(
    of: impl Fn(&Manager) -> Box<dyn Fn(&Context) -> Client + Send + Sync>,
) -> Result<usize> {
    let world = empty_world().await?;
    let manager = manager(&world)?;
    let of = Arc::new(of(&manager));
    let running = ensuring(&world, &manager, move |cx| of(cx)).await?;
    tokio::time::sleep(Duration::from_mins(1)).await;
    running.end().await?;
    Ok(world.faults.count(is_create))
}

#[tokio::test(start_paused = true)]
async fn a_stored_client_of_the_manager_is_tracked_inside_a_reconcile() -> Result<()> {
    let created = creates_in_a_minute(|manager| {
        let stored = manager.client().clone();
        Box::new(move |_| stored.clone())
    })
    .await?;
    assert!(created <= 6, "{created} children");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_stored_client_of_an_earlier_run_is_tracked_inside_a_reconcile() -> Result<()> {
    let created = creates_in_a_minute(|_| {
        let stored = OnceLock::new();
        Box::new(move |cx| stored.get_or_init(|| cx.client().clone()).clone())
    })
    .await?;
    assert!(created <= 6, "{created} children");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_client_of_a_manager_writes_only_while_it_is_the_leader() -> Result<()> {
    let world = World::new();
    let other = World::on(world.server.clone());
    let (first, second) = (
        Manager::new(world.kube.clone(), replica("one"))?,
        Manager::new(other.kube.clone(), replica("two"))?,
    );
    let refused = first.client().create(&config_map("early")).await;
    assert!(matches!(refused, Err(Error::Fenced)), "{refused:?}");
    let leader = Running::start(&first);
    first.elected().await;
    first.client().create(&config_map("a")).await?;
    let waits = Running::start(&second);
    settle().await;
    let refused = second.client().create(&config_map("b")).await;
    assert!(matches!(refused, Err(Error::Fenced)), "{refused:?}");
    // Reads are not fenced.
    second.client().get::<ConfigMap>(&Key::namespaced("default", "a")).await?;
    // The stored client of a leader that lost the lease.
    let stored = first.client().clone();
    leader.end().await?;
    let refused = stored.create(&config_map("c")).await;
    assert!(matches!(refused, Err(Error::Fenced)), "{refused:?}");
    waits.end().await
}

#[tokio::test(start_paused = true)]
async fn a_stored_client_writes_in_a_controller_without_leader_election() -> Result<()> {
    let world = world().await?;
    let other = World::on(world.server.clone());
    let first = Manager::new(world.kube.clone(), replica("one"))?;
    let leader = Running::start(&first);
    first.elected().await;
    let (second, notes) = (Manager::new(other.kube.clone(), replica("two"))?, Notes::new());
    let (stored, noted) = (second.client().clone(), notes.clone());
    let acts = Acts::<Widget>::new(move |_, _| {
        let (stored, notes) = (stored.clone(), noted.clone());
        Box::pin(async move {
            stored.create(&config_map("everywhere")).await?;
            notes.push("written");
            Ok(Outcome::done())
        })
    });
    second.controller(acts).without_leader().register()?;
    let waits = Running::start(&second);
    settle().await;
    assert_eq!(notes.all(), ["written"]);
    waits.end().await?;
    leader.end().await
}
