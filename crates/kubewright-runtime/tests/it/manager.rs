//! The lifecycle of a manager: start order, errors, graceful shutdown.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams, PostParams};
use kubewright_runtime::controller::ControllerError;
use kubewright_runtime::{
    CacheOptions, Key, Kind, KindOptions, LeaderElectionOptions, ListOptions, Manager, ManagerError,
    ManagerOptions, Outcome, Patch, ReconcileError as Error, RegisterError,
};
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::operator::{Acts, Crowd, KeyActs, Notes, Running, manager, metric, options};
use crate::world::{
    Faults, RecordedRequest, Widget, World, config_map, eventually, eventually_within, settle,
};

/// The options of one replica of several.
pub(crate) fn replica(identity: &str) -> ManagerOptions {
    let election = LeaderElectionOptions {
        namespace: Some("default".to_owned()),
        identity: Some(identity.to_owned()),
        ..LeaderElectionOptions::new("test.example.org")
    };
    ManagerOptions { leader_election: Some(election), ..options() }.namespaces(["default"])
}

/// The holder of the Lease.
pub(crate) async fn holder(world: &World) -> Option<String> {
    let lease = world.api::<Lease>().get_opt("test.example.org").await.ok().flatten();
    lease?.spec?.holder_identity.filter(|holder| !holder.is_empty())
}

pub(crate) fn is_lease(asked: &RecordedRequest) -> bool {
    asked.path.contains("/leases")
}

#[tokio::test(start_paused = true)]
async fn components_of_every_replica_start_before_the_election_and_those_of_the_leader_after_it() -> Result<()>
{
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let manager = Manager::new(world.kube.clone(), replica("me"))?;
    let notes = Notes::new();
    // At each start: the number of requests for the Lease so far, and how many of them were writes.
    let seen = |notes: &Notes, faults: &Faults, what: &str| {
        let (asked, written) = (faults.count(is_lease), faults.count(|it| is_lease(it) && it.is_write()));
        notes.push(format!("{what}: {asked} {written}"));
    };
    let (noted, faults) = (notes.clone(), world.faults.clone());
    manager.task("leads", move |_| async move {
        seen(&noted, &faults, "leads");
        Ok(())
    })?;
    let (noted, faults) = (notes.clone(), world.faults.clone());
    manager.task_without_leader("everywhere", move |cx| async move {
        seen(&noted, &faults, "everywhere");
        // The cache is already running, so it serves this list once it has synced.
        let maps = cx.client().list::<ConfigMap>(&ListOptions::namespace("default")).await?;
        assert_eq!((maps.len(), faults.count(|it| it.path.ends_with("/configmaps"))), (1, 1));
        Ok(())
    })?;
    let (noted, faults) = (notes.clone(), world.faults.clone());
    let acts = Acts::<ConfigMap>::new(move |_, _| {
        seen(&noted, &faults, "reconciles");
        Box::pin(async { Ok(Outcome::done()) })
    });
    manager.controller(acts).register()?;
    let running = Running::start(&manager);
    manager.elected().await;
    settle().await;
    assert_eq!(notes.all(), ["everywhere: 0 0", "leads: 2 1", "reconciles: 2 1"]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn controllers_stop_first_then_cache_and_events_and_the_lease_is_released_last() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let manager = Manager::new(world.kube.clone(), replica("me"))?;
    let (notes, go) = (Notes::new(), Arc::new(Notify::new()));
    let (noted, gate) = (notes.clone(), go.clone());
    let acts = Acts::<ConfigMap>::new(move |map, cx| {
        let (notes, gate) = (noted.clone(), gate.clone());
        Box::pin(async move {
            notes.push("begins");
            cx.cancelled().await;
            notes.push("is asked to end");
            gate.notified().await;
            // This replica still leads, so the reconcile may finish its writes.
            let map = map.expect("the object exists");
            cx.client().patch(&*map, &Patch::merge(json!({"data": {"done": "yes"}}))).await?;
            cx.events().normal(&*map, "Done").action("Finish").note("done");
            notes.push("ends");
            Ok(Outcome::done())
        })
    });
    manager.controller(acts).register()?;
    let noted = notes.clone();
    manager.task_without_leader("everywhere", move |cx| async move {
        cx.stopped().await;
        assert!(cx.is_stopped());
        noted.push("the task ends");
        Ok(())
    })?;
    let running = Running::start(&manager);
    eventually("the reconcile", || notes.len() == 1).await;
    assert_eq!(holder(&world).await.as_deref(), Some("me"));

    world.faults.forget();
    running.stop.cancel();
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(notes.all(), ["begins", "the task ends", "is asked to end"]);
    assert_eq!(world.faults.watches(|_| true), 1, "the cache runs as long as a reconcile does");
    assert_eq!(holder(&world).await.as_deref(), Some("me"), "the replica leads as long as a reconcile runs");
    assert!(world.faults.count(is_lease) > 5, "the Lease is renewed");

    go.notify_one();
    running.end().await?;
    assert_eq!(notes.all().last().map(String::as_str), Some("ends"));
    assert_eq!(world.faults.watches(|_| true), 0);
    assert_eq!(holder(&world).await, None);
    let writes: Vec<String> =
        world.faults.requests().iter().filter(|asked| asked.is_write()).map(RecordedRequest::line).collect();
    assert_eq!(
        writes[writes.len() - 3..],
        [
            "PATCH /api/v1/namespaces/default/configmaps/a",
            "POST /apis/events.k8s.io/v1/namespaces/default/events",
            "PUT /apis/coordination.k8s.io/v1/namespaces/default/leases/test.example.org",
        ]
    );
    let events: Api<Event> = world.api();
    assert_eq!(events.list(&ListParams::default().fields("reason=Done")).await?.items.len(), 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_for_running_reconciles_and_drops_queued_keys() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a", "b", "c"]).await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    let noted = notes.clone();
    let slow = Acts::<ConfigMap>::new(move |_, cx| {
        let notes = noted.clone();
        Box::pin(async move {
            notes.push(format!("{} begins", cx.key().name()));
            tokio::time::sleep(Duration::from_secs(20)).await;
            notes.push(format!("{} ends", cx.key().name()));
            Ok(Outcome::requeue_after(Duration::from_millis(1)))
        })
    });
    manager.controller(slow).register()?;
    let running = Running::start(&manager);
    eventually("a reconcile", || notes.len() == 1).await;
    let asked_to_end = Instant::now();
    running.end().await?;
    assert_eq!(notes.all(), ["a begins", "a ends"]);
    assert!(asked_to_end.elapsed() <= Duration::from_secs(20));
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(notes.len(), 2);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn tasks_that_exceed_the_shutdown_timeout_are_dropped_and_named() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let options = ManagerOptions { health_probe_bind_address: "127.0.0.1:0".parse()?, ..replica("me") };
    let (manager, crowd) = (Manager::new(world.kube.clone(), options)?, Crowd::default());
    let at_once = crowd.clone();
    let deaf = Acts::<ConfigMap>::new(move |_, _| {
        let present = at_once.enter();
        Box::pin(async move {
            let _present = present;
            std::future::pending().await
        })
    });
    manager.controller(deaf).register()?;
    manager.task_without_leader("deaf", |_| std::future::pending())?;
    manager.task("polite", |cx| async move {
        cx.stopped().await;
        Ok(())
    })?;
    let running = Running::start(&manager);
    eventually("the reconcile", || crowd.now() == 1).await;
    running.stop.cancel();
    let asked_to_end = Instant::now();
    let error = running.failed().await?;
    let took = asked_to_end.elapsed();
    assert!((Duration::from_secs(30)..Duration::from_secs(32)).contains(&took), "{took:?}");
    assert_eq!(
        error.to_string(),
        "graceful shutdown timed out after 30s; still running: deaf, controller configmap"
    );
    assert_eq!(crowd.now(), 0, "running tasks are dropped");
    assert_eq!(holder(&world).await, None, "then the Lease is released");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn without_a_timeout_shutdown_waits_forever() -> Result<()> {
    let world = World::new();
    let options = ManagerOptions { graceful_shutdown_timeout: None, ..options() };
    let manager = Manager::new(world.kube.clone(), options)?;
    manager.task("slow", |cx| async move {
        cx.stopped().await;
        tokio::time::sleep(Duration::from_hours(10)).await;
        Ok(())
    })?;
    let running = Running::start(&manager);
    settle().await;
    running.stop.cancel();
    let asked_to_end = Instant::now();
    running.task.await??;
    assert_eq!(asked_to_end.elapsed().as_secs(), 36_000);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn tasks_run_on_the_leader_or_everywhere() -> Result<()> {
    let world = World::new();
    let notes = Notes::new();
    let mut replicas = Vec::new();
    for name in ["one", "two"] {
        let manager = Manager::new(world.kube.clone(), replica(name))?;
        let noted = notes.clone();
        manager.task("leads", move |cx| async move {
            noted.push(format!("{name} leads"));
            cx.stopped().await;
            Ok(())
        })?;
        let noted = notes.clone();
        manager.task_without_leader("everywhere", move |cx| async move {
            noted.push(format!("{name} runs"));
            cx.stopped().await;
            Ok(())
        })?;
        replicas.push(Running::start(&manager));
        settle().await;
    }
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(notes.take(), ["one runs", "one leads", "two runs"]);
    // A released Lease is acquired at the next attempt.
    let (second, first) = (replicas.pop().unwrap(), replicas.pop().unwrap());
    first.end().await?;
    eventually_within(Duration::from_secs(5), "the next leader", || notes.len() == 1).await;
    assert_eq!(notes.take(), ["two leads"]);
    second.end().await
}

#[tokio::test(start_paused = true)]
async fn a_standby_replica_has_a_warm_cache() -> Result<()> {
    let (first, second) = two_worlds();
    first.config_maps(&["a"]).await?;
    let (leader, standby) = (
        Manager::new(first.kube.clone(), replica("one"))?,
        Manager::new(second.kube.clone(), replica("two"))?,
    );
    let (notes, everywhere) = (Notes::new(), Notes::new());
    for manager in [&leader, &standby] {
        manager.controller(Acts::<ConfigMap>::noting(&notes)).register()?;
        let everywhere = Acts::<ConfigMap>::noting(&everywhere);
        manager.controller(everywhere).named("everywhere").without_leader().register()?;
    }
    let leading = Running::start(&leader);
    settle().await;
    let waiting = Running::start(&standby);
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(notes.all(), ["a"]);
    assert_eq!(everywhere.all(), ["a", "a"]);

    second.faults.forget();
    leading.end().await?;
    eventually("the next leader", || notes.len() == 2).await;
    assert_eq!(second.faults.count(RecordedRequest::is_list), 0);
    waiting.end().await
}

/// Two processes, each with its own connection to one server.
pub(crate) fn two_worlds() -> (World, World) {
    let first = World::new();
    let second = World::on(first.server.clone());
    (first, second)
}

#[tokio::test(start_paused = true)]
async fn a_failing_task_stops_the_manager_and_is_named() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    for leads in [false, true] {
        let (manager, notes) = (manager(&world)?, Notes::new());
        let failing = |_| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Err(Error::msg("the disk is full"))
        };
        if leads {
            manager.task("backup", failing)?;
        } else {
            manager.task_without_leader("backup", failing)?;
        }
        let noted = notes.clone();
        let slow = Acts::<ConfigMap>::new(move |_, _| {
            let notes = noted.clone();
            Box::pin(async move {
                tokio::time::sleep(Duration::from_secs(10)).await;
                notes.push("ended");
                Ok(Outcome::done())
            })
        });
        manager.controller(slow).register()?;
        let error = Running::start(&manager).failed().await?;
        assert_eq!(error.to_string(), "task backup failed: the disk is full");
        assert!(matches!(error, ManagerError::Task { name, .. } if name == "backup"));
        assert_eq!(notes.all(), ["ended"], "the running reconcile finished");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_panicking_task_stops_the_manager_and_is_named() -> Result<()> {
    let world = World::new();
    for at_once in [false, true] {
        let manager = manager(&world)?;
        manager.task("backup", move |_| {
            assert!(!at_once, "the test wants this");
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                assert!(at_once, "the test wants this");
                Ok(())
            }
        })?;
        let error = Running::start(&manager).failed().await?;
        assert_eq!(error.to_string(), "backup panicked");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_task_that_completes_does_not_stop_the_manager() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    let noted = notes.clone();
    manager.task("once", move |cx| async move {
        let maps = cx.client().list::<ConfigMap>(&ListOptions::namespace("default")).await?;
        noted.push(maps.len());
        Ok(())
    })?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(notes.all(), ["1"]);
    assert!(!running.task.is_finished());
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_manager_runs_once_and_rejects_registrations_after_it_stopped() -> Result<()> {
    let world = World::new();
    let manager = manager(&world)?;
    let running = Running::start(&manager);
    settle().await;
    let again = manager.clone().run_until(async {}).await;
    assert!(matches!(again, Err(ManagerError::RanBefore)), "{again:?}");
    running.end().await?;
    let late = manager.controller(Acts::<ConfigMap>::noting(&Notes::new())).register();
    let late = late.unwrap_err().to_string();
    assert_eq!(late, r#"cannot register "controller configmap": manager has stopped"#);
    let late = manager.task("task", |_| async { Ok(()) }).map(|_| ());
    assert!(matches!(late, Err(RegisterError::Stopped(name)) if name == "task"));
    let again = manager.run_until(async {}).await;
    assert!(matches!(again, Err(ManagerError::RanBefore)), "{again:?}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn invalid_controllers_are_rejected_with_advice() -> Result<()> {
    let world = World::new();
    let (manager, notes) = (manager(&world)?, Notes::new());
    manager.controller(Acts::<ConfigMap>::noting(&notes)).register()?;
    let twice = manager.controller(Acts::<ConfigMap>::noting(&notes)).register().unwrap_err();
    assert_eq!(
        twice.to_string(),
        r#""configmap" is already registered: choose another name (for a controller, use named())"#
    );
    manager.controller(Acts::<ConfigMap>::noting(&notes)).named("other").register()?;
    let keys = || KeyActs::new(|_| Box::pin(async { Ok(Outcome::done()) }));
    let sourceless = manager.key_controller("keys", keys()).register().unwrap_err();
    assert_eq!(sourceless.to_string(), r#"controller "keys" has no source: add watches() or channel()"#);
    // A failed registration does not reserve the name.
    manager.key_controller("keys", keys()).watches::<Secret>(|_, _| Vec::new()).register()?;
    let nameless = manager.key_controller("", keys()).watches::<Secret>(|_, _| Vec::new()).register();
    assert_eq!(nameless.unwrap_err().to_string(), "controller has no name: set one with named()");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_fails_after_the_sync_timeout_with_advice() -> Result<()> {
    let world = World::new();
    for (timeout, seconds) in [(None, 120), (Some(Duration::from_secs(7)), 7)] {
        let manager = manager(&world)?;
        let controller = manager.controller(Acts::<Widget>::noting(&Notes::new()));
        match timeout {
            Some(timeout) => controller.sync_timeout(timeout).register()?,
            None => controller.register()?,
        }
        let started = Instant::now();
        let error = Running::start(&manager).failed().await?;
        assert_eq!(started.elapsed().as_secs(), seconds);
        assert_eq!(
            error.to_string(),
            format!(
                "controller widget: example.org/v1, Kind=Widget was not listed within {seconds}s; check that its CRD \
                 is installed and that the operator may list and watch it"
            )
        );
        assert!(matches!(error, ManagerError::Controller(ControllerError::NotSynced { .. })));
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_crd_created_within_the_sync_timeout_is_reconciled() -> Result<()> {
    let world = World::new();
    let (manager, notes) = (manager(&world)?, Notes::new());
    manager.controller(Acts::<Widget>::noting(&notes)).register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_secs(10)).await;
    world.widgets().await?;
    world.api().create(&PostParams::default(), &crate::world::widget("a", "red")).await?;
    eventually("the reconcile", || notes.len() == 1).await;
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn dropping_the_run_future_stops_everything() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let (manager, crowd) = (Manager::new(world.kube.clone(), replica("me"))?, Crowd::default());
    let at_once = crowd.clone();
    let slow = Acts::<ConfigMap>::new(move |_, _| {
        let present = at_once.enter();
        Box::pin(async move {
            let _present = present;
            std::future::pending().await
        })
    });
    manager.controller(slow).register()?;
    let at_once = crowd.clone();
    manager.task("task", move |_| async move {
        let _present = at_once.enter();
        std::future::pending().await
    })?;
    let running = Running::start(&manager);
    eventually("both", || crowd.now() == 2).await;
    running.task.abort();
    settle().await;
    assert_eq!((crowd.now(), world.faults.watches(|_| true)), (0, 0));
    world.faults.forget();
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(world.faults.requests().len(), 0, "the Lease is not renewed");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn only_the_configured_namespaces_are_watched() -> Result<()> {
    let world = World::new();
    for namespace in ["one", "two", "three"] {
        world.namespace(namespace).await?;
    }
    let create = async |namespace: &str| {
        let mut map = config_map("a");
        map.metadata.namespace = Some(namespace.to_owned());
        let api: Api<ConfigMap> = Api::namespaced(world.direct.clone(), namespace);
        api.create(&PostParams::default(), &map).await
    };
    create("one").await?;
    let cache = CacheOptions::default().kind::<Secret>(KindOptions::new().namespaces(["three"]));
    let options = ManagerOptions { cache, ..options() }.namespaces(["one", "two"]);
    let (manager, notes) = (Manager::new(world.kube.clone(), options)?, Notes::new());
    let noted = notes.clone();
    let acts = Acts::<ConfigMap>::new(move |_, cx| {
        if cx.key().name() == "a" {
            noted.push(cx.key());
        }
        Box::pin(async { Ok(Outcome::done()) })
    });
    manager.controller(acts).watches::<Secret>(|_, _| Vec::new()).register()?;
    let running = Running::start(&manager);
    settle().await;
    for namespace in ["two", "three", "default"] {
        create(namespace).await?;
    }
    settle().await;
    assert_eq!(notes.all(), ["one/a", "two/a"]);
    let mut watched: Vec<String> = world
        .faults
        .requests()
        .iter()
        .filter(|asked| asked.is_watch())
        .map(|asked| asked.path.clone())
        .collect();
    watched.sort();
    assert_eq!(
        watched,
        [
            "/api/v1/namespaces/one/configmaps",
            "/api/v1/namespaces/three/secrets",
            "/api/v1/namespaces/two/configmaps",
        ]
    );
    // Kinds and namespaces that are not watched are read from the server, not reported as missing.
    let elsewhere = manager.client().get::<ConfigMap>(&Key::namespaced("three", "a")).await?;
    assert_eq!(elsewhere.metadata.name.as_deref(), Some("a"));
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn without_leader_election_a_manager_leads_from_the_start() -> Result<()> {
    let world = World::new();
    let manager = manager(&world)?;
    let running = Running::start(&manager);
    manager.elected().await;
    assert_eq!(world.faults.count(is_lease), 0);
    assert_eq!(metric(&manager, r#"leader_election_master_status{name="test.example.org"}"#), None);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn invalid_leader_election_options_are_rejected_immediately() -> Result<()> {
    let world = World::new();
    let mut options = replica("me");
    let election = options.leader_election.as_mut().expect("a replica has leader election");
    election.renew_deadline = election.lease_duration;
    let refused = Manager::new(world.kube.clone(), options).err();
    assert!(matches!(refused, Some(ManagerError::Election(_))), "{refused:?}");
    Ok(())
}

#[tokio::test]
async fn a_describing_manager_returns_its_manifest_and_sends_no_requests() -> Result<()> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let manager = Manager::describing(replica("me"), move |manifest| drop(sender.send(manifest)))?;
    let acts = Acts::<ConfigMap>::new(|_, _| Box::pin(async { Ok(Outcome::done()) }));
    manager.controller(acts).owns::<Secret>().watches::<Lease>(|_, _| Vec::new()).register()?;
    let key = Key::namespaced("default", "a");
    let error = manager.client().uncached().get::<Secret>(&key).await.unwrap_err();
    assert!(error.is_service_unavailable(), "{error}");

    let before = manager.manifest();
    manager.run().await?;
    let manifest = receiver.try_recv()?;
    assert_eq!(manifest, before);
    assert_eq!(manifest.namespaces, ["default"]);
    let [controller] = &manifest.controllers[..] else { panic!("{manifest:?}") };
    let names = |kinds: &[Kind]| kinds.iter().map(|kind| kind.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(controller.kind.as_ref().map(Kind::name), Some("ConfigMap"));
    assert_eq!(
        (names(&controller.owns), names(&controller.watches)),
        (vec!["Secret".into()], vec!["Lease".into()])
    );
    Ok(())
}
