//! The runtime on the API server that the environment variables select: embedded, the binaries of `KUBEBUILDER_ASSETS`,
//! or an existing cluster.
//!
//! The runtime's own tests cut connections and pause the clock, which needs the embedded server. These tests cover what
//! depends on the server's responses: lists, watches, selectors, writes, leases. They run on the real clock, each in
//! its own namespace.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DynamicObject, ObjectMeta};
use kubewright::rbac;
use kubewright_envtest::{Environment, RecordedRequest, eventually};
use kubewright_runtime::cache::{NamespaceOptions, Removal};
use kubewright_runtime::finalizer::{self, Event};
use kubewright_runtime::{
    Cache, CacheOptions, Context, Gvk, Key, KindOptions, LabelSelector, LeaderElectionOptions, ListOptions,
    Manager, ManagerOptions, Outcome, Patch, Reconciler,
};
use serde_json::json;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Longer than any operation here takes.
const SOON: Duration = Duration::from_secs(30);

fn config_map(namespace: &str, name: &str, labels: &[(&str, &str)]) -> ConfigMap {
    let labels = labels.iter().map(|(label, value)| ((*label).to_owned(), (*value).to_owned())).collect();
    ConfigMap {
        metadata: ObjectMeta {
            namespace: Some(namespace.to_owned()),
            name: Some(name.to_owned()),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        data: Some([("key".to_owned(), "value".to_owned())].into()),
        ..ConfigMap::default()
    }
}

/// A cache that runs until the guard is dropped.
fn cache(env: &Environment, options: CacheOptions) -> Result<(Cache, DropGuard)> {
    let cache = Cache::new(options)?;
    let cancel = CancellationToken::new();
    tokio::spawn(cache.run(env.client(), cancel.clone()));
    Ok((cache, cancel.drop_guard()))
}

fn only(namespace: &str) -> CacheOptions {
    CacheOptions { namespaces: vec![namespace.to_owned()], ..CacheOptions::default() }
}

fn names(cache: &Cache, list: &ListOptions) -> Result<Vec<String>> {
    Ok(cache.list::<ConfigMap>(list)?.iter().filter_map(|map| map.metadata.name.clone()).collect())
}

#[tokio::test]
async fn a_cache_agrees_with_the_server() -> Result<()> {
    let env = Environment::start().await?;
    let (namespace, client) = (env.namespace().await?, env.runtime_client());
    for at in 0..20 {
        let labels = [("app", ["web", "db"][at % 2]), ("tier", "x")];
        client.create(&config_map(&namespace, &format!("m{at:02}"), &labels[..=(at % 3 % 2)])).await?;
    }
    let (cache, _running) = cache(&env, only(&namespace))?;
    let by_tier = cache.index::<ConfigMap>("tier", |map| {
        map.metadata.labels.iter().filter_map(|labels| labels.get("tier").cloned()).collect()
    })?;
    cache.synced().await?;
    client.delete(&config_map(&namespace, "m03", &[])).await?;
    client.create(&config_map(&namespace, "later", &[("app", "web"), ("tier", "x")])).await?;
    let here = ListOptions::namespace(&namespace);
    eventually(SOON, async || {
        // A server may add its own objects, such as kube-root-ca.crt.
        let served = client.uncached().list::<ConfigMap>(&here).await?;
        let versions = |maps: &[Arc<ConfigMap>]| -> BTreeMap<Key, Option<String>> {
            maps.iter().map(|map| (Key::of(&**map), map.metadata.resource_version.clone())).collect()
        };
        ensure!(versions(&cache.list::<ConfigMap>(&here)?) == versions(&served), "the cache is behind");
        for selector in ["app=web", "app in (web,db),tier", "!tier", "app!=db"] {
            let parsed: LabelSelector = selector.parse()?;
            let matching =
                served.iter().filter(|map| parsed.matches(&map.metadata.labels.clone().unwrap_or_default()));
            let matching: Vec<String> = matching.filter_map(|map| map.metadata.name.clone()).collect();
            let list = here.clone().labels(selector);
            ensure!(names(&cache, &list)? == matching, "{selector} in the cache");
            let request = client.uncached().list::<ConfigMap>(&list).await?;
            ensure!(request.len() == matching.len(), "{selector} on the server");
        }
        ensure!(by_tier.get("x")?.len() == names(&cache, &here.clone().labels("tier=x"))?.len(), "the index");
        Ok(())
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn deselected_objects_are_distinguished_from_deleted_ones() -> Result<()> {
    let env = Environment::start().await?;
    let (namespace, client) = (env.namespace().await?, env.runtime_client());
    for name in ["leaves", "deleted"] {
        client.create(&config_map(&namespace, name, &[("x", "in")])).await?;
    }
    let selected = KindOptions::new().namespace(&namespace, NamespaceOptions::new().labels("x=in"));
    let (cache, _running) = cache(&env, CacheOptions::default().kind::<ConfigMap>(selected))?;
    let informer = cache.informer::<ConfigMap>();
    cache.synced().await?;
    ensure!(names(&cache, &ListOptions::all())? == ["deleted", "leaves"]);
    let mut follower = informer.follower();
    follower.next().await;
    let leaves = Patch::merge(json!({"metadata": {"labels": {"x": "out"}}}));
    client.patch(&config_map(&namespace, "leaves", &[]), &leaves).await?;
    client.delete(&config_map(&namespace, "deleted", &[])).await?;
    let mut removals = BTreeMap::new();
    while removals.len() < 2 {
        let changes = tokio::time::timeout(SOON, follower.next()).await?.unwrap_or_default();
        removals
            .extend(changes.iter().filter_map(|it| Some((it.latest().key().name().to_owned(), it.removal?))));
    }
    assert_eq!(removals["leaves"], Removal::Deselected);
    assert_eq!(removals["deleted"], Removal::Deleted);
    Ok(())
}

/// Copies `wanted` to `seen`, holds the object with a finalizer, and records cleanups.
#[derive(Clone, Default)]
struct Counts {
    /// How often it was about to repeat its own last write.
    stale: Arc<AtomicUsize>,
    cleaned: Arc<Mutex<Vec<String>>>,
}

impl Reconciler for Counts {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, cx: &Context) -> kubewright_runtime::Result<Outcome> {
        if !map.data.as_ref().is_some_and(|data| data.contains_key("wanted")) {
            return Ok(Outcome::done());
        }
        finalizer::run(cx.client(), map, "example.com/counts", async |event| match event {
            Event::Apply(map) => self.apply(map, cx).await,
            Event::Cleanup(map) => {
                self.cleaned.lock().unwrap().extend(map.metadata.name.clone());
                Ok(())
            }
        })
        .await?;
        Ok(Outcome::done())
    }
}

impl Counts {
    async fn apply(&self, map: &ConfigMap, cx: &Context) -> kubewright_runtime::Result<()> {
        let of = |map: &ConfigMap, name: &str| map.data.as_ref().and_then(|data| data.get(name).cloned());
        let wanted = of(map, "wanted");
        if of(map, "seen") == wanted {
            return Ok(());
        }
        // A reconcile that sees its own last write never writes the same value twice.
        let now = cx.client().uncached().get::<ConfigMap>(cx.key()).await?;
        if of(&now, "seen") == wanted {
            self.stale.fetch_add(1, Ordering::Relaxed);
        }
        cx.client().patch(map, &Patch::merge(json!({"data": {"seen": wanted}}))).await?;
        Ok(())
    }
}

#[tokio::test]
async fn a_controller_sees_its_own_writes_and_cleans_up() -> Result<()> {
    let env = Environment::start().await?;
    let (namespace, client) = (env.namespace().await?, env.runtime_client());
    let manager = env.manager_with(ManagerOptions::new("counts").namespaces([&*namespace]))?;
    let counts = Counts::default();
    manager.controller(counts.clone()).concurrency(4).register()?;
    let running = env.run(manager);
    for at in 0..5 {
        let mut map = config_map(&namespace, &format!("m{at}"), &[]);
        map.data = Some([("wanted".to_owned(), "0".to_owned())].into());
        client.create(&map).await?;
    }
    for turn in 1..=5 {
        for at in 0..5 {
            let patch = Patch::merge(json!({"data": {"wanted": turn.to_string()}}));
            client.patch(&config_map(&namespace, &format!("m{at}"), &[]), &patch).await?;
        }
    }
    eventually(SOON, async || {
        for map in client.uncached().list::<ConfigMap>(&ListOptions::namespace(&namespace)).await? {
            let data = map.data.clone().unwrap_or_default();
            ensure!(
                !data.contains_key("wanted") || data.get("seen").is_some_and(|seen| seen == "5"),
                "{data:?}"
            );
        }
        Ok(())
    })
    .await?;
    assert_eq!(
        counts.stale.load(Ordering::Relaxed),
        0,
        "a reconcile ran before the cache had seen its last write"
    );
    client.delete(&config_map(&namespace, "m3", &[])).await?;
    eventually(SOON, async || {
        let gone = client.uncached().get_opt::<ConfigMap>(&Key::namespaced(&namespace, "m3")).await?;
        ensure!(gone.is_none(), "the finalizer holds it");
        Ok(())
    })
    .await?;
    assert_eq!(*counts.cleaned.lock().unwrap(), ["m3"]);
    Ok(running.stop().await?)
}

#[tokio::test]
async fn one_of_two_replicas_leads_and_the_other_takes_over() -> Result<()> {
    let env = Environment::start().await?;
    let (namespace, client) = (env.namespace().await?, env.runtime_client());
    let replica = || -> Result<Manager> {
        let election = LeaderElectionOptions {
            namespace: Some(namespace.clone()),
            ..LeaderElectionOptions::new("runtime-suite")
        };
        let options = ManagerOptions { leader_election: Some(election), ..ManagerOptions::new("replica") };
        Ok(env.manager_with(options.namespaces([&*namespace]))?)
    };
    let holder = async || -> Result<String> {
        let lease = client.uncached().get::<Lease>(&Key::namespaced(&namespace, "runtime-suite")).await?;
        let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone()).unwrap_or_default();
        ensure!(!holder.is_empty(), "no one holds the Lease");
        Ok(holder)
    };
    let (first, second) = (replica()?, replica()?);
    let running = env.run(first.clone());
    tokio::time::timeout(SOON, first.elected()).await?;
    let held = holder().await?;
    let other = env.run(second.clone());
    // A leader releases its Lease on shutdown, so that the other replica does not wait until it expires.
    running.stop().await?;
    tokio::time::timeout(SOON, second.elected()).await?;
    assert_ne!(holder().await?, held);
    Ok(other.stop().await?)
}

#[tokio::test]
async fn an_apply_without_changes_is_not_a_write() -> Result<()> {
    let env = Environment::start().await?;
    let (namespace, client) = (env.namespace().await?, env.runtime_client());
    let wanted = config_map(&namespace, "applied", &[("app", "web")]);
    let first = client.apply(&wanted).await?;
    let again = client.apply(&wanted).await?;
    assert_eq!(first.metadata.resource_version, again.metadata.resource_version);
    let mut other = wanted.clone();
    other.data = Some([("key".to_owned(), "other".to_owned())].into());
    assert_ne!(client.apply(&other).await?.metadata.resource_version, first.metadata.resource_version);
    // An update with an old resourceVersion is rejected.
    let mut stale = first.clone();
    stale.data = None;
    assert!(client.update(&stale).await.unwrap_err().is_conflict());
    Ok(())
}

#[tokio::test]
async fn an_expired_watch_is_replaced_by_a_new_list() -> Result<()> {
    let env = Environment::start().await?;
    let (namespace, client) = (env.namespace().await?, env.runtime_client());
    for name in ["changed", "deleted", "kept"] {
        client.create(&config_map(&namespace, name, &[])).await?;
    }
    let (cache, _running) = cache(&env, only(&namespace))?;
    let informer = cache.informer::<ConfigMap>();
    cache.synced().await?;
    let mut follower = informer.follower();
    follower.next().await;
    let is_ours = |request: &RecordedRequest| request.is_watch() && request.is_of("configmaps");
    eventually(SOON, async || {
        ensure!(env.faults().watches(is_ours) == 1, "no watch is open");
        Ok(())
    })
    .await?;
    // The watch misses these writes, so only a list can show them.
    assert_eq!(env.faults().stall(is_ours), 1);
    let patch = Patch::merge(json!({"data": {"key": "new"}}));
    client.patch(&config_map(&namespace, "changed", &[]), &patch).await?;
    client.delete(&config_map(&namespace, "deleted", &[])).await?;
    client.create(&config_map(&namespace, "added", &[])).await?;
    env.faults().forget();
    assert_eq!(env.faults().expire(is_ours), 1);

    let expected = [("added", None), ("changed", None), ("deleted", Some(Removal::Deleted))];
    let expected = BTreeMap::from(expected.map(|(name, removal)| (name.to_owned(), removal)));
    let mut seen = BTreeMap::new();
    while seen.len() < expected.len() {
        let changes = tokio::time::timeout(SOON, follower.next()).await?.unwrap_or_default();
        let changes = changes.iter().map(|change| (change.latest().key().name().to_owned(), change.removal));
        // A server may add its own objects, such as kube-root-ca.crt.
        seen.extend(changes.filter(|(name, _)| expected.contains_key(name)));
    }
    assert_eq!(seen, expected);
    let changed = cache.get::<ConfigMap>(&Key::namespaced(&namespace, "changed"))?;
    assert_eq!(changed.and_then(|map| map.data.clone()).unwrap_or_default()["key"], "new");
    // One list, or one watch that starts with a list.
    let lists = |request: &RecordedRequest| {
        request.is_of("configmaps")
            && (request.verb == "list" || request.query.contains_key("sendInitialEvents"))
    };
    assert!(env.faults().count(lists) >= 1, "{:?}", env.faults().requests());
    Ok(())
}

const GAUGE: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gauges.runtime-suite.example.com}
spec:
  group: runtime-suite.example.com
  scope: Namespaced
  names: {plural: gauges, singular: gauge, kind: Gauge}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {level: {type: integer, maximum: 10}}}
          status: {type: object, properties: {level: {type: integer}}}
";

/// Copies `spec.level` of a kind that is not known at compile time to its status.
struct Gauges;

#[rbac(groups = "runtime-suite.example.com", resources = "gauges/status", verbs = "patch")]
impl Reconciler for Gauges {
    type Object = DynamicObject;

    async fn reconcile(&self, gauge: &DynamicObject, cx: &Context) -> kubewright_runtime::Result<Outcome> {
        cx.set_status(json!({ "level": gauge.data["spec"]["level"] })).await?;
        Ok(Outcome::done())
    }
}

#[tokio::test]
async fn a_controller_reconciles_a_kind_that_is_known_at_run_time_only() -> Result<()> {
    let env = Environment::start().await?;
    let (namespace, client) = (env.namespace().await?, env.runtime_client());
    let definition = kubewright_envtest::objects(GAUGE)?.remove(0).try_parse()?;
    env.install(&[definition]).await?;
    let gvk = Gvk::new("runtime-suite.example.com", "v1", "Gauge");
    let manager = env.manager_with(ManagerOptions::new("gauges").namespaces([&*namespace]))?;
    manager.dynamic_controller(client.kind(&gvk).await?, Gauges).register()?;
    let running = env.run(manager);
    let gauge = |level: u32| {
        json!({
            "apiVersion": "runtime-suite.example.com/v1", "kind": "Gauge",
            "metadata": { "name": "a", "namespace": namespace }, "spec": { "level": level },
        })
    };
    for level in [3, 7] {
        env.apply(serde_json::from_value(gauge(level))?).await?;
        eventually(SOON, async || {
            let gauge = client.uncached().get_dynamic(&gvk, &Key::namespaced(&namespace, "a")).await?;
            ensure!(gauge.data["status"]["level"] == level, "{}", gauge.data);
            Ok(())
        })
        .await?;
    }
    // The server validates the kind by its schema.
    assert!(env.apply(serde_json::from_value(gauge(11))?).await.is_err());
    let listed = client.uncached().list_dynamic(&gvk, &ListOptions::namespace(&namespace)).await?;
    assert_eq!(listed.iter().map(|gauge| &gauge.data["spec"]["level"]).collect::<Vec<_>>(), [&json!(7)]);
    Ok(running.stop().await?)
}
