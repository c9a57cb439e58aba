//! CertificateApproval: approving a CertificateSigningRequest needs permission to `approve` for its signer.

use kubewright_apimachinery::object::Fields as _;
use serde_json::Value;

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
        match signing_request(attributes, "approval") {
            Some(old) => check_signer(cluster, attributes, "approve", old),
            None => Admission::ALLOWED,
        }
    }
}

/// The stored CertificateSigningRequest, if the request updates this subresource of it.
pub(super) fn signing_request<'a>(attributes: &Attributes<'a>, subresource: &str) -> Option<&'a Value> {
    let requests = attributes.resource.plural() == "certificatesigningrequests"
        && attributes.resource.group() == "certificates.k8s.io";
    attributes.old_object.filter(|_| requests && attributes.subresource == subresource)
}

/// Forbids the request unless the user has the permission `verb` for the signer.
pub(super) fn check_signer<'a>(
    cluster: &Cluster,
    attributes: &Attributes<'_>,
    verb: &str,
    old: &Value,
) -> Admission<'a> {
    let signer = old.str_at("spec.signerName");
    if may(cluster, attributes.user, verb, signer) {
        return Admission::ALLOWED;
    }
    let why = format!("user not permitted to {verb} requests with signerName {signer:?}");
    Err(attributes.forbidden(&why)).into()
}

/// Whether a user has a permission for a signer, or for all signers of its domain.
fn may(cluster: &Cluster, user: &User, verb: &str, signer: &str) -> bool {
    let wildcard = signer.split_once('/').map(|(domain, _)| format!("{domain}/*"));
    [Some(signer), wildcard.as_deref()].into_iter().flatten().any(|name| {
        let on =
            ActionOn::Resource { group: "certificates.k8s.io", resource: "signers", namespace: "", name };
        cluster.allows(user, Action { verb, on })
    })
}
