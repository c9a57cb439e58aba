//! Moves the cluster's actual state toward the desired state of an Issuer.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright::prelude::*;
use kubewright::{Context, RegisterError, Result};

use crate::api::cert_manager::v1::{
    Issuer, IssuerStatus, IssuerStatusCondition, IssuerStatusConditionStatus,
};

/// Reconciles Issuer objects.
#[derive(Debug)]
pub struct IssuerReconciler;

/// Registers the controller with the manager.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager.controller(IssuerReconciler).register()
}

impl Reconciler for IssuerReconciler {
    type Object = Issuer;

    async fn reconcile(&self, issuer: &Issuer, cx: &Context) -> Result<Outcome> {
        let (status, reason) = match issuer.spec.self_signed {
            Some(_) => (IssuerStatusConditionStatus::True, "IsReady"),
            None => (IssuerStatusConditionStatus::False, "NotSupported"),
        };
        let old = issuer.status.clone().unwrap_or_default();
        let old = old.conditions.unwrap_or_default().into_iter().next();
        let since = old.filter(|condition| condition.status == status);
        let ready = IssuerStatusCondition {
            last_transition_time: since
                .and_then(|condition| condition.last_transition_time)
                .or_else(|| Some(Time(cx.now()))),
            message: None,
            observed_generation: issuer.metadata.generation,
            reason: Some(reason.to_owned()),
            status,
            type_: "Ready".to_owned(),
        };
        cx.set_status(IssuerStatus {
            conditions: Some(vec![ready]),
            acme: None,
        })
        .await?;
        Ok(Outcome::done())
    }
}
