//! The runtime of Kubernetes operators.

pub mod cache;
pub mod client;
mod clock;
pub mod fence;
mod key;
mod kind;
mod list;
mod query;
pub mod selector;
mod wire;
pub mod queue;
pub mod certs;
mod clock;
pub mod connect;
pub mod health;
mod key;
mod kind;
pub mod metrics;
pub mod serve;
pub mod condition;
pub mod events;
mod eventually;
mod key;
mod kind;
pub mod logs;
pub mod owner;

pub use cache::{Cache, CacheOptions, KindOptions};
pub use client::{Client, Delete, Patch, Upsert};
pub use clock::{Clock, SystemClock, TokioClock};
pub use eventually::{NeverError, NotConsistentError, consistently, eventually};
pub use key::Key;
pub use kind::{Gvk, Kind, Object, Scope};
pub use list::List;
pub use selector::LabelSelector;
