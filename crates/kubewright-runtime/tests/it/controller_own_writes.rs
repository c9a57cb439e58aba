//! A key does not run before the cache has seen the writes of its last run.
//!
//! In these tests the watches stall while a reconcile writes, as on a slow network.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, PostParams};
use kubewright_runtime::controller::Watch;
use kubewright_runtime::owner::set_controller_reference;
use kubewright_runtime::{
    Client, Context, Delete, Key, ListOptions, Manager, Outcome, Patch, Result as Reconciled,
};
use serde_json::json;
use tokio::sync::{Notify, mpsc};

use crate::operator::{Acts, KeyActs, Log, Notes, Running, manager, metric, touch};
use crate::world::{RecordedRequest, Widget, World, config_map, settle, widget};

/// The write of the first run.
type Write = fn(Client, Arc<Widget>) -> BoxFuture<'static, Reconciled<()>>;

/// A controller of Widgets whose first run writes when the test requests it, and then requeues immediately.
///
/// Each run notes the color of the Widget and the ConfigMaps that it sees.
struct Operator {
    world: World,
    manager: Manager,
    notes: Notes,
    go: Arc<Notify>,
}

fn see(cx: &Context, widget: Option<&Widget>) -> BoxFuture<'static, Reconciled<String>> {
    let (client, color) = (cx.client().clone(), widget.map_or("none", |it| &it.spec.color).to_owned());
    Box::pin(async move {
        let maps = client.list::<ConfigMap>(&ListOptions::namespace("default")).await?;
        let names: Vec<&str> = maps.iter().filter_map(|map| map.metadata.name.as_deref()).collect();
        Ok(format!("{color} {}", names.join(",")))
    })
}

impl Operator {
    async fn new(write: Write) -> Result<Self> {
        Self::with(write, Watch::new()).await
    }

    async fn with(write: Write, maps: Watch<ConfigMap>) -> Result<Self> {
        let world = World::new();
        world.widgets().await?;
        world.config_maps(&["old"]).await?;
        world.api().create(&PostParams::default(), &widget("a", "red")).await?;
        let (manager, notes, go) = (manager(&world)?, Notes::new(), Arc::new(Notify::new()));
        let (noted, gate) = (notes.clone(), go.clone());
        let acts = Acts::<Widget>::new(move |widget, cx| {
            let (notes, gate, client) = (noted.clone(), gate.clone(), cx.client().clone());
            let seen = see(cx, widget.as_deref());
            Box::pin(async move {
                let first = notes.len() == 0;
                notes.push(seen.await?);
                if !first {
                    return Ok(Outcome::done());
                }
                gate.notified().await;
                if let Some(widget) = widget {
                    write(client, widget).await?;
                }
                Ok(Outcome::requeue_after(Duration::from_millis(1)))
            })
        });
        manager.controller(acts).owns_with(maps).register()?;
        Ok(Self { world, manager, notes, go })
    }

    /// Starts the manager, stalls these watches, and lets the first run write.
    async fn run(&self, stalled: fn(&RecordedRequest) -> bool) -> Running {
        let running = Running::start(&self.manager);
        settle().await;
        assert_eq!(self.notes.all(), ["red old"]);
        assert!(self.world.faults.stall(stalled) > 0);
        self.go.notify_one();
        running
    }
}

fn is_widgets(asked: &RecordedRequest) -> bool {
    asked.is_watch() && asked.path.ends_with("/widgets")
}

fn is_maps(asked: &RecordedRequest) -> bool {
    asked.is_watch() && asked.path.ends_with("/configmaps")
}

/// Paints the object blue and creates a child.
fn paint_and_create(client: Client, widget: Arc<Widget>) -> BoxFuture<'static, Reconciled<()>> {
    Box::pin(async move {
        client.patch(&*widget, &Patch::merge(json!({"spec": {"color": "blue"}}))).await?;
        let mut child = config_map("child");
        set_controller_reference(&*widget, &mut child)?;
        client.create(&child).await?;
        Ok(())
    })
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_until_the_cache_has_seen_its_object_and_its_child() -> Result<()> {
    for (stalled, name) in [
        (is_widgets as fn(&RecordedRequest) -> bool, "the object"),
        (is_maps, "the child"),
        (RecordedRequest::is_watch, "both"),
    ] {
        let operator = Operator::new(paint_and_create).await?;
        let running = operator.run(stalled).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(operator.notes.len(), 1, "{name} was not seen");
        operator.world.faults.heal();
        settle().await;
        let notes = operator.notes.all();
        assert!(
            notes.len() > 1 && notes[1..].iter().all(|note| note == "blue child,old"),
            "{name}: {notes:?}"
        );
        running.end().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_for_both_of_two_writes() -> Result<()> {
    let operator = Operator::new(paint_and_create).await?;
    let running = operator.run(RecordedRequest::is_watch).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    operator.world.faults.heal();
    operator.world.faults.stall(is_maps);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(operator.notes.len(), 1);
    // A change of the object itself does not end the wait.
    touch::<Widget>(&operator.world, "a", "1").await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(operator.notes.len(), 1);
    operator.world.faults.heal();
    settle().await;
    assert_eq!(operator.notes.all()[1..], ["blue child,old"]);
    running.end().await
}

/// A controller that keeps a child of each Widget. A run takes a second before it writes, and `rest` after that.
fn keep_child(manager: &Manager, rest: Duration) -> Result<()> {
    let acts = Acts::<Widget>::new(move |widget, cx| {
        let client = cx.client().clone();
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let Some(widget) = widget else { return Ok(Outcome::done()) };
            let owned = |child: &mut ConfigMap| Ok(set_controller_reference(&*widget, child)?);
            client.create_or_update(config_map("child"), owned).await?;
            tokio::time::sleep(rest).await;
            Ok(Outcome::done())
        })
    });
    Ok(manager.controller(acts).owns::<ConfigMap>().register()?)
}

#[tokio::test(start_paused = true)]
async fn a_child_that_no_watch_has_reported_before_its_deletion_is_created_again() -> Result<()> {
    // The list that replaces the stalled watch arrives after the run that wrote the child, or during it.
    for rest in [Duration::ZERO, Duration::from_secs(5)] {
        let world = World::new();
        world.widgets().await?;
        world.api().create(&PostParams::default(), &widget("a", "red")).await?;
        let manager = manager(&world)?;
        keep_child(&manager, rest)?;
        let running = Running::start(&manager);
        let maps = world.api::<ConfigMap>();
        tokio::time::sleep(Duration::from_mins(1)).await;
        maps.delete("child", &DeleteParams::default()).await?;
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(world.faults.stall(is_maps) > 0);
        tokio::time::sleep(Duration::from_secs(1)).await;
        maps.delete("child", &DeleteParams::default()).await?;
        assert!(world.faults.expire(is_maps) > 0);
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert!(maps.get_opt("child").await?.is_some(), "the run takes {rest:?} after its write");
        running.end().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_for_its_status_write() -> Result<()> {
    let operator = Operator::new(|client, widget| {
        Box::pin(async move {
            let status = Patch::merge(json!({"status": {"phase": "Ready"}}));
            client.status().patch(&*widget, &status).await?;
            Ok(())
        })
    })
    .await?;
    let running = operator.run(is_widgets).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(operator.notes.len(), 1);
    operator.world.faults.heal();
    settle().await;
    assert!(operator.notes.len() > 1);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_deleted_object_is_not_seen_again() -> Result<()> {
    let operator = Operator::new(|client, _| {
        Box::pin(async move {
            let old = Key::namespaced("default", "old");
            Ok(client.delete_key::<ConfigMap>(&old, &Delete::new()).await?)
        })
    })
    .await?;
    let running = operator.run(is_maps).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(operator.notes.len(), 1);
    operator.world.faults.heal();
    settle().await;
    assert_eq!(operator.notes.all(), ["red old", "red "]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn an_object_created_and_deleted_in_one_run_is_never_seen() -> Result<()> {
    let operator = Operator::new(|client, _| {
        Box::pin(async move {
            let child = client.create(&config_map("child")).await?;
            Ok(client.delete(&child).await?)
        })
    })
    .await?;
    let running = operator.run(is_maps).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(operator.notes.len(), 1, "the event of the object has not arrived yet");
    operator.world.faults.heal();
    settle().await;
    assert_eq!(operator.notes.all(), ["red old", "red old"]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_last_finalizer_was_removed_is_not_seen_again() -> Result<()> {
    let operator = Operator::new(|client, widget| {
        Box::pin(async move {
            let finalizers = |names: &[&str]| Patch::merge(json!({"metadata": {"finalizers": names}}));
            client.patch(&*widget, &finalizers(&["example.org/test"])).await?;
            client.delete(&*widget).await?;
            client.patch(&*widget, &finalizers(&[])).await?;
            Ok(())
        })
    })
    .await?;
    let running = operator.run(is_widgets).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(operator.notes.len(), 1);
    operator.world.faults.heal();
    settle().await;
    assert_eq!(operator.notes.all(), ["red old", "none old"]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn after_ten_seconds_the_key_runs_anyway_with_a_warning() -> Result<()> {
    let log = Log::keep()?;
    let operator = Operator::new(paint_and_create).await?;
    let running = operator.run(is_maps).await;
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert_eq!(
        (
            operator.notes.len(),
            log.saying("Timed out waiting for the cache to observe this controller's writes").len()
        ),
        (1, 0)
    );
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(operator.notes.all(), ["red old", "blue old"]);
    let warned = log.saying("Timed out waiting for the cache to observe this controller's writes");
    assert_eq!(warned.len(), 1);
    assert!(warned[0].contains("WARN") && warned[0].contains("object=default/a"), "{warned:?}");
    // Only once: the next run does not wait again.
    touch::<Widget>(&operator.world, "a", "1").await?;
    settle().await;
    assert_eq!(operator.notes.len(), 3);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_key_that_waits_occupies_no_worker() -> Result<()> {
    let operator = Operator::new(paint_and_create).await?;
    let running = operator.run(is_maps).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    operator.world.api().create(&PostParams::default(), &widget("b", "green")).await?;
    settle().await;
    assert_eq!(operator.notes.all(), ["red old", "green old"]);
    let active = r#"controller_runtime_active_workers{controller="widget"}"#;
    assert_eq!(metric(&operator.manager, active), Some(0.0));
    operator.world.faults.heal();
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_key_does_not_wait_for_dry_runs_and_unwatched_kinds() -> Result<()> {
    let operator = Operator::new(|client, widget| {
        Box::pin(async move {
            client.dry_run().create(&config_map("child")).await?;
            client.dry_run().patch(&*widget, &Patch::merge(json!({"spec": {"color": "blue"}}))).await?;
            let secret: Secret = crate::world::object(json!({
                "metadata": {"name": "s", "namespace": "default"},
            }));
            client.create(&secret).await?;
            Ok(())
        })
    })
    .await?;
    let running = operator.run(RecordedRequest::is_watch).await;
    tokio::time::sleep(Duration::from_millis(3)).await;
    assert_eq!(operator.notes.all(), ["red old", "red old"]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_key_does_not_wait_for_objects_outside_the_selector() -> Result<()> {
    // The only informer of ConfigMaps has a selector that does not match the child.
    let operator = Operator::with(
        |client, widget| {
            Box::pin(async move {
                let mut child = config_map("child");
                set_controller_reference(&*widget, &mut child)?;
                client.create(&child).await?;
                Ok(())
            })
        },
        Watch::new().labels("app=web"),
    )
    .await?;
    let running = operator.run(is_maps).await;
    tokio::time::sleep(Duration::from_millis(3)).await;
    // Lists are read from the server here.
    assert_eq!(operator.notes.all(), ["red old", "red child,old"]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_for_objects_that_match_the_selector() -> Result<()> {
    let operator = Operator::with(
        |client, _| {
            Box::pin(async move {
                let mut child = config_map("child");
                child.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
                client.create(&child).await?;
                Ok(())
            })
        },
        Watch::new().labels("app=web"),
    )
    .await?;
    let running = operator.run(is_maps).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(operator.notes.len(), 1);
    operator.world.faults.heal();
    settle().await;
    assert_eq!(operator.notes.len(), 2);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_for_objects_that_stop_matching_the_selector() -> Result<()> {
    let operator = Operator::with(
        |client, _| {
            Box::pin(async move {
                let mut child = config_map("child");
                child.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
                let child = client.create(&child).await?;
                client.patch(&child, &Patch::merge(json!({"metadata": {"labels": {"app": "db"}}}))).await?;
                Ok(())
            })
        },
        Watch::new().labels("app=web"),
    )
    .await?;
    let running = operator.run(is_maps).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(operator.notes.len(), 1);
    operator.world.faults.heal();
    settle().await;
    assert_eq!(operator.notes.len(), 2);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn writes_that_the_cache_has_seen_are_dropped() -> Result<()> {
    // More keys than the threshold of the sweep, each with a write that the cache sees later.
    const KEYS: usize = 1500;
    let world = World::new();
    world.config_maps(&["shared"]).await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    let noted = notes.clone();
    let acts = KeyActs::new(move |cx| {
        let notes = noted.clone();
        Box::pin(async move {
            let change = json!({"metadata": {"annotations": {"touched": cx.key().name()}}});
            cx.client().patch(&config_map("shared"), &Patch::merge(change)).await?;
            notes.push("written");
            Ok(Outcome::done())
        })
    });
    let (ask, asked) = mpsc::channel(2 * KEYS);
    manager.key_controller("keys", acts).channel(asked).watches::<ConfigMap>(|_, _| Vec::new()).register()?;
    let running = Running::start(&manager);
    for round in 1..=2 {
        for number in 0..KEYS {
            ask.send(Key::cluster(&format!("k{number}"))).await?;
        }
        settle().await;
        assert_eq!(notes.len(), round * KEYS);
    }
    running.end().await
}
