//! Verifies a webhook's certificate as Go's crypto/x509 does.
//!
//! A certificate that is itself in the CA bundle is trusted even if it is not a CA. Only subject alternative
//! names are checked, not the common name. Without a CA bundle no certificate is trusted: the system's roots
//! are not loaded.

mod unknown_authority;

use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine as _;
use kubewright_apimachinery::time;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme,
};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::TlsConnector;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// A connector that trusts the base64-encoded PEM `bundle`; nothing if it is empty.
pub(super) fn connector(bundle: &str) -> Result<TlsConnector, String> {
    let unreadable = || "unable to load root certificates: unable to parse bytes as PEM block".to_owned();
    let pem = base64::engine::general_purpose::STANDARD.decode(bundle).map_err(|_| unreadable())?;
    let roots: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(&pem).collect::<Result<_, _>>().map_err(|_| unreadable())?;
    if roots.is_empty() && !bundle.is_empty() {
        return Err(unreadable());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(roots.iter().cloned());
    let chains = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider.clone()).build().ok();
    let verifier = Verifier { roots, chains, provider: provider.clone() };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    // As upstream: with HTTP/2 all requests would go to one replica of the webhook.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The error of a failed handshake in Go's wording.
pub(super) fn handshake_error(error: &std::io::Error) -> String {
    if error.kind() == std::io::ErrorKind::UnexpectedEof {
        return "EOF".to_owned();
    }
    if error.kind() == std::io::ErrorKind::ConnectionReset {
        return "read: connection reset by peer".to_owned();
    }
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(Error::General(why)) => format!("tls: failed to verify certificate: {why}"),
        Some(Error::InvalidMessage(_)) => "http: server gave HTTP response to HTTPS client".to_owned(),
        Some(Error::AlertReceived(alert)) => format!("remote error: tls: {}", alert_text(*alert)),
        Some(other) => format!("tls: {other}"),
        None => error.to_string(),
    }
}

/// An alert as Go's crypto/tls names it.
fn alert_text(alert: AlertDescription) -> String {
    use AlertDescription as Alert;
    let text = match alert {
        Alert::CloseNotify => "close notify",
        Alert::UnexpectedMessage => "unexpected message",
        Alert::BadRecordMac => "bad record MAC",
        Alert::DecryptionFailed => "decryption failed",
        Alert::RecordOverflow => "record overflow",
        Alert::DecompressionFailure => "decompression failure",
        Alert::HandshakeFailure => "handshake failure",
        Alert::BadCertificate => "bad certificate",
        Alert::UnsupportedCertificate => "unsupported certificate",
        Alert::CertificateRevoked => "revoked certificate",
        Alert::CertificateExpired => "expired certificate",
        Alert::CertificateUnknown => "unknown certificate",
        Alert::IllegalParameter => "illegal parameter",
        Alert::UnknownCA => "unknown certificate authority",
        Alert::AccessDenied => "access denied",
        Alert::DecodeError => "error decoding message",
        Alert::DecryptError => "error decrypting message",
        Alert::ExportRestriction => "export restriction",
        Alert::ProtocolVersion => "protocol version not supported",
        Alert::InsufficientSecurity => "insufficient security level",
        Alert::InternalError => "internal error",
        Alert::InappropriateFallback => "inappropriate fallback",
        Alert::UserCanceled => "user canceled",
        Alert::NoRenegotiation => "no renegotiation",
        Alert::MissingExtension => "missing extension",
        Alert::UnsupportedExtension => "unsupported extension",
        Alert::CertificateUnobtainable => "certificate unobtainable",
        Alert::UnrecognisedName => "unrecognized name",
        Alert::BadCertificateStatusResponse => "bad certificate status response",
        Alert::BadCertificateHashValue => "bad certificate hash value",
        Alert::UnknownPSKIdentity => "unknown PSK identity",
        Alert::CertificateRequired => "certificate required",
        Alert::NoApplicationProtocol => "no application protocol",
        Alert::EncryptedClientHelloRequired => "encrypted client hello required",
        other => return format!("alert({})", u8::from(other)),
    };
    text.to_owned()
}

#[derive(Debug)]
struct Verifier {
    roots: Vec<CertificateDer<'static>>,
    chains: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let (_, certificate) = X509Certificate::from_der(end_entity)
            .map_err(|error| Error::General(format!("x509: malformed certificate: {error}")))?;
        check_time(&certificate, now).map_err(Error::General)?;
        check_name(&certificate, server_name).map_err(Error::General)?;
        if self.roots.iter().any(|root| root == end_entity) {
            return Ok(ServerCertVerified::assertion());
        }
        let unknown = || Error::General(unknown_authority::text(&certificate, intermediates, &self.roots));
        let chains = self.chains.as_ref().ok_or_else(unknown)?;
        chains.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now).map_err(
            |error| match error {
                Error::InvalidCertificate(
                    CertificateError::UnknownIssuer | CertificateError::BadSignature,
                ) => unknown(),
                Error::InvalidCertificate(CertificateError::InvalidPurpose) => {
                    Error::General("x509: certificate specifies an incompatible key usage".to_owned())
                }
                other => Error::General(format!("x509: {other}")),
            },
        )
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn check_time(certificate: &X509Certificate<'_>, now: UnixTime) -> Result<(), String> {
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let validity = certificate.validity();
    let (from, to) = (validity.not_before.timestamp(), validity.not_after.timestamp());
    let (side, limit) = match (now < from, now > to) {
        (true, _) => ("before", from),
        (_, true) => ("after", to),
        _ => return Ok(()),
    };
    Err(format!(
        "x509: certificate has expired or is not yet valid: current time {} is {side} {}",
        time::format_rfc3339(now),
        time::format_rfc3339(limit)
    ))
}

fn check_name(certificate: &X509Certificate<'_>, wanted: &ServerName<'_>) -> Result<(), String> {
    let names = certificate.subject_alternative_name().ok().flatten();
    let legacy_name = |host: &str| {
        let mut names = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok());
        names.any(|name| matches_host(name, host))
    };
    let legacy = |host: &str| names.is_none() && legacy_name(host);
    let legacy_error = || "x509: certificate relies on legacy Common Name field, use SANs instead".to_owned();
    let names = names.as_ref().map(|extension| extension.value.general_names.as_slice()).unwrap_or_default();
    match wanted {
        ServerName::IpAddress(ip) => {
            let ip = IpAddr::from(*ip);
            let valid: Vec<IpAddr> = names.iter().filter_map(ip_name).collect();
            if valid.contains(&ip) {
                return Ok(());
            }
            if legacy(&ip.to_string()) {
                return Err(legacy_error());
            }
            if valid.is_empty() {
                return Err(format!(
                    "x509: cannot validate certificate for {ip} because it doesn't contain any IP SANs"
                ));
            }
            let valid: Vec<String> = valid.iter().map(ToString::to_string).collect();
            Err(format!("x509: certificate is valid for {}, not {ip}", valid.join(", ")))
        }
        ServerName::DnsName(name) => {
            let wanted = name.as_ref();
            let valid: Vec<&str> = names.iter().filter_map(dns_name).collect();
            if valid.iter().any(|pattern| matches_host(pattern, wanted)) {
                return Ok(());
            }
            Err(if legacy(wanted) {
                legacy_error()
            } else if valid.is_empty() {
                format!("x509: certificate is not valid for any names, but wanted to match {wanted}")
            } else {
                format!("x509: certificate is valid for {}, not {wanted}", valid.join(", "))
            })
        }
        _ => Err("x509: certificate is not valid for any names".to_owned()),
    }
}

fn ip_name(name: &GeneralName<'_>) -> Option<IpAddr> {
    let GeneralName::IPAddress(bytes) = name else { return None };
    let v4 = <[u8; 4]>::try_from(*bytes).map(IpAddr::from).ok();
    v4.or_else(|| <[u8; 16]>::try_from(*bytes).map(IpAddr::from).ok())
}

fn dns_name<'a>(name: &GeneralName<'a>) -> Option<&'a str> {
    if let GeneralName::DNSName(name) = name { Some(name) } else { None }
}

/// A wildcard matches the first label.
fn matches_host(pattern: &str, host: &str) -> bool {
    let (pattern, host) = (pattern.trim_end_matches('.'), host.trim_end_matches('.'));
    if pattern.eq_ignore_ascii_case(host) {
        return true;
    }
    let Some(parent) = pattern.strip_prefix("*.") else { return false };
    host.split_once('.').is_some_and(|(_, rest)| rest.eq_ignore_ascii_case(parent))
}
