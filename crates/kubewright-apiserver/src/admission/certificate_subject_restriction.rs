//! CertificateSubjectRestriction: rejects requests for client certificates of the group `system:masters`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubewright_apimachinery::object::Fields as _;
use rustls_pki_types::CertificateSigningRequestDer;
use rustls_pki_types::pem::PemObject as _;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer as _;

use super::{Admission, Attributes, Cluster, Notes, Operation, Plugin};
use crate::authn::MASTERS;

const SIGNER: &str = "kubernetes.io/kube-apiserver-client";

pub(super) struct CertificateSubjectRestriction;

impl Plugin for CertificateSubjectRestriction {
    fn name(&self) -> &'static str {
        "CertificateSubjectRestriction"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Create
    }

    fn validate<'a>(
        &'a self,
        _cluster: &'a Cluster,
        attributes: &'a Attributes<'_>,
        _notes: &'a mut Notes,
    ) -> Admission<'a> {
        let applies = attributes.is_for("certificates.k8s.io", "certificatesigningrequests")
            && attributes.object.str_at("spec.signerName") == SIGNER;
        if !applies || !is_for_masters(attributes.object.str_at("spec.request")) {
            return Admission::ALLOWED;
        }
        let why = format!("use of {SIGNER} signer with system:masters group is not allowed");
        Err(attributes.forbidden(&why)).into()
    }
}

/// Whether a base64-encoded PEM request names the group `system:masters`. Validation rejects malformed
/// requests.
fn is_for_masters(request: &str) -> bool {
    let Ok(pem) = STANDARD.decode(request) else { return false };
    let Ok(der) = CertificateSigningRequestDer::from_pem_slice(&pem) else { return false };
    let Ok((_, request)) = X509CertificationRequest::from_der(&der) else { return false };
    let mut organizations = request.certification_request_info.subject.iter_organization();
    organizations.any(|organization| organization.as_str().is_ok_and(|group| group == MASTERS))
}
