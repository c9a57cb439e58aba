//! Watches of the client without the cache.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, PostParams};
use kubewright_runtime::client::{Error, WatchEvent, WatchStream, Writable};
use kubewright_runtime::{Client, ListOptions};
use serde_json::json;
use tower::BoxError;

use super::widgets;
use crate::operator::{patch, touch};
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
    skip_bookmark(&mut watch).await;
    for (name, broken) in [("b", true), ("c", false)] {
        world.faults.next(2, Effect::Status(503, "ServiceUnavailable"), RecordedRequest::is_watch);
        let cut = if broken { world.faults.cut(|_| true) } else { world.faults.end(|_| true) };
        assert_eq!(cut, 1);
        world.config_maps(&[name]).await?;
        assert_eq!(next(&mut watch).await?, format!("added {name}"));
    }
    Ok(())
}

/// Skips the bookmark that ends the existing objects.
async fn skip_bookmark<K: Writable>(watch: &mut WatchStream<K>) {
    let event = soon("a bookmark", watch.next()).await;
    assert!(matches!(event, Some(Ok(WatchEvent::Bookmark(_)))), "another event");
}

/// How the first watch ends, after its first line.
#[derive(Clone, Copy)]
enum Ending {
    Cut,
    End,
    Hang,
}

/// A client of a server whose first watch ends after its first line.
fn ending(world: &World, ending: Ending) -> Client {
    let (server, watches) = (world.server.clone(), Arc::new(AtomicUsize::new(0)));
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let (server, watches) = (server.clone(), watches.clone());
        async move {
            let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            let response = server.handle(request).await;
            if !is_watch || watches.fetch_add(1, Ordering::SeqCst) > 0 {
                return Ok::<_, BoxError>(response.map(|body| body.map_err(BoxError::from).boxed_unsync()));
            }
            let (head, body) = response.into_parts();
            let mut frames = body.into_data_stream();
            let mut line = Vec::new();
            while !line.contains(&b'\n') {
                line.extend_from_slice(&frames.next().await.expect("there is a line")?);
            }
            let end = line.iter().position(|byte| *byte == b'\n').expect("the line ends");
            line.truncate(end + 1);
            let first = stream::once(async { Ok(Frame::data(Bytes::from(line))) });
            let broken = || Err(io::Error::from(io::ErrorKind::ConnectionReset).into());
            let rest = match ending {
                Ending::Cut => stream::once(async move { broken() }).boxed(),
                Ending::End => stream::empty().boxed(),
                Ending::Hang => stream::pending().boxed(),
            };
            Ok(Response::from_parts(head, StreamBody::new(first.chain(rest)).boxed_unsync()))
        }
    });
    Client::new(kube::Client::new(service, "default"))
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_within_its_initial_events_reports_all_objects() -> Result<()> {
    for end in [Ending::Cut, Ending::End, Ending::Hang] {
        let world = World::new();
        world.config_maps(&["z", "m", "a"]).await?;
        // The first object in the order of keys has the newest resourceVersion.
        touch::<ConfigMap>(&world, "a", "1").await?;
        let client = ending(&world, end);
        let mut watch = client.watch::<ConfigMap>(&ListOptions::namespace("default"))?;
        for event in ["added a", "restarted", "added a", "added m", "added z"] {
            assert_eq!(next(&mut watch).await?, event);
        }
        touch::<ConfigMap>(&world, "m", "1").await?;
        assert_eq!(next(&mut watch).await?, "modified m");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_watch_resumes_after_its_initial_events_without_a_replay() -> Result<()> {
    let world = World::new();
    world.config_maps(&["z", "a"]).await?;
    touch::<ConfigMap>(&world, "a", "1").await?;
    let mut watch = world.client().watch::<ConfigMap>(&ListOptions::namespace("default"))?;
    assert_eq!(next(&mut watch).await?, "added a");
    assert_eq!(next(&mut watch).await?, "added z");
    skip_bookmark(&mut watch).await;
    assert_eq!(world.faults.cut(|_| true), 1);
    world.config_maps(&["b"]).await?;
    assert_eq!(next(&mut watch).await?, "added b");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_watch_lists_in_pages_if_the_server_does_not_stream() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    world.api::<Widget>().create(&PostParams::default(), &widget("a", "red")).await?;
    for (code, reason) in [(400, "BadRequest"), (422, "Invalid")] {
        world
            .faults
            .every(Effect::Status(code, reason), |asked| asked.parameter("sendInitialEvents").is_some());
        let list = ListOptions::namespace("default");
        let mut watch = world.client().watch_dynamic(&widgets(), &list).await?;
        assert_eq!(next(&mut watch).await?, "added a");
        skip_bookmark(&mut watch).await;
        patch::<Widget>(&world, "a", json!({"spec": {"color": reason}})).await?;
        let Some(Ok(WatchEvent::Modified(object))) = watch.next().await else { panic!("an update follows") };
        assert_eq!(object.types.context("a dynamic object has its kind")?.kind, "Widget");
        world.faults.heal();
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
    skip_bookmark(&mut watch).await;
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
