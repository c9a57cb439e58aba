//! Moves the cluster's actual state toward the desired state of a Certificate.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kubewright::prelude::*;
use kubewright::{Context, Key, ListOptions, RegisterError, Result};

use crate::api::cert_manager::v1::{
    Certificate, CertificateStatus, CertificateStatusCondition, CertificateStatusConditionStatus,
    Issuer, IssuerStatusConditionStatus,
};

/// Reconciles Certificate objects.
#[derive(Debug)]
pub struct CertificateReconciler;

/// Registers the controller with the manager.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager
        .controller(CertificateReconciler)
        .owns::<Secret>()
        .watches::<Issuer>(|issuer, cache| {
            let namespace = issuer.namespace().unwrap_or_default();
            let certificates = cache.list::<Certificate>(&ListOptions::namespace(&namespace));
            let certificates = certificates.unwrap_or_default().into_iter();
            certificates
                .filter(|it| it.spec.issuer_ref.name == issuer.name_any())
                .map(|it| Key::of(&*it))
                .collect()
        })
        .register()
}

#[rbac(groups = "", resources = "secrets", verbs = "create, patch")]
impl Reconciler for CertificateReconciler {
    type Object = Certificate;

    async fn reconcile(&self, certificate: &Certificate, cx: &Context) -> Result<Outcome> {
        let namespace = certificate.namespace().unwrap_or_default();
        let key = Key::namespaced(&namespace, &certificate.spec.issuer_ref.name);
        let issuer = cx.client().get_opt::<Issuer>(&key).await?;
        let is_ready = issuer.is_some_and(|issuer| {
            let conditions = issuer
                .status
                .as_ref()
                .and_then(|status| status.conditions.as_ref());
            conditions.into_iter().flatten().any(|condition| {
                condition.type_ == "Ready" && condition.status == IssuerStatusConditionStatus::True
            })
        });
        let (status, reason) = if is_ready {
            let names = certificate
                .spec
                .dns_names
                .clone()
                .unwrap_or_default()
                .join(",");
            let data = BTreeMap::from([("tls.crt", ByteString(names.into_bytes()))]);
            cx.apply_owned(object! { Secret {
                metadata: { name: &certificate.spec.secret_name },
                data: &data,
            } })
            .await?;
            (CertificateStatusConditionStatus::True, "Ready")
        } else {
            (CertificateStatusConditionStatus::False, "IssuerNotReady")
        };
        let ready = CertificateStatusCondition {
            last_transition_time: None,
            message: None,
            observed_generation: certificate.metadata.generation,
            reason: Some(reason.to_owned()),
            status,
            type_: "Ready".to_owned(),
        };
        let old = certificate.status.clone().unwrap_or_default();
        cx.set_status(CertificateStatus {
            conditions: Some(vec![ready]),
            ..old
        })
        .await?;
        Ok(Outcome::done())
    }
}
