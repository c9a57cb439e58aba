//! The operator as a library, so that tests can import it.

pub mod api;
pub mod controllers;
pub mod registry;
