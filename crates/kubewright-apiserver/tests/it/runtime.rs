//! kube's controller runtime on the in-process server: controller, finalizer, events and await_condition.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use k8s_openapi::api::{core::v1 as core, events::v1 as events};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::runtime::finalizer::{Event as Finalizer, finalizer};
use kube::runtime::wait::{await_condition, conditions, delete::delete_and_finalize};
use kube::runtime::watcher;
use kube::{Client, Resource as _, ResourceExt as _};
use serde_json::json;

use crate::world::{alone, config_map, pod, soon};

/// The reconciler's context.
struct Context {
    client: Client,
    runs: AtomicUsize,
}

/// Keeps a Secret with the same value for every ConfigMap.
async fn reconcile(map: Arc<ConfigMap>, context: Arc<Context>) -> kube::Result<Action> {
    context.runs.fetch_add(1, Ordering::Relaxed);
    let secrets: Api<Secret> = Api::default_namespaced(context.client.clone());
    let name = map.name_any();
    let mut entry = secrets.entry(&name).await?.or_insert(Secret::default);
    let secret = entry.get_mut();
    secret.metadata.owner_references = Some(map.controller_owner_ref(&()).into_iter().collect());
    let value = map.data.as_ref().and_then(|data| data.get("key")).cloned().unwrap_or_default();
    secret.data = Some([("key".to_owned(), k8s_openapi::ByteString(value.into_bytes()))].into());
    if let Err(error) = entry.commit(&PostParams::default()).await {
        return Err(kube::Error::Service(error.into()));
    }
    Ok(Action::requeue(Duration::from_hours(1)))
}

fn has_value(value: &'static str) -> impl Fn(Option<&Secret>) -> bool {
    move |secret| {
        let data = secret.and_then(|secret| secret.data.as_ref());
        data.and_then(|data| data.get("key")).is_some_and(|found| found.0 == value.as_bytes())
    }
}

#[tokio::test(start_paused = true)]
async fn a_controller_maintains_a_secret_per_config_map() -> Result<()> {
    let client = alone();
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let context = Arc::new(Context { client, runs: AtomicUsize::new(0) });
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = Controller::new(maps.clone(), watcher::Config::default())
        .owns(secrets.clone(), watcher::Config::default())
        .graceful_shutdown_on(async { stopped.await.unwrap_or_default() })
        .run(reconcile, |_, _: &kube::Error, _| Action::requeue(Duration::from_secs(1)), context.clone())
        .for_each(|_| std::future::ready(()));
    let running = tokio::spawn(running);

    maps.create(&PostParams::default(), &config_map("a")).await?;
    let secret = soon("the secret", await_condition(secrets.clone(), "a", has_value("value"))).await?;
    let secret = secret.expect("the condition requires a secret");

    let patch = Patch::Merge(json!({"data": {"key": "changed"}}));
    maps.patch("a", &PatchParams::default(), &patch).await?;
    soon("the change", await_condition(secrets.clone(), "a", has_value("changed"))).await?;

    // A deleted dependent is recreated.
    secrets.delete("a", &DeleteParams::default()).await?;
    soon("the second secret", await_condition(secrets.clone(), "a", has_value("changed"))).await?;
    assert_ne!(secrets.get("a").await?.uid(), secret.uid());

    // The requeue runs at its time.
    let runs = context.runs.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(3601)).await;
    assert!(context.runs.load(Ordering::Relaxed) > runs);

    // The dependent is deleted with its owner.
    maps.delete("a", &DeleteParams::default()).await?;
    assert!(secrets.get_opt("a").await?.is_none());
    assert!(stop.send(()).is_ok(), "the controller still exists");
    soon("the end of the controller", running).await?;
    Ok(())
}

#[tokio::test]
async fn a_finalizer_runs_before_the_object_is_removed() -> Result<()> {
    const NAME: &str = "example.org/cleanup";
    let maps: Api<ConfigMap> = Api::default_namespaced(alone());
    maps.create(&PostParams::default(), &config_map("a")).await?;
    let run = async || -> Result<&'static str> {
        let seen = std::cell::Cell::new("nothing");
        let object = Arc::new(maps.get("a").await?);
        finalizer(&maps, NAME, object, |event| {
            seen.set(match event {
                Finalizer::Apply(_) => "apply",
                Finalizer::Cleanup(_) => "cleanup",
            });
            std::future::ready(Ok::<_, Infallible>(Action::await_change()))
        })
        .await?;
        Ok(seen.get())
    };
    assert_eq!(run().await?, "nothing", "the first run adds the finalizer");
    assert_eq!(maps.get("a").await?.finalizers(), [NAME]);
    assert_eq!(run().await?, "apply");
    maps.delete("a", &DeleteParams::default()).await?;
    assert_eq!(run().await?, "cleanup");
    assert!(maps.get_opt("a").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn a_finalizer_leaves_those_of_others_alone() -> Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(alone());
    let mut held = config_map("a");
    held.finalizers_mut().push("example.org/other".to_owned());
    maps.create(&PostParams::default(), &held).await?;
    let apply = |object: ConfigMap| {
        finalizer(&maps, "example.org/mine", Arc::new(object), |_| {
            std::future::ready(Ok::<_, Infallible>(Action::await_change()))
        })
    };
    let before = maps.get("a").await?;
    apply(before.clone()).await?;
    assert_eq!(maps.get("a").await?.finalizers(), ["example.org/other", "example.org/mine"]);
    // The patch has a test of the previous list, which fails.
    assert!(apply(before).await.is_err());
    maps.delete("a", &DeleteParams::default()).await?;
    apply(maps.get("a").await?).await?;
    assert_eq!(maps.get("a").await?.finalizers(), ["example.org/other"]);
    Ok(())
}

#[tokio::test]
async fn a_repeated_event_becomes_a_series() -> Result<()> {
    let client = alone();
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let map = maps.create(&PostParams::default(), &config_map("a")).await?;
    let reporter =
        Reporter { controller: "example.org/tester".to_owned(), instance: Some("tester-0".to_owned()) };
    let recorder = Recorder::new(client.clone(), reporter);
    let event = Event {
        type_: EventType::Warning,
        reason: "TooSmall".to_owned(),
        note: Some("it is too small".to_owned()),
        action: "Measuring".to_owned(),
        secondary: None,
    };
    for _ in 0..3 {
        recorder.publish(&event, &map.object_ref(&())).await?;
    }
    let new: Api<events::Event> = Api::default_namespaced(client.clone());
    let listed = new.list(&ListParams::default()).await?.items;
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].series.as_ref().map(|series| series.count), Some(3));
    assert_eq!(listed[0].note.as_deref(), Some("it is too small"));

    // The same event through the core group, as `kubectl describe` finds it.
    let old: Api<core::Event> = Api::default_namespaced(client);
    let selector = format!("involvedObject.uid={},type=Warning", map.uid().unwrap_or_default());
    let found = old.list(&ListParams::default().fields(&selector)).await?.items;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].message.as_deref(), Some("it is too small"));
    assert_eq!(found[0].reporting_component.as_deref(), Some("example.org/tester"));
    assert_eq!(found[0].uid(), listed[0].uid());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_condition_is_awaited_until_it_holds() -> Result<()> {
    let client = alone();
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    pods.create(&PostParams::default(), &pod("a")).await?;
    let start = async {
        tokio::time::sleep(Duration::from_mins(15)).await;
        let patch = Patch::Merge(json!({"status": {"phase": "Running"}}));
        pods.patch_status("a", &PatchParams::default(), &patch).await
    };
    let waiting = await_condition(pods.clone(), "a", conditions::is_pod_running());
    let (found, patched) = tokio::join!(waiting, start);
    patched?;
    let phase = found?.and_then(|pod| pod.status).and_then(|status| status.phase);
    assert_eq!(phase.as_deref(), Some("Running"));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_deletion_is_awaited_until_the_last_finalizer_is_removed() -> Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(alone());
    let mut held = config_map("a");
    held.finalizers_mut().push("example.org/hold".to_owned());
    maps.create(&PostParams::default(), &held).await?;
    let release = async {
        tokio::time::sleep(Duration::from_mins(1)).await;
        let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        maps.patch("a", &PatchParams::default(), &patch).await
    };
    let options = DeleteParams::default();
    let (deleted, released) = tokio::join!(delete_and_finalize(maps.clone(), "a", &options), release);
    deleted?;
    released?;
    assert!(maps.get_opt("a").await?.is_none());
    Ok(())
}
