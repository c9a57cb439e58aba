//! Tests starts that the operator missed, and clocks that jump.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use anyhow::Result;
use kubewright::jiff::{SignedDuration, Timestamp};
use kubewright::{Clock, Manager, ManagerOptions, TokioClock};
use serde_json::json;

use crate::world::World;

/// The start of the clock of the control plane.
const START: &str = "2026-01-01T00:00:00Z";

#[tokio::test(start_paused = true)]
async fn a_start_missed_while_the_operator_was_down_is_made_up_for_once() -> Result<()> {
    let mut world = World::without_operator().await?;
    world.start_operator()?;
    world.create("hourly", json!({ "schedule": "0 * * * *" })).await?;
    world.wait_until(1, 0, 30).await;
    world.stop_operator().await?;
    world.wait_until(4, 30, 0).await;
    assert_eq!(world.times("hourly").await?, ["01:00:00"]);
    world.start_operator()?;
    world.wait_until(4, 31, 0).await;
    assert_eq!(world.times("hourly").await?, ["01:00:00", "04:00:00"]);
    world.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_start_is_not_made_up_for_after_its_deadline() -> Result<()> {
    let mut world = World::without_operator().await?;
    let hourly = |deadline: u64| json!({ "schedule": "0 * * * *", "startingDeadlineSeconds": deadline });
    world.create("late", hourly(20 * 60)).await?;
    world.create("in-time", hourly(40 * 60)).await?;
    world.wait_until(1, 30, 0).await;
    world.start_operator()?;
    world.wait_until(1, 31, 0).await;
    assert!(world.times("late").await?.is_empty());
    assert_eq!(world.times("in-time").await?, ["01:00:00"]);
    // The next start is on time.
    world.wait_until(2, 0, 30).await;
    assert_eq!(world.times("late").await?, ["02:00:00"]);
    assert_eq!(world.times("in-time").await?, ["01:00:00", "02:00:00"]);
    world.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_suspended_start_is_not_made_up_for_after_its_deadline() -> Result<()> {
    let mut world = World::without_operator().await?;
    world.start_operator()?;
    let spec = json!({ "schedule": "*/5 * * * *", "suspend": true, "startingDeadlineSeconds": 30 });
    world.create("suspended", spec).await?;
    world.wait_until(0, 7, 0).await;
    world.change("suspended", |it| it.spec.suspend = Some(false)).await?;
    world.wait_until(0, 9, 0).await;
    assert!(world.times("suspended").await?.is_empty());
    world.wait_until(0, 10, 30).await;
    assert_eq!(world.times("suspended").await?, ["00:10:00"]);
    world.stop().await
}

#[tokio::test(start_paused = true)]
async fn too_many_missed_starts_are_reported_and_a_deadline_ends_them() -> Result<()> {
    let mut world = World::without_operator().await?;
    world.create("minutely", json!({ "schedule": "* * * * *" })).await?;
    world.wait_until(2, 0, 0).await;
    world.start_operator()?;
    world.wait_until(2, 5, 30).await;
    assert!(world.times("minutely").await?.is_empty());
    let (status, reason, message) = world.ready("minutely").await?;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "TooManyMissedTimes"));
    let expected = "Too many missed start times (> 100). Set or decrease spec.startingDeadlineSeconds, or check clock skew";
    assert_eq!(message, expected);
    assert_eq!(world.notes("TooManyMissedTimes").await?, [expected]);

    world.change("minutely", |it| it.spec.starting_deadline_seconds = Some(45)).await?;
    world.wait_until(2, 6, 30).await;
    assert_eq!(world.times("minutely").await?, ["02:05:00", "02:06:00"]);
    assert_eq!(world.ready("minutely").await?.0, "True");
    world.stop().await
}

/// A wall clock that can be set. Timers are not affected.
struct WallClock {
    timers: TokioClock,
    seconds: AtomicI64,
}

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        let offset = SignedDuration::from_secs(self.seconds.load(Ordering::Relaxed));
        self.timers.now().saturating_add(offset).unwrap_or(Timestamp::MAX)
    }
}

/// A control plane with an operator whose clock can be set.
async fn with_wall_clock() -> Result<(World, Arc<WallClock>)> {
    let timers = TokioClock::starting_at(START.parse()?);
    let clock = Arc::new(WallClock { timers, seconds: AtomicI64::new(0) });
    let mut world = World::without_operator().await?;
    let options = ManagerOptions { clock: clock.clone(), ..ManagerOptions::new("cronjob") };
    world.run(Manager::new(world.env.client(), options)?)?;
    Ok((world, clock))
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_forward_starts_the_latest_missed_job() -> Result<()> {
    let (world, clock) = with_wall_clock().await?;
    world.create("hourly", json!({ "schedule": "0 * * * *" })).await?;
    world.wait_until(1, 0, 30).await;
    assert_eq!(world.times("hourly").await?, ["01:00:00"]);
    // 03:45 on the wall clock.
    clock.seconds.store(2 * 3600 + 44 * 60 + 30, Ordering::Relaxed);
    world.wait_until(1, 11, 0).await;
    assert_eq!(world.times("hourly").await?, ["01:00:00", "03:00:00"]);
    // 04:00 on the wall clock is 01:15:30 by the timers.
    world.wait_until(1, 16, 0).await;
    assert_eq!(world.times("hourly").await?, ["01:00:00", "03:00:00", "04:00:00"]);
    world.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_starts_no_job_twice() -> Result<()> {
    let (world, clock) = with_wall_clock().await?;
    world.create("hourly", json!({ "schedule": "0 * * * *" })).await?;
    world.wait_until(2, 0, 30).await;
    assert_eq!(world.times("hourly").await?, ["01:00:00", "02:00:00"]);
    // The wall clock passes 01:00 and 02:00 again.
    clock.seconds.store(-3600 - 30 * 60, Ordering::Relaxed);
    world.wait_until(4, 0, 0).await;
    assert_eq!(world.times("hourly").await?, ["01:00:00", "02:00:00"]);
    // 03:00 on the wall clock is 04:30 by the timers.
    world.wait_until(4, 31, 0).await;
    assert_eq!(world.times("hourly").await?, ["01:00:00", "02:00:00", "03:00:00"]);
    world.stop().await
}
