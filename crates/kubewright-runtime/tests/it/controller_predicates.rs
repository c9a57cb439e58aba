//! Predicates, with real updates on the server.

use std::time::Duration;

use anyhow::Result;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kubewright_runtime::controller::{Predicate, Watch};
use kubewright_runtime::{CacheOptions, Manager, ManagerOptions};
use serde_json::json;

use crate::operator::{Acts, Notes, Running, options, patch};
use crate::world::{Widget, World, settle, widget};

/// The events of a Widget, step by step.
const STEPS: [&str; 7] = ["found", "spec", "status", "labels", "annotations", "resync", "gone"];

/// The steps after which a controller with this predicate ran.
async fn passed(predicate: Predicate<Widget>) -> Result<Vec<&'static str>> {
    let world = World::new();
    world.widgets().await?;
    let api = world.api::<Widget>();
    api.create(&PostParams::default(), &widget("a", "red")).await?;
    let cache = CacheOptions { resync: Some(Duration::from_hours(1)), ..CacheOptions::default() };
    let manager = Manager::new(world.kube.clone(), ManagerOptions { cache, ..options() })?;
    let notes = Notes::new();
    manager.controller_with(Acts::noting(&notes), Watch::new().filter(predicate)).register()?;
    let running = Running::start(&manager);
    let mut passed = Vec::new();
    for step in STEPS {
        match step {
            "found" => {}
            "spec" => drop(patch::<Widget>(&world, "a", json!({"spec": {"color": "blue"}})).await?),
            "status" => {
                let status = Patch::Merge(json!({"status": {"replicas": 1}}));
                api.patch_status("a", &PatchParams::default(), &status).await?;
            }
            "labels" | "annotations" => {
                let change = json!({"metadata": {step: {"x": "1"}}});
                patch::<Widget>(&world, "a", change).await?;
            }
            "resync" => tokio::time::sleep(Duration::from_hours(1)).await,
            _ => drop(api.delete("a", &DeleteParams::default()).await?),
        }
        settle().await;
        match notes.take().as_slice() {
            [] => {}
            [_] => passed.push(step),
            more => anyhow::bail!("{step}: {more:?}"),
        }
    }
    running.end().await?;
    Ok(passed)
}

#[tokio::test(start_paused = true)]
async fn without_a_predicate_everything_passes() -> Result<()> {
    assert_eq!(passed(Predicate::new(|_| true)).await?, STEPS);
    assert_eq!(passed(Predicate::new(|_| false)).await?, [""; 0]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_generation_changes_with_the_spec_only() -> Result<()> {
    assert_eq!(passed(Predicate::generation_changed()).await?, ["found", "spec", "gone"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn label_and_annotation_predicates_compare_old_and_new() -> Result<()> {
    assert_eq!(passed(Predicate::labels_changed()).await?, ["found", "labels", "gone"]);
    assert_eq!(passed(Predicate::annotations_changed()).await?, ["found", "annotations", "gone"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_resource_version_changes_with_everything_but_a_resync() -> Result<()> {
    let all = ["found", "spec", "status", "labels", "annotations", "gone"];
    assert_eq!(passed(Predicate::resource_version_changed()).await?, all);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn predicates_are_combined_by_and_or_and_not() -> Result<()> {
    let blue =
        || Predicate::<Widget>::new(|event| event.object().is_some_and(|widget| widget.spec.color == "blue"));
    assert_eq!(
        passed(Predicate::generation_changed().or(Predicate::labels_changed())).await?,
        ["found", "spec", "labels", "gone"]
    );
    assert_eq!(passed(Predicate::generation_changed().and(blue())).await?, ["spec", "gone"]);
    assert_eq!(
        passed(Predicate::resource_version_changed().not()).await?,
        ["resync"],
        "built-in predicates pass create and delete events, so their negations drop them"
    );
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_event_must_pass_all_filters() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    let (manager, notes) = (Manager::new(world.kube.clone(), options())?, Notes::new());
    let watch = Watch::new()
        .filter(Predicate::new(|event| !event.is_create()))
        .filter(Predicate::new(|event| !event.is_delete()));
    manager.controller_with(Acts::<Widget>::noting(&notes), watch).register()?;
    let running = Running::start(&manager);
    settle().await;
    let api = world.api::<Widget>();
    api.create(&PostParams::default(), &widget("a", "red")).await?;
    settle().await;
    assert_eq!(notes.take(), [""; 0]);
    patch::<Widget>(&world, "a", json!({"spec": {"color": "blue"}})).await?;
    settle().await;
    assert_eq!(notes.take(), ["a"]);
    api.delete("a", &DeleteParams::default()).await?;
    settle().await;
    assert_eq!(notes.take(), [""; 0]);
    running.end().await
}
