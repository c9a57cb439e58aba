//! Conflicts: a 409 is retried, and is not an error in the log.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use kube::api::{Api, PostParams};
use kubewright_runtime::adapter::{Action, adapt};
use kubewright_runtime::{Context, Kind, Outcome, reconcile_fn};

use crate::operator::{Acts, Log, Notes, Running, manager, metric};
use crate::world::{Widget, World, widget};

/// A world with one Widget named `a`.
async fn one_widget() -> Result<World> {
    let world = World::new();
    world.widgets().await?;
    world.api().create(&PostParams::default(), &widget("a", "red")).await?;
    Ok(world)
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_retried_with_backoff_and_is_not_an_error_in_the_log() -> Result<()> {
    let world = one_widget().await?;
    let log = Log::keep_from("info")?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    let noted = notes.clone();
    manager
        .controller(Acts::<Widget>::new(move |widget, cx| {
            noted.push("run");
            Box::pin(async move {
                let mut stale = (*widget.expect("the widget exists")).clone();
                if cx.retries() < 3 {
                    stale.metadata.resource_version = Some("1".to_owned());
                }
                cx.client().update(&stale).await.context("updating")?;
                Ok(Outcome::done())
            })
        }))
        .register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(notes.pauses("run")[..3], [5, 10, 20]);
    assert_eq!(log.saying("ERROR"), [""; 0]);
    let lines = log.saying("Requeueing after a conflict");
    assert!(lines.len() == 3 && lines[0].contains("INFO") && lines[0].contains("updating: "), "{lines:?}");
    assert_eq!(
        metric(&manager, "controller_runtime_reconcile_errors_total{controller=\"widget\"}"),
        Some(3.0)
    );
    running.end().await
}

/// Writes an old version of the object with kube's `Api`.
async fn write_an_old_version(widget: &Widget, cx: &Context) -> kubewright_runtime::Result<Outcome> {
    let mut stale = widget.clone();
    if cx.retries() < 3 {
        stale.metadata.resource_version = Some("1".to_owned());
    }
    let api: Api<Widget> = Api::namespaced(cx.client().kube(), "default");
    api.replace("a", &PostParams::default(), &stale).await?;
    Ok(Outcome::done())
}

#[tokio::test(start_paused = true)]
async fn a_conflict_of_kubes_api_is_not_an_error_in_the_log() -> Result<()> {
    let world = one_widget().await?;
    let log = Log::keep_from("info")?;
    let manager = manager(&world)?;
    manager.controller(reconcile_fn(write_an_old_version)).register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(log.saying("ERROR"), [""; 0]);
    let lines = log.saying("Requeueing after a conflict");
    assert!(lines.len() == 3 && lines[0].contains("INFO") && lines[0].contains("ApiError: "), "{lines:?}");
    running.end().await
}

/// The error of an adapted function, as kube-rs users write it.
#[derive(Debug, thiserror::Error)]
enum AdaptedError {
    #[error("replace failed")]
    Replace(#[source] kube::Error),
    #[error(transparent)]
    Kube(#[from] kube::Error),
}

#[tokio::test(start_paused = true)]
async fn a_conflict_of_an_adapted_function_is_not_an_error_in_the_log() -> Result<()> {
    let world = one_widget().await?;
    let log = Log::keep_from("info")?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    let noted = notes.clone();
    let reconcile = move |map: Arc<Widget>, api: Arc<Api<Widget>>| {
        noted.push("run");
        let run = noted.times("run").len();
        async move {
            let mut stale = (*map).clone();
            stale.metadata.resource_version = Some("1".to_owned());
            let replaced =
                |stale: Widget| async move { api.replace("a", &PostParams::default(), &stale).await };
            match run {
                1 => drop(replaced(stale).await.map_err(AdaptedError::Replace)?),
                2 => drop(replaced(stale).await?),
                _ => {}
            }
            Ok::<_, AdaptedError>(Action::await_change())
        }
    };
    let error_policy =
        |_: Arc<Widget>, _: &AdaptedError, _: Arc<Api<Widget>>| Action::requeue(Duration::from_millis(5));
    let reconciler = adapt(reconcile, error_policy, Arc::new(world.api()));
    manager.dynamic_controller(Kind::of::<Widget>(), reconciler).register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(notes.len(), 3);
    assert_eq!(log.saying("ERROR"), [""; 0]);
    let lines = log.saying("Requeueing after a conflict");
    assert!(lines.len() == 2 && lines[0].contains("replace failed: "), "{lines:?}");
    running.end().await
}
