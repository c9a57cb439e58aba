//! The page that shows what an operator does, for `kubewright dev` and for managers.
//!
//! - [`assets`] is the page itself: plain HTML, CSS and modules, without a build step;
//! - [`model`] keeps a bounded amount of what happened and publishes it as numbered entries;
//! - [`readiness`] is the rule that decides whether an object is ready;
//! - [`shared`] notifies readers of new entries;
//! - [`ManagerPage`] is the read-only page of a manager, at `--debug-page-bind-address`.
//!
//! `kubewright dev` has its own sources and its own server, and uses the first four. Both pages only read.

#[doc(hidden)]
pub mod assets;
mod manager;
#[doc(hidden)]
pub mod model;
#[doc(hidden)]
pub mod readiness;
#[doc(hidden)]
pub mod shared;

pub use manager::ManagerPage;
