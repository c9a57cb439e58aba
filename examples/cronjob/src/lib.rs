//! Runs Jobs on a schedule: the CronJob of the kubebuilder book.
//!
//! A library, so that the binary and the tests share the operator.

pub mod api;
pub mod controllers;
pub mod registry;
pub mod schedule;
pub mod webhooks;
