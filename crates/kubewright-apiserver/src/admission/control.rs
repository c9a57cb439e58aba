//! The admission stage of a server: the chain of plugins, and the cluster that they see.

use std::sync::Arc;

use kubewright_apimachinery::status::ApiError;

use super::{Attributes, Chain, Cluster, Notes};

/// Admits requests.
pub(crate) struct AdmissionControl {
    /// The plugins. Forks share them.
    pub(crate) chain: Arc<Chain>,
    cluster: Cluster,
}

impl AdmissionControl {
    pub(crate) fn new(chain: Arc<Chain>, cluster: Cluster) -> Self {
        Self { chain, cluster }
    }

    /// Runs the mutating phase.
    pub(crate) async fn admit(
        &self,
        attributes: &mut Attributes<'_>,
        notes: &mut Notes,
    ) -> Result<(), ApiError> {
        self.chain.admit(&self.cluster, attributes, notes).await
    }

    /// Runs the validating phase.
    pub(crate) async fn validate(
        &self,
        attributes: &Attributes<'_>,
        notes: &mut Notes,
    ) -> Result<(), ApiError> {
        self.chain.validate(&self.cluster, attributes, notes).await
    }

    /// Runs both phases, for requests that store nothing themselves.
    pub(crate) async fn admit_and_validate(
        &self,
        attributes: &mut Attributes<'_>,
        notes: &mut Notes,
    ) -> Result<(), ApiError> {
        self.admit(attributes, notes).await?;
        self.validate(attributes, notes).await
    }
}
