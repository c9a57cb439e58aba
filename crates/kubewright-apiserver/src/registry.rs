//! The registry: the served resources, their rules, and the path of a write to the store.
//!
//! [`resource`] has the resources and [`strategy`] the rules of each. [`write`] is the path of every create and
//! update, [`delete`] that of every deletion. [`subresources`] has the handlers of scale, binding, eviction, token and
//! logs. Only [`store`] commits: it has the only [`WriteHandle`](crate::storage::WriteHandle) of the storage.

pub(crate) mod conversion;
pub(crate) mod crd_resource;
pub(crate) mod delete;
pub(crate) mod lister;
pub(crate) mod resource;
pub(crate) mod resources;
pub(crate) mod service_ips;
mod shared_list;
pub(crate) mod store;
pub(crate) mod strategy;
pub(crate) mod subresources;
pub(crate) mod write;
