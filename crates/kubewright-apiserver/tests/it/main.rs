//! Unmodified clients on the embedded server, and everything that they may count on.

mod admission;
mod api;
mod applying;
mod auth;
mod certificates;
mod concurrency;
mod custom;
mod discovery;
mod exchange;
mod fuzz;
mod given;
mod hostile;
mod logs;
mod negotiation;
mod policies;
mod rbac;
mod runtime;
mod tokens;
mod transports;
mod vendors;
mod watching;
mod webhooks;
mod world;
mod worlds;
