//! Operator library, used by the binary and the tests.

pub mod api;
pub mod controllers;
pub mod registry;
pub mod webhooks;
