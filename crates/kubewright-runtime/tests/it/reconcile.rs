//! Reconcilers as users write them: signatures, errors, and the helpers of the context.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, DynamicObject, PostParams};
use kube::core::{ObjectMeta, TypeMeta};
use kubewright_runtime::client::{self, Error as ClientError};
use kubewright_runtime::controller::Watch;
use kubewright_runtime::finalizer::{self, Event};
use kubewright_runtime::owner::{controller_of, set_controller_reference};
use kubewright_runtime::{
    Context, Key, KeyReconciler, Outcome, Reconciler, Upsert, is_terminal, reconcile_fn, terminal,
};
use serde_json::json;

use crate::operator::{Acts, Log, Notes, Running, manager, metric, patch, touch};
use crate::world::{Effect, RecordedRequest, Widget, WidgetStatus, World, config_map, settle, widget};

const NAME: &str = "example.org/cleanup";

/// A world with one Widget named `a`.
async fn one_widget() -> Result<World> {
    let world = World::new();
    world.widgets().await?;
    world.api().create(&PostParams::default(), &widget("a", "red")).await?;
    Ok(world)
}

fn key() -> Key {
    Key::namespaced("default", "a")
}

/// A ConfigMap as a reconciler builds it: without a namespace.
fn child(name: &str, color: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some([("color".to_owned(), color.to_owned())].into()),
        ..ConfigMap::default()
    }
}

/// Uses all helpers with the object reference that it gets.
struct Painter;

impl Reconciler for Painter {
    type Object = Widget;

    async fn reconcile(&self, widget: &Widget, cx: &Context) -> kubewright_runtime::Result<Outcome> {
        let mut by_hand = config_map("by-hand");
        set_controller_reference(widget, &mut by_hand)?;
        cx.client().apply(&by_hand).await?;
        cx.apply_owned(child("owned", &widget.spec.color)).await?;
        cx.events().normal(widget, "Painted").note(format_args!("Painted {}", widget.spec.color));
        cx.set_status(WidgetStatus { replicas: 1, phase: Some(widget.spec.color.clone()) }).await?;
        Ok(Outcome::done())
    }
}

#[tokio::test(start_paused = true)]
async fn a_reconciler_passes_its_object_reference_to_all_helpers() -> Result<()> {
    let world = one_widget().await?;
    let manager = manager(&world)?;
    manager.controller(Painter).owns::<ConfigMap>().register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_secs(1)).await;
    for name in ["by-hand", "owned"] {
        let map: ConfigMap = world.api().get(name).await?;
        assert_eq!(controller_of(&map).map(|owner| &*owner.name), Some("a"));
        assert_eq!(map.metadata.namespace.as_deref(), Some("default"));
    }
    let widget: Widget = world.api().get("a").await?;
    assert_eq!(widget.status.and_then(|status| status.phase).as_deref(), Some("red"));
    // In the desired state, further runs write nothing.
    world.faults.forget();
    touch::<Widget>(&world, "a", "1").await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let writes = world.faults.count(|asked| asked.is_write() && !asked.path.contains("/events"));
    assert_eq!(writes, 0, "{:?}", world.faults.requests());
    running.end().await
}

async fn paint(widget: &Widget, cx: &Context) -> kubewright_runtime::Result<Outcome> {
    cx.set_status(WidgetStatus { replicas: 2, phase: Some(widget.spec.color.clone()) }).await?;
    Ok(Outcome::done())
}

#[tokio::test(start_paused = true)]
async fn an_async_function_is_a_reconciler() -> Result<()> {
    let world = one_widget().await?;
    let manager = manager(&world)?;
    manager.controller(reconcile_fn(paint)).register()?;
    // So is a closure with annotated arguments.
    let (notes, name) = (Notes::new(), "second");
    let noted = notes.clone();
    let note = move |widget: &Widget, _: &Context| {
        noted.push(&widget.spec.color);
        async { anyhow::Ok(Outcome::done()) }
    };
    manager.controller(reconcile_fn(note)).named(name).register()?;
    let running = Running::start(&manager);
    settle().await;
    let widget: Widget = world.api().get("a").await?;
    assert_eq!(widget.status.map(|status| status.replicas), Some(2));
    assert_eq!(notes.all().first().map(String::as_str), Some("red"));
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn the_object_is_available_as_an_arc_without_a_copy() -> Result<()> {
    struct Keeper(Notes);
    impl Reconciler for Keeper {
        type Object = Widget;
        async fn reconcile(&self, widget: &Widget, cx: &Context) -> Result<Outcome> {
            let (shared, copied) = (cx.object_arc(widget), cx.object_arc(&widget.clone()));
            self.0.push(std::ptr::eq(Arc::as_ptr(&shared), std::ptr::from_ref(widget)));
            self.0.push(std::ptr::eq(Arc::as_ptr(&copied), std::ptr::from_ref(widget)));
            let task = tokio::spawn(async move { shared.spec.color.clone() });
            self.0.push(task.await?);
            Ok(Outcome::done())
        }
    }
    let world = one_widget().await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    manager.controller(Keeper(notes.clone())).register()?;
    let running = Running::start(&manager);
    settle().await;
    assert_eq!(notes.all(), ["true", "false", "red"]);
    running.end().await
}

#[derive(Debug, thiserror::Error)]
#[error("no color named {0:?}")]
struct NoColor(String);

fn checked(color: &str) -> Result<(), NoColor> {
    if color == "red" { Err(NoColor(color.to_owned())) } else { Ok(()) }
}

fn with_context(color: &str) -> Result<()> {
    checked(color).context("mixing")
}

/// Fails in a different way each time.
async fn fails(widget: &Widget, cx: &Context) -> Result<Outcome> {
    let color = &widget.spec.color;
    match cx.retries() {
        0 => checked(color)?,
        1 => with_context(color)?,
        2 => checked(color).with_context(|| format!("painting {}", cx.key()))?,
        3 => bail!("out of {color}"),
        4 => drop("x".parse::<i32>()?),
        _ => return Err(terminal(NoColor(color.clone()))),
    }
    Ok(Outcome::done())
}

/// Panics, then exceeds the timeout, then returns a terminal outcome.
async fn fails_without_an_error(_: &Widget, cx: &Context) -> kubewright_runtime::Result<Outcome> {
    match cx.retries() {
        0 => panic!("injected by the test"),
        1 => std::future::pending().await,
        _ => Ok(Outcome::terminal()),
    }
}

#[tokio::test(start_paused = true)]
async fn logs_have_the_messages_and_fields_of_controller_runtime() -> Result<()> {
    let world = one_widget().await?;
    let log = Log::keep()?;
    let manager = manager(&world)?;
    let builder = manager.controller(reconcile_fn(fails_without_an_error));
    builder.timeout(Duration::from_secs(1)).register()?;
    // Another test may have cached the interest of these callsites before the subscriber was set.
    tracing::callsite::rebuild_interest_cache();
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_mins(1)).await;
    running.end().await?;

    let of = "controller=widget controller_group=example.org controller_kind=Widget";
    let one = |message: &str| {
        let lines = log.saying(message);
        assert_eq!(lines.len(), 1, "{message}: {lines:#?}");
        lines[0].clone()
    };
    let source = one("Starting EventSource");
    assert!(source.contains(of) && source.contains("kind source: example.org/v1, Kind=Widget"), "{source}");
    assert!(one("Starting Controller").contains(of));
    assert!(one("Starting workers").contains(&format!("{of} worker count=1")));
    one("Shutdown signal received, waiting for all workers to finish");
    one("All workers finished");

    let failed = log.saying("ERROR Reconciler error");
    let texts = ["panic: injected by the test [recovered]", "reconcile timed out", "terminal=true"];
    assert_eq!(failed.len(), texts.len(), "{failed:#?}");
    for (line, text) in failed.iter().zip(texts) {
        let fields = line.contains(" error=") && line.contains(of) && line.contains("object=default/a");
        assert!(fields && line.contains(text), "{line} does not have {text}");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn every_error_type_works_with_the_question_mark() -> Result<()> {
    let world = one_widget().await?;
    let log = Log::keep()?;
    let manager = manager(&world)?;
    manager.controller(reconcile_fn(fails)).register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_hours(1)).await;
    let lines = log.saying("Reconciler error");
    let texts = [
        "no color named \\\"red\\\"",
        "mixing: no color named",
        "painting default/a: no color named",
        "out of red",
        "invalid digit found in string",
        "terminal error: no color named",
    ];
    assert_eq!(lines.len(), texts.len(), "{lines:#?}");
    for (line, text) in lines.iter().zip(texts) {
        assert!(line.contains(text), "{line} does not have {text}");
    }
    assert_eq!(
        metric(&manager, "controller_runtime_terminal_reconcile_errors_total{controller=\"widget\"}"),
        Some(1.0)
    );
    running.end().await
}

#[test]
fn a_terminal_error_keeps_its_type() {
    let error = terminal(NoColor("red".to_owned())).context("painting");
    assert!(is_terminal(&error) && error.is::<NoColor>());
    assert!(!is_terminal(&anyhow::Error::from(NoColor("red".to_owned()))));
}

#[tokio::test(start_paused = true)]
async fn owned_objects_are_listed_from_the_cache_by_their_controller() -> Result<()> {
    let world = one_widget().await?;
    world.api().create(&PostParams::default(), &widget("b", "blue")).await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    let noted = notes.clone();
    let acts = Acts::<Widget>::new(move |widget, cx| {
        let noted = noted.clone();
        Box::pin(async move {
            let Some(widget) = widget else { return Ok(Outcome::done()) };
            for number in 0..widget.spec.replicas {
                cx.apply_owned(child(&format!("{}-{number}", cx.key().name()), &widget.spec.color)).await?;
            }
            let owned: Vec<Arc<ConfigMap>> = cx.owned()?;
            let names: Vec<_> = owned.iter().filter_map(|map| map.metadata.name.as_deref()).collect();
            noted.push(format!("{}: {}", cx.key().name(), names.join(" ")));
            Ok(Outcome::done())
        })
    });
    manager.controller(acts).owns::<ConfigMap>().register()?;
    let running = Running::start(&manager);
    patch::<Widget>(&world, "a", json!({"spec": {"replicas": 3}})).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let last = |name: &str| notes.all().into_iter().rfind(|note| note.starts_with(name)).unwrap_or_default();
    assert_eq!((&*last("a"), &*last("b")), ("a: a-0 a-1 a-2", "b: b-0"));
    // A recreated owner does not own the old children.
    world.api::<ConfigMap>().delete("a-1", &DeleteParams::default()).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(last("a"), "a: a-0 a-1 a-2", "it is created again");
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn listing_a_kind_that_is_not_owned_is_an_error() -> Result<()> {
    struct Keys(Notes);
    impl KeyReconciler for Keys {
        async fn reconcile(&self, _: &Key, cx: &Context) -> Result<Outcome> {
            self.0.push(cx.set_status(json!({})).await.unwrap_err());
            Ok(Outcome::done())
        }
    }
    let world = one_widget().await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    let noted = notes.clone();
    let acts = Acts::<Widget>::new(move |_, cx| {
        noted.push(cx.owned::<ConfigMap>().unwrap_err());
        Box::pin(async { Ok(Outcome::done()) })
    });
    manager.controller(acts).register()?;
    let (ask, asked) = tokio::sync::mpsc::channel(1);
    manager.key_controller("keys", Keys(notes.clone())).channel(asked).register()?;
    let running = Running::start(&manager);
    settle().await;
    ask.send(Key::cluster("k")).await?;
    settle().await;
    let [not_owned, no_object] = &notes.all()[..] else { panic!("{:?}", notes.all()) };
    assert!(not_owned.starts_with("the controller does not own v1, Kind=ConfigMap: "), "{not_owned}");
    assert!(no_object.starts_with("k is reconciled without an object"), "{no_object}");
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn an_owned_object_of_a_dynamic_kind_gets_namespace_and_owner() -> Result<()> {
    async fn apply(_: &Widget, cx: &Context) -> Result<Outcome> {
        let types = Some(TypeMeta { api_version: "v1".to_owned(), kind: "ConfigMap".to_owned() });
        let metadata = ObjectMeta { name: Some("dynamic".to_owned()), ..ObjectMeta::default() };
        cx.apply_owned(DynamicObject { types, metadata, data: json!({"data": {"x": "1"}}) }).await?;
        let mut elsewhere = child("elsewhere", "red");
        elsewhere.metadata.namespace = Some("kube-system".to_owned());
        let error = cx.apply_owned(elsewhere).await.unwrap_err();
        assert!(matches!(error, ClientError::Owner(_)), "{error}");
        Ok(Outcome::done())
    }
    let world = one_widget().await?;
    let manager = manager(&world)?;
    manager.controller(reconcile_fn(apply)).register()?;
    let running = Running::start(&manager);
    settle().await;
    let map: ConfigMap = world.api().get("dynamic").await?;
    assert_eq!(controller_of(&map).map(|owner| &*owner.kind), Some("Widget"));
    running.end().await
}

/// The status of the Widget `a`.
async fn status(world: &World) -> Result<Option<WidgetStatus>> {
    Ok(world.api::<Widget>().get("a").await?.status)
}

fn phase(replicas: i32, phase: Option<&str>) -> WidgetStatus {
    WidgetStatus { replicas, phase: phase.map(str::to_owned) }
}

#[tokio::test(start_paused = true)]
async fn a_status_field_can_be_unset_and_the_same_status_is_not_sent() -> Result<()> {
    let world = one_widget().await?;
    let client = world.client();
    let fresh = async || client.get::<Widget>(&key()).await;
    let written = client.set_status(&*fresh().await?, phase(1, Some("Ready"))).await?;
    assert_eq!(written.and_then(|widget| widget.status), Some(phase(1, Some("Ready"))));
    client.set_status(&*fresh().await?, phase(1, None)).await?;
    assert_eq!(status(&world).await?, Some(phase(1, None)));
    world.faults.forget();
    assert!(client.set_status(&*fresh().await?, phase(1, None)).await?.is_none());
    assert_eq!(world.faults.count(RecordedRequest::is_write), 0);
    // Unknown fields belong to another controller.
    let raw: Api<Widget> = world.api();
    assert_eq!(raw.get("a").await?.metadata.managed_fields.map(|fields| fields.len()), Some(2));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_status_is_sent_again_for_a_new_version_unless_the_status_changed() -> Result<()> {
    let world = one_widget().await?;
    let client = world.client();
    let old = client.get::<Widget>(&key()).await?;
    touch::<Widget>(&world, "a", "1").await?;
    client.set_status(&*old, phase(1, Some("Ready"))).await?;
    assert_eq!(status(&world).await?, Some(phase(1, Some("Ready"))));
    // A status that another client wrote in between is not overwritten.
    let error = client.set_status(&*old, phase(2, None)).await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    assert_eq!(status(&world).await?, Some(phase(1, Some("Ready"))));
    // The number of attempts is limited.
    world.faults.every(Effect::Status(409, "Conflict"), |asked| asked.path.ends_with("/status"));
    let now = client.get::<Widget>(&key()).await?;
    world.faults.forget();
    assert!(client.set_status(&*now, phase(2, None)).await.unwrap_err().is_conflict());
    assert_eq!(world.faults.count(RecordedRequest::is_write), 5);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn setting_the_status_of_a_deleted_object_is_not_an_error() -> Result<()> {
    let world = one_widget().await?;
    let client = world.client();
    let old = client.get::<Widget>(&key()).await?;
    world.api::<Widget>().delete("a", &DeleteParams::default()).await?;
    assert!(client.set_status(&*old, phase(1, None)).await?.is_none());
    // A recreated object is a different object.
    world.api().create(&PostParams::default(), &widget("a", "red")).await?;
    assert!(client.set_status(&*old, phase(1, None)).await.unwrap_err().is_conflict());
    assert_eq!(status(&world).await?, None);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_kind_without_a_status_subresource_is_named() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let client = world.client();
    let map = client.get::<ConfigMap>(&key()).await?;
    let error = client.set_status(&*map, json!({"ready": true})).await.unwrap_err();
    assert!(
        matches!(&error, ClientError::NoStatusSubresource(kind) if kind == "v1, Kind=ConfigMap"),
        "{error}"
    );
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_second_status_write_of_a_reconcile_starts_from_the_first() -> Result<()> {
    async fn twice(widget: &Widget, cx: &Context) -> Result<Outcome> {
        if widget.status.is_none() {
            assert!(cx.set_status(phase(1, Some("Working"))).await?);
            assert!(cx.set_status(phase(1, None)).await?);
            assert!(!cx.set_status(phase(1, None)).await?);
        }
        Ok(Outcome::done())
    }
    let world = one_widget().await?;
    let manager = manager(&world)?;
    manager.controller(reconcile_fn(twice)).register()?;
    let running = Running::start(&manager);
    settle().await;
    assert_eq!(status(&world).await?, Some(phase(1, None)));
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_and_an_upsert_need_no_type_annotations() -> Result<()> {
    struct Cleaner(Notes);
    impl Reconciler for Cleaner {
        type Object = Widget;
        async fn reconcile(&self, widget: &Widget, cx: &Context) -> Result<Outcome> {
            finalizer::run(cx.client(), widget, NAME, async |event| {
                match event {
                    Event::Apply(widget) => {
                        let (done, _) = cx
                            .client()
                            .create_or_update(config_map("child"), |child| {
                                child.data = Some([("color".to_owned(), widget.spec.color.clone())].into());
                                set_controller_reference(widget, child)?;
                                Ok(())
                            })
                            .await?;
                        self.0.push(format!("{done:?}"));
                    }
                    Event::Cleanup(_) => {
                        client::ignore_not_found(cx.client().delete(&config_map("child")).await)?;
                        self.0.push("cleaned");
                    }
                }
                Ok(Outcome::done())
            })
            .await
        }
        async fn deleted(&self, _: &Key, _: &Context) -> Result<Outcome> {
            self.0.push("deleted");
            Ok(Outcome::done())
        }
    }
    let world = one_widget().await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    manager.controller(Cleaner(notes.clone())).register()?;
    let running = Running::start(&manager);
    settle().await;
    assert_eq!(notes.all()[0], format!("{:?}", Upsert::Created));
    notes.take();
    world.api::<Widget>().delete("a", &DeleteParams::default()).await?;
    settle().await;
    assert_eq!(notes.take(), ["cleaned", "deleted"]);
    running.end().await
}

/// Notes how each object was removed.
struct Ends(Notes);

impl Reconciler for Ends {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, cx: &Context) -> Result<Outcome> {
        self.0.push(cx.key().name());
        Ok(Outcome::done())
    }

    async fn deleted(&self, key: &Key, _: &Context) -> Result<Outcome> {
        self.0.push(format!("{} deleted", key.name()));
        Ok(Outcome::done())
    }

    async fn deselected(&self, key: &Key, _: &Context) -> Result<Outcome> {
        self.0.push(format!("{} deselected", key.name()));
        Ok(Outcome::done())
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_no_longer_matches_the_selector_is_deselected() -> Result<()> {
    let world = World::new();
    for name in ["a", "b"] {
        let mut map = config_map(name);
        map.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
        world.api().create(&PostParams::default(), &map).await?;
    }
    let (manager, notes) = (manager(&world)?, Notes::new());
    let (ask, asked) = tokio::sync::mpsc::channel(1);
    let controller = manager.controller_with(Ends(notes.clone()), Watch::new().labels("app=web"));
    controller.channel(asked).register()?;
    let running = Running::start(&manager);
    settle().await;
    notes.take();
    patch::<ConfigMap>(&world, "a", json!({"metadata": {"labels": {"app": "db"}}})).await?;
    world.api::<ConfigMap>().delete("b", &DeleteParams::default()).await?;
    settle().await;
    let mut ends = notes.take();
    ends.sort();
    assert_eq!(ends, ["a deselected", "b deleted"]);
    // The object does not match the selector, so neither function is called.
    ask.send(Key::namespaced("default", "a")).await?;
    ask.send(Key::namespaced("default", "never")).await?;
    settle().await;
    assert_eq!(notes.take(), [""; 0]);
    patch::<ConfigMap>(&world, "a", json!({"metadata": {"labels": {"app": "web"}}})).await?;
    settle().await;
    assert_eq!(notes.take(), ["a"]);
    running.end().await
}
