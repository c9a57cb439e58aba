//! The operator library, which the binary and the tests import.

pub mod api;
pub mod controllers;
pub mod registry;
pub mod webhooks;
