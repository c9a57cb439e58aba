//! Webhook state of one server: in-process handlers, and compiled webhook configurations and admission
//! policies.

use super::policy::{Binding, Policy};
use super::webhook::{CompiledCache, Hook};
use crate::webhook_client::Handlers;

/// Webhook state of one server.
pub(crate) struct Webhooks {
    pub(crate) handlers: Handlers,
    pub(super) mutating: CompiledCache<Hook>,
    pub(super) validating: CompiledCache<Hook>,
    pub(super) policies: CompiledCache<Policy>,
    pub(super) policy_bindings: CompiledCache<Binding>,
    pub(super) mutating_policies: CompiledCache<Policy>,
    pub(super) mutating_policy_bindings: CompiledCache<Binding>,
}

impl Default for Webhooks {
    fn default() -> Self {
        Self::with(Handlers::default())
    }
}

impl Webhooks {
    fn with(handlers: Handlers) -> Self {
        Self {
            handlers,
            mutating: CompiledCache::new("admissionregistration.k8s.io/mutatingwebhookconfigurations"),
            validating: CompiledCache::new("admissionregistration.k8s.io/validatingwebhookconfigurations"),
            policies: CompiledCache::new("admissionregistration.k8s.io/validatingadmissionpolicies"),
            policy_bindings: CompiledCache::new(
                "admissionregistration.k8s.io/validatingadmissionpolicybindings",
            ),
            mutating_policies: CompiledCache::new("admissionregistration.k8s.io/mutatingadmissionpolicies"),
            mutating_policy_bindings: CompiledCache::new(
                "admissionregistration.k8s.io/mutatingadmissionpolicybindings",
            ),
        }
    }

    /// A copy for a forked server: handlers are copied, configurations are compiled again.
    pub(crate) fn fork(&self) -> Self {
        Self::with(self.handlers.fork())
    }
}
