//! Watches of optional kinds.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use kubewright_runtime::controller::Watch;
use kubewright_runtime::{Context, Key, Outcome, Reconciler};

use crate::operator::{Acts, Notes, Running, manager};
use crate::world::{Effect, Widget, World, eventually, eventually_within, settle, widget};

#[tokio::test(start_paused = true)]
async fn a_missing_optional_kind_does_not_delay_the_controller() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let (manager, notes, others) = (manager(&world)?, Notes::new(), Notes::new());
    manager
        .controller(Acts::<ConfigMap>::noting(&notes))
        .watches_with::<Widget>(Watch::new().optional(), |widget, _| vec![Key::of(widget)])
        .register()?;
    manager.controller(Acts::<ConfigMap>::noting(&others)).named("other").register()?;
    let running = Running::start(&manager);
    settle().await;
    assert_eq!((notes.take(), others.take()), (vec!["a".to_owned()], vec!["a".to_owned()]));
    assert_eq!(manager.cache().health(), Ok(()));
    // Longer than the sync timeout.
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(manager.cache().health(), Ok(()));
    assert!(manager.cache().get::<Widget>(&Key::namespaced("default", "a")).is_err());
    let asked = manager.client().get_opt::<Widget>(&Key::namespaced("default", "a")).await?;
    assert_eq!(asked, None, "the read goes to the server");

    world.widgets().await?;
    world.api().create(&PostParams::default(), &widget("a", "red")).await?;
    eventually("the reconcile for the widget", || notes.take() == ["a"]).await;
    assert!(manager.cache().get::<Widget>(&Key::namespaced("default", "a"))?.is_some());
    running.end().await
}

/// Notes the color of every Widget.
struct Names(Notes);

impl Reconciler for Names {
    type Object = Widget;

    async fn reconcile(&self, widget: &Widget, _: &Context) -> Result<Outcome> {
        self.0.push(&widget.spec.color);
        Ok(Outcome::done())
    }
}

#[tokio::test(start_paused = true)]
async fn a_controller_of_an_optional_kind_starts_when_the_kind_is_served() -> Result<()> {
    let world = World::new();
    let (manager, notes) = (manager(&world)?, Notes::new());
    manager.controller_with(Names(notes.clone()), Watch::new().optional()).register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_mins(10)).await;
    world.widgets().await?;
    world.api().create(&PostParams::default(), &widget("a", "red")).await?;
    eventually("the reconcile", || notes.take() == ["red"]).await;
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn an_optional_kind_can_be_uninstalled_and_installed_again() -> Result<()> {
    let world = World::new();
    let (manager, notes) = (manager(&world)?, Notes::new());
    manager.controller_with(Names(notes.clone()), Watch::new().optional()).register()?;
    let running = Running::start(&manager);
    for color in ["red", "blue"] {
        world.widgets().await?;
        world.api().create(&PostParams::default(), &widget("a", color)).await?;
        eventually_within(Duration::from_mins(2), "the reconcile", || notes.take() == [color]).await;
        world.uninstall_widgets().await?;
        tokio::time::sleep(Duration::from_mins(10)).await;
        assert_eq!(manager.cache().health(), Ok(()));
        let asked = manager.client().get_opt::<Widget>(&Key::namespaced("default", "a")).await?;
        assert_eq!(asked, None);
    }
    // Any other failure of the watch makes the manager not ready.
    world.faults.every(Effect::Status(500, "InternalError"), |asked| asked.path.contains("widgets"));
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert!(manager.cache().health().is_err());
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_one_controller_requires_is_not_optional() -> Result<()> {
    let world = World::new();
    let (manager, notes) = (manager(&world)?, Notes::new());
    manager.controller_with(Names(notes.clone()), Watch::new().optional()).register()?;
    manager.controller(Names(notes.clone())).named("requires").register()?;
    let running = Running::start(&manager);
    let error = running.failed().await?;
    assert!(error.to_string().contains("example.org/v1, Kind=Widget was not listed"), "{error}");
    Ok(())
}
