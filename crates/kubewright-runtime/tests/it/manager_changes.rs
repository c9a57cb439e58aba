//! Controllers, watches, tasks and clusters that are added and removed while a manager runs.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, DynamicObject, PostParams};
use kubewright_runtime::client::Error;
use kubewright_runtime::controller::Watch;
use kubewright_runtime::{CacheOptions, Context, Gvk, Key, Manager, Outcome, Reconciler};
use serde_json::json;

use crate::manager::{replica, two_worlds};
use crate::operator::{Acts, Notes, Running, manager, touch};
use crate::world::{Effect, RecordedRequest, Widget, World, eventually, object, settle, soon, widget};

/// Records the kind, the name and the color of every dynamic object.
struct Auditor(Notes);

impl Reconciler for Auditor {
    type Object = DynamicObject;

    async fn reconcile(&self, object: &DynamicObject, cx: &Context) -> kubewright_runtime::Result<Outcome> {
        let kind = object.types.as_ref().map(|types| types.kind.clone()).unwrap_or_default();
        self.0.push(format!("{kind} {} {}", cx.key().name(), object.data["spec"]["color"]));
        Ok(Outcome::done())
    }

    async fn deleted(&self, key: &Key, _: &Context) -> kubewright_runtime::Result<Outcome> {
        self.0.push(format!("{} gone", key.name()));
        Ok(Outcome::done())
    }
}

#[tokio::test(start_paused = true)]
async fn a_controller_added_while_the_manager_runs_reconciles_existing_and_new_objects() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    let running = Running::start(&manager);
    settle().await;
    manager.controller(Acts::<ConfigMap>::noting(&notes)).register()?;
    eventually("the first object", || notes.take() == ["a"]).await;
    world.config_maps(&["b"]).await?;
    eventually("the next object", || notes.take() == ["b"]).await;
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_removed_controller_finishes_its_reconcile_and_releases_its_name() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    let noted = notes.clone();
    let slow = Acts::<ConfigMap>::new(move |_, cx| {
        let notes = noted.clone();
        Box::pin(async move {
            notes.push("begins");
            cx.cancelled().await;
            tokio::time::sleep(Duration::from_secs(3)).await;
            notes.push("ends");
            Ok(Outcome::done())
        })
    });
    let first = manager.controller(slow).build()?;
    let running = Running::start(&manager);
    eventually("the reconcile", || notes.len() == 1).await;
    let taken = manager.controller(Acts::<ConfigMap>::noting(&notes)).register().unwrap_err();
    assert!(taken.to_string().contains("already registered"), "{taken}");

    soon("the end of the controller", first.remove()).await;
    assert!(first.is_ended());
    assert_eq!(notes.take(), ["begins", "ends"]);
    touch::<ConfigMap>(&world, "a", "once").await?;
    settle().await;
    assert_eq!(notes.len(), 0, "a removed controller reconciles nothing");

    manager.controller(Acts::<ConfigMap>::noting(&notes)).register()?;
    eventually("the second controller", || notes.take() == ["a"]).await;
    assert!(!running.task.is_finished());
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_controller_or_task_removed_before_the_start_never_runs() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    let controller = manager.controller(Acts::<ConfigMap>::noting(&notes)).build()?;
    let noted = notes.clone();
    let task = manager.task("task", move |_| async move {
        noted.push("task");
        Ok(())
    })?;
    soon("the removal", async { tokio::join!(controller.remove(), task.remove()) }).await;
    assert!(manager.manifest().controllers.is_empty());
    let running = Running::start(&manager);
    settle().await;
    assert_eq!(notes.len(), 0);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn on_a_standby_replica_an_added_controller_waits_and_can_be_removed() -> Result<()> {
    let (first, second) = two_worlds();
    first.config_maps(&["a"]).await?;
    let leader = Manager::new(first.kube.clone(), replica("leader"))?;
    let leading = Running::start(&leader);
    soon("the first leader", leader.elected()).await;
    let standby = Manager::new(second.kube.clone(), replica("standby"))?;
    let (notes, removed) = (Notes::new(), Notes::new());
    let waiting = Running::start(&standby);
    settle().await;
    standby.controller(Acts::<ConfigMap>::noting(&notes)).register()?;
    let other = standby.controller(Acts::<ConfigMap>::noting(&removed)).named("other").build()?;
    soon("the removal of a controller that waits", other.remove()).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!((notes.len(), removed.len()), (0, 0));

    leading.end().await?;
    soon("the second leader", standby.elected()).await;
    eventually("the controller on the new leader", || notes.all() == ["a"]).await;
    assert_eq!(removed.len(), 0);
    waiting.end().await
}

#[tokio::test(start_paused = true)]
async fn a_task_added_while_the_manager_runs_starts_immediately_and_can_be_removed() -> Result<()> {
    let world = World::new();
    let (manager, notes) = (manager(&world)?, Notes::new());
    let running = Running::start(&manager);
    settle().await;
    let noted = notes.clone();
    let task = manager.task("late", move |cx| async move {
        noted.push("starts");
        cx.stopped().await;
        noted.push("ends");
        Ok(())
    })?;
    eventually("the task", || notes.all() == ["starts"]).await;
    soon("the end of the task", task.remove()).await;
    assert_eq!(notes.all(), ["starts", "ends"]);
    assert!(!running.task.is_finished());
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_dynamic_kind_can_have_a_controller() -> Result<()> {
    let world = World::new();
    let (manager, notes) = (manager(&world)?, Notes::new());
    let running = Running::start(&manager);
    settle().await;
    // The CRD is created after the operator has started.
    world.widgets().await?;
    let kind = manager.client().kind(&Gvk::new("example.org", "v1", "Widget")).await?;
    let secrets = manager.client().kind(&Gvk::new("", "v1", "Secret")).await?;
    let controller = manager
        .dynamic_controller(kind.clone(), Auditor(notes.clone()))
        .owns_kind(secrets, Watch::new())
        .build()?;
    let made = world.api().create(&PostParams::default(), &widget("w", "red")).await?;
    eventually("the widget", || notes.take() == ["Widget w \"red\""]).await;

    let owned: Secret = object(json!({
        "metadata": { "name": "s", "ownerReferences": [crate::operator::owner(&made, true)] },
    }));
    world.api().create(&PostParams::default(), &owned).await?;
    eventually("the owner of the secret", || notes.take() == ["Widget w \"red\""]).await;

    let maps = manager.client().kind(&Gvk::new("", "v1", "ConfigMap")).await?;
    let watch = controller.watches_kind(maps, Watch::new(), |map, _| {
        vec![Key::namespaced("default", map.metadata.name.as_deref().unwrap_or_default())]
    })?;
    world.config_maps(&["w"]).await?;
    eventually("the mapped ConfigMap", || notes.take() == ["Widget w \"red\""]).await;
    watch.remove();
    settle().await;
    touch::<ConfigMap>(&world, "w", "once").await?;
    settle().await;
    assert_eq!(notes.len(), 0, "a removed watch delivers nothing");

    world.api::<Widget>().delete("w", &DeleteParams::default()).await?;
    eventually("the end of the widget", || notes.all().contains(&"w gone".to_owned())).await;
    soon("the end of the controller", controller.remove()).await;
    assert!(!running.task.is_finished());

    manager.cache().remove_kind(&kind, false);
    world.uninstall_widgets().await?;
    settle().await;
    assert_eq!(world.faults.watches(|asked| asked.path.contains("widgets")), 0);
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(manager.cache().health(), Ok(()));
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn objects_of_another_cluster_trigger_reconciles_of_local_objects() -> Result<()> {
    let (here, there) = (World::new(), World::new());
    here.config_maps(&["a", "b"]).await?;
    let (manager, notes) = (manager(&here)?, Notes::new());
    let remote = manager.attach("remote", there.kube.clone(), CacheOptions::default())?;
    let noted = notes.clone();
    let other = remote.clone();
    let mirror = Acts::<ConfigMap>::new(move |map, cx| {
        let (notes, remote) = (noted.clone(), other.clone());
        Box::pin(async move {
            let wanted = remote.client().get_opt::<Secret>(cx.key()).await?;
            if map.is_some() && wanted.is_some() {
                notes.push(cx.key().name());
            }
            Ok(Outcome::done())
        })
    });
    manager
        .controller(mirror)
        .watches_in::<Secret>(&remote, Watch::new(), |secret, _| vec![Key::of(secret)])
        .register()?;
    let running = Running::start(&manager);
    soon("the caches", async {
        manager.cache().synced().await?;
        remote.cache().synced().await
    })
    .await?;
    assert_eq!(notes.len(), 0);
    let secret: Secret = object(json!({ "metadata": { "name": "b", "namespace": "default" } }));
    there.api().create(&PostParams::default(), &secret).await?;
    eventually("the object that the secret is for", || notes.take() == ["b"]).await;
    assert!(manager.metrics().page(None).1.contains(r#"cluster="remote""#));

    let ready = manager.readyz().answer("informer-sync-remote", None).await;
    assert_eq!(ready.status(), 200);
    soon("the end of the remote watches", remote.detach()).await;
    assert_eq!(there.faults.watches(|_| true), 0);
    assert_eq!(manager.readyz().answer("informer-sync-remote", None).await.status(), 404);
    assert!(!running.task.is_finished(), "the manager still runs");
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_cluster_attached_while_the_manager_runs_is_watched_immediately() -> Result<()> {
    let (here, there) = (World::new(), World::new());
    there.config_maps(&["a"]).await?;
    let manager = manager(&here)?;
    let running = Running::start(&manager);
    settle().await;
    let remote = manager.attach("remote", there.kube.clone(), CacheOptions::default())?;
    let informer = remote.cache().informer::<ConfigMap>();
    let unread = remote.cache().get::<ConfigMap>(&Key::namespaced("default", "a"));
    assert!(matches!(unread, Err(Error::CacheNotSynced(_))), "the cache has started: {unread:?}");
    soon("the remote list", informer.synced()).await?;
    let found = remote.cache().get::<ConfigMap>(&Key::namespaced("default", "a"))?;
    assert!(found.is_some());
    let twice = manager.attach("remote", there.kube.clone(), CacheOptions::default());
    assert!(twice.is_err(), "cluster names must be unique");
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn an_optional_kind_of_another_cluster_does_not_delay_the_controller() -> Result<()> {
    let (here, there) = (World::new(), World::new());
    here.config_maps(&["a"]).await?;
    let (manager, notes) = (manager(&here)?, Notes::new());
    let remote = manager.attach("remote", there.kube.clone(), CacheOptions::default())?;
    manager
        .controller(Acts::<ConfigMap>::noting(&notes))
        .watches_in::<Widget>(&remote, Watch::new().optional(), |_, _| Vec::new())
        .register()?;
    let running = Running::start(&manager);
    settle().await;
    assert_eq!(notes.take(), ["a"]);
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(remote.cache().health(), Ok(()));
    running.end().await
}

/// Checks that each metric is described once and that each series is there once. Returns the number of series of a
/// cluster.
fn series_of(manager: &Manager, cluster: &str) -> usize {
    let page = manager.metrics().page(None).1;
    let mut seen = BTreeSet::new();
    for line in page.lines().filter(|line| !line.starts_with("# HELP")) {
        let name = if line.starts_with('#') { line } else { line.rsplit_once(' ').expect("a value").0 };
        assert!(seen.insert(name), "{name} is there twice:\n{page}");
    }
    let label = format!("cluster=\"{cluster}\"");
    seen.iter().filter(|name| name.contains(&label)).count()
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_attached_again_has_each_metric_once() -> Result<()> {
    let (here, there) = (World::new(), World::new());
    let manager = manager(&here)?;
    let running = Running::start(&manager);
    let other = manager.attach("other", here.kube.clone(), CacheOptions::default())?;
    soon("the list", other.cache().informer::<ConfigMap>().synced()).await?;
    for _ in 0..2 {
        there.faults.next(1, Effect::Status(500, "InternalError"), RecordedRequest::is_watch);
        let remote = manager.attach("remote", there.kube.clone(), CacheOptions::default())?;
        soon("the list", remote.cache().informer::<ConfigMap>().synced()).await?;
        // The failed list, the age of the last event and the duration of the failure.
        assert_eq!(series_of(&manager, "remote"), 3);
        soon("the end of the remote watches", remote.detach()).await;
        assert_eq!(series_of(&manager, "remote"), 0);
    }
    assert_eq!(series_of(&manager, "other"), 2);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn detaching_a_cluster_twice_does_not_affect_a_new_one_of_its_name() -> Result<()> {
    let (here, there) = (World::new(), World::new());
    let manager = manager(&here)?;
    let running = Running::start(&manager);
    settle().await;
    let first = manager.attach("remote", there.kube.clone(), CacheOptions::default())?;
    soon("the end of the remote watches", first.detach()).await;
    let second = manager.attach("remote", there.kube.clone(), CacheOptions::default())?;
    soon("the list", second.cache().informer::<ConfigMap>().synced()).await?;
    soon("nothing", first.detach()).await;
    assert_eq!(manager.readyz().answer("informer-sync-remote", None).await.status(), 200);
    assert_eq!(series_of(&manager, "remote"), 2);
    running.end().await
}
