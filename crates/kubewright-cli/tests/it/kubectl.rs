//! The real kubectl against the real binary.
//!
//! Every test starts its own server, so tests run in parallel. kubectl needs no special flags.

mod admission;
mod apply;
mod auth;
pub(crate) mod cluster;
mod create;
mod credentials;
mod custom;
mod delete;
mod describe;
mod diff;
mod discovery;
mod edit;
mod errors;
mod explain;
mod get;
mod node;
mod objects;
mod patch;
mod policies;
pub(crate) mod process;
mod redact;
mod replace;
mod rollout;
mod server_side;
mod trace;
mod wait;
mod watch;
mod webhooks;
mod workloads;
