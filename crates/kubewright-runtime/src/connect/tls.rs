//! TLS with the API server: trusted CAs and the client certificate.
//!
//! Owns the verification of the server certificate, and [`Identity`], the client certificate, which changes with its
//! files or by an exec plugin while connections are open. Invariant: if the configuration names CAs, only they are
//! trusted; otherwise the system's CAs are.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
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

/// How often a CA file is read again: in a pod, it is rotated at run time.
const REREAD: Duration = Duration::from_mins(1);
/// The minimum time between two reads of the client certificate files.
const REREAD_PAIR: Duration = Duration::from_secs(1);

/// An invalid TLS configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The CA certificates are invalid.
    #[error(
        "the cluster's certificate authority is invalid; correct certificate-authority in the kubeconfig"
    )]
    Authority(#[source] rustls::Error),
    /// The CA file is invalid.
    #[error("failed to load the certificate authorities in {}", path.display())]
    AuthorityFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The system's CAs cannot be loaded.
    #[error(
        "failed to load the system's certificate authorities; set certificate-authority in the kubeconfig"
    )]
    System(#[source] rustls::Error),
    /// Either the certificate or the key is missing.
    #[error("the user has a client certificate without a key, or a key without a certificate")]
    Half,
    /// The certificate or the key cannot be read.
    #[error("failed to read {what}; it must be {form}")]
    Read {
        /// The certificate or the key.
        what: String,
        /// The expected format.
        form: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The certificate and the key do not match, or the key type is not supported.
    #[error("the client certificate and its key do not match, or the key type is not supported")]
    Pair(#[source] rustls::Error),
}

/// The crypto provider: the process default, or ring.
fn provider() -> Arc<CryptoProvider> {
    CryptoProvider::get_default().cloned().unwrap_or_else(|| Arc::new(ring::default_provider()))
}

/// The TLS configuration of a cluster.
pub(super) fn client_config(
    config: &kube::Config,
    identity: Arc<Identity>,
) -> Result<ClientConfig, TlsError> {
    let provider = provider();
    let verifier: Arc<dyn ServerCertVerifier> = if config.accept_invalid_certs {
        Arc::new(InsecureVerifier(provider.clone()))
    } else if let Some(path) = &config.root_cert_file {
        Arc::new(ReloadedRoots::new(path.clone(), provider.clone())?)
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
    let user = &config.auth_info;
    if user.exec.is_some() || user.client_certificate.is_some() || user.client_key.is_some() {
        // A resumed session would keep its old client certificate.
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

/// The client certificate, if there is one.
#[derive(Debug, Default)]
pub(super) struct Identity {
    shown: Mutex<Shown>,
    files: Option<Files>,
}

#[derive(Debug, Default)]
struct Shown {
    pair: Option<Arc<CertifiedKey>>,
    generation: usize,
}

/// A client certificate and its key, of which at least one is a file.
#[derive(Debug)]
struct Files {
    certificate: Pem,
    key: Pem,
    /// When the files were read (`None` to read them again), and a hash of their content.
    last: Mutex<(Option<Instant>, u64)>,
}

/// A PEM file or inline PEM data.
#[derive(Debug)]
struct Pem {
    /// The field of the kubeconfig.
    field: &'static str,
    data: Option<SecretString>,
    file: Option<String>,
}

impl Files {
    /// The certificate, the key, and a hash of both.
    fn read(&self) -> Result<(Vec<u8>, Vec<u8>, u64), TlsError> {
        let (certificate, key) = (self.certificate.read()?, self.key.read()?);
        let (Some(certificate), Some(key)) = (certificate, key) else { return Err(TlsError::Half) };
        let mut hasher = DefaultHasher::new();
        (&certificate, &key).hash(&mut hasher);
        Ok((certificate, key, hasher.finish()))
    }
}

impl Identity {
    /// The certificate of a kubeconfig's user.
    pub(super) fn of(user: &AuthInfo) -> Result<Self, TlsError> {
        let certificate = Pem {
            field: "client-certificate",
            data: user.client_certificate_data.clone().filter(|data| !data.is_empty()).map(Into::into),
            file: user.client_certificate.clone(),
        };
        let key_data = user.client_key_data.clone();
        let key = Pem {
            field: "client-key",
            data: key_data.filter(|data| !data.expose_secret().is_empty()),
            file: user.client_key.clone(),
        };
        if certificate.is_empty() && key.is_empty() {
            return Ok(Self::default());
        }
        let files = Files { certificate, key, last: Mutex::default() };
        let mut identity = Self::default();
        let (certificate, key, hash) = files.read()?;
        identity.show(&certificate, &key)?;
        *files.last.lock().unwrap_or_else(PoisonError::into_inner) = (Some(Instant::now()), hash);
        identity.files = Some(files);
        Ok(identity)
    }

    /// Reloads the certificate files if they changed. Reads them synchronously, at most once a second.
    ///
    /// While certificate and key are being replaced, they may not match. The last pair is used until they do.
    pub(super) fn refresh(&self) {
        let Some(files) = &self.files else { return };
        let mut last = files.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.0.is_some_and(|read| read.elapsed() < REREAD_PAIR) {
            return;
        }
        last.0 = Some(Instant::now());
        let read = files.read().and_then(|(certificate, key, hash)| {
            if hash != last.1 {
                self.show(&certificate, &key)?;
                last.1 = hash;
            }
            Ok(())
        });
        if let Err(error) = read {
            let error: &dyn std::error::Error = &error;
            let (certificate, key) = (files.certificate.file.as_deref(), files.key.file.as_deref());
            tracing::debug!(
                error,
                certificate,
                key,
                "Failed to reload the client certificate; using the last one"
            );
        }
    }

    /// Reads the files again at the next request, because the server rejected the certificate.
    pub(super) fn expire(&self) {
        if let Some(files) = &self.files {
            files.last.lock().unwrap_or_else(PoisonError::into_inner).0 = None;
        }
    }

    /// Uses this PEM pair in new handshakes.
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

    /// Changes with the certificate. Connections of an older generation use an old certificate.
    pub(super) fn generation(&self) -> usize {
        self.shown().generation
    }

    fn shown(&self) -> std::sync::MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pem {
    fn is_empty(&self) -> bool {
        self.data.is_none() && self.file.is_none()
    }

    /// The PEM content. Inline data takes precedence over a file, as in kubectl.
    fn read(&self) -> Result<Option<Vec<u8>>, TlsError> {
        let field = self.field;
        if let Some(data) = &self.data {
            let bytes = base64::engine::general_purpose::STANDARD.decode(data.expose_secret());
            return bytes.map(Some).map_err(|error| TlsError::Read {
                what: format!("{field}-data"),
                form: "PEM in base64",
                source: error.into(),
            });
        }
        let Some(file) = &self.file else { return Ok(None) };
        std::fs::read(file).map(Some).map_err(|error| TlsError::Read {
            what: format!("{field} {file}"),
            form: "a file in PEM form",
            source: error.into(),
        })
    }
}

impl ResolvesClientCert for Identity {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.shown().pair.clone()
    }

    fn has_certs(&self) -> bool {
        self.shown().pair.is_some()
    }
}

/// Trusts the CAs in a file, which is read again every minute. If that fails, the last CAs are kept.
#[derive(Debug)]
struct ReloadedRoots {
    path: PathBuf,
    provider: Arc<CryptoProvider>,
    last: Mutex<(Arc<WebPkiServerVerifier>, Instant)>,
}

impl ReloadedRoots {
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
                    tracing::warn!(
                        error,
                        path = %self.path.display(),
                        "Failed to reload the certificate authorities; using the last ones"
                    );
                }
            }
            last.1 = Instant::now();
        }
        last.0.clone()
    }
}

impl ServerCertVerifier for ReloadedRoots {
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

/// `insecure-skip-tls-verify`: accepts any server certificate.
#[derive(Debug)]
struct InsecureVerifier(Arc<CryptoProvider>);

impl ServerCertVerifier for InsecureVerifier {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        tracing::warn!("Server certificate is not verified: insecure-skip-tls-verify is set");
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
    async fn a_ca_file_is_read_again_every_minute() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.crt");
        std::fs::write(&path, pem().0).unwrap();
        let trusted = ReloadedRoots::new(path.clone(), provider()).unwrap();
        let first = trusted.now();
        std::fs::write(&path, pem().0).unwrap();
        tokio::time::advance(Duration::from_secs(59)).await;
        assert!(Arc::ptr_eq(&trusted.now(), &first));
        tokio::time::advance(Duration::from_secs(1)).await;
        let second = trusted.now();
        assert!(!Arc::ptr_eq(&second, &first));
        std::fs::remove_file(&path).unwrap();
        tokio::time::advance(REREAD).await;
        assert!(Arc::ptr_eq(&trusted.now(), &second), "an invalid file is ignored");
        assert!(matches!(ReloadedRoots::new(path, provider()), Err(TlsError::AuthorityFile { .. })));
    }

    #[test]
    fn a_client_certificate_requires_its_key() {
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
    fn without_cas_the_system_cas_are_trusted() {
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
