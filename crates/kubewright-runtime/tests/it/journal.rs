//! The journal as a listener receives it. These tests run on the real clock, because the listener is a socket.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use kubewright_runtime::controller::Trigger;
use kubewright_runtime::internal::journal::{Cause, Ended, Ending, Record, Request, Started};
use kubewright_runtime::{
    Context, Key, Manager, ManagerOptions, Outcome, Patch, ReconcileError as Error, terminal,
};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};

use crate::operator::{Acts, KeyActs, Log, Running, owner, patch, touch};
use crate::world::{Effect, RecordedRequest, Widget, World, config_map, eventually, soon, widget};

/// A listener of the journal.
pub(crate) struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

/// One connection of an operator.
pub(crate) struct Connection(Lines<BufReader<TcpStream>>);

impl Listener {
    pub(crate) async fn bind() -> Result<Self> {
        let socket = TcpListener::bind("127.0.0.1:0").await?;
        Ok(Self { address: socket.local_addr()?, socket })
    }

    pub(crate) async fn accept(&self) -> Result<Connection> {
        let (stream, _) = soon("a connection", self.socket.accept()).await?;
        Ok(Connection(BufReader::new(stream).lines()))
    }

    pub(crate) fn manager(&self, world: &World) -> Result<Manager> {
        journaling(world, self.address)
    }
}

impl Connection {
    async fn next(&mut self) -> Result<Record> {
        let line = soon("a line", self.0.next_line()).await?.context("the connection ended")?;
        serde_json::from_str(&line).with_context(|| line.clone())
    }

    /// The next record that `pick` accepts; other records are skipped.
    pub(crate) async fn find<T>(&mut self, mut pick: impl FnMut(Record) -> Option<T>) -> Result<T> {
        loop {
            if let Some(found) = pick(self.next().await?) {
                return Ok(found);
            }
        }
    }

    async fn started(&mut self) -> Result<Started> {
        self.find(|record| if let Record::Started(it) = record { Some(it) } else { None }).await
    }

    /// The end of a reconcile, and its requests.
    async fn ended(&mut self, id: &str) -> Result<(Ended, Vec<Request>)> {
        let mut requests = Vec::new();
        let ended = self.find(|record| match record {
            Record::Request(request) => {
                assert_eq!(request.id, id);
                requests.push(request);
                None
            }
            Record::Ended(ended) => Some(ended),
            _ => None,
        });
        let ended = ended.await?;
        assert_eq!(ended.id, id);
        Ok((ended, requests))
    }

    /// The next reconcile, from its start to its end.
    async fn reconcile(&mut self) -> Result<(Started, Ended, Vec<Request>)> {
        let started = self.started().await?;
        let (ended, requests) = self.ended(&started.id).await?;
        Ok((started, ended, requests))
    }
}

/// A manager that writes its journal to an address.
fn journaling(world: &World, address: SocketAddr) -> Result<Manager> {
    let options = ManagerOptions {
        seed: Some(1),
        journal: Some(address),
        journal_token: Some("secret".to_owned()),
        ..ManagerOptions::new("test")
    };
    Ok(Manager::new(world.kube.clone(), options.namespaces(["default"]))?)
}

fn done() -> Acts<ConfigMap> {
    Acts::new(|_, _| Box::pin(async { Ok(Outcome::done()) }))
}

fn cause(why: Trigger, of: Option<(&str, &str)>, changed: &[&str]) -> Cause {
    Cause {
        why,
        kind: of.map(|(kind, _)| kind.to_owned()),
        namespace: of.map(|_| "default".to_owned()),
        name: of.map(|(_, name)| name.to_owned()),
        changed: changed.iter().map(ToString::to_string).collect(),
        more: 0,
        resource_version: None,
    }
}

fn unversioned(causes: Vec<Cause>) -> Vec<Cause> {
    causes.into_iter().map(|cause| Cause { resource_version: None, ..cause }).collect()
}

#[tokio::test]
async fn a_started_record_has_the_causing_object_and_its_changed_fields() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    let a = world.api::<Widget>().create(&PostParams::default(), &widget("a", "red")).await?;
    let mut child = config_map("child");
    child.metadata.owner_references = Some(vec![owner(&a, true)]);
    world.api::<ConfigMap>().create(&PostParams::default(), &child).await?;
    let listener = Listener::bind().await?;
    let manager = listener.manager(&world)?;
    let acts = Acts::<Widget>::new(|_, _| Box::pin(async { Ok(Outcome::done()) }));
    manager.controller(acts).owns::<ConfigMap>().register()?;
    let running = Running::start(&manager);

    let mut connection = listener.accept().await?;
    let Record::Hello(hello) = connection.next().await? else { anyhow::bail!("no hello") };
    assert_eq!((hello.operator.as_str(), hello.pid), ("test", std::process::id()));
    assert_eq!((hello.controllers, hello.token), (vec!["widget".to_owned()], Some("secret".to_owned())));

    let (started, ended, requests) = connection.reconcile().await?;
    assert_eq!((started.controller.as_str(), started.kind.as_deref()), ("widget", Some("Widget")));
    assert_eq!((started.namespace.as_deref(), started.name.as_str()), (Some("default"), "a"));
    assert_eq!((started.attempt, started.more_causes), (0, 0));
    let initial = |of| cause(Trigger::Initial, Some(of), &[]);
    let both = [initial(("Widget", "a")), initial(("ConfigMap", "child"))];
    assert!(both.iter().all(|cause| started.causes.contains(cause)), "{:?}", started.causes);
    assert_eq!((ended.outcome, ended.after_s, ended.error), (Ending::Done, None, None));
    assert!(ended.at >= started.at && ended.ms >= 0.0);
    assert_eq!(requests, []);

    patch::<ConfigMap>(&world, "child", json!({"data": {"key": "other"}})).await?;
    let (started, ..) = connection.reconcile().await?;
    let child = world.api::<ConfigMap>().get("child").await?;
    assert_eq!(started.causes[0].resource_version, child.metadata.resource_version);
    let changed = [cause(Trigger::Modified, Some(("ConfigMap", "child")), &["data.key"])];
    assert_eq!(unversioned(started.causes), changed);
    patch::<Widget>(&world, "a", json!({"spec": {"color": "blue", "replicas": 2}})).await?;
    let (started, ..) = connection.reconcile().await?;
    let fields = ["spec.color", "spec.replicas"];
    assert_eq!(unversioned(started.causes), [cause(Trigger::Modified, Some(("Widget", "a")), &fields)]);
    world.api::<ConfigMap>().delete("child", &kube::api::DeleteParams::default()).await?;
    let (started, ..) = connection.reconcile().await?;
    assert_eq!(started.causes, [cause(Trigger::Deleted, Some(("ConfigMap", "child")), &[])]);

    running.end().await?;
    // Everything was written before the manager stopped, and then the connection is closed.
    while let Some(line) = connection.0.next_line().await? {
        assert!(line.contains(r#""type":"queue""#), "{line}");
    }
    Ok(())
}

#[tokio::test]
async fn a_request_record_has_the_id_of_its_reconcile() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    world.api::<Widget>().create(&PostParams::default(), &widget("a", "red")).await?;
    world.api::<Widget>().create(&PostParams::default(), &widget("b", "red")).await?;
    let listener = Listener::bind().await?;
    let manager = listener.manager(&world)?;
    let acts = Acts::<Widget>::new(|object, cx| {
        Box::pin(async move {
            let Some(object) = object else { return Ok(Outcome::done()) };
            let client = cx.client().namespaced("default");
            client.apply(&config_map(cx.key().name())).await?;
            assert!(client.get_opt::<ConfigMap>(&Key::namespaced("default", "none")).await?.is_none());
            let phase = Patch::merge(json!({"status": {"phase": "done"}}));
            client.status().patch(&*object, &phase).await?;
            Ok(Outcome::done())
        })
    });
    // Run both concurrently: requests must not be matched by time.
    manager.controller(acts).concurrency(2).register()?;
    let running = Running::start(&manager);
    let mut connection = listener.accept().await?;
    let mut seen: Vec<Record> = Vec::new();
    let of_both = |name: &str, seen: &[Record]| -> Vec<(String, String, Option<u16>)> {
        let first = seen.iter().find_map(|record| match record {
            Record::Started(started) if started.name == name => Some(started.id.clone()),
            _ => None,
        });
        let requests = seen.iter().filter_map(|record| match record {
            Record::Request(it) if Some(&it.id) == first.as_ref() => {
                Some((it.method.clone(), it.path.clone(), it.status))
            }
            _ => None,
        });
        requests.collect()
    };
    while of_both("a", &seen).len() < 3 || of_both("b", &seen).len() < 3 {
        seen.push(connection.next().await?);
    }
    for name in ["a", "b"] {
        let request = |method: &str, path: &str, status| (method.to_owned(), path.to_owned(), Some(status));
        let maps = "/api/v1/namespaces/default/configmaps";
        let widgets = "/apis/example.org/v1/namespaces/default/widgets";
        let wanted = [
            request("PATCH", &format!("{maps}/{name}?fieldManager=test&force=true"), 201),
            request("GET", &format!("{maps}/none"), 404),
            request("PATCH", &format!("{widgets}/{name}/status?fieldManager=test"), 200),
        ];
        assert_eq!(of_both(name, &seen), wanted);
    }
    running.end().await
}

#[tokio::test]
async fn a_request_without_a_response_is_recorded_with_its_error() -> Result<()> {
    let world = World::new();
    let listener = Listener::bind().await?;
    let (manager, (ask, asked)) = (listener.manager(&world)?, mpsc::channel(2));
    let acts = KeyActs::new(|cx| {
        Box::pin(async move {
            let client = cx.client().uncached();
            client.get::<ConfigMap>(&Key::namespaced("default", cx.key().name())).await?;
            Ok(Outcome::done())
        })
    });
    let timeout = Duration::from_millis(100);
    manager.key_controller("asker", acts).channel(asked).timeout(timeout).register()?;
    world.faults.next(1, Effect::Refuse, |asked: &RecordedRequest| asked.path.ends_with("/refused"));
    world.faults.every(Effect::Hang, |asked: &RecordedRequest| asked.path.ends_with("/hangs"));
    let running = Running::start(&manager);
    let mut connection = listener.accept().await?;

    ask.send(Key::cluster("refused")).await?;
    let (started, ended, requests) = connection.reconcile().await?;
    assert_eq!((started.kind, started.causes), (None, vec![cause(Trigger::Channel, None, &[])]));
    assert_eq!(ended.outcome, Ending::Error);
    assert_eq!((requests.len(), requests[0].status), (1, None));
    assert!(requests[0].error.as_ref().is_some_and(|error| !error.is_empty()), "{requests:?}");

    ask.send(Key::cluster("hangs")).await?;
    let started = connection.find(|record| match record {
        Record::Started(started) if started.name == "hangs" => Some(started),
        _ => None,
    });
    let started = started.await?;
    let of_it = |record| match record {
        Record::Request(request) if request.id == started.id => Some(request),
        _ => None,
    };
    let request = connection.find(of_it).await?;
    assert_eq!(request.error.as_deref(), Some("cancelled before the response"));
    assert!(request.ms >= 90.0, "{request:?}");
    running.stop.cancel();
    running.task.await??;
    Ok(())
}

#[tokio::test]
async fn an_ended_record_has_the_result_and_the_requeue_delay() -> Result<()> {
    const PLACE: &str = concat!(" at ", file!(), ":");
    kubewright_runtime::internal::panics::install();
    let world = World::new();
    let listener = Listener::bind().await?;
    let (manager, (ask, asked)) = (listener.manager(&world)?, mpsc::channel(8));
    let acts = KeyActs::new(|cx: &Context| {
        let (name, again) =
            (cx.key().name().to_owned(), cx.causes().iter().all(|it| it.trigger != Trigger::Channel));
        Box::pin(async move {
            match name.as_str() {
                _ if again => Ok(Outcome::done()),
                "waits" => Ok(Outcome::requeue_after(Duration::from_millis(10))),
                "soon" => Ok(Outcome::requeue()),
                "fails" => Err(Error::msg("no such luck")),
                "never" => Err(terminal(Error::msg("not like this"))),
                "panics" => panic!("out of cheese"),
                _ => std::future::pending().await,
            }
        })
    });
    let timeout = Duration::from_millis(50);
    manager.key_controller("endings", acts).channel(asked).timeout(timeout).register()?;
    let running = Running::start(&manager);
    let mut connection = listener.accept().await?;
    let endings = [
        ("waits", Ending::Requeue, Some(0.01), None),
        ("soon", Ending::Backoff, Some(0.005), None),
        ("fails", Ending::Error, Some(0.005), Some("no such luck")),
        ("panics", Ending::Panic, Some(0.005), Some("out of cheese")),
        ("hangs", Ending::Timeout, Some(0.005), None),
        ("never", Ending::Terminal, None, Some("terminal error: not like this")),
    ];
    for (name, outcome, after_s, error) in endings {
        ask.send(Key::cluster(name)).await?;
        let (started, ended, _) = connection.reconcile().await?;
        assert_eq!((started.name.as_str(), started.attempt), (name, 0));
        let (message, place) =
            ended.error.as_deref().map(|it| it.split_once(PLACE).unwrap_or((it, ""))).unzip();
        assert_eq!((ended.outcome, ended.after_s, message), (outcome, after_s, error));
        assert_eq!(place.is_some_and(|line| line.parse::<u32>().is_ok()), outcome == Ending::Panic);
        if after_s.is_none() {
            continue;
        }
        let (again, ended, _) = connection.reconcile().await?;
        let failed = matches!(outcome, Ending::Error | Ending::Panic | Ending::Timeout);
        let why = if failed { Trigger::Retried } else { Trigger::Requeued };
        assert_eq!(again.causes, [cause(why, None, &[])]);
        assert_eq!(again.attempt, u32::from(outcome != Ending::Requeue), "{name}");
        assert_eq!(ended.outcome, Ending::Done);
    }
    running.end().await
}

#[tokio::test]
async fn a_queue_record_has_the_queued_and_running_keys() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a", "b", "c"]).await?;
    let listener = Listener::bind().await?;
    let (manager, gate) = (listener.manager(&world)?, Arc::new(Semaphore::new(0)));
    let opened = gate.clone();
    let acts = Acts::<ConfigMap>::new(move |_, _| {
        let gate = opened.clone();
        Box::pin(async move {
            gate.acquire_owned().await.expect("the semaphore is not closed").forget();
            Ok(Outcome::done())
        })
    });
    manager.controller(acts).register()?;
    let running = Running::start(&manager);
    let mut connection = listener.accept().await?;
    let queue = |record| match record {
        Record::Queue(queue) => Some((queue.controller, queue.depth, queue.active)),
        _ => None,
    };
    let depths = |depth, active| ("configmap".to_owned(), depth, active);
    while connection.find(queue).await? != depths(2, 1) {}
    gate.add_permits(3);
    while connection.find(queue).await? != depths(0, 0) {}
    running.end().await
}

#[tokio::test]
async fn reconciles_continue_without_a_listener() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let address = Listener::bind().await?.address;
    let (manager, runs) = (journaling(&world, address)?, Arc::new(AtomicUsize::new(0)));
    let counted = runs.clone();
    let acts = Acts::<ConfigMap>::new(move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(Outcome::done()) })
    });
    manager.controller(acts).register()?;
    let running = Running::start(&manager);
    eventually("the first reconcile", || runs.load(Ordering::SeqCst) == 1).await;
    touch::<ConfigMap>(&world, "a", "1").await?;
    eventually("the second reconcile", || runs.load(Ordering::SeqCst) == 2).await;
    running.end().await
}

#[tokio::test]
async fn a_listener_that_does_not_read_does_not_block_reconciles() -> Result<()> {
    const KEYS: usize = 10_000;
    let world = World::new();
    let listener = Listener::bind().await?;
    let (manager, (ask, asked)) = (listener.manager(&world)?, mpsc::channel(KEYS));
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let acts = KeyActs::new(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(Outcome::done()) })
    });
    manager.key_controller("many", acts).channel(asked).register()?;
    let running = Running::start(&manager);
    let _connected = listener.accept().await?;
    for key in 0..KEYS {
        ask.send(Key::cluster(&key.to_string())).await?;
    }
    eventually("all reconciles", || runs.load(Ordering::SeqCst) == KEYS).await;
    running.end().await
}

#[tokio::test]
async fn a_listener_that_reconnects_receives_later_reconciles() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let listener = Listener::bind().await?;
    let manager = listener.manager(&world)?;
    manager.controller(done()).register()?;
    let running = Running::start(&manager);
    let mut first = listener.accept().await?;
    first.reconcile().await?;
    drop(first);
    let mut second = listener.accept().await?;
    assert!(matches!(second.next().await?, Record::Hello(_)));
    touch::<ConfigMap>(&world, "a", "1").await?;
    let (started, ..) = second.reconcile().await?;
    let changed = ["metadata.annotations"];
    assert_eq!(unversioned(started.causes), [cause(Trigger::Modified, Some(("ConfigMap", "a")), &changed)]);
    running.end().await
}

#[tokio::test]
async fn the_debug_log_has_the_causes_of_each_reconcile() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let (manager, log) = (crate::operator::manager(&world)?, Log::keep()?);
    manager.controller(done()).register()?;
    let running = Running::start(&manager);
    let line = |because: &'static str| {
        let log = &log;
        move || {
            log.saying(" Reconciling ")
                .iter()
                .any(|line| line.ends_with(&format!("because=\"ConfigMap default/a {because}\"")))
        }
    };
    eventually("the first line", line("initial")).await;
    patch::<ConfigMap>(&world, "a", json!({"data": {"key": "1", "other": "2"}})).await?;
    eventually("the second line", line("modified: data.key, data.other")).await;
    running.end().await
}

#[tokio::test]
async fn the_log_of_a_failure_has_its_causes_at_any_level() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let (manager, log) = (crate::operator::manager(&world)?, Log::keep_from("info")?);
    let acts = Acts::<ConfigMap>::new(|_, _| {
        tracing::info!("looking");
        Box::pin(async { Err(terminal(Error::msg("no such luck"))) })
    });
    manager.controller(acts).register()?;
    let running = Running::start(&manager);
    eventually("the failure", || !log.saying("Reconciler error").is_empty()).await;
    let [failed] = log.saying("Reconciler error").try_into().expect("it failed once");
    assert!(failed.ends_with("because=\"ConfigMap default/a initial\""), "{failed}");
    assert!(!log.saying("looking").is_empty() && log.saying("Reconciling").is_empty());
    running.end().await
}
