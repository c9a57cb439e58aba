//! The runtime of Kubernetes operators: what controller-runtime is for Go.
//!
//! Operators import it through the crate `kubewright`, which adds flags and an entry point.
//!
//! # A tour
//!
//! - [`Manager`] owns everything else, and starts and ends it in order.
//! - [`Reconciler`] is what an operator's author writes: object in, [`Outcome`] or [`Error`] out, with a [`Context`].
//!   [`reconcile_fn`] makes one of an async function.
//! - [`controller`] says which objects a reconciler is for and what else concerns them.
//! - [`queue`] decides what runs next: priorities, fairness, backoff.
//! - [`cache`] keeps what is watched, with indexes; [`client`] reads from it and writes to the server.
//! - [`Election`] has one of several replicas lead, and [`Fence`] keeps the others from writing.
//! - [`events`], [`health`], [`metrics`], [`logs`] and the [`journal`] tell what goes on.
//! - [`owner`], [`finalizer`], [`condition`], [`mod@object`] and [`apply`] are for what most reconcilers do.
//! - [`webhook`] answers admission and conversion reviews.
//! - [`connect`] and [`serve`] are the network on both sides.
//!
//! # An operator
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kubewright_runtime::{Context, Key, Manager, ManagerOptions, Outcome, Patch, Reconciler, Result};
//! use serde_json::json;
//!
//! struct Labeller;
//!
//! impl Reconciler for Labeller {
//!     type Object = ConfigMap;
//!
//!     async fn reconcile(&self, map: &ConfigMap, cx: &Context) -> Result<Outcome> {
//!         let labelled = Patch::merge(json!({ "metadata": { "labels": { "seen": "true" } } }));
//!         cx.client().patch(map, &labelled).await?;
//!         Ok(Outcome::done())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = kubewright_apiserver::ApiServer::new(kubewright_apiserver::Options::default());
//! # let client = kube::Client::new(server, "default");
//! let manager = Manager::new(client, ManagerOptions::new("labeller").namespaces(["default"]))?;
//! manager.controller(Labeller).register()?;
//!
//! let map: ConfigMap = serde_json::from_value(json!({ "metadata": { "name": "a", "namespace": "default" } }))?;
//! manager.client().create(&map).await?;
//! let seen = async {
//!     let reader = manager.client().uncached();
//!     let key = Key::of(&map);
//!     while reader.get::<ConfigMap>(&key).await.unwrap().metadata.labels.is_none() {
//!         tokio::task::yield_now().await;
//!     }
//! };
//! manager.clone().run_until(seen).await?; // an operator calls run(), which ends with SIGTERM
//! # Ok(())
//! # }
//! ```
//!
//! # What stays true
//!
//! - One key is never reconciled twice at once, and not before the cache has seen its own last writes.
//! - No write of a controller leaves once somebody else may lead.
//! - A panic, a timeout or an error ends one reconcile and nothing else.
//! - The same seed gives the same run: nothing here reads a clock or draws lots by itself.

pub mod apply;
pub mod cache;
pub mod certs;
pub mod client;
mod clock;
pub mod condition;
pub mod connect;
pub mod controller;
mod decode;
mod election;
mod error;
pub mod events;
mod eventually;
mod fence;
pub mod finalizer;
pub mod health;
pub mod journal;
mod key;
mod kind;
mod list;
pub mod logs;
mod manager;
pub mod metrics;
pub mod object;
pub mod owner;
pub mod profiling;
mod query;
pub mod queue;
mod reconcile;
#[cfg(test)]
#[expect(dead_code, reason = "unit tests use a part of what the other tests use")]
#[path = "../tests/it/seeds.rs"]
mod seeds;
pub mod selector;
pub mod serve;
pub mod traces;
pub mod webhook;
mod wire;

pub use cache::{Cache, CacheOptions, KindOptions};
pub use client::{Client, Delete, Patch, Upsert};
pub use clock::{Clock, SystemClock, TokioClock};
pub use election::{
    Election, ElectionEnd, ElectionMetrics, ElectionOptions, ElectionOptionsError, Leadership,
};
pub use eventually::{NeverError, NotConsistentError, consistently, eventually};
pub use fence::{Deadline, Fence, Fenced};
pub use key::Key;
pub use kind::{Gvk, Kind, Object, Scope};
pub use kubewright_sync::ordered_watch;
pub use list::List;
pub use manager::{
    Addresses, Cluster, ControllerManifest, ConversionManifest, Handle, Manager, ManagerError,
    ManagerManifest, ManagerOptions, RegisterError, TaskContext,
};
pub use object::object;
pub use reconcile::{
    Context, Error, FunctionReconciler, KeyReconciler, Outcome, ReconcileFunction, ReconcileId, Reconciler,
    Result, Terminal, is_terminal, reconcile_fn, terminal,
};
pub use selector::LabelSelector;
