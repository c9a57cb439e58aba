//! The guarantees of the manager under faults: a paused leader, broken watches, restarts, storms of errors. Scenarios
//! are deterministic for a seed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, PostParams};
use kubewright_runtime::owner::set_controller_reference;
use kubewright_runtime::{
    Delete, Key, Manager, ManagerError, ManagerOptions, Outcome, Patch, ReconcileError as Error, client,
    consistently, eventually,
};
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::manager::{holder, is_lease, replica, two_worlds};
use crate::operator::{Acts, Notes, Running, manager, metric, patch, touch};
use crate::seeds::seeds;
use crate::world::{Effect, RecordedRequest, Widget, World, config_map, settle, widget};

/// The renew deadline: how long a leader may write after its last renewal.
const RENEW: Duration = Duration::from_secs(10);
/// The lease duration: how long standby replicas wait.
const LEASE: Duration = Duration::from_secs(15);

/// A replica whose controller annotates the ConfigMap `a` with its name ten times a second.
fn signing(world: &World, name: &'static str) -> Result<Manager> {
    let manager = Manager::new(world.kube.clone(), replica(name))?;
    let acts = Acts::<ConfigMap>::new(move |map, cx| {
        let client = cx.client().clone();
        Box::pin(async move {
            let Some(map) = map else { return Ok(Outcome::done()) };
            client.patch(&*map, &sign(name)).await?;
            Ok(Outcome::requeue_after(Duration::from_millis(100)))
        })
    });
    manager.controller(acts).register()?;
    Ok(manager)
}

fn sign(name: &str) -> Patch {
    Patch::merge(json!({"metadata": {"annotations": {"signed": name}}}))
}

fn is_signature(asked: &RecordedRequest) -> bool {
    asked.is_write() && asked.path.ends_with("/configmaps/a")
}

async fn signature(world: &World) -> Option<String> {
    let map = world.api::<ConfigMap>().get("a").await.ok()?;
    map.metadata.annotations?.remove("signed")
}

/// Checks that the replica `name` leads and writes.
async fn signs(world: &World, name: &str) -> Result<()> {
    let seen = (holder(world).await, signature(world).await);
    ensure!(seen == (Some(name.to_owned()), Some(name.to_owned())), "{seen:?}");
    Ok(())
}

/// Two replicas, of which `one` has led for a while.
async fn contending() -> Result<(World, World, Running, Running)> {
    let (first, second) = two_worlds();
    first.config_maps(&["a"]).await?;
    let leader = Running::start(&signing(&first, "one")?);
    eventually(Duration::from_secs(30), async || signs(&first, "one").await).await?;
    let standby = Running::start(&signing(&second, "two")?);
    consistently(Duration::from_secs(30), async || signs(&first, "one").await).await?;
    Ok((first, second, leader, standby))
}

/// When a matching request was last sent.
fn last(world: &World, matches: fn(&RecordedRequest) -> bool) -> Option<Instant> {
    world.faults.requests().into_iter().filter(matches).map(|asked| asked.at).next_back()
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_writing_at_the_renew_deadline() -> Result<()> {
    // Only Lease requests hang: every other request of the old leader succeeds, if it is sent.
    let (first, second, leader, standby) = contending().await?;
    let renewed = last(&first, |asked| is_lease(asked) && asked.is_write()).expect("it leads");
    first.faults.every(Effect::Hang, is_lease);

    let error = leader.failed().await?;
    assert!(matches!(error, ManagerError::LeadershipLost), "{error}");
    assert_eq!(renewed.elapsed().as_secs(), RENEW.as_secs());
    eventually(Duration::from_mins(1), async || signs(&second, "two").await).await?;

    let end = last(&first, is_signature).expect("it wrote") - renewed;
    assert!(end < RENEW, "the last write was sent {end:?} after the last renewal");
    assert!(end + Duration::from_secs(1) > RENEW, "it wrote until shortly before the deadline: {end:?}");
    let begin = second.faults.requests().into_iter().find(is_signature).expect("it writes").at - renewed;
    assert!(begin >= LEASE, "the next leader wrote {begin:?} after the last renewal");
    standby.end().await
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_connection_hangs_stops_and_its_writes_do_not_arrive_later() -> Result<()> {
    let (first, second, leader, standby) = contending().await?;
    let renewed = last(&first, |asked| is_lease(asked) && asked.is_write()).expect("it leads");
    // Requests arrive minutes later, unless the sender closes the connection before.
    first.faults.every(Effect::Delay(Duration::from_mins(3)), |_| true);
    let error = leader.failed().await?;
    assert!(matches!(error, ManagerError::LeadershipLost), "{error}");
    assert!(renewed.elapsed() < RENEW + Duration::from_secs(1));
    assert!(last(&first, RecordedRequest::is_write).expect("it wrote") - renewed < RENEW);
    eventually(Duration::from_mins(1), async || signs(&second, "two").await).await?;
    // Longer than any request is in flight.
    consistently(Duration::from_mins(4), async || signs(&second, "two").await).await?;
    standby.end().await
}

/// A simulated process: it makes progress only while it is given time.
struct Process {
    runtime: tokio::runtime::Runtime,
}

impl Process {
    fn new() -> Result<Self> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
        Ok(Self { runtime })
    }

    fn does<T>(&self, what: impl Future<Output = T>) -> T {
        self.runtime.block_on(what)
    }

    /// Runs the process for this time.
    fn runs(&self, time: Duration) {
        self.does(async { tokio::time::sleep(time).await });
    }

    /// Advances its clock as if the process had been paused.
    fn stood_still(&self, time: Duration) {
        self.does(async { tokio::time::advance(time).await });
    }
}

#[test]
fn a_paused_leader_writes_nothing_when_it_resumes() -> Result<()> {
    let (one, two) = (Process::new()?, Process::new()?);
    let notes = one.does(async { Notes::new() });
    let go = Arc::new(Notify::new());
    let (first, leader) = one.does(async {
        let world = World::new();
        world.config_maps(&["a", "b"]).await?;
        let manager = Manager::new(world.kube.clone(), replica("one"))?;
        let (noted, gate) = (notes.clone(), go.clone());
        let acts = Acts::<ConfigMap>::new(move |map, cx| {
            let (notes, gate) = (noted.clone(), gate.clone());
            Box::pin(async move {
                let map = map.expect("the object exists");
                if cx.key().name() == "b" {
                    // Due while the process is paused.
                    cx.client().patch(&*map, &sign("one")).await?;
                    return Ok(Outcome::requeue_after(Duration::from_secs(1)));
                }
                // Running when the process is paused, with its next step ready when it resumes.
                notes.push("begins");
                gate.notified().await;
                notes.push("continues");
                let written = cx.client().patch(&*map, &sign("one")).await;
                let refused = written.expect_err("the write is fenced");
                cx.events().warning(&*map, "Refused").action("Sign").note("it could not be signed");
                notes.push(&refused);
                Err(refused.into())
            })
        });
        manager.controller(acts).concurrency(2).register()?;
        anyhow::Ok((world, Running::start(&manager)))
    })?;
    one.runs(Duration::from_mins(1));
    assert_eq!(notes.all(), ["begins"]);
    assert_eq!(one.does(holder(&first)).as_deref(), Some("one"));
    assert!(first.faults.count(|asked| asked.is_write() && asked.path.ends_with("/configmaps/b")) > 50);

    // From here on the first process is paused, and the second one runs.
    let second = two.does(async { World::on(first.server.clone()) });
    let standby = two.does(async { anyhow::Ok(Running::start(&signing(&second, "two")?)) })?;
    two.runs(Duration::from_mins(1));
    assert_eq!(two.does(holder(&second)).as_deref(), Some("two"));
    assert_eq!(two.does(signature(&second)).as_deref(), Some("two"));

    first.faults.forget();
    go.notify_one();
    one.stood_still(Duration::from_mins(1));
    one.runs(Duration::from_mins(1));
    let writes: Vec<String> =
        first.faults.requests().iter().filter(|asked| asked.is_write()).map(RecordedRequest::line).collect();
    assert_eq!(writes, [""; 0], "no write is sent, not even an event or a renewal");
    let error = one.does(leader.failed())?;
    assert!(matches!(error, ManagerError::LeadershipLost), "{error}");
    assert_eq!(two.does(signature(&second)).as_deref(), Some("two"));
    two.does(standby.end())
}

#[test]
fn a_pending_write_of_a_paused_leader_is_not_sent_when_it_resumes() -> Result<()> {
    let (one, two) = (Process::new()?, Process::new()?);
    let (first, leader) = one.does(async {
        let world = World::new();
        world.config_maps(&["a"]).await?;
        let leader = Running::start(&signing(&world, "one")?);
        anyhow::Ok((world, leader))
    })?;
    one.runs(Duration::from_mins(1));
    assert_eq!(one.does(signature(&first)).as_deref(), Some("one"));
    // The client delays the next write for two seconds before it sends the request, as for a new connection.
    first.faults.next(1, Effect::Delay(Duration::from_secs(2)), is_signature);
    one.runs(Duration::from_secs(1));
    let begun = last(&first, is_signature);

    let second = two.does(async { World::on(first.server.clone()) });
    let standby = two.does(async { anyhow::Ok(Running::start(&signing(&second, "two")?)) })?;
    two.runs(Duration::from_mins(1));
    assert_eq!(two.does(signature(&second)).as_deref(), Some("two"));

    // When the first process resumes, the write is ready to be sent before the election detects the lost Lease.
    one.stood_still(Duration::from_mins(1));
    one.runs(Duration::from_mins(1));
    let error = one.does(leader.failed())?;
    assert!(matches!(error, ManagerError::LeadershipLost), "{error}");
    assert_eq!(last(&first, is_signature), begun, "the delayed write was the last one");
    assert_eq!(one.does(signature(&first)).as_deref(), Some("two"));
    two.does(standby.end())
}

/// The duration of a reconcile of [`paint`].
const MOMENT: Duration = Duration::from_secs(1);

/// Registers a controller that keeps a ConfigMap with the color of each Widget.
fn paint(manager: &Manager, notes: &Notes) -> Result<()> {
    let notes = notes.clone();
    let acts = Acts::<Widget>::new(move |widget, cx| {
        notes.push(format!("{} {} {:?}", cx.key(), cx.id(), cx.causes()));
        Box::pin(async move {
            // While a watch is stalled, the cache still has deleted Widgets. The garbage collector deletes the child of
            // such an owner immediately, and that event triggers another reconcile. The duration of a reconcile limits
            // how often.
            tokio::time::sleep(MOMENT).await;
            let Some(widget) = widget else {
                let child: Key = cx.key().clone();
                let gone = cx.client().delete_key::<ConfigMap>(&child, &Delete::new()).await;
                client::ignore_not_found(gone)?;
                return Ok(Outcome::done());
            };
            let mut child = config_map(cx.key().name());
            child.data = None;
            cx.client()
                .create_or_update(child, |child| {
                    set_controller_reference(&*widget, child)?;
                    child.data = Some([("color".to_owned(), widget.spec.color.clone())].into());
                    Ok(())
                })
                .await?;
            if widget.status.as_ref().and_then(|status| status.phase.as_ref()) != Some(&widget.spec.color) {
                let status = Patch::merge(json!({"status": {"phase": widget.spec.color}}));
                cx.client().status().patch(&*widget, &status).await?;
            }
            Ok(Outcome::done())
        })
    });
    // A write without a response must not block its key forever.
    manager
        .controller(acts)
        .owns::<ConfigMap>()
        .concurrency(3)
        .timeout(Duration::from_secs(5))
        .sync_timeout(SYNC)
        .register()?;
    Ok(())
}

/// The differences between desired and actual state; empty once everything is painted.
async fn unpainted(world: &World) -> Result<Vec<String>> {
    let mut expected: BTreeMap<String, String> = BTreeMap::new();
    let mut wrong = Vec::new();
    for widget in world.api::<Widget>().list(&ListParams::default()).await? {
        let name = widget.metadata.name.clone().unwrap_or_default();
        if widget.status.and_then(|status| status.phase).as_ref() != Some(&widget.spec.color) {
            wrong.push(format!("wrong status of {name}"));
        }
        expected.insert(name, widget.spec.color);
    }
    let mut actual = BTreeMap::new();
    for map in world.api::<ConfigMap>().list(&ListParams::default()).await? {
        if let Some(color) = map.data.unwrap_or_default().remove("color") {
            actual.insert(map.metadata.name.unwrap_or_default(), color);
        }
    }
    if expected != actual {
        wrong.push(format!("expected {expected:?}, got {actual:?}"));
    }
    Ok(wrong)
}

/// Makes a random change to the objects, or injects a random fault into the connection.
async fn strike(world: &World, rng: &mut fastrand::Rng) -> Result<()> {
    let api = world.api::<Widget>();
    let name = format!("w{}", rng.u8(..8));
    let color = ["red", "green", "blue"][rng.usize(..3)];
    // An operator that loses its Lease stops, which other tests cover.
    let any = |asked: &RecordedRequest| !is_lease(asked);
    let write = |asked: &RecordedRequest| asked.is_write() && !is_lease(asked);
    match rng.u8(..16) {
        0..4 => match api.get_opt(&name).await? {
            None => drop(api.create(&PostParams::default(), &widget(&name, color)).await?),
            Some(_) => drop(patch::<Widget>(world, &name, json!({"spec": {"color": color}})).await?),
        },
        4 => drop(api.delete(&name, &DeleteParams::default()).await),
        5 => drop(world.api::<ConfigMap>().delete(&name, &DeleteParams::default()).await),
        6 => drop(patch::<ConfigMap>(world, &name, json!({"data": {"color": "none"}})).await),
        7 => drop(world.faults.cut(any)),
        8 => drop(world.faults.expire(any)),
        9 => drop(world.faults.end(any)),
        // Of one kind half of the time, so that the caches differ in age.
        10 => match rng.u8(..4) {
            0 => drop(world.faults.stall(|asked| asked.path.ends_with("/widgets"))),
            1 => drop(world.faults.stall(|asked| asked.path.ends_with("/configmaps"))),
            _ => drop(world.faults.stall(any)),
        },
        11 => world.faults.next(2, Effect::Status(500, "InternalError"), any),
        12 => world.faults.next(2, Effect::Refuse, any),
        13 => world.faults.next(2, Effect::Lose, write),
        14 => world.faults.next(1, Effect::Hang, write),
        _ => world.faults.next(2, Effect::Delay(Duration::from_secs(2)), any),
    }
    tokio::time::sleep(Duration::from_millis(rng.u64(..3000))).await;
    Ok(())
}

/// Longer than the faults of a run, which can interrupt every list until they end.
const SYNC: Duration = Duration::from_mins(10);
/// The number of changes and faults per run. Small, so that many seeds fit into a test run.
const STRIKES: usize = 30;
/// The most requests that the operator sends in such a run, until it has converged. More than twice as many as in the
/// first 300 runs.
const MOST_REQUESTS: usize = 150;
/// The most requests per run on average. It is 36.
const USUAL_REQUESTS: usize = 45;

#[tokio::test(start_paused = true)]
async fn state_converges_after_random_faults() -> Result<()> {
    let (mut all, mut runs) = (0, 0);
    for seed in seeds(8) {
        let world = World::new();
        world.widgets().await?;
        let (manager, notes) = (manager(&world)?, Notes::new());
        paint(&manager, &notes)?;
        let running = Running::start(&manager);
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..STRIKES {
            strike(&world, &mut rng).await?;
        }
        world.faults.heal();
        let mut requests = 0;
        let painted = async || {
            let wrong = unpainted(&world).await?;
            ensure!(wrong.is_empty(), "{wrong:?}");
            requests += world.faults.requests().len();
            // After that, no further reconcile or write happens.
            let runs = notes.len();
            world.faults.forget();
            // Both counters only grow, so a check every ten seconds suffices. `consistently` polls far more often.
            for _ in 0..60 {
                tokio::time::sleep(Duration::from_secs(10)).await;
                let seen = (notes.len(), world.faults.count(RecordedRequest::is_write));
                ensure!(seen == (runs, 0), "{runs} runs before, then {seen:?}");
            }
            Ok(())
        };
        eventually(Duration::from_mins(15), painted).await.with_context(|| format!("seed {seed}"))?;
        ensure!(requests <= MOST_REQUESTS, "seed {seed}: {requests} requests");
        (all, runs) = (all + requests, runs + 1);
        running.end().await?;
    }
    ensure!(all <= runs * USUAL_REQUESTS, "{all} requests in {runs} runs");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_restart_reconciles_ten_thousand_objects_once_each() -> Result<()> {
    const OBJECTS: usize = 10_000;
    let world = World::new();
    let api = world.api();
    for number in 0..OBJECTS {
        api.create(&PostParams::default(), &config_map(&format!("m{number}"))).await?;
    }
    for round in 0..2 {
        let manager = manager(&world)?;
        let runs = Arc::new(std::sync::Mutex::new(BTreeMap::<Key, usize>::new()));
        let counted = runs.clone();
        let acts = Acts::<ConfigMap>::new(move |map, cx| {
            assert!(map.is_some());
            *counted.lock().unwrap().entry(cx.key().clone()).or_default() += 1;
            Box::pin(async { Ok(Outcome::done()) })
        });
        manager.controller(acts).concurrency(8).register()?;
        world.faults.forget();
        let running = Running::start(&manager);
        settle().await;
        let runs = runs.lock().unwrap().clone();
        assert_eq!(runs.len(), OBJECTS, "round {round}");
        assert!(runs.values().all(|runs| *runs == 1), "round {round}");
        assert_eq!(world.faults.requests().len(), 1, "one watch delivers all objects");
        running.end().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn persistent_errors_are_retried_with_backoff() -> Result<()> {
    const OBJECTS: usize = 200;
    let world = World::new();
    for number in 0..OBJECTS {
        world.config_maps(&[&format!("m{number}")]).await?;
    }
    let manager = manager(&world)?;
    let acts = Acts::<ConfigMap>::new(|map, cx| {
        Box::pin(async move {
            cx.client().patch(&*map.expect("the object exists"), &sign("me")).await?;
            Ok(Outcome::done())
        })
    });
    manager.controller(acts).concurrency(16).register()?;
    world.faults.every(Effect::Status(503, "ServiceUnavailable"), RecordedRequest::is_write);
    let running = Running::start(&manager);
    let mut before = 0;
    let mut asked = Vec::new();
    for _ in 0..6 {
        tokio::time::sleep(Duration::from_mins(10)).await;
        let now = world.faults.count(RecordedRequest::is_write);
        asked.push(now - before);
        before = now;
    }
    // 5 ms doubled seventeen times is eleven minutes; then there is one attempt in 1000 s.
    assert!(asked[0] <= 18 * OBJECTS, "{asked:?}");
    assert!(asked[1..].iter().all(|asked| *asked <= OBJECTS), "{asked:?}");

    world.faults.heal();
    let success = r#"controller_runtime_reconcile_total{controller="configmap",result="success"}"#;
    // Each object once more, because of the event of its own write.
    let all = f64::from(2 * u32::try_from(OBJECTS)?);
    let done = async || {
        let seen = metric(&manager, success);
        ensure!(seen == Some(all), "{seen:?}");
        Ok(())
    };
    eventually(Duration::from_secs(1001), done).await?;
    consistently(Duration::from_secs(1001), done).await?;
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_always_panics_does_not_stop_the_others() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let (manager, notes, panics) = (manager(&world)?, Notes::new(), Arc::new(AtomicUsize::new(0)));
    let counted = panics.clone();
    let panicking = Acts::<ConfigMap>::new(move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        panic!("the test wants this")
    });
    manager.controller(panicking).named("panicking").register()?;
    manager.controller(Acts::<ConfigMap>::noting(&notes)).register()?;
    let running = Running::start(&manager);
    for step in 1..=20 {
        let seen = async || {
            ensure!(notes.len() == step, "{} of {step}", notes.len());
            Ok(())
        };
        eventually(Duration::from_secs(1), seen).await?;
        touch::<ConfigMap>(&world, "a", &step.to_string()).await?;
    }
    settle().await;
    let counted = r#"controller_runtime_reconcile_panics_total{controller="panicking"}"#;
    assert_eq!(metric(&manager, counted), Some(f64::from(u32::try_from(panics.load(Ordering::SeqCst))?)));
    assert!(panics.load(Ordering::SeqCst) > 20);
    running.end().await
}

/// The trace of a scenario with two controllers, faults and requeues: every request and reconcile with its time, and
/// the final objects.
fn trace(seed: u64) -> Result<String> {
    Process::new()?.does(async {
        let start = Instant::now();
        let world = World::new();
        world.widgets().await?;
        let notes = Notes::new();
        let options = ManagerOptions { seed: Some(seed), ..replica("me") };
        let manager = Manager::new(world.kube.clone(), options)?;
        paint(&manager, &notes)?;
        let noted = notes.clone();
        let counting = Acts::<ConfigMap>::new(move |map, cx| {
            noted.push(format!("{} {} {:?}", cx.key(), cx.id(), cx.causes()));
            let runs = noted.len();
            Box::pin(async move {
                if let Some(map) = map {
                    cx.events()
                        .normal(&*map, "Counted")
                        .action("Count")
                        .note(format_args!("after {runs} runs"));
                }
                match runs % 5 {
                    0 => Err(Error::msg("the test wants this")),
                    1 => Ok(Outcome::requeue()),
                    2 => Ok(Outcome::requeue_after(Duration::from_secs(7))),
                    _ => Ok(Outcome::done()),
                }
            })
        });
        manager.controller(counting).concurrency(2).sync_timeout(SYNC).register()?;
        let running = Running::start(&manager);
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..60 {
            strike(&world, &mut rng).await?;
        }
        world.faults.heal();
        tokio::time::sleep(Duration::from_mins(1)).await;
        running.end().await?;

        let mut trace = String::new();
        for asked in world.faults.requests() {
            writeln!(trace, "{:?} {} {:?}", asked.at - start, asked.line(), asked.query)?;
        }
        for (at, note) in notes.timed() {
            writeln!(trace, "{at:?} {note}")?;
        }
        let maps: Vec<ConfigMap> = world.api().list(&ListParams::default()).await?.items;
        writeln!(trace, "{}", serde_json::to_string(&maps)?)?;
        Ok(trace)
    })
}

#[test]
fn the_same_seed_gives_the_same_trace() -> Result<()> {
    let mut before = String::new();
    for seed in seeds(8) {
        let (once, again) = (trace(seed)?, trace(seed)?);
        assert!(once.lines().count() > 100, "seed {seed}: {} lines", once.lines().count());
        let mut lines = once.lines().zip(again.lines()).enumerate();
        if let Some((number, (one, other))) = lines.find(|(_, (one, other))| one != other) {
            panic!("seed {seed}: line {number} differs:\n{one}\n{other}");
        }
        assert_eq!(once.len(), again.len(), "seed {seed}");
        assert_ne!(once, before, "seed {seed} has the same trace as the previous seed");
        before = once;
    }
    Ok(())
}
