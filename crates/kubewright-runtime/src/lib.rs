//! The runtime of Kubernetes operators.

pub mod cache;
pub mod certs;
pub mod client;
mod clock;
pub mod condition;
pub mod connect;
pub mod controller;
mod election;
mod error;
pub mod events;
mod eventually;
mod fence;
pub mod health;
mod key;
mod kind;
mod list;
pub mod logs;
mod manager;
pub mod metrics;
pub mod owner;
mod query;
pub mod queue;
mod reconcile;
pub mod selector;
pub mod serve;
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
pub use list::List;
pub use manager::{Manager, ManagerError, ManagerOptions, RegisterError, TaskContext};
pub use reconcile::{Context, Error, KeyReconciler, Outcome, ReconcileId, Reconciler, Result};
pub use selector::LabelSelector;
