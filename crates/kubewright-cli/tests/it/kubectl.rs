//! The real kubectl on the real binary: what a user types, and what the terminal shows.
//!
//! Every test starts a server of its own, so that all of them run at once. No flag is there for the server's sake.

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
pub(crate) mod process;
mod redact;
mod replace;
mod rollout;
mod server_side;
mod trace;
mod wait;
mod watch;
mod workloads;
