//! An operator that greets.

pub mod api;
pub mod controller;
