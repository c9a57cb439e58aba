//! Options of a server.

use std::sync::Arc;
use std::time::Duration;

use kubewright_apis::openapi::{Descriptions, NoDescriptions};

use crate::admission::AdmissionPlugins;
use crate::audit::Audit;
use crate::authn::tokens::TokenOptions;
use crate::authz::Authorization;
use crate::clock::{Clock, SystemClock};
use crate::endpoints::version::KubernetesVersion;
use crate::storage::Limits;

/// The cluster controllers that the server runs itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Controllers {
    /// None, as in envtest.
    None,
    /// Garbage collection, namespace deletion, ClusterRole aggregation, approval and signing of
    /// CertificateSigningRequests, and type checks of ValidatingAdmissionPolicies.
    #[default]
    Core,
}

/// Options of a server.
#[derive(Clone)]
pub struct Options {
    /// The server's clock.
    pub clock: Arc<dyn Clock>,
    /// Seed of UIDs and generated names; random if `None`.
    pub seed: Option<u64>,
    /// The authorization mode.
    pub authorization: Authorization,
    /// The controllers to run.
    pub controllers: Controllers,
    /// The enabled admission plugins.
    pub admission: AdmissionPlugins,
    /// How many events are kept for watches.
    pub limits: Limits,
    /// A list can be continued, or requested at an exact revision, for at least this interval and at most
    /// two. Zero disables compaction. Corresponds to kube-apiserver's `--etcd-compaction-interval`.
    pub compaction_interval: Duration,
    /// Descriptions of built-in types and fields, for `kubectl explain`.
    pub descriptions: Arc<dyn Descriptions>,
    /// The version that the server reports. Kinds, fields and rules do not depend on it.
    pub version: KubernetesVersion,
    /// Called for every authenticated request.
    pub audit: Option<Arc<dyn Audit>>,
    /// Signing and verification of service account tokens.
    pub tokens: TokenOptions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            seed: None,
            authorization: Authorization::default(),
            controllers: Controllers::default(),
            admission: AdmissionPlugins::default(),
            limits: Limits::default(),
            compaction_interval: Duration::from_mins(5),
            descriptions: Arc::new(NoDescriptions),
            version: KubernetesVersion::default(),
            audit: None,
            tokens: TokenOptions::default(),
        }
    }
}
