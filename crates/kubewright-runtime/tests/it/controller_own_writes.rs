//! A controller reads its own writes: a key does not run before the cache has seen what its last run wrote.
//!
//! In these tests the watches stand still while a reconcile writes, as they do on a slow network.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::PostParams;
use kubewright_runtime::controller::Watch;
use kubewright_runtime::owner::set_controller_reference;
use kubewright_runtime::{Client, Context, Delete, Key, List, Manager, Outcome, Patch, Result as Reconciled};
use serde_json::json;
use tokio::sync::{Notify, mpsc};

use crate::operator::{Acts, KeyActs, Log, Notes, Running, manager, metric, touch};
use crate::world::{Asked, Widget, World, config_map, settle, widget};

/// What the first run does. It is given the client and the object.
type Write = fn(Client, Arc<Widget>) -> BoxFuture<'static, Reconciled<()>>;

/// A Widget's controller whose first run writes when it is told to and wants another run at once.
///
/// Each run notes the color that it sees, and the ConfigMaps.
struct Operator {
    world: World,
    manager: Manager,
    notes: Notes,
    go: Arc<Notify>,
}

fn see(cx: &Context, widget: Option<&Widget>) -> BoxFuture<'static, Reconciled<String>> {
    let (client, color) = (cx.client().clone(), widget.map_or("none", |it| &it.spec.color).to_owned());
    Box::pin(async move {
        let maps = client.list::<ConfigMap>(&List::namespace("default")).await?;
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

    /// Starts, stalls these watches, and has the first run write.
    async fn run(&self, stalled: fn(&Asked) -> bool) -> Running {
        let running = Running::start(&self.manager);
        settle().await;
        assert_eq!(self.notes.all(), ["red old"]);
        assert!(self.world.faults.stall(stalled) > 0);
        self.go.notify_one();
        running
    }
}

fn is_widgets(asked: &Asked) -> bool {
    asked.is_watch() && asked.path.ends_with("/widgets")
}

fn is_maps(asked: &Asked) -> bool {
    asked.is_watch() && asked.path.ends_with("/configmaps")
}

/// Paints the object blue, and creates a child of it.
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
    for (stalled, name) in
        [(is_widgets as fn(&Asked) -> bool, "the object"), (is_maps, "the child"), (Asked::is_watch, "both")]
    {
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
async fn one_of_two_writes_is_not_enough() -> Result<()> {
    let operator = Operator::new(paint_and_create).await?;
    let running = operator.run(Asked::is_watch).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    operator.world.faults.heal();
    operator.world.faults.stall(is_maps);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(operator.notes.len(), 1);
    // A change of the object itself is no reason to run sooner.
    touch::<Widget>(&operator.world, "a", "1").await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(operator.notes.len(), 1);
    operator.world.faults.heal();
    settle().await;
    assert_eq!(operator.notes.all()[1..], ["blue child,old"]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_status_is_a_write_too() -> Result<()> {
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
async fn what_was_deleted_is_not_seen_again() -> Result<()> {
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
async fn what_was_created_and_deleted_at_once_is_never_seen() -> Result<()> {
    let operator = Operator::new(|client, _| {
        Box::pin(async move {
            let child = client.create(&config_map("child")).await?;
            Ok(client.delete(&child).await?)
        })
    })
    .await?;
    let running = operator.run(is_maps).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(operator.notes.len(), 1, "it is not there yet, but it is on its way");
    operator.world.faults.heal();
    settle().await;
    assert_eq!(operator.notes.all(), ["red old", "red old"]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn an_object_that_went_with_its_last_finalizer_is_not_seen_again() -> Result<()> {
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
async fn after_ten_seconds_it_runs_all_the_same_and_says_so() -> Result<()> {
    let log = Log::keep()?;
    let operator = Operator::new(paint_and_create).await?;
    let running = operator.run(is_maps).await;
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert_eq!(
        (operator.notes.len(), log.saying("cache has not seen the controller's own writes").len()),
        (1, 0)
    );
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(operator.notes.all(), ["red old", "blue old"]);
    let warned = log.saying("cache has not seen the controller's own writes");
    assert_eq!(warned.len(), 1);
    assert!(warned[0].contains("WARN") && warned[0].contains("object=default/a"), "{warned:?}");
    // Once. What comes later is no longer waited for.
    touch::<Widget>(&operator.world, "a", "1").await?;
    settle().await;
    assert_eq!(operator.notes.len(), 3);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_key_that_waits_takes_up_no_worker() -> Result<()> {
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
async fn a_dry_run_and_another_kind_are_not_waited_for() -> Result<()> {
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
    let running = operator.run(Asked::is_watch).await;
    tokio::time::sleep(Duration::from_millis(3)).await;
    assert_eq!(operator.notes.all(), ["red old", "red old"]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn what_a_selection_does_not_select_is_not_waited_for() -> Result<()> {
    // The only informer of ConfigMaps is of a selection that the child is not in: it will never tell of it.
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
    // Lists come from the server here.
    assert_eq!(operator.notes.all(), ["red old", "red child,old"]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn what_a_selection_selects_is_waited_for() -> Result<()> {
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
async fn what_leaves_a_selection_is_waited_for() -> Result<()> {
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
async fn what_the_cache_has_seen_meanwhile_is_not_waited_for() -> Result<()> {
    // More keys than are looked through one by one, all of which write something and are heard of much later.
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
