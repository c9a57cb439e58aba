//! Environments as tests use them.

mod chapter;
mod environments;
mod faults;
mod markdown_view;
mod observing;
mod runtime;
mod spawned;
mod tutorial;
mod users;
