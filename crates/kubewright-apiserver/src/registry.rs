//! The registry: the served resources, their rules, and the path of a write to the store.
//!
//! [`resource`] has the resources and [`strategy`] the rules of each. [`write`] is the path of every create and
//! update. [`subresources`] has the handlers of scale, binding, eviction, token and logs. Only this module commits to
//! the store.

pub(crate) mod conversion;
pub(crate) mod crd_resource;
pub(crate) mod kinds;
pub(crate) mod resource;
pub(crate) mod service_ips;
mod shared_list;
pub(crate) mod strategy;
pub(crate) mod subresources;
pub(crate) mod write;
