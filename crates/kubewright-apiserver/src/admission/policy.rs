//! Admission policies: matching, parameters, and evaluation of their expressions.
//!
//! Policies and bindings are compiled once per stored version, like webhook configurations. Evaluation waits
//! only for conversion webhooks of custom resources.

mod binding;
mod compiled;
mod evaluate;
mod mutate;
mod params;

pub(super) use binding::Binding;
pub(super) use compiled::Policy;
pub(super) use evaluate::{Decision, Input};
pub(super) use mutate::Patch;
pub(super) use params::{collect, param_resource};
