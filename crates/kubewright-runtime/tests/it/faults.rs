//! Tests of the fault injection itself, on which other tests rely.

use std::time::Duration;

use anyhow::Result;
use futures_util::TryStreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, PostParams, WatchEvent, WatchParams};
use tokio::time::Instant;

use crate::world::{Effect, RecordedRequest, World, config_map, soon};

fn maps(world: &World) -> Api<ConfigMap> {
    Api::default_namespaced(world.kube.clone())
}

#[tokio::test(start_paused = true)]
async fn requests_are_recorded() -> Result<()> {
    let world = World::new();
    maps(&world).list(&ListParams::default().labels("app in (a,b)").limit(5)).await?;
    maps(&world).create(&PostParams::default(), &config_map("a")).await?;
    let asked = world.faults.requests();
    let lines: Vec<String> = asked.iter().map(RecordedRequest::line).collect();
    assert_eq!(
        lines,
        ["GET /api/v1/namespaces/default/configmaps", "POST /api/v1/namespaces/default/configmaps"]
    );
    assert_eq!(asked[0].parameter("labelSelector").map(|it| it.replace('+', " ")).unwrap(), "app in (a,b)");
    assert!(asked[0].is_list() && !asked[0].is_watch() && asked[1].is_write());
    assert!(asked[0].at <= asked[1].at && asked[0].content_type.is_empty());
    assert_eq!(asked[1].content_type, "application/json");
    assert!(asked[1].accept.is_empty() || asked[1].accept.contains("json"));
    world.faults.forget();
    assert_eq!(world.faults.count(|_| true), 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn requests_fail_as_often_as_configured() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    world.faults.next(1, Effect::Status(409, "Conflict"), |asked| asked.path.ends_with("/a"));
    world.faults.next(1, Effect::Refuse, |_| true);
    world.faults.next(1, Effect::Answer(502, "bad gateway".to_owned()), |_| true);
    let kube::Error::Api(status) = maps(&world).get("a").await.unwrap_err() else { panic!("no response") };
    assert_eq!(status.reason, "Conflict");
    assert!(matches!(maps(&world).get("a").await.unwrap_err(), kube::Error::Service(_)));
    assert!(matches!(maps(&world).get("a").await.unwrap_err(), kube::Error::Api(_)));
    maps(&world).get("a").await?;
    world.faults.down();
    assert!(maps(&world).get("a").await.is_err());
    assert!(maps(&world).get("a").await.is_err());
    world.faults.heal();
    maps(&world).get("a").await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn responses_are_delayed_missing_or_lost() -> Result<()> {
    let world = World::new();
    let started = Instant::now();
    world.faults.next(1, Effect::Delay(Duration::from_secs(9)), |_| true);
    assert!(maps(&world).get("a").await.is_err());
    assert_eq!(started.elapsed(), Duration::from_secs(9));
    world.faults.next(1, Effect::Lose, |_| true);
    assert!(maps(&world).create(&PostParams::default(), &config_map("a")).await.is_err());
    maps(&world).get("a").await?;
    world.faults.next(1, Effect::Hang, |_| true);
    assert!(tokio::time::timeout(Duration::from_hours(1), maps(&world).get("a")).await.is_err());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn open_watches_can_be_stalled_cut_ended_and_expired() -> Result<()> {
    let world = World::new();
    world.namespace("other").await?;
    let open =
        async || maps(&world).watch(&WatchParams::default(), "0").await.map(futures_util::StreamExt::boxed);
    let is_watch = |asked: &RecordedRequest| asked.is_watch() && asked.path.contains("/default/");

    let (mut first, mut second) = (open().await?, open().await?);
    world.config_maps(&["a"]).await?;
    for watch in [&mut first, &mut second] {
        // The server's own kube-root-ca.crt may come first.
        loop {
            let event = soon("an event", watch.try_next()).await?;
            if matches!(event, Some(WatchEvent::Added(map)) if map.metadata.name.as_deref() == Some("a")) {
                break;
            }
        }
    }
    assert_eq!((world.faults.watches(is_watch), world.faults.watches(|_| false)), (2, 0));

    // A stalled watch resumes where it stopped.
    assert_eq!(world.faults.stall(is_watch), 2);
    world.config_maps(&["b"]).await?;
    assert!(tokio::time::timeout(Duration::from_mins(1), first.try_next()).await.is_err());
    world.faults.heal();
    assert!(matches!(soon("an event", first.try_next()).await?, Some(WatchEvent::Added(_))));

    assert_eq!(world.faults.cut(is_watch), 2);
    assert!(soon("an error", first.try_next()).await.is_err());
    drop((first, second));
    assert_eq!(world.faults.watches(is_watch), 0);

    let (mut third, mut fourth) = (open().await?, open().await?);
    assert_eq!(world.faults.end(is_watch), 2);
    assert!(soon("the end", third.try_next()).await?.is_none());
    assert_eq!(world.faults.expire(is_watch), 2);
    let event = soon("an error event", fourth.try_next()).await?;
    assert!(matches!(event, Some(WatchEvent::Error(status)) if status.code == 410));
    assert!(soon("the end", fourth.try_next()).await?.is_none());
    drop((third, fourth));

    // Mute works without an open watch: the watch is silent from the start.
    world.faults.next(1, Effect::Mute, RecordedRequest::is_watch);
    let mut fifth = open().await?;
    assert!(tokio::time::timeout(Duration::from_mins(1), fifth.try_next()).await.is_err());
    world.faults.heal();
    assert!(soon("an event", fifth.try_next()).await?.is_some());
    Ok(())
}
