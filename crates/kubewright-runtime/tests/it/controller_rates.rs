//! When a key runs again, and in which order: priorities, rate limiters, jitter, warmup. Times are exact, because the
//! clock is paused.

use std::time::Duration;

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_runtime::controller::ControllerOptions;
use kubewright_runtime::queue::{
    self, Backoff, BucketLimiter, FastSlow, LOW_PRIORITY, MaxOf, RateLimit, RateLimiter,
};
use kubewright_runtime::{Key, Manager, ManagerOptions, Outcome};

use crate::manager::{replica, two_worlds};
use crate::operator::{Acts, KeyActs, Notes, Running, manager, options, touch};
use crate::world::{World, eventually, settle};

const MINUTE: Duration = Duration::from_mins(1);

/// Notes its key and fails.
fn failing(notes: &Notes) -> Acts<ConfigMap> {
    let notes = notes.clone();
    Acts::new(move |_, cx| {
        notes.push(cx.key().name());
        Box::pin(async { bail!("injected by the test") })
    })
}

/// Notes its key and requeues after a minute.
fn periodic(notes: &Notes) -> Acts<ConfigMap> {
    let notes = notes.clone();
    Acts::new(move |_, cx| {
        notes.push(cx.key().name());
        Box::pin(async { Ok(Outcome::requeue_after(MINUTE)) })
    })
}

#[tokio::test(start_paused = true)]
async fn a_requeue_has_its_requested_priority() -> Result<()> {
    let world = World::new();
    let (manager, notes) = (manager(&world)?, Notes::new());
    let (ask, asked) = tokio::sync::mpsc::channel(8);
    let noted = notes.clone();
    let acts = KeyActs::new(move |cx| {
        let (noted, name) = (noted.clone(), cx.key().name().to_owned());
        Box::pin(async move {
            noted.push(&name);
            tokio::time::sleep(Duration::from_secs(if name == "other" { 5 } else { 1 })).await;
            let again = Outcome::requeue_after(MINUTE);
            Ok(match &*name {
                "low" => again.priority(LOW_PRIORITY),
                "high" => again.priority(10),
                "none" => again,
                _ => Outcome::done(),
            })
        })
    });
    manager.key_controller("keys", acts).channel(asked).register()?;
    let running = Running::start(&manager);
    for name in ["low", "none", "high"] {
        ask.send(Key::cluster(name)).await?;
    }
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!(notes.take(), ["low", "none", "high"]);
    // A run is in progress when the three become ready, so that they are handed out by priority.
    tokio::time::sleep(Duration::from_millis(10_500)).await;
    ask.send(Key::cluster("other")).await?;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(notes.take(), ["other", "high", "none", "low"]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_controller_uses_its_rate_limiter() -> Result<()> {
    #[derive(Clone)]
    struct ByName;
    impl RateLimiter for ByName {
        fn when(&mut self, key: &Key, failures: u32, _: Duration) -> Duration {
            assert_eq!(key.name(), "a");
            Duration::from_secs(7) * (failures + 1)
        }
    }
    let fast_slow = FastSlow { fast: Duration::from_secs(1), slow: MINUTE, fast_tries: 2 };
    let bucket = BucketLimiter::new(RateLimit { interval: Duration::from_secs(10), burst: 1 });
    let cases: [(queue::Limiter, [u128; 4]); 4] = [
        (queue::Limiter::new(fast_slow), [1_000, 1_000, 60_000, 60_000]),
        (queue::Limiter::new(bucket.clone()), [0, 10_000, 10_000, 10_000]),
        (queue::Limiter::new(MaxOf(fast_slow, bucket)), [1_000, 9_000, 60_000, 60_000]),
        (queue::Limiter::new(ByName), [7_000, 14_000, 21_000, 28_000]),
    ];
    for (limiter, pauses) in cases {
        let world = World::new();
        world.config_maps(&["a"]).await?;
        // As the default of all controllers of a manager.
        let queue = queue::Options { rate_limiter: Some(limiter), ..queue::Options::default() };
        let controllers = ControllerOptions { queue, ..ControllerOptions::default() };
        let options = ManagerOptions { controllers, ..options().namespaces(["default"]) };
        let (manager, notes) = (Manager::new(world.kube.clone(), options)?, Notes::new());
        manager.controller(failing(&notes)).register()?;
        let running = Running::start(&manager);
        tokio::time::sleep(MINUTE * 5).await;
        assert_eq!(notes.pauses("a")[..4], pauses);
        running.end().await?;
    }
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    manager.controller(failing(&notes)).rate_limiter(ByName).register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(MINUTE).await;
    assert_eq!(notes.pauses("a")[..2], [7_000, 14_000]);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn jitter_only_lengthens_retries_and_requeues() -> Result<()> {
    let world = World::new();
    let names: Vec<String> = (0..20).map(|number| format!("m{number}")).collect();
    world.config_maps(&names.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    let same = Backoff { base: MINUTE, max: MINUTE };
    for jitter in [0.0, 0.5] {
        let (manager, retries, requeues) = (manager(&world)?, Notes::new(), Notes::new());
        manager
            .controller(failing(&retries))
            .named("fails")
            .backoff(same)
            .backoff_jitter(jitter)
            .register()?;
        manager.controller(periodic(&requeues)).named("asks").requeue_jitter(jitter).register()?;
        let running = Running::start(&manager);
        tokio::time::sleep(Duration::from_secs(119)).await;
        for notes in [retries, requeues] {
            let mut pauses: Vec<u128> = names.iter().flat_map(|name| notes.pauses(name)).collect();
            assert_eq!(pauses.len(), names.len());
            assert!(pauses.iter().all(|pause| (60_000..=90_000).contains(pause)), "{pauses:?}");
            pauses.sort_unstable();
            pauses.dedup();
            if jitter > 0.0 {
                assert!(pauses.len() > 15, "{pauses:?}");
            } else {
                assert_eq!(pauses, [60_000]);
            }
        }
        running.end().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_controller_with_warmup_has_a_full_queue_when_it_is_elected() -> Result<()> {
    let (first, second) = two_worlds();
    first.config_maps(&["a", "b"]).await?;
    let leader = Manager::new(first.kube.clone(), replica("first"))?;
    let leading = Running::start(&leader);
    settle().await;
    let standby = Manager::new(second.kube.clone(), replica("second"))?;
    let (warm, cold) = (Notes::new(), Notes::new());
    standby.controller(Acts::<ConfigMap>::noting(&warm)).named("warm").warmup().register()?;
    standby.controller(Acts::<ConfigMap>::noting(&cold)).named("cold").register()?;
    let waiting = Running::start(&standby);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let page = standby.metrics().page(None).1;
    let queued =
        |name: &str| page.lines().find(|it| it.starts_with("workqueue_adds_total") && it.contains(name));
    assert!(queued("warm").is_some_and(|line| line.ends_with(" 2")), "{page}");
    assert!(queued("cold").is_none_or(|line| line.ends_with(" 0")), "{page}");
    assert_eq!((warm.len(), cold.len()), (0, 0), "nothing is reconciled before the election");
    // Events during the warmup are merged into the queued keys.
    touch::<ConfigMap>(&first, "a", "1").await?;
    settle().await;
    leading.end().await?;
    eventually("the election", || warm.len() > 0 && cold.len() > 0).await;
    settle().await;
    let names = |notes: &Notes| {
        let mut names: Vec<String> =
            notes.all().into_iter().filter(|name| matches!(&**name, "a" | "b")).collect();
        names.sort();
        names
    };
    assert_eq!((names(&warm), names(&cold)), (vec!["a".into(), "b".into()], vec!["a".into(), "b".into()]));
    waiting.end().await
}
