//! Admission policies: which of them a request concerns, with which parameters, and what their expressions say.
//!
//! Policies and bindings are compiled once per stored version, as webhook configurations are. Evaluating them waits only
//! for conversion webhooks of custom resources.

mod binding;
mod compiled;
mod evaluate;
mod mutate;
mod params;

pub(super) use binding::Binding;
pub(super) use compiled::Policy;
pub(super) use evaluate::{Decision, Input};
pub(super) use mutate::Patch;
pub(super) use params::collect;
