//! Broken watches, unavailable servers, missing kinds: the cache recovers without losing changes.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, PostParams};
use kubewright_apiserver::storage::Limits;
use kubewright_apiserver::{Controllers, Options};
use kubewright_runtime::{CacheOptions, KindOptions};
use tokio::time::Instant;

use super::{delete, is_map_watch, label, names, next_changes};
use crate::world::{
    Effect, RecordedRequest, Widget, World, eventually, eventually_within, options, settle, soon, widget,
    within,
};

fn here() -> CacheOptions {
    CacheOptions { resync: None, ..CacheOptions::default() }
        .kind::<ConfigMap>(KindOptions::new().namespaces(["default"]))
}

/// Long enough for a watch to count as working.
const A_WHILE: Duration = Duration::from_secs(5);

#[tokio::test(start_paused = true)]
async fn objects_deleted_while_the_watch_was_expired_are_reported_as_deleted() -> Result<()> {
    let world = World::new();
    world.config_maps(&["gone", "kept", "replaced", "changed"]).await?;
    let running = world.cache(here());
    let informer = running.cache.informer::<ConfigMap>();
    let mut follower = informer.follower();
    assert_eq!(next_changes(&mut follower).await.len(), 4);
    world.faults.stall(is_map_watch);
    delete(&world, "gone").await?;
    delete(&world, "replaced").await?;
    world.config_maps(&["replaced", "new"]).await?;
    label(&world, "changed", "1").await?;
    settle().await;
    assert_eq!(follower.waiting(), 0);
    let before = Instant::now();
    world.faults.expire(is_map_watch);
    let changes = next_changes(&mut follower).await;
    assert_eq!(changes, ["-gone", "~changed", "+new", "-replaced", "+replaced"]);
    // Without a delay: an expired resourceVersion is not a failure.
    assert!(before.elapsed() < Duration::from_millis(100), "{:?}", before.elapsed());
    assert_eq!(names(&informer), ["changed", "kept", "new", "replaced"]);
    assert_eq!(world.faults.count(RecordedRequest::is_list), 2);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_server_that_dropped_the_events_makes_the_cache_list_again() -> Result<()> {
    // A server that keeps three events.
    let limits = Limits { events: 3, ..Limits::default() };
    let world = World::with(Options { limits, ..options() });
    world.config_maps(&["a"]).await?;
    let running = world.cache(here());
    let informer = running.cache.informer::<ConfigMap>();
    soon("the list", informer.synced()).await?;
    world.faults.down();
    for name in ["b", "c", "d", "e", "f"] {
        world.config_maps(&[name]).await?;
    }
    delete(&world, "a").await?;
    settle().await;
    world.faults.heal();
    eventually("the list", || names(&informer) == ["b", "c", "d", "e", "f"]).await;
    assert_eq!(world.faults.count(RecordedRequest::is_list), 2);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_broken_watch_continues_at_its_last_version() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a", "b"]).await?;
    let running = world.cache(here());
    let informer = running.cache.informer::<ConfigMap>();
    let mut follower = informer.follower();
    next_changes(&mut follower).await;
    tokio::time::sleep(A_WHILE).await;
    world.config_maps(&["c"]).await?;
    assert_eq!(next_changes(&mut follower).await, ["+c"]);
    let last = informer.entries(&kubewright_runtime::ListOptions::all())?[2].version();

    world.faults.cut(is_map_watch);
    delete(&world, "a").await?;
    label(&world, "b", "1").await?;
    world.config_maps(&["d"]).await?;
    let before = Instant::now();
    eventually("the events", || names(&informer) == ["b", "c", "d"]).await;
    assert!(before.elapsed() < Duration::from_millis(100), "there was a delay: {:?}", before.elapsed());
    let mut heard = Vec::new();
    while follower.waiting() > 0 {
        heard.extend(next_changes(&mut follower).await);
    }
    assert_eq!(heard, ["-a", "~b", "+d"]);
    let asked = world.faults.requests();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(!asked[1].is_list());
    assert_eq!(asked[1].parameter("resourceVersion"), Some(&*last.to_string()));

    // The second failure within a short time has a delay, so that a server that breaks each watch is not flooded.
    tokio::time::sleep(A_WHILE).await;
    world.faults.cut(is_map_watch);
    let before = Instant::now();
    eventually("the watch", || world.faults.count(RecordedRequest::is_watch) == 3).await;
    assert!(before.elapsed() >= Duration::from_secs(1), "{:?}", before.elapsed());
    assert_eq!(world.faults.count(RecordedRequest::is_list), 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_is_reopened_from_its_last_bookmark() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let running = world.cache(here());
    let informer = running.cache.informer::<ConfigMap>();
    soon("the list", informer.synced()).await?;
    // Writes of other kinds reach the watch only as bookmarks.
    world.namespace("elsewhere").await?;
    let revision = world.server.revision();
    // A watch ends by itself after five to ten minutes.
    eventually_within(Duration::from_mins(11), "the next watch", || {
        world.faults.count(RecordedRequest::is_watch) == 2
    })
    .await;
    let asked = world.faults.requests();
    let (first, second) = (&asked[0], &asked[1]);
    let seconds: u64 = first.parameter("timeoutSeconds").unwrap().parse()?;
    assert!((300..600).contains(&seconds), "{seconds}");
    assert_eq!((second.at - first.at).as_secs(), seconds);
    assert_eq!(second.parameter("resourceVersion"), Some(&*revision.to_string()));
    assert!(!second.is_list());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_closed_after_its_timeout() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let running = world.cache(here());
    let informer = running.cache.informer::<ConfigMap>();
    soon("the list", informer.synced()).await?;
    world.faults.stall(is_map_watch);
    world.config_maps(&["b"]).await?;
    eventually_within(Duration::from_mins(11), "the event", || names(&informer) == ["a", "b"]).await;
    assert_eq!(world.faults.count(RecordedRequest::is_list), 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_response_is_retried_after_a_minute() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    // A response that never comes, a list that never begins, a page that never comes.
    world.faults.next(1, Effect::Hang, RecordedRequest::is_watch);
    world.faults.next(1, Effect::Mute, RecordedRequest::is_watch);
    world.faults.next(1, Effect::Hang, |asked| !asked.is_watch());
    let running = world.cache(here());
    let informer = running.cache.informer::<ConfigMap>();
    within(Duration::from_mins(4), "the list", informer.synced()).await?;
    assert_eq!(names(&informer), ["a"]);
    let asked = world.faults.requests();
    assert_eq!(asked.len(), 5, "{asked:?}");
    for pair in asked[..4].windows(2) {
        let silence = pair[1].at - pair[0].at;
        assert!(silence >= Duration::from_mins(1) && silence < Duration::from_secs(64), "{silence:?}");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn requests_to_an_unavailable_server_back_off() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let running = world.cache(here());
    let informer = running.cache.informer::<ConfigMap>();
    soon("the list", informer.synced()).await?;
    tokio::time::sleep(A_WHILE).await;
    world.faults.forget();
    world.faults.down();
    world.config_maps(&["b"]).await?;
    tokio::time::sleep(Duration::from_hours(1)).await;
    let asked = world.faults.requests();
    let pauses: Vec<Duration> = asked.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    assert!(asked.len() > 60 && asked.len() < 130, "{}", asked.len());
    // 800 ms doubling to 30 s, each with up to 100 % jitter.
    for (at, pause) in pauses.iter().enumerate() {
        let base = Duration::from_millis(800 << (at + 1).min(8)).min(Duration::from_secs(30));
        assert!(*pause >= base && *pause <= base * 2 + Duration::from_millis(2), "pause {at}: {pause:?}");
    }
    assert_eq!(names(&informer), ["a"], "known objects are kept");
    world.faults.heal();
    eventually_within(Duration::from_secs(61), "the event", || names(&informer) == ["a", "b"]).await;
    assert_eq!(world.faults.count(RecordedRequest::is_list), 0);
    // After it has worked for a while, the next failure counts as the first.
    tokio::time::sleep(Duration::from_secs(31)).await;
    world.faults.cut(is_map_watch);
    world.config_maps(&["c"]).await?;
    let before = Instant::now();
    eventually("the event", || names(&informer) == ["a", "b", "c"]).await;
    assert!(before.elapsed() < Duration::from_millis(100), "{:?}", before.elapsed());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_cache_waits_for_a_server_that_is_down_at_the_start() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    world.faults.down();
    let running = world.cache(here());
    let informer = running.cache.informer::<ConfigMap>();
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert!(!informer.is_synced());
    assert_eq!(running.cache.unsynced().len(), 1);
    world.faults.heal();
    within(Duration::from_secs(61), "the list", informer.synced()).await?;
    assert_eq!(names(&informer), ["a"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_respected() -> Result<()> {
    let world = World::new();
    let busy = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "storage is initializing",
        "reason": "TooManyRequests", "code": 429, "details": {"retryAfterSeconds": 20},
    });
    world.faults.next(2, Effect::Answer(429, busy.to_string()), |_| true);
    let running = world.cache(here());
    soon("the list", running.cache.informer::<ConfigMap>().synced()).await?;
    let asked = world.faults.requests();
    assert_eq!(asked.len(), 3);
    assert!(asked.windows(2).all(|pair| pair[1].at - pair[0].at >= Duration::from_secs(20)));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_server_that_closes_every_watch_immediately_is_not_flooded() -> Result<()> {
    let world = World::new();
    let running = world.cache(here());
    soon("the list", running.cache.informer::<ConfigMap>().synced()).await?;
    world.faults.every(Effect::Answer(200, String::new()), RecordedRequest::is_watch);
    world.faults.end(is_map_watch);
    world.faults.forget();
    tokio::time::sleep(Duration::from_mins(10)).await;
    let count = world.faults.count(|_| true);
    assert!((10..40).contains(&count), "{count}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_list_without_a_resource_version_is_an_error_and_is_retried_with_backoff() -> Result<()> {
    let list = r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{},"items":[]}"#;
    let bookmark =
        r#"{"type":"BOOKMARK","object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
    for (streams, body) in [(false, list.to_owned()), (true, format!("{bookmark}\n"))] {
        let world = World::new();
        if !streams {
            world
                .faults
                .every(Effect::Status(422, "Invalid"), |it| it.parameter("sendInitialEvents").is_some());
        }
        world.faults.every(Effect::Answer(200, body), |_| true);
        let running = world.cache(here());
        let informer = running.cache.informer::<ConfigMap>();
        tokio::time::sleep(Duration::from_mins(10)).await;
        let count = world.faults.count(|_| true);
        assert!((10..50).contains(&count), "{count}");
        assert!(!informer.is_synced());
        world.faults.heal();
        within(Duration::from_secs(61), "the list", informer.synced()).await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_kind_is_listed_when_its_crd_is_installed_later() -> Result<()> {
    let world = World::new();
    let running = world.cache(CacheOptions::default());
    let informer = running.cache.informer::<Widget>();
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(!informer.is_synced());
    world.widgets().await?;
    world.api().create(&PostParams::default(), &widget("a", "red")).await?;
    within(Duration::from_secs(61), "the list", informer.synced()).await?;
    assert_eq!(names(&informer), ["a"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_kind_whose_crd_is_recreated_is_listed_again() -> Result<()> {
    let world = World::with(Options { controllers: Controllers::Core, ..options() });
    world.widgets().await?;
    let widgets: Api<Widget> = world.api();
    widgets.create(&PostParams::default(), &widget("a", "red")).await?;
    let running = world.cache(CacheOptions::default());
    let informer = running.cache.informer::<Widget>();
    soon("the list", informer.synced()).await?;
    // The watch does not receive the deletions.
    world.faults.stall(|asked| asked.path.contains("widgets"));
    let definitions: Api<CustomResourceDefinition> = Api::all(world.direct.clone());
    definitions.delete("widgets.example.org", &DeleteParams::default()).await?;
    soon("the deletion of the CRD", async {
        while definitions.get_opt("widgets.example.org").await.unwrap().is_some() {
            settle().await;
        }
    })
    .await;
    world.faults.cut(|asked| asked.path.contains("widgets"));
    tokio::time::sleep(Duration::from_secs(10)).await;
    world.widgets().await?;
    widgets.create(&PostParams::default(), &widget("b", "blue")).await?;
    eventually_within(Duration::from_mins(2), "the new object", || names(&informer) == ["b"]).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_trace() -> Result<()> {
    async fn trace() -> Result<Vec<(String, Duration)>> {
        let (world, started) = (World::new(), Instant::now());
        world.config_maps(&["a"]).await?;
        let running = world.cache(here());
        running.cache.informer::<ConfigMap>();
        running.cache.informer::<Widget>();
        for _ in 0..5 {
            tokio::time::sleep(A_WHILE).await;
            world.faults.down();
            tokio::time::sleep(A_WHILE).await;
            world.faults.heal();
        }
        tokio::time::sleep(Duration::from_hours(1)).await;
        Ok(world.faults.requests().iter().map(|asked| (asked.line(), asked.at - started)).collect())
    }
    let (first, second) = (trace().await?, trace().await?);
    assert!(first.len() > 50, "{first:?}");
    assert_eq!(first, second);
    Ok(())
}
