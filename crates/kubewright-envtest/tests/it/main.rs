//! Tests of test environments.

mod chapter;
mod environments;
mod existing;
mod faults;
mod markdown_view;
mod observing;
mod permissions;
mod runtime;
mod spawned;
mod tutorial;
mod users;
mod webhooks;
