//! Admission webhooks: which of them a request concerns, what they are sent, and what their answers mean.
//!
//! Configurations are compiled once per stored version ([`configuration`]); a request that no rule matches costs a few
//! comparisons of strings. The plugins MutatingAdmissionWebhook and ValidatingAdmissionWebhook dispatch to what is
//! here. Matching and conditions are shared with admission policies.

mod call;
mod conditions;
mod configuration;
mod matching;
mod reinvocation;
mod review;
mod versions;

pub(super) use call::{HookError, call};
pub(super) use conditions::{Authorization, Conditions, Matched};
pub(super) use configuration::Hook;
pub(crate) use configuration::{Compile, CompiledCache};
pub(super) use matching::{Criteria, Invocation, is_exempt, namespace_labels};
pub(crate) use reinvocation::Reinvocation;
pub(super) use review::admission_request;
pub(super) use versions::in_version;
