//! The health of watches after the first list: readiness, metrics and log lines.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_runtime::Manager;

use super::is_map_watch;
use crate::operator::{Acts, Log, Notes, Running, manager, metric};
use crate::world::{Effect, World, eventually, eventually_within, settle, soon};

/// A manager that watches ConfigMaps in the default namespace.
async fn watching(world: &World) -> Result<(Manager, Running)> {
    world.config_maps(&["a"]).await?;
    let manager = manager(world)?;
    manager.controller(Acts::<ConfigMap>::noting(&Notes::new())).register()?;
    let running = Running::start(&manager);
    soon("the list", manager.cache().synced()).await?;
    assert_eq!(manager.cache().health(), Ok(()));
    Ok((manager, running))
}

fn of_watch(manager: &Manager, name: &str) -> f64 {
    let labels = r#"group="",version="v1",kind="ConfigMap",namespace="default",selection="""#;
    metric(manager, &format!("{name}{{{labels}}}")).expect("the informer has this metric")
}

fn age(manager: &Manager) -> f64 {
    of_watch(manager, "kubewright_informer_last_event_age_seconds")
}

fn failing(manager: &Manager) -> f64 {
    of_watch(manager, "kubewright_informer_failing_seconds")
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_fails_for_more_than_two_minutes_fails_readiness() -> Result<()> {
    let world = World::new();
    let (manager, running) = watching(&world).await?;
    tokio::time::sleep(Duration::from_secs(10)).await;
    world.faults.down();
    tokio::time::sleep(Duration::from_secs(110)).await;
    assert_eq!(manager.cache().health(), Ok(()), "a short outage does not count");
    assert!((100.0..=110.0).contains(&failing(&manager)), "{}", failing(&manager));
    tokio::time::sleep(Duration::from_secs(20)).await;
    let reason = manager.cache().health().unwrap_err();
    assert!(
        reason.starts_with("watch of v1, Kind=ConfigMap in namespace default has failed for 1"),
        "{reason}"
    );
    assert!(reason.contains("no response from the API server"), "{reason}");
    let failures = metric(
        &manager,
        r#"kubewright_informer_failures_total{group="",version="v1",kind="ConfigMap",reason="Connection"}"#,
    );
    assert!(failures.is_some_and(|failures| failures > 3.0), "{failures:?}");
    // Reads still return the last known objects.
    assert_eq!(manager.cache().list::<ConfigMap>(&kubewright_runtime::ListOptions::all())?.len(), 1);
    world.faults.heal();
    eventually_within(Duration::from_secs(62), "the watch", || manager.cache().health().is_ok()).await;
    assert!(failing(&manager) < 0.001);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_revoked_permission_fails_readiness_immediately() -> Result<()> {
    let log = Log::keep_from("warn")?;
    // On the watch, and on the list after the watch has expired.
    for relist in [false, true] {
        let world = World::new();
        let (manager, running) = watching(&world).await?;
        tokio::time::sleep(Duration::from_secs(10)).await;
        world.faults.every(Effect::Status(403, "Forbidden"), |asked| asked.path.contains("configmaps"));
        let cut = if relist { world.faults.expire(is_map_watch) } else { world.faults.end(is_map_watch) };
        assert_eq!(cut, 1);
        eventually("the refusal", || manager.cache().health().is_err()).await;
        let reason = manager.cache().health().unwrap_err();
        assert!(reason.contains("watch of v1, Kind=ConfigMap in namespace default"), "{reason}");
        assert!(reason.contains("Forbidden"), "{reason}");
        let labels = r#"group="",version="v1",kind="ConfigMap",reason="Forbidden""#;
        let refused = metric(&manager, &format!("kubewright_informer_failures_total{{{labels}}}"));
        assert_eq!(refused, Some(1.0));
        let lines = log.saying("List or watch is forbidden; check the RBAC rules of the operator");
        assert_eq!(lines.len(), 1 + usize::from(relist), "{lines:?}");
        world.faults.heal();
        eventually_within(Duration::from_secs(62), "the watch", || manager.cache().health().is_ok()).await;
        running.end().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_permission_that_is_missing_at_the_start_is_reported() -> Result<()> {
    let world = World::new();
    world.faults.every(Effect::Status(403, "Forbidden"), |_| true);
    let manager = manager(&world)?;
    manager.controller(Acts::<ConfigMap>::noting(&Notes::new())).register()?;
    let running = Running::start(&manager);
    settle().await;
    let reason = manager.cache().health().unwrap_err();
    let start = "not listed yet: v1, Kind=ConfigMap; watch of v1, Kind=ConfigMap in namespace default has failed for 0s: ";
    assert!(reason.starts_with(start), "{reason}");
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn the_age_of_the_last_event_is_a_metric() -> Result<()> {
    let world = World::new();
    let (manager, running) = watching(&world).await?;
    assert!(age(&manager) < 1.0);
    world.faults.stall(is_map_watch);
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert!((90.0..92.0).contains(&age(&manager)), "{}", age(&manager));
    assert!(failing(&manager) < 0.001, "an open watch has not failed");
    world.faults.heal();
    world.config_maps(&["b"]).await?;
    settle().await;
    assert!(age(&manager) < 1.0);
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_reopened_idle_watch_is_healthy() -> Result<()> {
    let world = World::new();
    let (manager, running) = watching(&world).await?;
    tokio::time::sleep(Duration::from_secs(10)).await;
    world.faults.down();
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert!(manager.cache().health().is_err());
    // From now on the server accepts watches and sends nothing.
    world.faults.heal();
    world.faults.every(Effect::Mute, is_map_watch);
    eventually_within(Duration::from_secs(62), "the watch", || world.faults.watches(is_map_watch) == 1).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(manager.cache().health(), Ok(()));
    assert!(failing(&manager) < 0.001);
    // Closing each watch immediately counts as a failure, even with status 200.
    world.faults.heal();
    world.faults.every(Effect::Answer(200, String::new()), is_map_watch);
    world.faults.end(is_map_watch);
    tokio::time::sleep(Duration::from_mins(5)).await;
    let reason = manager.cache().health().unwrap_err();
    assert!(reason.ends_with("the server closes watches immediately"), "{reason}");
    running.end().await
}
