//! The `caBundle` of a target: the operator's own CAs, and trust anchors of another certificate mode.
//!
//! While an operator changes between `self-signed`, `files` and cert-manager, replicas of both modes serve. The bundle
//! must therefore keep the certificates of the other mode. Bundles are compared as sets: another injector may write the
//! same certificates in another order or with other line breaks.

use jiff::Timestamp;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

use super::issue::CA_NAME;

/// How many certificates of another mode are kept: those that expire last.
const MAX_FOREIGN: usize = 4;
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// Whether `known` has every certificate of `own`, and no CA that the operator has retired.
pub(super) fn trusts(own: &str, known: &[u8]) -> bool {
    if known == own.as_bytes() {
        return true;
    }
    let (own, known) = (certificates(own.as_bytes()), certificates(known));
    own.iter().all(|certificate| known.contains(certificate))
        && known.iter().all(|certificate| own.contains(certificate) || !is_ours(certificate))
}

/// The bundle to inject into a target that has `known`.
pub(super) fn merged(own: &str, known: &[u8], now: Timestamp) -> String {
    let mut foreign: Vec<(i64, &str)> = blocks(known)
        .into_iter()
        .filter_map(|text| Some((expiration_of_foreign(text)?, text)))
        .filter(|(expires, _)| *expires > now.as_second())
        .collect();
    while foreign.len() > MAX_FOREIGN {
        let first = foreign.iter().enumerate().min_by_key(|(_, (expires, _))| *expires);
        let Some(index) = first.map(|(index, _)| index) else { break };
        foreign.remove(index);
    }
    let mut bundle = own.to_owned();
    for (_, text) in foreign {
        bundle.push_str(text);
        bundle.push('\n');
    }
    bundle
}

fn certificates(pem: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem).filter_map(Result::ok).collect()
}

/// The certificates of a bundle, as text.
fn blocks(bundle: &[u8]) -> Vec<&str> {
    let mut rest = std::str::from_utf8(bundle).unwrap_or_default();
    let mut found = Vec::new();
    while let Some(start) = rest.find(BEGIN) {
        let Some(length) = rest[start..].find(END) else { break };
        let end = start + length + END.len();
        found.push(&rest[start..end]);
        rest = &rest[end..];
    }
    found
}

fn is_ours(certificate: &CertificateDer<'_>) -> bool {
    X509Certificate::from_der(certificate).is_ok_and(|(_, certificate)| is_named_as_ours(&certificate))
}

fn is_named_as_ours(certificate: &X509Certificate<'_>) -> bool {
    certificate.subject().iter_common_name().any(|name| name.as_str() == Ok(CA_NAME))
}

/// The expiration of a trust anchor that another component issued. A certificate that another CA signed is a leaf, and
/// is not kept. cert-manager's self-signed issuer makes anchors that are not CAs.
fn expiration_of_foreign(text: &str) -> Option<i64> {
    let der = CertificateDer::from_pem_slice(text.as_bytes()).ok()?;
    let (_, certificate) = X509Certificate::from_der(&der).ok()?;
    let is_anchor = certificate.is_ca() || certificate.subject().as_raw() == certificate.issuer().as_raw();
    (is_anchor && !is_named_as_ours(&certificate)).then(|| certificate.validity().not_after.timestamp())
}
