//! The compiled webhook configurations and admission policies of one server.

use super::policy::{Binding, Policy};
use super::webhook::{CompiledCache, Hook};

/// The compiled webhook configurations and admission policies of one server.
pub(crate) struct Webhooks {
    pub(super) mutating: CompiledCache<Hook>,
    pub(super) validating: CompiledCache<Hook>,
    pub(super) policies: CompiledCache<Policy>,
    pub(super) policy_bindings: CompiledCache<Binding>,
    pub(super) mutating_policies: CompiledCache<Policy>,
    pub(super) mutating_policy_bindings: CompiledCache<Binding>,
}

impl Default for Webhooks {
    fn default() -> Self {
        Self {
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
}
