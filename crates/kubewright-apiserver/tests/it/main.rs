//! Unmodified clients on the embedded server, and everything that they may count on.

mod admission;
mod api;
mod applying;
mod auth;
mod concurrency;
mod custom;
mod discovery;
mod exchange;
mod fuzz;
mod garbage;
mod given;
mod hostile;
mod logs;
mod negotiation;
mod paging;
mod policies;
mod protobuf;
mod rbac;
mod runtime;
mod transports;
mod vendors;
mod watching;
mod webhooks;
mod world;
mod worlds;
