//! The cache against the server: whatever is written and whatever breaks, in the end they agree.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kubewright_apiserver::Options;
use kubewright_apiserver::storage::Limits;
use kubewright_runtime::cache::{Change, Informer};
use kubewright_runtime::{CacheOptions, Key, KindOptions, List};
use proptest::prelude::*;
use serde_json::json;

use super::is_map_watch;
use crate::world::{Asked, Effect, World, config_map, options, soon};

#[derive(Debug, Clone)]
enum Step {
    Create(u8),
    Label(u8, u8),
    Delete(u8),
    /// Breaks the open watch.
    Cut,
    /// Ends it as a server does.
    End,
    /// Tells it that it is too old.
    Expire,
    /// Delivers nothing any more, until it is given up or the next fault.
    Stall,
    /// The next requests fail.
    Fail(u8, Effect),
    /// The follower reads what waits.
    Read,
    Wait(u16),
}

fn step() -> impl Strategy<Value = Step> {
    let effect = prop_oneof![
        Just(Effect::Refuse),
        Just(Effect::Lose),
        Just(Effect::Hang),
        Just(Effect::Status(500, "InternalError")),
        Just(Effect::Status(410, "Expired")),
        Just(Effect::Delay(Duration::from_secs(3))),
    ];
    prop_oneof![
        6 => (0..6u8).prop_map(Step::Create),
        4 => (0..6u8, 0..4u8).prop_map(|(name, value)| Step::Label(name, value)),
        4 => (0..6u8).prop_map(Step::Delete),
        2 => Just(Step::Cut),
        1 => Just(Step::End),
        2 => Just(Step::Expire),
        1 => Just(Step::Stall),
        1 => (1..3u8, effect).prop_map(|(times, effect)| Step::Fail(times, effect)),
        3 => Just(Step::Read),
        6 => (0..5_000u16).prop_map(Step::Wait),
    ]
}

type Known = BTreeMap<Key, u64>;

/// Takes what a follower was told.
fn apply(known: &mut Known, changes: Vec<Change>) {
    for change in changes {
        let key = change.latest().key().clone();
        if let Some(new) = change.new {
            known.insert(key, new.version());
        } else {
            known.remove(&key);
        }
    }
}

fn cached(informer: &Informer) -> Known {
    let entries = informer.entries(&List::all()).expect("no selector is wrong");
    entries.iter().map(|entry| (entry.key().clone(), entry.version())).collect()
}

async fn served(world: &World) -> Result<Known> {
    let maps = world.api::<ConfigMap>().list(&ListParams::default()).await?;
    let version = |map: &ConfigMap| map.metadata.resource_version.as_deref().unwrap_or_default().parse();
    maps.items.iter().map(|map| Ok((Key::of(map), version(map)?))).collect()
}

async fn life(pages: bool, memory: usize, steps: Vec<Step>) -> Result<()> {
    let limits = Limits { events: memory, ..Limits::default() };
    let world = World::with(Options { limits, ..options() });
    if pages {
        world
            .faults
            .every(Effect::Status(422, "Invalid"), |asked| asked.parameter("sendInitialEvents").is_some());
    }
    let options = CacheOptions { resync: Some(Duration::from_mins(7)), ..CacheOptions::default() };
    let running = world.cache(options.kind::<ConfigMap>(KindOptions::new().namespaces(["default"])));
    let informer = running.cache.informer::<ConfigMap>();
    let mut follower = informer.follower();
    let mut known = Known::new();
    let maps: Api<ConfigMap> = world.api();
    for step in steps {
        match step {
            // That it is there already, or not at all, is fine.
            Step::Create(name) => {
                let _ = maps.create(&PostParams::default(), &config_map(&name.to_string())).await;
            }
            Step::Label(name, value) => {
                let patch = Patch::Merge(json!({"metadata": {"labels": {"x": value.to_string()}}}));
                let _ = maps.patch(&name.to_string(), &PatchParams::default(), &patch).await;
            }
            Step::Delete(name) => {
                let _ = maps.delete(&name.to_string(), &DeleteParams::default()).await;
            }
            Step::Cut => drop(world.faults.cut(is_map_watch)),
            Step::End => drop(world.faults.end(is_map_watch)),
            Step::Expire => drop(world.faults.expire(is_map_watch)),
            Step::Stall => drop(world.faults.stall(is_map_watch)),
            Step::Fail(times, effect) => {
                world
                    .faults
                    .next(times.into(), effect, |asked| asked.parameter("sendInitialEvents").is_none());
            }
            Step::Read => {
                while follower.waiting() > 0 {
                    apply(&mut known, follower.next().await.unwrap_or_default());
                }
            }
            Step::Wait(millis) => tokio::time::sleep(Duration::from_millis(millis.into())).await,
        }
        anyhow::ensure!(follower.waiting() <= 6, "an inbox grew beyond the objects");
    }
    // Whatever stalled is given up after ten minutes, and whatever failed is tried again within two.
    tokio::time::sleep(Duration::from_mins(20)).await;
    world.faults.heal();
    tokio::time::sleep(Duration::from_mins(5)).await;
    soon("the list", informer.synced()).await?;
    while follower.waiting() > 0 {
        apply(&mut known, follower.next().await.unwrap_or_default());
    }
    let served = served(&world).await?;
    anyhow::ensure!(cached(&informer) == served, "cached {:?}, served {served:?}", cached(&informer));
    anyhow::ensure!(known == served, "followed {known:?}, served {served:?}");
    anyhow::ensure!(world.faults.watches(Asked::is_watch) == 1, "one watch is open");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_cache_and_its_followers_agree_with_the_server_in_the_end(
        pages in any::<bool>(),
        memory in prop_oneof![Just(4usize), Just(100_000)],
        steps in proptest::collection::vec(step(), 0..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
        if let Err(error) = runtime.block_on(life(pages, memory, steps)) {
            return Err(TestCaseError::fail(format!("{error:?}")));
        }
    }
}
