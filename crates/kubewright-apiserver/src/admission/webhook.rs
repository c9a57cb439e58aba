//! Admission webhooks: matching, requests, and evaluation of responses.
//!
//! Configurations are compiled once per stored version ([`configuration`]); a request that no rule matches
//! costs a few string comparisons. Used by the plugins MutatingAdmissionWebhook and
//! ValidatingAdmissionWebhook; admission policies share matching and conditions.

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
pub(crate) use configuration::{Compile, CompiledCache, Entries};
pub(super) use matching::{Criteria, Invocation, is_exempt_from_policies, namespace_labels};
pub(crate) use reinvocation::Reinvocation;
pub(super) use review::admission_request;
pub(super) use versions::{Versioned, in_version};
