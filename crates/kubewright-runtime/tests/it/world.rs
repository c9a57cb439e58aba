//! Test fixtures: a server per test, clients over a connection that can fail, and small objects.
//!
//! Every server has a fixed seed and tokio's clock, so that tests on a paused runtime control the time and are
//! reproducible. Waits have a timeout and fail after it.

pub(crate) mod faults;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DeleteParams, PostParams};
use kube::{CustomResource, CustomResourceExt as _, KubeSchema};
use kubewright_apiserver::clock::TokioClock;
use kubewright_apiserver::{ApiServer, Options};
use kubewright_runtime::{Cache, CacheOptions, Client};
use serde::{Deserialize, Serialize};
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) use self::faults::{Effect, Faults, RecordedRequest};

/// 2026-01-01T00:00:00Z in microseconds.
pub(crate) const START: i64 = 1_767_225_600_000_000;

/// A generous timeout, so that a hanging test fails. The clock of the tests is paused, so it costs no real time.
const DEADLINE: Duration = Duration::from_mins(1);

/// A server and a connection to it that can fail.
pub(crate) struct World {
    pub(crate) server: ApiServer,
    /// The connection of [`World::kube`] and everything built on it.
    pub(crate) faults: Faults,
    /// kube's client over that connection, without socket and TLS.
    pub(crate) kube: kube::Client,
    /// kube's client directly on the server, for the test itself: it never fails, and its requests are not counted.
    pub(crate) direct: kube::Client,
}

/// A cache that runs until this is dropped.
pub(crate) struct RunningCache {
    pub(crate) cache: Cache,
    pub(crate) task: tokio::task::JoinHandle<()>,
    _stop: DropGuard,
}

impl RunningCache {
    pub(crate) fn start(kube: kube::Client, options: CacheOptions) -> Self {
        let cache = Cache::new(CacheOptions { seed: Some(1), ..options }).expect("the options are valid");
        let cancel = CancellationToken::new();
        let task = tokio::spawn(cache.run(kube, cancel.clone()));
        Self { cache, task, _stop: cancel.drop_guard() }
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(options())
    }

    pub(crate) fn with(options: Options) -> Self {
        Self::on(ApiServer::new(options))
    }

    /// Another connection to the same server, like that of another process. It fails independently.
    pub(crate) fn on(server: ApiServer) -> Self {
        let faults = Faults::default();
        let kube = kube::Client::new(faults.connection(server.clone()), "default");
        let direct = kube::Client::new(server.clone(), "default");
        Self { server, faults, kube, direct }
    }

    /// Runs a cache on this connection.
    pub(crate) fn cache(&self, options: CacheOptions) -> RunningCache {
        RunningCache::start(self.kube.clone(), options)
    }

    /// A client without a cache, on this connection.
    pub(crate) fn client(&self) -> Client {
        Client::new(self.kube.clone())
    }

    /// A client that reads from a cache, on this connection.
    pub(crate) fn cached(&self, cache: &Cache) -> Client {
        Client::cached(self.kube.clone(), cache.clone())
    }

    /// kube's API of a kind in the default namespace, directly on the server.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    {
        Api::default_namespaced(self.direct.clone())
    }

    pub(crate) async fn namespace(&self, name: &str) -> Result<()> {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        Api::all(self.direct.clone()).create(&PostParams::default(), &namespace).await?;
        Ok(())
    }

    /// Installs the CRD of [`Widget`].
    pub(crate) async fn widgets(&self) -> Result<()> {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.direct.clone());
        definitions.create(&PostParams::default(), &Widget::crd()).await?;
        Ok(())
    }

    /// Deletes the CRD of [`Widget`] with all its objects.
    pub(crate) async fn uninstall_widgets(&self) -> Result<()> {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.direct.clone());
        definitions.delete(Widget::crd_name(), &DeleteParams::default()).await?;
        Ok(())
    }

    /// Creates ConfigMaps in the default namespace.
    pub(crate) async fn config_maps(&self, names: &[&str]) -> Result<()> {
        for name in names {
            self.api().create(&PostParams::default(), &config_map(name)).await?;
        }
        Ok(())
    }
}

pub(crate) fn options() -> Options {
    Options { clock: Arc::new(TokioClock::starting_at(START)), seed: Some(1), ..Options::default() }
}

/// Waits for `future`, with a timeout.
pub(crate) async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    within(DEADLINE, what, future).await
}

/// Waits for `future`, at most this long.
pub(crate) async fn within<F: Future>(limit: Duration, what: &str, future: F) -> F::Output {
    let Ok(output) = tokio::time::timeout(limit, future).await else {
        panic!("{what} took longer than {limit:?}");
    };
    output
}

/// Waits until a condition holds, with a timeout.
pub(crate) async fn eventually(what: &str, so: impl FnMut() -> bool) {
    eventually_within(DEADLINE, what, so).await;
}

/// Waits until a condition holds, at most this long.
pub(crate) async fn eventually_within(limit: Duration, what: &str, mut so: impl FnMut() -> bool) {
    within(limit, what, async {
        let mut pause = Duration::from_millis(1);
        while !so() {
            // On the paused clock, all other tasks run until they are idle first.
            tokio::time::sleep(pause).await;
            pause = (pause * 9 / 8).min(Duration::from_millis(100));
        }
    })
    .await;
}

/// Lets all tasks run until they are idle.
pub(crate) async fn settle() {
    // On the paused clock this returns when all other tasks are idle.
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// An object from JSON, which is shorter than the typed structs.
pub(crate) fn object<K: serde::de::DeserializeOwned>(json: serde_json::Value) -> K {
    serde_json::from_value(json).expect("the object of the test is valid")
}

pub(crate) fn config_map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some("default".to_owned()),
            ..ObjectMeta::default()
        },
        data: Some([("key".to_owned(), "value".to_owned())].into()),
        ..ConfigMap::default()
    }
}

pub(crate) fn pod(name: &str) -> Pod {
    object(serde_json::json!({
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "nginx"}]},
    }))
}

/// A custom resource.
#[derive(CustomResource, KubeSchema, Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[kube(
    group = "example.org",
    version = "v1",
    kind = "Widget",
    namespaced,
    status = "WidgetStatus",
    derive = "PartialEq",
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.replicas"),
    selectable = ".spec.color"
)]
pub(crate) struct WidgetSpec {
    pub(crate) color: String,
    #[serde(default = "one")]
    pub(crate) replicas: i32,
}

#[derive(KubeSchema, Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct WidgetStatus {
    #[serde(default)]
    pub(crate) replicas: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) phase: Option<String>,
}

fn one() -> i32 {
    1
}

pub(crate) fn widget(name: &str, color: &str) -> Widget {
    let mut widget = Widget::new(name, WidgetSpec { color: color.to_owned(), replicas: 1 });
    widget.metadata.namespace = Some("default".to_owned());
    widget
}
