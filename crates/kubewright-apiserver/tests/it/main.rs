//! Unmodified clients on the embedded server, and everything that they may count on.

mod api;
mod applying;
mod auth;
mod concurrency;
mod custom;
mod discovery;
mod fuzz;
mod given;
mod hostile;
mod logs;
mod policies;
mod rbac;
mod runtime;
mod transports;
mod vendors;
mod watching;
mod webhooks;
mod world;
mod worlds;
