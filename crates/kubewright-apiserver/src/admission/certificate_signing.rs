//! CertificateSigning: changing the certificate of a CertificateSigningRequest needs permission to `sign` for its signer.

use kubewright_apimachinery::object::Fields as _;

use super::certificate_approval::may;
use super::{Admission, Attributes, Cluster, Notes, Operation, Plugin};

pub(super) struct CertificateSigning;

impl Plugin for CertificateSigning {
    fn name(&self) -> &'static str {
        "CertificateSigning"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Update
    }

    fn validate<'a>(
        &'a self,
        cluster: &'a Cluster,
        attributes: &'a Attributes<'_>,
        _notes: &'a mut Notes,
    ) -> Admission<'a> {
        let requests = attributes.resource.plural() == "certificatesigningrequests"
            && attributes.resource.group() == "certificates.k8s.io";
        let Some(old) = attributes.old_object.filter(|_| requests && attributes.subresource == "status")
        else {
            return Admission::ALLOWED;
        };
        let changed = |field: &str| old.at(field) != attributes.object.at(field);
        if !changed("status.certificate") && !changed("status.conditions") {
            return Admission::ALLOWED;
        }
        let signer = old.str_at("spec.signerName");
        if may(cluster, attributes.user, "sign", signer) {
            return Admission::ALLOWED;
        }
        let why = format!("user not permitted to sign requests with signerName {signer:?}");
        Err(attributes.forbidden(&why)).into()
    }
}
