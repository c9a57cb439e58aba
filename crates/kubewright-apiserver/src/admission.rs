//! Admission: an ordered list of plugins that modify a request's object or reject the request.
//!
//! The chain has upstream's plugins in upstream's order ([`chain`]), one file each. It runs in two phases:
//! the mutating phase sees the object as the client sent it (decoded, defaulted, with its managedFields), the
//! validating phase sees it as it will be stored. In between the object is prepared and validated
//! ([`crate::registry::write`]).
//!
//! A plugin decides immediately ([`Admission::Ready`]) or waits for an external call
//! ([`Admission::Pending`]). No lock is held while it waits: the write is committed against the version that
//! it was resolved from. Plugins read other objects through [`Cluster`]. Only ResourceQuota commits writes.

mod attributes;
mod certificate_approval;
mod certificate_signing;
mod certificate_subject_restriction;
mod chain;
mod cluster;
mod control;
mod default_ingress_class;
mod default_storage_class;
mod default_toleration_seconds;
mod limit_ranger;
mod mutating_admission_policy;
mod mutating_admission_webhook;
mod namespace_lifecycle;
mod owner_references_permission_enforcement;
mod persistent_volume_claim_resize;
mod pod_security;
mod pod_topology_labels;
mod policy;
mod priority;
mod resource_quota;
mod runtime_class;
mod service_account;
mod storage_object_in_use_protection;
mod taint_nodes_by_condition;
mod validating_admission_policy;
mod validating_admission_webhook;
mod webhook;
mod webhooks;

use std::pin::Pin;

use kubewright_apimachinery::status::ApiError;

pub(crate) use attributes::{Attributes, Notes, Operation, OperationOptions, connect_options};
pub(crate) use chain::Chain;
pub use chain::{AdmissionPlugins, AdmissionPluginsError};
pub(crate) use cluster::Cluster;
pub(crate) use control::AdmissionControl;
pub(crate) use webhooks::Webhooks;

/// The decision of a plugin.
pub(crate) enum Admission<'a> {
    /// Decided without waiting.
    Ready(Result<(), ApiError>),
    /// Decided once the future is ready.
    Pending(Pin<Box<dyn Future<Output = Result<(), ApiError>> + Send + 'a>>),
}

impl Admission<'_> {
    /// Admits the request unchanged.
    pub(crate) const ALLOWED: Self = Self::Ready(Ok(()));
}

impl From<Result<(), ApiError>> for Admission<'_> {
    fn from(result: Result<(), ApiError>) -> Self {
        Self::Ready(result)
    }
}

/// One admission plugin.
pub(crate) trait Plugin: Send + Sync {
    /// Upstream's name, as used in flags.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests compare names with the chain's order"))]
    fn name(&self) -> &'static str;

    /// Whether the plugin handles an operation.
    fn handles(&self, operation: Operation) -> bool;

    /// The mutating phase: may modify `attributes.object` or reject the request.
    fn admit<'a>(
        &'a self,
        _cluster: &'a Cluster,
        _attributes: &'a mut Attributes<'_>,
        _notes: &'a mut Notes,
    ) -> Admission<'a> {
        Admission::ALLOWED
    }

    /// The validating phase: may reject the request.
    fn validate<'a>(
        &'a self,
        _cluster: &'a Cluster,
        _attributes: &'a Attributes<'_>,
        _notes: &'a mut Notes,
    ) -> Admission<'a> {
        Admission::ALLOWED
    }
}
