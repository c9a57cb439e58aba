//! Watches of the client without the cache.

use std::time::Duration;

use anyhow::{Context as _, Result};
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, PostParams};
use kubewright_runtime::ListOptions;
use kubewright_runtime::client::{Error, WatchEvent, WatchStream, Writable};

use super::widgets;
use crate::operator::touch;
use crate::world::{Effect, RecordedRequest, Widget, World, soon, widget, within};

/// The next event as its type and the name of its object. Bookmarks are skipped.
async fn next<K: Writable>(watch: &mut WatchStream<K>) -> Result<String> {
    loop {
        let event = soon("an event", watch.next()).await.context("the watch has not ended")??;
        let (what, object) = match &event {
            WatchEvent::Added(object) => ("added", object),
            WatchEvent::Modified(object) => ("modified", object),
            WatchEvent::Deleted(object) => ("deleted", object),
            WatchEvent::Restarted => return Ok("restarted".to_owned()),
            WatchEvent::Bookmark(_) => continue,
            _ => panic!("a new sort of event"),
        };
        return Ok(format!("{what} {}", object.metadata().name.as_deref().unwrap_or_default()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_begins_with_the_existing_objects_and_continues() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let mut watch = world.client().watch::<ConfigMap>(&ListOptions::namespace("default"))?;
    assert_eq!(next(&mut watch).await?, "added a");
    world.config_maps(&["b"]).await?;
    assert_eq!(next(&mut watch).await?, "added b");
    touch::<ConfigMap>(&world, "a", "1").await?;
    assert_eq!(next(&mut watch).await?, "modified a");
    world.api::<ConfigMap>().delete("b", &DeleteParams::default()).await?;
    assert_eq!(next(&mut watch).await?, "deleted b");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_a_dynamic_kind_selects() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    for (name, color) in [("a", "red"), ("b", "blue")] {
        world.api::<Widget>().create(&PostParams::default(), &widget(name, color)).await?;
    }
    let list = ListOptions::namespace("default").field("spec.color", "blue");
    let mut watch = world.client().watch_dynamic(&widgets(), &list).await?;
    let Some(Ok(WatchEvent::Added(object))) = watch.next().await else { panic!("there is one") };
    assert_eq!(object.data["spec"]["color"], "blue");
    assert_eq!(object.types.context("a dynamic object has its kind")?.kind, "Widget");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_broken_watch_continues_at_its_last_version() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let mut watch = world.client().watch::<ConfigMap>(&ListOptions::namespace("default"))?;
    assert_eq!(next(&mut watch).await?, "added a");
    for (name, broken) in [("b", true), ("c", false)] {
        world.faults.next(2, Effect::Status(503, "ServiceUnavailable"), RecordedRequest::is_watch);
        let cut = if broken { world.faults.cut(|_| true) } else { world.faults.end(|_| true) };
        assert_eq!(cut, 1);
        world.config_maps(&[name]).await?;
        assert_eq!(next(&mut watch).await?, format!("added {name}"));
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_expired_watch_restarts_and_reports_it() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let mut watch = world.client().watch::<ConfigMap>(&ListOptions::namespace("default"))?;
    assert_eq!(next(&mut watch).await?, "added a");
    assert_eq!(world.faults.expire(|_| true), 1);
    assert_eq!(next(&mut watch).await?, "restarted");
    assert_eq!(next(&mut watch).await?, "added a");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_watch_past_its_timeout_is_reopened() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let mut watch = world.client().watch::<ConfigMap>(&ListOptions::namespace("default"))?;
    assert_eq!(next(&mut watch).await?, "added a");
    assert_eq!(world.faults.stall(|_| true), 1);
    world.config_maps(&["b"]).await?;
    let event = within(Duration::from_mins(6), "the deadline of the watch", watch.next()).await;
    let Some(Ok(WatchEvent::Added(map))) = event else { panic!("{event:?}") };
    assert_eq!(map.metadata.name.as_deref(), Some("b"));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_watch_ends() -> Result<()> {
    let world = World::new();
    world.faults.every(Effect::Status(403, "Forbidden"), RecordedRequest::is_watch);
    let mut watch = world.client().watch::<ConfigMap>(&ListOptions::namespace("default"))?;
    let error = watch.next().await.context("there is an error")?.expect_err("it is not allowed");
    assert!(matches!(&error, Error::Status(_)) && error.is_forbidden(), "{error}");
    assert!(watch.next().await.is_none());
    Ok(())
}
