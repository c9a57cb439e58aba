//! The error for a certificate that no trusted CA signed.
//!
//! As in Go, it names the first CA that has the name of the issuer and cannot have signed the certificate. A CA that was
//! created again with the same name is the usual cause.

use kubewright_apimachinery::field::quote;
use rustls_pki_types::CertificateDer;
use x509_parser::error::X509Error;
use x509_parser::prelude::{FromDer as _, X509Certificate};

const TEXT: &str = "x509: certificate signed by unknown authority";
const NO_CA: &str = "x509: invalid signature: parent certificate cannot sign this kind of certificate";
/// Maximum number of intermediates between the certificate and a root.
const DEEPEST: usize = 8;

/// The prefix of a signature algorithm, the algorithm of its key, and Go's names.
struct Algorithm {
    signature: &'static str,
    key: &'static str,
    name: &'static str,
    go_type: &'static str,
    failure: &'static str,
}

const ALGORITHMS: &[Algorithm] = &[
    Algorithm {
        signature: "1.2.840.113549.1.1.",
        key: "1.2.840.113549.1.1.1",
        name: "RSA",
        go_type: "*rsa.PublicKey",
        failure: "crypto/rsa: verification error",
    },
    Algorithm {
        signature: "1.2.840.10045.4.",
        key: "1.2.840.10045.2.1",
        name: "ECDSA",
        go_type: "*ecdsa.PublicKey",
        failure: "x509: ECDSA verification failure",
    },
    Algorithm {
        signature: "1.3.101.112",
        key: "1.3.101.112",
        name: "Ed25519",
        go_type: "ed25519.PublicKey",
        failure: "x509: Ed25519 verification failure",
    },
];

/// The error text in Go's wording.
pub(super) fn text(
    certificate: &X509Certificate<'_>,
    intermediates: &[CertificateDer<'_>],
    roots: &[CertificateDer<'_>],
) -> String {
    below(certificate, &read(intermediates), &read(roots), DEEPEST)
}

fn read<'a>(list: &'a [CertificateDer<'_>]) -> Vec<X509Certificate<'a>> {
    list.iter().filter_map(|der| Some(X509Certificate::from_der(der).ok()?.1)).collect()
}

fn below(
    certificate: &X509Certificate<'_>,
    intermediates: &[X509Certificate<'_>],
    roots: &[X509Certificate<'_>],
    levels: usize,
) -> String {
    let is_candidate = |candidate: &&X509Certificate<'_>| {
        candidate.subject().as_raw() == certificate.issuer().as_raw() && candidate != &certificate
    };
    let mut hint = None;
    let mut deeper = None;
    for candidate in roots.iter().filter(is_candidate) {
        hint = hint.or_else(|| Some((why_not(certificate, candidate)?, name(candidate))));
    }
    for candidate in intermediates.iter().filter(is_candidate) {
        match why_not(certificate, candidate) {
            Some(why) => hint = hint.or_else(|| Some((why, name(candidate)))),
            None if levels > 0 => deeper = Some(below(candidate, intermediates, roots, levels - 1)),
            None => {}
        }
    }
    match (deeper, hint) {
        (Some(text), _) => text,
        (None, None) => TEXT.to_owned(),
        (None, Some((why, name))) => format!(
            "{TEXT} (possibly because of {} while trying to verify candidate authority certificate {})",
            quote(&why),
            quote(&name)
        ),
    }
}

/// Why `candidate` cannot have signed the certificate, or `None` if it did.
fn why_not(certificate: &X509Certificate<'_>, candidate: &X509Certificate<'_>) -> Option<String> {
    let is_ca = match candidate.basic_constraints() {
        Ok(Some(constraints)) => constraints.value.ca,
        // Only certificates of version 3 have extensions.
        _ => candidate.version().0 < 2,
    };
    let may_sign = candidate.key_usage().ok().flatten().is_none_or(|usage| usage.value.key_cert_sign());
    if !is_ca || !may_sign {
        return Some(NO_CA.to_owned());
    }
    let signed_with = certificate.signature_algorithm.algorithm.to_id_string();
    let unimplemented = || "x509: cannot verify signature: algorithm unimplemented".to_owned();
    let Some(algorithm) = ALGORITHMS.iter().find(|it| signed_with.starts_with(it.signature)) else {
        return Some(unimplemented());
    };
    let key = candidate.public_key();
    let key_kind = key.algorithm.algorithm.to_id_string();
    if key_kind != algorithm.key {
        let other = ALGORITHMS.iter().find(|it| it.key == key_kind);
        return Some(other.map_or_else(unimplemented, |other| {
            format!(
                "x509: signature algorithm specifies an {} public key, but have public key of type {}",
                algorithm.name, other.go_type
            )
        }));
    }
    match certificate.verify_signature(Some(key)) {
        Ok(()) => None,
        Err(X509Error::SignatureUnsupportedAlgorithm) => Some(unimplemented()),
        Err(_) => Some(algorithm.failure.to_owned()),
    }
}

/// The name of a CA in Go's message.
fn name(ca: &X509Certificate<'_>) -> String {
    let subject = ca.subject();
    let mut names = subject.iter_common_name().chain(subject.iter_organization());
    names
        .find_map(|name| name.as_str().ok().filter(|name| !name.is_empty()).map(str::to_owned))
        .unwrap_or_else(|| format!("serial:{}", ca.serial))
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair};

    use super::*;

    fn params(name: Option<&str>, is_ca: bool) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        if let Some(name) = name {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        if is_ca {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        params
    }

    /// A self-signed certificate.
    fn root(name: Option<&str>, is_ca: bool, key: &KeyPair) -> Certificate {
        params(name, is_ca).self_signed(key).unwrap()
    }

    /// A certificate of an issuer with this name.
    fn issued_by(
        name: Option<&str>,
        subject: &str,
        is_ca: bool,
        issuer_key: &KeyPair,
        key: &KeyPair,
    ) -> Certificate {
        let issuer = Issuer::new(params(name, true), issuer_key);
        params(Some(subject), is_ca).signed_by(key, &issuer).unwrap()
    }

    fn shown(leaf: &Certificate, intermediates: &[&Certificate], roots: &[&Certificate]) -> String {
        let ders = |list: &[&Certificate]| list.iter().map(|it| it.der().clone()).collect::<Vec<_>>();
        let (_, leaf) = X509Certificate::from_der(leaf.der()).unwrap();
        text(&leaf, &ders(intermediates), &ders(roots))
    }

    fn hint(why: &str, name: &str) -> String {
        format!(
            "{TEXT} (possibly because of \"{why}\" while trying to verify candidate authority certificate \"{name}\")"
        )
    }

    #[test]
    fn the_error_names_the_ca_with_the_name_of_the_issuer() {
        let key = || KeyPair::generate().unwrap();
        let ed25519 = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let (signer, other) = (key(), key());
        let leaf = issued_by(Some("ca"), "leaf", false, &signer, &key());
        assert_eq!(shown(&leaf, &[], &[]), TEXT);
        assert_eq!(shown(&leaf, &[], &[&root(Some("another"), true, &other)]), TEXT);
        let failure = "x509: ECDSA verification failure";
        assert_eq!(shown(&leaf, &[], &[&root(Some("ca"), true, &other)]), hint(failure, "ca"));
        assert_eq!(shown(&leaf, &[], &[&root(Some("ca"), false, &signer)]), hint(NO_CA, "ca"));
        let mismatch = "x509: signature algorithm specifies an ECDSA public key, but have public key of type ed25519.PublicKey";
        assert_eq!(shown(&leaf, &[], &[&root(Some("ca"), true, &ed25519)]), hint(mismatch, "ca"));

        let intermediate = issued_by(Some("root"), "ca", true, &other, &signer);
        let roots = root(Some("root"), true, &key());
        assert_eq!(shown(&leaf, &[&intermediate], &[&roots]), hint(failure, "root"));

        let nameless = issued_by(None, "leaf", false, &signer, &key());
        let mut params = params(None, true);
        params.serial_number = Some(77.into());
        let unnamed = params.self_signed(&other).unwrap();
        assert_eq!(shown(&nameless, &[], &[&unnamed]), hint(failure, "serial:77"));
    }
}
