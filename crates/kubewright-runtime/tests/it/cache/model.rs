//! The cache against the server: after any sequence of writes and failures, they agree.
//!
//! Two of three namespaces are watched. Objects start and stop matching the selector, and are transformed and indexed.
//! At any time an index agrees with the objects, a list by labels with a filter over all objects, and no object goes
//! back to an older version.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kubewright_apiserver::Options;
use kubewright_apiserver::storage::Limits;
use kubewright_runtime::cache::{Change, Entry, Informer, Removal};
use kubewright_runtime::{CacheOptions, Key, KindOptions, LabelSelector, ListOptions};
use proptest::prelude::*;
use serde_json::json;

use super::is_map_watch;
use crate::world::{Effect, RecordedRequest, World, config_map, options, soon};

/// The last one is not watched.
const NAMESPACES: [&str; 3] = ["default", "other", "unwatched"];
const NAMES: u8 = 5;
/// The values of the label `x`. The selector matches the first two.
const VALUES: [&str; 4] = ["0", "1", "2", "3"];
const SELECTOR: &str = "x in (0,1)";
/// Objects with an odd value of `x` have the label `odd` with the same value.
const LISTED: [&str; 9] =
    ["x=1", "x in (0,3)", "x!=2", "odd", "!odd", "odd=1,x", "x notin (0,1),odd", "!odd,x in (0,1,2)", "none"];

/// The namespace and name of an object, as numbers.
type Place = (usize, u8);

#[derive(Debug, Clone)]
enum Step {
    Create(Place, usize),
    Label(Place, usize),
    Delete(Place),
    /// Breaks the open watches of a namespace, or of all.
    Cut(usize),
    /// Ends them as the server does.
    End(usize),
    /// Ends them because their resourceVersion is too old.
    Expire(usize),
    /// Delivers nothing until the watch times out or the next fault.
    Stall(usize),
    /// Fails the next requests.
    Fail(u8, Effect),
    /// The follower reads its changes.
    Read,
    Wait(u16),
}

fn step() -> impl Strategy<Value = Step> {
    let effect = prop_oneof![
        Just(Effect::Refuse),
        Just(Effect::Lose),
        Just(Effect::Hang),
        Just(Effect::Status(403, "Forbidden")),
        Just(Effect::Status(500, "InternalError")),
        Just(Effect::Status(410, "Expired")),
        Just(Effect::Delay(Duration::from_secs(3))),
    ];
    let place = || (0..NAMESPACES.len(), 0..NAMES);
    let value = || 0..VALUES.len();
    let watches = || 0..NAMESPACES.len();
    prop_oneof![
        6 => (place(), value()).prop_map(|(place, value)| Step::Create(place, value)),
        6 => (place(), value()).prop_map(|(place, value)| Step::Label(place, value)),
        4 => place().prop_map(Step::Delete),
        2 => watches().prop_map(Step::Cut),
        1 => watches().prop_map(Step::End),
        2 => watches().prop_map(Step::Expire),
        1 => watches().prop_map(Step::Stall),
        1 => (1..3u8, effect).prop_map(|(times, effect)| Step::Fail(times, effect)),
        3 => Just(Step::Read),
        6 => (0..5_000u16).prop_map(Step::Wait),
    ]
}

/// The options of the tested cache.
#[derive(Debug, Clone, Copy)]
struct Setup {
    /// The server does not stream lists.
    pages: bool,
    /// The number of events that the server keeps.
    memory: usize,
    /// The cache has only the objects of [`SELECTOR`].
    selects: bool,
    /// The cache drops the data of each object.
    transforms: bool,
}

fn setup() -> impl Strategy<Value = Setup> {
    let memory = prop_oneof![Just(4usize), Just(100_000)];
    (any::<bool>(), memory, any::<bool>(), any::<bool>())
        .prop_map(|(pages, memory, selects, transforms)| Setup { pages, memory, selects, transforms })
}

type Known = BTreeMap<Key, u64>;

/// The state that one reader has seen.
#[derive(Default)]
struct Reader {
    known: Known,
    /// The highest version of each key.
    highest: Known,
    /// The uids of objects that were reported as deleted.
    deleted: BTreeSet<String>,
}

impl Reader {
    fn sees(&mut self, entry: &Entry) -> Result<()> {
        let highest = self.highest.entry(entry.key().clone()).or_default();
        ensure!(entry.version() >= *highest, "{entry:?} was seen after version {highest}");
        *highest = entry.version();
        Ok(())
    }

    /// Applies the changes of a follower.
    fn follows(&mut self, setup: Setup, changes: Vec<Change>) -> Result<()> {
        for change in changes {
            let key = change.latest().key().clone();
            self.sees(change.latest())?;
            match (change.new, change.removal) {
                (Some(new), None) => drop(self.known.insert(key, new.version())),
                (None, Some(removal)) => {
                    self.known.remove(&key);
                    ensure!(setup.selects || removal == Removal::Deleted, "{key}: {removal:?}");
                    if removal == Removal::Deleted {
                        self.deleted.extend(change.old.map(|old| old.uid()));
                    }
                }
                (new, removal) => anyhow::bail!("{key} is {new:?} and {removal:?}"),
            }
        }
        Ok(())
    }

    /// Reads the cache: no version goes back, and the index has exactly the objects with its value.
    fn reads(&mut self, setup: Setup, informer: &Informer) -> Result<()> {
        if !informer.is_synced() {
            return Ok(());
        }
        let all = informer.entries(&ListOptions::all())?;
        for entry in &all {
            self.sees(entry)?;
            ensure!(entry.key().namespace() != Some(NAMESPACES[2]), "{entry:?} is not watched");
            let has_data = String::from_utf8_lossy(entry.json()).contains("\"data\"");
            ensure!(has_data != setup.transforms, "{entry:?} is transformed: {}", !has_data);
        }
        for value in VALUES {
            for namespace in NAMESPACES.into_iter().map(Some).chain([None]) {
                let list = namespace.map_or_else(ListOptions::all, ListOptions::namespace);
                let here = |entry: &Entry| namespace.is_none_or(|it| entry.key().namespace() == Some(it));
                let has = |entry: &Entry| entry.marks().labels.get("x").is_some_and(|x| x == value);
                let labelled = all.iter().filter(|entry| here(entry) && has(entry));
                let labelled: Vec<&Key> = labelled.map(|entry| entry.key()).collect();
                let found = informer.entries(&list.field("x", value))?;
                let found: Vec<&Key> = found.iter().map(|entry| entry.key()).collect();
                ensure!(
                    found == labelled,
                    "x={value} in {namespace:?}: found {found:?}, labelled {labelled:?}"
                );
            }
        }
        for (selector, namespace) in LISTED.iter().flat_map(|it| [None, Some("default")].map(|ns| (it, ns))) {
            let list = namespace.map_or_else(ListOptions::all, ListOptions::namespace).labels(selector);
            let selector: LabelSelector = selector.parse()?;
            let here = |entry: &Entry| namespace.is_none_or(|it| entry.key().namespace() == Some(it));
            let matching = all.iter().filter(|entry| here(entry) && selector.matches(&entry.marks().labels));
            let matching: Vec<&Key> = matching.map(|entry| entry.key()).collect();
            let found = informer.entries(&list)?;
            let found: Vec<&Key> = found.iter().map(|entry| entry.key()).collect();
            ensure!(found == matching, "{selector} in {namespace:?}: found {found:?}, matching {matching:?}");
        }
        self.known = all.iter().map(|entry| (entry.key().clone(), entry.version())).collect();
        Ok(())
    }
}

/// The objects that the cache should have, and the uids of all objects.
async fn served(world: &World, setup: Setup) -> Result<(Known, BTreeSet<String>)> {
    let (mut known, mut uids) = (Known::new(), BTreeSet::new());
    for namespace in &NAMESPACES[..2] {
        let maps: Api<ConfigMap> = Api::namespaced(world.direct.clone(), namespace);
        for map in maps.list(&ListParams::default()).await? {
            uids.extend(map.metadata.uid.clone());
            let value = map.metadata.labels.as_ref().and_then(|labels| labels.get("x"));
            if !setup.selects || value.is_some_and(|value| VALUES[..2].contains(&&**value)) {
                let version = map.metadata.resource_version.as_deref().unwrap_or_default().parse()?;
                known.insert(Key::of(&map), version);
            }
        }
    }
    Ok((known, uids))
}

/// The value of the label `odd`.
fn odd(value: usize) -> Option<&'static str> {
    (value % 2 == 1).then_some(VALUES[value])
}

/// Writes an object. Errors because it already exists, or does not exist, are ignored.
async fn write(world: &World, step: &Step) {
    let maps = |namespace: &usize| Api::<ConfigMap>::namespaced(world.direct.clone(), NAMESPACES[*namespace]);
    match step {
        Step::Create((namespace, name), value) => {
            let mut map = config_map(&name.to_string());
            map.metadata.namespace = None;
            map.metadata.labels = Some([("x".to_owned(), VALUES[*value].to_owned())].into());
            if let Some(odd) = odd(*value) {
                map.metadata.labels.get_or_insert_default().insert("odd".to_owned(), odd.to_owned());
            }
            let _ = maps(namespace).create(&PostParams::default(), &map).await;
        }
        Step::Label((namespace, name), value) => {
            let patch =
                Patch::Merge(json!({"metadata": {"labels": {"x": VALUES[*value], "odd": odd(*value)}}}));
            let _ = maps(namespace).patch(&name.to_string(), &PatchParams::default(), &patch).await;
        }
        Step::Delete((namespace, name)) => {
            let _ = maps(namespace).delete(&name.to_string(), &DeleteParams::default()).await;
        }
        _ => {}
    }
}

async fn life(setup: Setup, steps: Vec<Step>) -> Result<()> {
    let limits = Limits { events: setup.memory, ..Limits::default() };
    let world = World::with(Options { limits, ..options() });
    for namespace in &NAMESPACES[1..] {
        world.namespace(namespace).await?;
    }
    if setup.pages {
        world
            .faults
            .every(Effect::Status(422, "Invalid"), |asked| asked.parameter("sendInitialEvents").is_some());
    }
    let options = CacheOptions { resync: Some(Duration::from_mins(7)), ..CacheOptions::default() };
    let mut kind = KindOptions::new().namespaces(NAMESPACES[..2].to_vec());
    if setup.selects {
        kind = kind.labels(SELECTOR);
    }
    if setup.transforms {
        kind = kind.transform(|map: &mut ConfigMap| map.data = None);
    }
    let running = world.cache(options.kind::<ConfigMap>(kind));
    running.cache.index::<ConfigMap>("x", |map| {
        map.metadata.labels.iter().filter_map(|labels| labels.get("x").cloned()).collect()
    })?;
    let informer = running.cache.informer::<ConfigMap>();
    let (mut follower, mut following, mut reading) =
        (informer.follower(), Reader::default(), Reader::default());
    let watches = |which: usize| {
        let part = (which < 2).then(|| format!("/{}/", NAMESPACES[which]));
        move |asked: &RecordedRequest| {
            is_map_watch(asked) && part.as_ref().is_none_or(|part| asked.path.contains(part))
        }
    };
    for step in steps {
        match step {
            Step::Create(..) | Step::Label(..) | Step::Delete(_) => write(&world, &step).await,
            Step::Cut(which) => drop(world.faults.cut(watches(which))),
            Step::End(which) => drop(world.faults.end(watches(which))),
            Step::Expire(which) => drop(world.faults.expire(watches(which))),
            Step::Stall(which) => drop(world.faults.stall(watches(which))),
            Step::Fail(times, effect) => {
                world
                    .faults
                    .next(times.into(), effect, |asked| asked.parameter("sendInitialEvents").is_none());
            }
            Step::Read => {
                while follower.waiting() > 0 {
                    following.follows(setup, follower.next().await.unwrap_or_default())?;
                }
            }
            Step::Wait(millis) => tokio::time::sleep(Duration::from_millis(millis.into())).await,
        }
        ensure!(follower.waiting() <= 2 * usize::from(NAMES), "an inbox grew beyond the objects");
        reading.reads(setup, &informer)?;
    }
    // A stalled watch times out after ten minutes, and a failed request is retried within two.
    tokio::time::sleep(Duration::from_mins(20)).await;
    world.faults.heal();
    tokio::time::sleep(Duration::from_mins(5)).await;
    soon("the list", informer.synced()).await?;
    while follower.waiting() > 0 {
        following.follows(setup, follower.next().await.unwrap_or_default())?;
    }
    reading.reads(setup, &informer)?;
    let (served, uids) = served(&world, setup).await?;
    ensure!(reading.known == served, "cached {:?}, served {served:?}", reading.known);
    ensure!(following.known == served, "followed {:?}, served {served:?}", following.known);
    let alive: Vec<&String> = following.deleted.intersection(&uids).collect();
    ensure!(alive.is_empty(), "reported as deleted, and exist: {alive:?}");
    ensure!(world.faults.watches(RecordedRequest::is_watch) == 2, "one watch per namespace is open");
    ensure!(running.cache.health().is_ok(), "{:?}", running.cache.health());
    Ok(())
}

proptest! {
    #![proptest_config(crate::seeds::cases(200))]

    #[test]
    fn the_cache_and_its_followers_converge_to_the_server(
        setup in setup(),
        steps in proptest::collection::vec(step(), 0..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
        if let Err(error) = runtime.block_on(life(setup, steps)) {
            return Err(TestCaseError::fail(format!("{error:?}")));
        }
    }
}
