//! The recipes of docs/cookbook, each compiled and run.
//!
//! A file starts with the code of its page, up to the module `tests`, which runs it. This is a separate test
//! binary, because the generated role contains every `#[rbac]` and kind that the test program declares.
#![expect(unreachable_pub, reason = "a recipe is written as a module of an operator's library")]

mod cluster_scoped;
mod config_map;
mod dynamic;
mod events;
mod external;
mod faults;
mod finalizer;
mod flags;
mod metrics;
mod owner_index;
mod pages;
mod predicates;
mod requeue;
mod secrets;
mod status;
