//! CertificateApproval: approving a CertificateSigningRequest needs permission to `approve` for its signer.

use kubewright_apimachinery::object::Fields as _;

use crate::authn::User;
use crate::authz::{Action, ActionOn};

use super::{Admission, Attributes, Cluster, Notes, Operation, Plugin};

pub(super) struct CertificateApproval;

impl Plugin for CertificateApproval {
    fn name(&self) -> &'static str {
        "CertificateApproval"
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
        let Some(old) = attributes.old_object.filter(|_| requests && attributes.subresource == "approval")
        else {
            return Admission::ALLOWED;
        };
        let signer = old.str_at("spec.signerName");
        if may(cluster, attributes.user, "approve", signer) {
            return Admission::ALLOWED;
        }
        let why = format!("user not permitted to approve requests with signerName {signer:?}");
        Err(attributes.forbidden(&why)).into()
    }
}

/// Whether a user has a permission for a signer, or for all signers of its domain.
pub(super) fn may(cluster: &Cluster, user: &User, verb: &str, signer: &str) -> bool {
    let wildcard = signer.split_once('/').map(|(domain, _)| format!("{domain}/*"));
    [Some(signer), wildcard.as_deref()].into_iter().flatten().any(|name| {
        let on =
            ActionOn::Resource { group: "certificates.k8s.io", resource: "signers", namespace: "", name };
        cluster.allows(user, Action { verb, on })
    })
}
