//! Webhooks of an operator process on an existing cluster.
//!
//! The operator serves them, on a port that the environment chose. A test can restart the operator. The [`Origin`] of its
//! webhooks therefore has a port of this process, so that other environments do not remove them while the operator does
//! not listen. Only CRDs of the environment are converted by the operator: those of other operators must not change.
//!
//! [`Origin`]: super::Origin

use std::net::{Ipv4Addr, TcpListener};
use std::sync::PoisonError;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams};
use serde_json::Value;

use super::{Installation, Session};
use crate::webhooks::{WebhookError, has_conversion_webhook};

/// The prefix of the names of configurations.
const PREFIX: &str = "operator-process-";

impl Session {
    /// Installs the webhooks of an operator that listens on a port. Fails, and leaves nothing behind, if the API server
    /// does not reach them.
    pub(crate) async fn install_operator(
        &self,
        admin: &kube::Client,
        configurations: Vec<Value>,
        port: u16,
        ca: &str,
    ) -> Result<(), WebhookError> {
        let crds = self.operator_crds(admin).await?;
        let bind = || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            Ok((listener.local_addr()?.port(), listener))
        };
        let (process_port, listener) = bind().map_err(WebhookError::ProcessPort)?;
        let installation = Installation { prefix: PREFIX, configurations, crds, port, ca, process_port };
        self.install(admin, installation, Box::new(listener)).await
    }

    /// The names of the environment's CRDs with a conversion webhook.
    async fn operator_crds(&self, admin: &kube::Client) -> Result<Vec<String>, WebhookError> {
        let of_environment = self.crds.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let crds: Api<CustomResourceDefinition> = Api::all(admin.clone());
        let installed = crds.list(&ListParams::default()).await;
        let installed = installed.map_err(|error| WebhookError::Conversion("CRDs".to_owned(), error))?;
        // The conversion of another session can be removed at any time, so what the environment installed counts too.
        let is_converted = |crd: &CustomResourceDefinition| {
            let known = crd.metadata.name.as_ref().and_then(|name| of_environment.get(name));
            known.is_some_and(|had_webhook| *had_webhook || has_conversion_webhook(crd))
        };
        Ok(installed.into_iter().filter(is_converted).filter_map(|crd| crd.metadata.name).collect())
    }
}
