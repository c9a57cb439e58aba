//! The runtime of Kubernetes operators, modelled on controller-runtime.
//!
//! Operators import it through the crate `kubewright`, which adds command-line flags and an entry point.
//!
//! # A tour
//!
//! - [`Manager`] owns all other components and starts and stops them in order.
//! - [`Reconciler`] is the trait that an operator implements: it receives an object and a [`Context`], and returns an
//!   [`Outcome`] or a [`ReconcileError`]. [`reconcile_fn`] turns an async function into a reconciler.
//! - [`controller`] connects a reconciler to the kinds that it watches.
//! - [`queue`] is the work queue: priorities, fairness, backoff.
//! - [`cache`] holds watched objects, with indexes. [`client`] reads from the cache and writes to the API server.
//! - [`informer`] and [`queue::WorkQueue`] are the parts of client-go, for a control loop without a manager.
//! - [`LeaderElectionOptions`] enable leader election. Replicas that do not lead cannot write: [`Client`] checks the
//!   deadline of the Lease before every write.
//! - [`events`], [`health`], [`metrics`] and [`logs`] are for observability.
//! - [`owner`], [`finalizer`], [`condition`], [`mod@object`] and [`apply`] are helpers for reconcilers.
//! - [`webhook`] serves admission and conversion webhooks.
//! - [`connect`] creates the HTTP client from a kubeconfig or a service account.
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
//! manager.clone().run_until(seen).await?; // an operator calls run(), which returns on SIGTERM
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//!
//! - A key is never reconciled concurrently, and not before the cache has seen the writes of its last reconcile.
//! - A controller sends no write once another replica may lead.
//! - A panic, a timeout or an error affects one reconcile only.
//! - Runs are deterministic: the same seed gives the same run, because all randomness and all clocks are injected.

/// Runs reconcile functions of kube-rs on the controllers of this crate.
pub mod adapter {
    pub use crate::reconcile::adapter::{Action, adapt};
}
pub mod apply;
pub mod cache;
mod certs;
pub mod client;
mod clock;
pub mod condition;
pub mod connect;
pub mod controller;
mod debug_page;
mod decode;
mod election;
mod error;
pub mod events;
mod eventually;
mod fence;
pub mod finalizer;
pub mod health;
mod http;
pub mod informer;
pub mod internal;
mod journal;
mod key;
mod kind;
mod list;
pub mod logs;
mod manager;
pub mod metrics;
pub mod object;
pub mod owner;
mod panics;
mod profiling;
mod query;
pub mod queue;
mod reconcile;
#[cfg(test)]
#[expect(dead_code, reason = "unit tests use only some of the helpers")]
#[path = "../tests/it/seeds.rs"]
mod seeds;
pub mod selector;
mod serve;
mod traces;
pub mod webhook;

pub use cache::{Cache, CacheOptions, CacheOptionsError, KindOptions};
pub use client::{Client, Delete, Patch, Upsert};
pub use clock::{Clock, SystemClock, TokioClock};
pub use election::{LeaderElectionOptions, LeaderElectionOptionsError};
pub use eventually::{ConsistentlyError, EventuallyError, consistently, eventually};
pub use key::Key;
pub use kind::{Gvk, Kind, Object, Scope};
pub use list::ListOptions;
pub use manager::{
    Addresses, Cluster, Handle, Manager, ManagerError, ManagerOptions, RegisterError, TaskContext,
};
pub use object::object;
pub use reconcile::{
    Context, Error as ReconcileError, FunctionReconciler, KeyReconciler, Outcome, ReconcileFunction,
    ReconcileId, Reconciler, Result, Terminal, is_terminal, reconcile_fn, terminal,
};
pub use selector::LabelSelector;
pub use serve::{AddressError, BindAddress};
