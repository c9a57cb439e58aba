//! The kube client that a client hands out: its writes are fenced and waited for, like those of the client itself.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use futures_util::future::BoxFuture;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::policy::v1::Eviction;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, EvictParams, ListParams, Patch, PatchParams, PostParams};
use kubewright_runtime::{Client, ListOptions, Manager, ManagerError, Outcome, Result as Reconciled, client};
use serde_json::json;
use tokio::sync::{Notify, mpsc};
use tower::Layer as _;

use crate::manager::{is_lease, replica};
use crate::operator::{Acts, Notes, Running, manager};
use crate::world::{Effect, RecordedRequest, Widget, World, config_map, pod, settle, widget};

/// The renew deadline: how long a leader may write after its last renewal.
const RENEW: Duration = Duration::from_secs(10);

type Sent = BoxFuture<'static, Result<(), kube::Error>>;
type Write = fn(kube::Client) -> Sent;

/// Every kind of write that kube's `Api` and `Client` can send.
const WRITES: &[(&str, Write)] = &[
    ("POST", |kube| {
        let api: Api<ConfigMap> = Api::default_namespaced(kube);
        Box::pin(async move { api.create(&PostParams::default(), &config_map("new")).await.map(drop) })
    }),
    ("PUT", |kube| {
        let api: Api<ConfigMap> = Api::default_namespaced(kube);
        let mut changed = config_map("a");
        changed.data = Some([("key".to_owned(), "changed".to_owned())].into());
        Box::pin(async move { api.replace("a", &PostParams::default(), &changed).await.map(drop) })
    }),
    ("PATCH merge", |kube| {
        let patch = json!({"data": {"key": "changed"}});
        let api: Api<ConfigMap> = Api::default_namespaced(kube);
        Box::pin(async move { api.patch("a", &PatchParams::default(), &Patch::Merge(patch)).await.map(drop) })
    }),
    ("PATCH apply", |kube| {
        let api: Api<ConfigMap> = Api::default_namespaced(kube);
        let wanted = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "changed"}});
        let manager = PatchParams::apply("test").force();
        Box::pin(async move { api.patch("a", &manager, &Patch::Apply(wanted)).await.map(drop) })
    }),
    ("DELETE", |kube| {
        let api: Api<ConfigMap> = Api::default_namespaced(kube);
        Box::pin(async move { api.delete("b", &DeleteParams::default()).await.map(drop) })
    }),
    ("DELETE collection", |kube| {
        let api: Api<ConfigMap> = Api::default_namespaced(kube);
        let some = ListParams::default().labels("delete=true");
        Box::pin(async move { api.delete_collection(&DeleteParams::default(), &some).await.map(drop) })
    }),
    ("PUT status", |kube| {
        let api: Api<Widget> = Api::default_namespaced(kube);
        let status = widget("a", "red");
        Box::pin(async move { api.replace_status("a", &PostParams::default(), &status).await.map(drop) })
    }),
    ("PATCH status", |kube| {
        let api: Api<Widget> = Api::default_namespaced(kube);
        let patch = Patch::Merge(json!({"status": {"phase": "Ready"}}));
        Box::pin(async move { api.patch_status("a", &PatchParams::default(), &patch).await.map(drop) })
    }),
    ("POST eviction", |kube| {
        let api: Api<Pod> = Api::default_namespaced(kube);
        Box::pin(async move { api.evict("a", &EvictParams::default()).await.map(drop) })
    }),
    ("a request without an Api", |kube| {
        let eviction = serde_json::to_vec(&Eviction::default()).expect("an eviction is JSON");
        let request = http::Request::post("/api/v1/namespaces/default/pods/b/eviction").body(eviction);
        let request = request.expect("the request is valid");
        Box::pin(async move { kube.request_text(request).await.map(drop) })
    }),
    ("an upgraded connection", |kube| {
        let request = http::Request::get("/api/v1/namespaces/default/pods/a/exec?command=date")
            .header("connection", "upgrade")
            .header("upgrade", "websocket")
            .body(kube::client::Body::empty())
            .expect("the request is valid");
        Box::pin(async move { kube.send(request).await.map(drop) })
    }),
];

fn is_fenced(error: &kube::Error) -> bool {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<client::Error>());
    matches!(source, Some(client::Error::Fenced))
}

/// Whether a request passes the fence: everything but plain reads.
fn is_fenced_request(request: &RecordedRequest) -> bool {
    !is_lease(request) && (request.is_write() || request.path.ends_with("/exec"))
}

async fn world() -> Result<World> {
    let world = World::new();
    world.widgets().await?;
    world.config_maps(&["a", "b"]).await?;
    world.api().create(&PostParams::default(), &widget("a", "red")).await?;
    for name in ["a", "b"] {
        world.api().create(&PostParams::default(), &pod(name)).await?;
    }
    Ok(world)
}

#[tokio::test(start_paused = true)]
async fn no_write_of_any_kind_is_sent_after_the_deadline() -> Result<()> {
    for (name, write) in WRITES {
        let world = world().await?;
        let manager = Manager::new(world.kube.clone(), replica("one"))?;
        // The client leaves the reconcile, which is the worst case.
        let (sender, mut clients) = mpsc::unbounded_channel();
        let acts = Acts::<Widget>::new(move |_, cx| {
            let _ = sender.send(cx.client().clone());
            Box::pin(async { Ok(Outcome::done()) })
        });
        manager.controller(acts).register()?;
        let leader = Running::start(&manager);
        let client = clients.recv().await.expect("the leader reconciles");
        let (kube, stored) = (client.kube(), manager.client().kube());

        // While it leads, the write reaches the server.
        world.faults.forget();
        let _ = write(kube.clone()).await;
        ensure!(world.faults.count(is_fenced_request) == 1, "{name}: not sent by the leader");

        let renewed = last_renewal(&world);
        world.faults.every(Effect::Hang, is_lease);
        let error = leader.failed().await?;
        ensure!(matches!(error, ManagerError::LeadershipLost), "{error}");
        ensure!(renewed.elapsed() >= RENEW);

        world.faults.forget();
        for kube in [kube, stored, client.kube()] {
            let error = write(kube.clone()).await.expect_err("the write is fenced");
            ensure!(is_fenced(&error), "{name}: {error:?}");
            // Reads are not affected.
            Api::<ConfigMap>::default_namespaced(kube).get("a").await?;
        }
        ensure!(world.faults.count(is_fenced_request) == 0, "{name}: sent after the deadline");
    }
    Ok(())
}

/// A client of another library: only the layer connects it with the manager.
fn layered(world: &World, client: &Client) -> kube::Client {
    let kube = world.kube.clone();
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let kube = kube.clone();
        async move { kube.send(request).await }
    });
    kube::Client::new(client.fence_layer().layer(service), "default")
}

#[tokio::test(start_paused = true)]
async fn a_client_with_the_layer_sends_no_write_after_the_lease_is_stolen() -> Result<()> {
    for (name, write) in WRITES {
        let world = world().await?;
        let manager = Manager::new(world.kube.clone(), replica("one"))?;
        let (sender, mut layers) = mpsc::unbounded_channel();
        manager.task("writes", async move |cx| {
            let _ = sender.send(cx.client().clone());
            cx.stopped().await;
            Ok(())
        })?;
        let (of_task, of_manager) = {
            let before = layered(&world, manager.client());
            let error = write(before.clone()).await.expect_err("the election has not started");
            ensure!(is_fenced(&error), "{name}: {error:?}");
            let leader = Running::start(&manager);
            let of_task = layered(&world, &layers.recv().await.expect("the task runs on the leader"));

            world.faults.forget();
            let _ = write(of_task.clone()).await;
            ensure!(world.faults.count(is_fenced_request) == 1, "{name}: not sent by the leader");

            let thief = json!({"spec": {"holderIdentity": "thief"}});
            let lease: Api<Lease> = world.api();
            lease.patch("test.example.org", &PatchParams::default(), &Patch::Merge(thief)).await?;
            let error = leader.failed().await?;
            ensure!(matches!(error, ManagerError::LeadershipLost), "{error}");
            (of_task, before)
        };

        world.faults.forget();
        for kube in [of_task, of_manager] {
            let error = write(kube.clone()).await.expect_err("the write is fenced");
            ensure!(is_fenced(&error), "{name}: {error:?}");
            // Reads are not affected.
            Api::<ConfigMap>::default_namespaced(kube).get("a").await?;
        }
        ensure!(world.faults.count(is_fenced_request) == 0, "{name}: sent after the Lease was stolen");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_write_through_the_layer_is_cancelled_at_the_deadline() -> Result<()> {
    let world = world().await?;
    let manager = Manager::new(world.kube.clone(), replica("one"))?;
    let leader = Running::start(&manager);
    manager.elected().await;
    settle().await;
    // The request would arrive minutes after the deadline.
    world.faults.every(Effect::Delay(Duration::from_mins(3)), |request| !request.is_watch());
    let write = tokio::spawn(WRITES[0].1(layered(&world, manager.client())));
    leader.failed().await?;
    let error = write.await?.expect_err("the write is cancelled");
    assert!(is_fenced(&error), "{error:?}");
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert!(world.api::<ConfigMap>().get_opt("new").await?.is_none(), "the request arrived later");
    Ok(())
}

fn last_renewal(world: &World) -> tokio::time::Instant {
    let renewals = world.faults.requests().into_iter().filter(|it| is_lease(it) && it.is_write());
    renewals.map(|it| it.at).next_back().unwrap_or_else(tokio::time::Instant::now)
}

#[tokio::test(start_paused = true)]
async fn a_write_in_flight_is_cancelled_at_the_deadline() -> Result<()> {
    let world = world().await?;
    let manager = Manager::new(world.kube.clone(), replica("one"))?;
    manager.controller(Acts::<Widget>::noting(&Notes::new())).register()?;
    let leader = Running::start(&manager);
    manager.elected().await;
    settle().await;
    // The request would arrive minutes after the deadline.
    world.faults.every(Effect::Delay(Duration::from_mins(3)), |request| !request.is_watch());
    let write = tokio::spawn(WRITES[0].1(manager.client().kube()));
    leader.failed().await?;
    let error = write.await?.expect_err("the write is cancelled");
    assert!(is_fenced(&error), "{error:?}");
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert!(world.api::<ConfigMap>().get_opt("new").await?.is_none(), "the request arrived later");
    Ok(())
}

/// A controller of Widgets whose first run sends a write when the test requests it. Every run notes what it sees.
async fn reconciles(write: Write) -> Result<(World, Notes, Running, Arc<Notify>)> {
    let world = world().await?;
    let (manager, notes, go) = (manager(&world)?, Notes::new(), Arc::new(Notify::new()));
    let (noted, gate) = (notes.clone(), go.clone());
    let acts = Acts::<Widget>::new(move |widget, cx| {
        let (notes, gate, client) = (noted.clone(), gate.clone(), cx.client().clone());
        Box::pin(async move {
            let first = notes.len() == 0;
            notes.push(seen(&client, widget.as_deref()).await?);
            if first {
                gate.notified().await;
                write(client.kube()).await?;
                return Ok(Outcome::requeue_after(Duration::from_millis(1)));
            }
            Ok(Outcome::done())
        })
    });
    manager.controller(acts).owns::<ConfigMap>().reads::<Pod>().register()?;
    let running = Running::start(&manager);
    settle().await;
    assert_eq!(notes.len(), 1, "{:?}", notes.all());
    Ok((world, notes, running, go))
}

/// The state that the writes of [`WRITES`] change, as cached.
async fn seen(client: &Client, widget: Option<&Widget>) -> Reconciled<String> {
    let maps = client.list::<ConfigMap>(&ListOptions::all()).await?;
    let versions =
        maps.iter().map(|map| format!("{}@{}", map.name_any(), map.resource_version().unwrap_or_default()));
    let pods = client.list::<Pod>(&ListOptions::all()).await?;
    let mut all: Vec<String> = versions.collect();
    all.extend(pods.iter().map(|pod| format!("pod/{}", pod.name_any())));
    all.extend(widget.map(|widget| format!("widget@{}", widget.resource_version().unwrap_or_default())));
    Ok(all.join(" "))
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_until_the_cache_has_seen_a_write_through_kube() -> Result<()> {
    let tracked = ["POST", "PUT", "PATCH merge", "PATCH apply", "DELETE", "PATCH status"];
    for (name, write) in WRITES.iter().filter(|(name, _)| tracked.contains(name)) {
        let (world, notes, running, go) = reconciles(*write).await?;
        ensure!(world.faults.stall(RecordedRequest::is_watch) > 0);
        go.notify_one();
        tokio::time::sleep(Duration::from_secs(5)).await;
        ensure!(notes.len() == 1, "{name}: ran before the cache had seen the write: {:?}", notes.all());
        world.faults.heal();
        settle().await;
        let notes = notes.all();
        ensure!(notes.len() > 1, "{name}: does not run after the cache has seen the write");
        ensure!(notes[1] != notes[0], "{name}: saw the state before the write: {notes:?}");
        running.end().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_for_a_deleted_collection() -> Result<()> {
    let (_, delete) =
        WRITES.iter().find(|(name, _)| *name == "DELETE collection").expect("it is in the table");
    let (world, notes, running, go) = reconciles(*delete).await?;
    let mut labelled = config_map("labelled");
    labelled.metadata.labels = Some([("delete".to_owned(), "true".to_owned())].into());
    world.api().create(&PostParams::default(), &labelled).await?;
    settle().await;
    world.faults.stall(RecordedRequest::is_watch);
    go.notify_one();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(notes.len(), 1);
    world.faults.heal();
    settle().await;
    let notes = notes.all();
    assert!(notes.len() > 1 && !notes[1].contains("labelled"), "{notes:?}");
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_write_through_kube_with_a_lost_response_is_waited_for() -> Result<()> {
    let patch: Write = |kube| {
        let write = WRITES[2].1(kube);
        // The error is expected; the reconcile continues.
        Box::pin(async move {
            let error = write.await.expect_err("the response is lost");
            assert!(!is_fenced(&error));
            Ok(())
        })
    };
    let (world, notes, running, go) = reconciles(patch).await?;
    world.faults.stall(RecordedRequest::is_watch);
    world
        .faults
        .next(1, Effect::Lose, |request| request.is_write() && request.path.ends_with("/configmaps/a"));
    go.notify_one();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(notes.len(), 1, "the server has processed the write, and the cache has not seen it");
    world.faults.heal();
    settle().await;
    let notes = notes.all();
    assert!(notes.len() > 1 && notes[1] != notes[0], "{notes:?}");
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_stays_a_dry_run_and_is_not_waited_for() -> Result<()> {
    let create: Write = |kube| {
        let api: Api<ConfigMap> = Api::default_namespaced(kube);
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        Box::pin(async move { api.create(&dry, &config_map("new")).await.map(drop) })
    };
    let (world, notes, running, go) = reconciles(create).await?;
    world.faults.stall(RecordedRequest::is_watch);
    go.notify_one();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(notes.len(), 2, "the cache will never see a dry run");
    running.end().await?;

    let dry = world.client().dry_run();
    WRITES[0].1(dry.kube()).await?;
    assert!(world.api::<ConfigMap>().get_opt("new").await?.is_none());
    Ok(())
}
