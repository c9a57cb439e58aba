//! TLS with the API server: whom we trust, and whom we say that we are.
//!
//! Owns the check of the server's certificate, and [`Identity`], the client certificate, which an exec plugin may
//! change while connections are open. The invariant: certificates of the cluster's authorities are the only ones that
//! are trusted, if the configuration names any; else the system's are.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use kube::config::AuthInfo;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientConfig, ResolvesClientCert, Resumption};
use rustls::crypto::{CryptoProvider, ring};
use rustls::sign::CertifiedKey;
use rustls::{DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::time::Instant;

/// How often the authorities are read again, if they are in a file: a pod's change while it runs.
const REREAD: Duration = Duration::from_mins(1);

/// TLS cannot be spoken with this configuration.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The authorities cannot be used.
    #[error(
        "the cluster's certificate authority cannot be used; correct certificate-authority in the kubeconfig"
    )]
    Authority(#[source] rustls::Error),
    /// The file of authorities is not usable.
    #[error("the certificate authorities in {} cannot be used", path.display())]
    AuthorityFile {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The system's authorities cannot be used.
    #[error(
        "the system's certificate authorities cannot be used; name the cluster's with certificate-authority"
    )]
    System(#[source] rustls::Error),
    /// Of certificate and key, one is missing.
    #[error("a client certificate needs its key, and a key its certificate; the user has only one of them")]
    Half,
    /// The certificate or the key cannot be read.
    #[error("{what} cannot be read; it must be {form}")]
    Read {
        /// Which.
        what: String,
        /// What it would have to be.
        form: &'static str,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The two do not belong together, or the key is of a kind that is not known.
    #[error("the client certificate and its key cannot be used together")]
    Pair(#[source] rustls::Error),
}

/// The algorithms: those that the program chose, or ring's.
fn provider() -> Arc<CryptoProvider> {
    CryptoProvider::get_default().cloned().unwrap_or_else(|| Arc::new(ring::default_provider()))
}

/// How TLS is spoken with a cluster.
pub(super) fn client_config(
    config: &kube::Config,
    identity: Arc<Identity>,
) -> Result<ClientConfig, TlsError> {
    let provider = provider();
    let verifier: Arc<dyn ServerCertVerifier> = if config.accept_invalid_certs {
        Arc::new(Unchecked(provider.clone()))
    } else if let Some(path) = &config.root_cert_file {
        Arc::new(Reread::new(path.clone(), provider.clone())?)
    } else if let Some(certificates) = &config.root_cert {
        let certificates = certificates.iter().map(|der| CertificateDer::from(der.clone())).collect();
        trusting(certificates, provider.clone()).map_err(TlsError::Authority)?
    } else {
        Arc::new(rustls_platform_verifier::Verifier::new(provider.clone()).map_err(TlsError::System)?)
    };
    let mut tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::System)?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_client_cert_resolver(identity);
    if config.auth_info.exec.is_some() {
        // A session that is resumed is of whoever began it.
        tls.resumption = Resumption::disabled();
    }
    Ok(tls)
}

fn trusting(
    certificates: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, rustls::Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate)?;
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| rustls::Error::General(error.to_string()))
}

/// Who we are by certificate, if by any.
#[derive(Debug, Default)]
pub(super) struct Identity(Mutex<Shown>);

#[derive(Debug, Default)]
struct Shown {
    pair: Option<Arc<CertifiedKey>>,
    generation: usize,
}

impl Identity {
    /// The certificate that a user's entry names.
    pub(super) fn of(user: &AuthInfo) -> Result<Self, TlsError> {
        let certificate = data_or_file(
            "client-certificate",
            user.client_certificate_data.as_deref(),
            user.client_certificate.as_deref(),
        )?;
        let key_data = user.client_key_data.as_ref().map(SecretString::expose_secret);
        let key = data_or_file("client-key", key_data, user.client_key.as_deref())?;
        let identity = Self::default();
        match (certificate, key) {
            (None, None) => {}
            (Some(certificate), Some(key)) => identity.show(&certificate, &key)?,
            _ => return Err(TlsError::Half),
        }
        Ok(identity)
    }

    /// Shows this pair, in PEM form, in handshakes to come.
    pub(super) fn show(&self, certificate: &[u8], key: &[u8]) -> Result<(), TlsError> {
        let unreadable = |what: &str, error: rustls_pki_types::pem::Error| TlsError::Read {
            what: what.to_owned(),
            form: "in PEM form",
            source: error.into(),
        };
        let chain: Vec<_> = CertificateDer::pem_slice_iter(certificate)
            .collect::<Result<_, _>>()
            .map_err(|error| unreadable("the client certificate", error))?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| unreadable("the client key", error))?;
        let pair = CertifiedKey::from_der(chain, key, &provider()).map_err(TlsError::Pair)?;
        let mut shown = self.shown();
        shown.pair = Some(Arc::new(pair));
        shown.generation += 1;
        Ok(())
    }

    /// Changes with the certificate: connections that were made before are of the old one.
    pub(super) fn generation(&self) -> usize {
        self.shown().generation
    }

    fn shown(&self) -> std::sync::MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn data_or_file(what: &str, data: Option<&str>, file: Option<&str>) -> Result<Option<Vec<u8>>, TlsError> {
    if let Some(data) = data.filter(|data| !data.is_empty()) {
        let bytes = base64::engine::general_purpose::STANDARD.decode(data);
        return bytes.map(Some).map_err(|error| TlsError::Read {
            what: format!("{what}-data"),
            form: "PEM in base64",
            source: error.into(),
        });
    }
    let Some(file) = file else { return Ok(None) };
    std::fs::read(file).map(Some).map_err(|error| TlsError::Read {
        what: format!("{what} {file}"),
        form: "a file in PEM form",
        source: error.into(),
    })
}

impl ResolvesClientCert for Identity {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.shown().pair.clone()
    }

    fn has_certs(&self) -> bool {
        self.shown().pair.is_some()
    }
}

/// Trusts the authorities in a file, which is read again every minute. If it cannot be, the last ones stay.
#[derive(Debug)]
struct Reread {
    path: PathBuf,
    provider: Arc<CryptoProvider>,
    last: Mutex<(Arc<WebPkiServerVerifier>, Instant)>,
}

impl Reread {
    fn new(path: PathBuf, provider: Arc<CryptoProvider>) -> Result<Self, TlsError> {
        let first = Self::read(&path, provider.clone())?;
        Ok(Self { path, provider, last: Mutex::new((first, Instant::now())) })
    }

    fn read(path: &PathBuf, provider: Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, TlsError> {
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| TlsError::AuthorityFile {
            path: path.clone(),
            source,
        };
        let pem = std::fs::read(path).map_err(|error| failed(error.into()))?;
        let certificates = CertificateDer::pem_slice_iter(&pem)
            .collect::<Result<_, _>>()
            .map_err(|error| failed(error.into()))?;
        trusting(certificates, provider).map_err(|error| failed(error.into()))
    }

    fn now(&self) -> Arc<WebPkiServerVerifier> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.1.elapsed() >= REREAD {
            match Self::read(&self.path, self.provider.clone()) {
                Ok(verifier) => last.0 = verifier,
                Err(error) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(error, "certificate authorities cannot be read again; the last ones stay");
                }
            }
            last.1 = Instant::now();
        }
        last.0.clone()
    }
}

impl ServerCertVerifier for Reread {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.now().verify_server_cert(certificate, between, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.now().verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.now().verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.now().supported_verify_schemes()
    }
}

/// `insecure-skip-tls-verify`: whoever answers is the cluster.
#[derive(Debug)]
struct Unchecked(Arc<CryptoProvider>);

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        tracing::warn!("the server's certificate is not checked: insecure-skip-tls-verify");
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pem() -> (String, String) {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
    }

    #[tokio::test(start_paused = true)]
    async fn authorities_in_a_file_are_read_again_every_minute() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.crt");
        std::fs::write(&path, pem().0).unwrap();
        let trusted = Reread::new(path.clone(), provider()).unwrap();
        let first = trusted.now();
        std::fs::write(&path, pem().0).unwrap();
        tokio::time::advance(Duration::from_secs(59)).await;
        assert!(Arc::ptr_eq(&trusted.now(), &first));
        tokio::time::advance(Duration::from_secs(1)).await;
        let second = trusted.now();
        assert!(!Arc::ptr_eq(&second, &first));
        std::fs::remove_file(&path).unwrap();
        tokio::time::advance(REREAD).await;
        assert!(Arc::ptr_eq(&trusted.now(), &second), "what cannot be read changes nothing");
        assert!(matches!(Reread::new(path, provider()), Err(TlsError::AuthorityFile { .. })));
    }

    #[test]
    fn a_client_certificate_comes_with_its_key() {
        let (first, second) = (pem(), pem());
        let base64 = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        let mut user = AuthInfo::default();
        assert!(!Identity::of(&user).unwrap().has_certs());
        user.client_certificate_data = Some(base64(&first.0));
        assert!(matches!(Identity::of(&user), Err(TlsError::Half)));
        user.client_key_data = Some(base64(&second.1).into());
        assert!(matches!(Identity::of(&user), Err(TlsError::Pair(_))));
        user.client_key_data = Some(base64(&first.1).into());
        let identity = Identity::of(&user).unwrap();
        assert!(identity.has_certs());
        let before = identity.generation();
        identity.show(second.0.as_bytes(), second.1.as_bytes()).unwrap();
        assert_ne!(identity.generation(), before);
        identity.show(b"", b"").unwrap_err();
        assert!(identity.has_certs());

        user.client_certificate_data = None;
        user.client_certificate = Some("gone.pem".to_owned());
        let error = Identity::of(&user).err().unwrap().to_string();
        assert!(error.contains("gone.pem") && error.contains("PEM"), "{error}");
    }

    #[test]
    fn without_authorities_the_systems_are_trusted() {
        let config = kube::Config::new("https://a.example".parse().unwrap());
        client_config(&config, Arc::default()).unwrap();
        let mut unchecked = config.clone();
        unchecked.accept_invalid_certs = true;
        client_config(&unchecked, Arc::default()).unwrap();
        let mut wrong = config;
        wrong.root_cert = Some(vec![b"no certificate".to_vec()]);
        assert!(matches!(client_config(&wrong, Arc::default()), Err(TlsError::Authority(_))));
    }
}
