//! CertificateSigning: changing the certificate of a CertificateSigningRequest needs permission to `sign` for its signer.

use kubewright_apimachinery::object::Fields as _;

use super::certificate_approval::{check_signer, signing_request};
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
        let Some(old) = signing_request(attributes, "status") else { return Admission::ALLOWED };
        let changed = |field: &str| old.at(field) != attributes.object.at(field);
        if !changed("status.certificate") && !changed("status.conditions") {
            return Admission::ALLOWED;
        }
        check_signer(cluster, attributes, "sign", old)
    }
}
