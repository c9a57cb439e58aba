//! Runs a Deployment per Bar, as kubernetes/sample-controller does per Foo.
//!
//! The same controller twice: [`controllers::bar`] with a manager, and [`by_hand`] with the parts of client-go. Both use the
//! rules in [`bar`] and the external [`inventory`].
//!
//! A library, so that tests can import the operator.

pub mod api;
pub mod bar;
pub mod by_hand;
pub mod controllers;
pub mod inventory;
pub mod registry;
