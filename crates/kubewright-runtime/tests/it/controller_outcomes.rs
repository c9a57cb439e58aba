//! Results of a reconcile: done, requeue, retry, or terminal. Times are exact, because the clock is paused.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::Result;
use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, PostParams};
use kubewright_runtime::adapter::{Action, adapt};
use kubewright_runtime::owner::set_controller_reference;
use kubewright_runtime::queue::{Backoff, RateLimit};
use kubewright_runtime::{
    Context, KeyReconciler, Kind, Manager, Outcome, Patch, ReconcileError as Error, terminal,
};
use serde_json::json;
use tokio::sync::mpsc;

use crate::operator::{Acts, Crowd, Log, Notes, Running, manager, metric, patch, touch};
use crate::world::{Widget, World, config_map, settle, widget};

/// A controller of ConfigMaps that notes the name and returns the result for the number of the run.
fn scripted(
    manager: &Manager,
    notes: &Notes,
    script: impl Fn(&str, u32) -> kubewright_runtime::Result<Outcome> + Send + Sync + 'static,
) -> kubewright_runtime::controller::ControllerBuilder {
    let (notes, script) = (notes.clone(), Arc::new(script));
    manager.controller(Acts::<ConfigMap>::new(move |_, cx| {
        let name = cx.key().name().to_owned();
        notes.push(&name);
        let run = u32::try_from(notes.times(&name).len()).unwrap();
        let script = script.clone();
        Box::pin(async move { script(&name, run) })
    }))
}

/// The metrics: reconciles by result, errors, terminal errors, panics and timeouts.
fn counts(manager: &Manager) -> [u64; 8] {
    let results = ["success", "error", "requeue", "requeue_after"].map(|result| {
        format!(r#"controller_runtime_reconcile_total{{controller="configmap",result="{result}"}}"#)
    });
    let others = ["reconcile_errors", "terminal_reconcile_errors", "reconcile_panics", "reconcile_timeouts"]
        .map(|name| format!(r#"controller_runtime_{name}_total{{controller="configmap"}}"#));
    let mut values = results.iter().chain(&others).map(|name| {
        let value = metric(manager, name).unwrap_or_else(|| panic!("there is no {name}"));
        format!("{value}").parse().unwrap_or_else(|_| panic!("{name} is {value}"))
    });
    std::array::from_fn(|_| values.next().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_requeue_runs_after_its_delay_or_earlier_after_a_change() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    scripted(&manager, &notes, |_, run| {
        Ok(if run < 4 { Outcome::requeue_after(Duration::from_mins(1)) } else { Outcome::done() })
    })
    .register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert_eq!(notes.pauses("a"), [60_000]);
    touch::<ConfigMap>(&world, "a", "1").await?;
    tokio::time::sleep(Duration::from_hours(1)).await;
    // The change pulled the third run forward, and the fourth is a minute later.
    assert_eq!(notes.pauses("a").len(), 3);
    assert!((29_000..31_000).contains(&notes.pauses("a")[1]), "{:?}", notes.pauses("a"));
    assert_eq!(notes.pauses("a")[2], 60_000);
    assert_eq!(counts(&manager), [1, 0, 0, 3, 0, 0, 0, 0]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_requeue_with_backoff_doubles_its_delay_and_is_not_an_error() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    scripted(&manager, &notes, |_, run| Ok(if run < 6 { Outcome::requeue() } else { Outcome::done() }))
        .register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(notes.pauses("a"), [5, 10, 20, 40, 80]);
    assert_eq!(counts(&manager), [1, 0, 5, 0, 0, 0, 0, 0]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn errors_back_off_per_key_and_a_success_resets_the_backoff() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a", "b"]).await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    scripted(&manager, &notes, |name, run| match (name, run) {
        ("a", 5) => Ok(Outcome::done()),
        ("a", ..9) | ("b", ..3) => Err(Error::msg("injected by the test")),
        _ => Ok(Outcome::done()),
    })
    .register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(notes.pauses("a"), [5, 10, 20, 40]);
    assert_eq!(notes.pauses("b"), [5, 10]);
    touch::<ConfigMap>(&world, "a", "1").await?;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(notes.pauses("a")[5..], [5, 10, 20]);
    assert_eq!(counts(&manager), [3, 9, 0, 0, 9, 0, 0, 0]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_permanent_error_is_retried_every_1000_seconds_in_the_end() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    scripted(&manager, &notes, |_, _| Err(Error::msg("injected by the test"))).register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_hours(2)).await;
    let pauses = notes.pauses("a");
    assert!(pauses.windows(2).all(|pair| pair[1] == (2 * pair[0]).min(1_000_000)), "{pauses:?}");
    assert_eq!((pauses[0], pauses[pauses.len() - 1]), (5, 1_000_000));
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn backoff_and_rate_limit_can_be_configured() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a", "b", "c"]).await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    scripted(&manager, &notes, |_, _| Err(Error::msg("injected by the test")))
        .backoff(Backoff { base: Duration::from_millis(1), max: Duration::from_millis(1) })
        .rate_limit(RateLimit { interval: Duration::from_secs(1), burst: 1 })
        .register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!((30..=34).contains(&notes.len()), "{}", notes.len());
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_terminal_error_waits_for_a_change() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a", "b"]).await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    scripted(&manager, &notes, |name, run| match (name, run) {
        ("a", 1) => Err(terminal(Error::msg("injected by the test"))),
        ("b", 1) => Ok(Outcome::terminal()),
        _ => Ok(Outcome::done()),
    })
    .register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(notes.all(), ["a", "b"]);
    assert_eq!(counts(&manager), [0, 2, 0, 0, 2, 2, 0, 0]);
    touch::<ConfigMap>(&world, "a", "1").await?;
    touch::<ConfigMap>(&world, "b", "1").await?;
    settle().await;
    assert_eq!(notes.all(), ["a", "b", "a", "b"]);
    assert_eq!(counts(&manager), [2, 2, 0, 0, 2, 2, 0, 0]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_panic_affects_only_one_key() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a", "b"]).await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    scripted(&manager, &notes, |name, run| {
        assert!(name != "a" || run > 3, "injected by the test");
        Ok(Outcome::done())
    })
    .register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(notes.pauses("a"), [5, 10, 20]);
    touch::<ConfigMap>(&world, "b", "1").await?;
    settle().await;
    assert_eq!(notes.times("b").len(), 2);
    assert_eq!(counts(&manager), [3, 3, 0, 0, 3, 0, 3, 0]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_logged_in_one_line_with_its_place_and_count() -> Result<()> {
    kubewright_runtime::internal::panics::install();
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let (manager, notes, log) = (manager(&world)?, Notes::new(), Log::keep()?);
    // Another test may have cached the interest of the callsite before the subscriber was set.
    tracing::callsite::rebuild_interest_cache();
    scripted(&manager, &notes, |_, run| {
        assert!(run > 2, "injected by the test");
        Ok(Outcome::done())
    })
    .register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_secs(10)).await;
    running.end().await?;
    let lines = log.saying("Reconciler error");
    assert_eq!(lines.len(), 2, "{lines:?}");
    for (line, times) in lines.iter().zip(1..) {
        let at = format!("error=\"panic: injected by the test [recovered]\" at={}:", file!());
        assert!(line.contains(&at) && line.contains(&format!(" times={times} ")), "{line}");
        let documented = documented_panic().replace("no pages", "injected by the test");
        assert_eq!(names_of_fields(&documented), names_of_fields(line)[..4], "docs/dev.md");
        let start = documented.split(" at=").next().unwrap_or_default();
        assert!(line.contains(start), "docs/dev.md shows {start:?}, the log has {line:?}");
    }
    Ok(())
}

/// The log line of a panic in docs/dev.md, from its level on.
fn documented_panic() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/dev.md");
    let page = std::fs::read_to_string(page).expect("the page can be read");
    let line = page.lines().find(|line| line.starts_with("operator | ") && line.contains("panic"));
    let (_, line) = line.and_then(|line| line.split_once("ERROR ")).expect("the page shows a panic");
    format!("ERROR {line}")
}

/// The names of the fields of a log line, in their order.
fn names_of_fields(line: &str) -> Vec<&str> {
    line.split(' ').filter_map(|word| Some(word.split_once('=')?.0)).collect()
}

/// Panics before it returns a future, and again when that is dropped.
struct Careless(Notes);

struct Bomb(Notes);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.push("dropped");
        assert!(std::thread::panicking(), "injected by the test");
    }
}

impl KeyReconciler for Careless {
    fn reconcile(
        &self,
        key: &kubewright_runtime::Key,
        _: &Context,
    ) -> impl Future<Output = kubewright_runtime::Result<Outcome>> + Send {
        self.0.push(key);
        assert!(key.name() != "at-once" || self.0.times("at-once").len() > 1, "injected by the test");
        let bomb = (key.name() == "late" && self.0.times("late").len() == 1).then(|| Bomb(self.0.clone()));
        let waits = bomb.is_some();
        let wait: BoxFuture<'static, ()> =
            if waits { Box::pin(std::future::pending()) } else { Box::pin(async {}) };
        async move {
            let _bomb = bomb;
            wait.await;
            Ok(Outcome::done())
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_contained_before_during_and_after_the_future() -> Result<()> {
    let world = World::new();
    let (manager, notes) = (manager(&world)?, Notes::new());
    let (ask, asked) = mpsc::channel(8);
    let controller = manager.key_controller("configmap", Careless(notes.clone()));
    controller.channel(asked).timeout(Duration::from_secs(1)).register()?;
    let running = Running::start(&manager);
    for key in ["at-once", "late", "well"] {
        ask.send(kubewright_runtime::Key::cluster(key)).await?;
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    assert_eq!(notes.all(), ["at-once", "at-once", "late", "dropped", "late", "well"]);
    assert_eq!(counts(&manager)[6], 2);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_timeout_drops_the_reconcile_at_its_await_point() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let (manager, notes, crowd) = (manager(&world)?, Notes::new(), Crowd::default());
    let (noted, at_once, runs) = (notes.clone(), crowd.clone(), AtomicU32::new(0));
    let hanging = Acts::<ConfigMap>::new(move |_, _| {
        noted.push("a");
        let (notes, present) = (noted.clone(), at_once.enter());
        let hangs = runs.fetch_add(1, Ordering::SeqCst) < 2;
        Box::pin(async move {
            if hangs {
                tokio::time::sleep(Duration::from_mins(1)).await;
                notes.push("too late");
            }
            drop(present);
            Ok(Outcome::done())
        })
    });
    manager.controller(hanging).timeout(Duration::from_secs(3)).register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(crowd.now(), 1);
    tokio::time::sleep(Duration::from_millis(1002)).await;
    assert_eq!(crowd.now(), 0);
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(notes.pauses("a"), [3005, 3010]);
    assert_eq!(notes.times("too late").len(), 0);
    assert_eq!(counts(&manager), [1, 2, 0, 0, 2, 0, 0, 2]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_deletion_is_reconciled_once_and_retried_on_failure() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    let noted = notes.clone();
    let acts = Acts::<ConfigMap>::new(move |map, _| {
        if map.is_none() {
            noted.push("gone");
        }
        let fails = noted.len() == 1;
        Box::pin(
            async move { if fails { Err(Error::msg("injected by the test")) } else { Ok(Outcome::done()) } },
        )
    });
    manager.controller(acts).register()?;
    let running = Running::start(&manager);
    settle().await;
    world.api::<ConfigMap>().delete("a", &DeleteParams::default()).await?;
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(notes.pauses("gone"), [5]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn every_log_line_of_a_reconcile_has_its_fields() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let (manager, notes, log) = (manager(&world)?, Notes::new(), Log::keep()?);
    let noted = notes.clone();
    let acts = Acts::<ConfigMap>::new(move |_, cx| {
        noted.push(cx.id());
        let (first, fails) = (noted.len() == 1, noted.len() < 3);
        Box::pin(async move {
            if first {
                // Another test may have cached the interest of these callsites before the subscriber was set.
                tracing::callsite::rebuild_interest_cache();
            }
            tracing::info!("the reconciler speaks");
            if fails { Err(Error::msg("injected by the test")) } else { Ok(Outcome::done()) }
        })
    });
    manager.controller(acts).register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_secs(1)).await;
    running.end().await?;

    let ids = notes.all();
    assert_eq!(ids.len(), 3);
    assert_ne!(ids[1], ids[2]);
    let spoken = log.saying("the reconciler speaks");
    assert_eq!(spoken.len(), 3);
    for (line, id) in spoken.iter().zip(&ids).skip(1) {
        let expected = format!(
            "controller=configmap controller_group=\"\" controller_kind=ConfigMap object=default/a reconcile_id={id}"
        );
        assert!(line.contains(&expected), "{line}\n{expected}");
    }
    let failed = log.saying("Reconciler error");
    let second = failed.last().expect("two runs failed");
    assert!(second.contains("injected by the test") && second.contains(&ids[1]), "{failed:?}");
    assert!(second.contains("retry_in=10ms"), "{failed:?}");
    Ok(())
}

/// A controller of Widgets that writes a new status on each run and returns this result. It notes each run.
fn writing_status(
    manager: &Manager,
    notes: &Notes,
    end: impl Fn() -> kubewright_runtime::Result<Outcome> + Send + Sync + 'static,
) -> Result<()> {
    let (notes, end) = (notes.clone(), Arc::new(end));
    let acts = Acts::<Widget>::new(move |widget, cx| {
        notes.push(cx.key().name());
        let (run, end) = (notes.len(), end.clone());
        Box::pin(async move {
            let widget = widget.expect("the widget is not deleted");
            let status = Patch::merge(json!({"status": {"phase": format!("run {run}")}}));
            cx.client().status().patch(&*widget, &status).await?;
            // The event may arrive before the run ends.
            tokio::time::sleep(Duration::from_millis(1)).await;
            end()
        })
    });
    manager.controller(acts).owns::<ConfigMap>().register()?;
    Ok(())
}

async fn one_widget() -> Result<World> {
    let world = World::new();
    world.widgets().await?;
    world.api().create(&PostParams::default(), &widget("a", "red")).await?;
    Ok(world)
}

#[tokio::test(start_paused = true)]
async fn a_failing_run_backs_off_although_its_own_status_write_triggers_it() -> Result<()> {
    type End = fn() -> kubewright_runtime::Result<Outcome>;
    let ends: [(&str, End); 4] = [
        ("an error", || Err(Error::msg("injected by the test"))),
        ("a panic", || panic!("injected by the test")),
        ("a requeue", || Ok(Outcome::requeue())),
        ("a terminal error", || Err(terminal(Error::msg("injected by the test")))),
    ];
    for (what, end) in ends {
        let world = one_widget().await?;
        let (manager, notes) = (manager(&world)?, Notes::new());
        writing_status(&manager, &notes, end)?;
        let running = Running::start(&manager);
        tokio::time::sleep(Duration::from_millis(500)).await;
        // A run takes a millisecond.
        assert_eq!(notes.pauses("a"), [6, 11, 21, 41, 81, 161], "{what}");
        running.end().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_change_by_another_client_ends_the_wait_of_a_failing_run() -> Result<()> {
    for is_terminal in [false, true] {
        let world = one_widget().await?;
        let (manager, notes) = (manager(&world)?, Notes::new());
        let end = move || {
            let error = Error::msg("injected by the test");
            Err(if is_terminal { terminal(error) } else { error })
        };
        writing_status(&manager, &notes, end)?;
        let running = Running::start(&manager);
        // In the middle of a delay of more than five minutes.
        tokio::time::sleep(Duration::from_mins(8)).await;
        let runs = notes.len();
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert_eq!(notes.len(), runs, "terminal: {is_terminal}");
        touch::<Widget>(&world, "a", "1").await?;
        settle().await;
        assert_eq!(notes.len(), runs + 1, "terminal: {is_terminal}");
        running.end().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_change_by_another_client_during_a_failing_run_is_not_delayed() -> Result<()> {
    let world = Arc::new(one_widget().await?);
    let (manager, notes) = (manager(&world)?, Notes::new());
    let (noted, outside) = (notes.clone(), world.clone());
    let acts = Acts::<Widget>::new(move |widget, cx| {
        noted.push("a");
        let (run, world) = (noted.len(), outside.clone());
        Box::pin(async move {
            let widget = widget.expect("the widget is not deleted");
            let status = Patch::merge(json!({"status": {"phase": format!("run {run}")}}));
            cx.client().status().patch(&*widget, &status).await?;
            if run == 5 {
                // No await point lets the watch deliver between the two writes: the cache sees them as one change.
                patch::<Widget>(&world, "a", json!({"spec": {"color": "blue"}})).await?;
                cx.client()
                    .status()
                    .patch(&*widget, &Patch::merge(json!({"status": {"phase": "last"}})))
                    .await?;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
            Err(Error::msg("injected by the test"))
        })
    });
    manager.controller(acts).register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(notes.pauses("a"), [6, 11, 21, 41, 1, 161]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn own_writes_to_owned_objects_do_not_end_the_backoff() -> Result<()> {
    let world = one_widget().await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    let noted = notes.clone();
    let acts = Acts::<Widget>::new(move |widget, cx| {
        noted.push("a");
        let run = noted.len();
        Box::pin(async move {
            let widget = widget.expect("the widget is not deleted");
            let mut child = config_map(&format!("child-{run}"));
            set_controller_reference(&*widget, &mut child)?;
            let child = cx.client().create(&child).await?;
            let child =
                cx.client().patch(&child, &Patch::merge(json!({"data": {"run": run.to_string()}}))).await?;
            cx.client().delete(&child).await?;
            tokio::time::sleep(Duration::from_millis(1)).await;
            Err(Error::msg("injected by the test"))
        })
    });
    manager.controller(acts).owns::<ConfigMap>().register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(notes.pauses("a"), [6, 11, 21, 41, 81, 161]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn requeue_after_resets_the_failures() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    scripted(&manager, &notes, |_, run| match run {
        5 => Ok(Outcome::requeue_after(Duration::from_secs(1))),
        ..9 => Err(Error::msg("injected by the test")),
        _ => Ok(Outcome::done()),
    })
    .register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(notes.pauses("a"), [5, 10, 20, 40, 1000, 5, 10, 20]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn an_adapted_function_is_retried_as_its_error_policy_says() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    let reconcile = async |map: Arc<ConfigMap>, notes: Arc<Notes>| {
        let name = map.metadata.name.clone().unwrap_or_default();
        notes.push(&name);
        match notes.times(&name).len() {
            1 | 2 => Err(std::fmt::Error),
            3 => Ok(Action::requeue(Duration::from_mins(1))),
            _ => Ok(Action::await_change()),
        }
    };
    let error_policy =
        |_: Arc<ConfigMap>, _: &std::fmt::Error, _: Arc<Notes>| Action::requeue(Duration::from_secs(5));
    let reconciler = adapt(reconcile, error_policy, Arc::new(notes.clone()));
    manager.dynamic_controller(Kind::of::<ConfigMap>(), reconciler).register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(notes.pauses("a"), [5_000, 5_000, 60_000]);
    assert_eq!(counts(&manager), [1, 2, 0, 1, 2, 0, 0, 0]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn an_error_policy_without_a_requeue_waits_for_a_change() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    let reconcile = async |_: Arc<ConfigMap>, notes: Arc<Notes>| {
        notes.push("a");
        Err::<Action, _>(std::fmt::Error)
    };
    let error_policy = |_: Arc<ConfigMap>, _: &std::fmt::Error, _: Arc<Notes>| Action::await_change();
    let reconciler = adapt(reconcile, error_policy, Arc::new(notes.clone()));
    manager.dynamic_controller(Kind::of::<ConfigMap>(), reconciler).register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(notes.len(), 1);
    touch::<ConfigMap>(&world, "a", "1").await?;
    settle().await;
    assert_eq!(notes.len(), 2);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn an_object_that_an_adapted_function_cannot_decode_is_a_terminal_error() -> Result<()> {
    #[derive(serde::Deserialize)]
    struct Widget {
        #[serde(rename = "spec")]
        _spec: u8,
    }

    let world = World::new();
    world.config_maps(&["a"]).await?;
    let manager = manager(&world)?;
    let reconcile = async |_: Arc<Widget>, _: Arc<()>| Ok::<_, std::fmt::Error>(Action::await_change());
    let error_policy = |_: Arc<Widget>, _: &std::fmt::Error, _: Arc<()>| Action::await_change();
    manager
        .dynamic_controller(Kind::of::<ConfigMap>(), adapt(reconcile, error_policy, Arc::new(())))
        .register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(counts(&manager), [0, 1, 0, 0, 1, 1, 0, 0]);
    running.end().await
}
