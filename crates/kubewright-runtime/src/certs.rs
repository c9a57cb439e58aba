//! The certificate of a server, and its replacement while the server runs.
//!
//! [`Certificates`] owns one certificate chain with its key. The invariant: the served certificate and key always
//! match. A new pair that cannot be used is logged and ignored, and the last valid pair stays in use.
//!
//! Files are polled by path and compared by content: a mounted Secret changes by swapping a symlink, which modification
//! times and inotify watches of the files do not show. This module opens no socket and creates no certificate
//! authority.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use rustls::crypto::ring;
use rustls::server::{ClientHello, ResolvesServerCert, ServerConfig};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::Clock;

/// How often the files are polled.
const POLL: Duration = Duration::from_secs(10);
/// The validity of a self-signed certificate, longer than any process runs.
const SELF_SIGNED_YEARS: i16 = 10;

/// A certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("cannot read {path}: must be a readable PEM file")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The file has no PEM certificate.
    #[error("{0} contains no PEM certificate")]
    Certificate(String, #[source] Option<rustls_pki_types::pem::Error>),
    /// The file has no PEM private key.
    #[error("{0} contains no PEM private key")]
    Key(String, #[source] rustls_pki_types::pem::Error),
    /// Certificate and key do not match, or the key type is not supported.
    #[error("certificate {certificate} and key {key} do not match or are not supported")]
    Pair {
        /// Where the certificate comes from.
        certificate: String,
        /// Where the key comes from.
        key: String,
        /// The cause.
        #[source]
        source: rustls::Error,
    },
    /// A self-signed certificate could not be generated.
    #[error("failed to generate a self-signed certificate")]
    Make(#[from] rcgen::Error),
}

/// Counts certificate reads, with controller-runtime's names.
#[derive(Debug, Clone, Default)]
pub struct CertificateMetrics {
    reads: Counter,
    errors: Counter,
}

impl CertificateMetrics {
    /// Creates and registers the counters.
    pub fn register(registry: &mut Registry) -> Self {
        let made = Self::default();
        registry.register(
            "certwatcher_read_certificate",
            "Total number of certificate reads",
            made.reads.clone(),
        );
        registry.register(
            "certwatcher_read_certificate_errors",
            "Total number of certificate read errors",
            made.errors.clone(),
        );
        made
    }
}

/// A certificate chain with its key, for one or more servers. Clones share it.
///
/// ```
/// use kubewright_runtime::SystemClock;
/// use kubewright_runtime::internal::certs::Certificates;
///
/// let certificates = Certificates::self_signed(&["localhost", "127.0.0.1"], &SystemClock)?;
/// let tls = certificates.server_config();
/// assert_eq!(tls.alpn_protocols, [b"http/1.1".to_vec()]);
/// # Ok::<(), kubewright_runtime::internal::certs::CertificateError>(())
/// ```
#[derive(Clone)]
pub struct Certificates {
    shown: Arc<Shown>,
    files: Option<Arc<Files>>,
    metrics: CertificateMetrics,
}

/// The current certificate, for TLS handshakes.
struct Shown(RwLock<Arc<CertifiedKey>>);

struct Files {
    certificate: PathBuf,
    key: PathBuf,
    /// The last content read, so that each change is parsed and logged once. `None` if it could not be read.
    seen: Mutex<Option<Contents>>,
}

/// The contents of both files.
#[derive(Clone, PartialEq, Eq)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Files {
    fn read(&self) -> Result<Contents, CertificateError> {
        Ok(Contents { certificate: read(&self.certificate)?, key: read(&self.key)? })
    }

    fn parse(&self, contents: &Contents) -> Result<CertifiedKey, CertificateError> {
        let shown = |path: &Path| path.display().to_string();
        parse(&contents.certificate, &contents.key, &shown(&self.certificate), &shown(&self.key))
    }

    /// Stores the content and returns whether it changed.
    fn note(&self, found: Option<&Contents>) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = seen.as_ref() != found;
        if changed {
            *seen = found.cloned();
        }
        changed
    }
}

impl Certificates {
    /// Generates a key with a self-signed certificate for these DNS names and IP addresses. It is the default of the
    /// metrics server: traffic is encrypted, but a scraper cannot verify the server.
    pub fn self_signed(names: &[&str], clock: &dyn Clock) -> Result<Self, CertificateError> {
        let mut params =
            rcgen::CertificateParams::new(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())?;
        let today = clock.now().to_zoned(jiff::tz::TimeZone::UTC).date();
        let yesterday = today.yesterday().unwrap_or(today);
        let day = |year: i16, of: jiff::civil::Date| {
            // February 29 does not exist in every year.
            rcgen::date_time_ymd(year.into(), of.month().unsigned_abs(), of.day().unsigned_abs().min(28))
        };
        params.not_before = day(yesterday.year(), yesterday);
        params.not_after = day(today.year().saturating_add(SELF_SIGNED_YEARS), today);
        if let Some(name) = names.first() {
            params.distinguished_name.push(rcgen::DnType::CommonName, *name);
        }
        params.key_usages =
            vec![rcgen::KeyUsagePurpose::DigitalSignature, rcgen::KeyUsagePurpose::KeyEncipherment];
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
        let key = rcgen::KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let pair = certified(vec![certificate.der().clone()], key, "memory", "memory")?;
        Ok(Self::showing(pair, None))
    }

    /// A chain and a key in PEM format.
    pub fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Self, CertificateError> {
        Ok(Self::showing(parse(certificate, key, "memory", "memory")?, None))
    }

    /// A chain and a key in files, which [`Certificates::watch`] reloads when they change.
    pub fn from_files(
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Result<Self, CertificateError> {
        let files = Files { certificate: certificate.into(), key: key.into(), seen: Mutex::default() };
        let contents = files.read()?;
        let pair = files.parse(&contents)?;
        files.note(Some(&contents));
        Ok(Self::showing(pair, Some(Arc::new(files))))
    }

    fn showing(pair: CertifiedKey, files: Option<Arc<Files>>) -> Self {
        let shown = Arc::new(Shown(RwLock::new(Arc::new(pair))));
        Self { shown, files, metrics: CertificateMetrics::default() }
    }

    /// Counts file reads in `metrics`.
    #[must_use]
    pub fn with_metrics(mut self, metrics: CertificateMetrics) -> Self {
        self.metrics = metrics;
        self
    }

    /// Serves another pair from the next handshake on. Open connections are not affected.
    pub fn replace(&self, certificate: &[u8], key: &[u8]) -> Result<(), CertificateError> {
        self.show(parse(certificate, key, "memory", "memory")?);
        Ok(())
    }

    /// A TLS configuration that serves this certificate, with ALPN protocol HTTP/1.1.
    pub fn server_config(&self) -> Arc<ServerConfig> {
        let resolver: Arc<dyn ResolvesServerCert> = self.shown.clone();
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring supports the default TLS versions")
            .with_no_client_auth()
            .with_cert_resolver(resolver);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Arc::new(config)
    }

    /// The current leaf certificate.
    pub fn certificate(&self) -> CertificateDer<'static> {
        let shown = self.shown.0.read().unwrap_or_else(PoisonError::into_inner);
        shown.cert.first().cloned().unwrap_or_else(|| CertificateDer::from(Vec::new()))
    }

    /// Polls the files every 10 s by tokio's clock. Never returns.
    pub async fn watch(&self) {
        let Some(files) = &self.files else { return std::future::pending().await };
        let mut ticks = tokio::time::interval(POLL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.look(files);
        }
    }

    /// Reads two small files synchronously, which is cheaper than another thread.
    fn look(&self, files: &Files) {
        self.metrics.reads.inc();
        let found = files.read();
        let changed = files.note(found.as_ref().ok());
        let pair = match found {
            Ok(_) if !changed => return,
            Ok(contents) => files.parse(&contents),
            Err(error) => Err(error),
        };
        match pair {
            Ok(pair) => {
                self.show(pair);
                tracing::info!(certificate = %files.certificate.display(), "Updated current TLS certificate");
            }
            Err(error) => {
                self.metrics.errors.inc();
                if changed {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(error, "Failed to load changed TLS certificate; keeping the previous one");
                }
            }
        }
    }

    fn show(&self, pair: CertifiedKey) {
        *self.shown.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(pair);
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = self.files.as_ref().map(|files| (&files.certificate, &files.key));
        f.debug_struct("Certificates").field("files", &files).finish_non_exhaustive()
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shown")
    }
}

fn read(path: &Path) -> Result<Vec<u8>, CertificateError> {
    std::fs::read(path).map_err(|source| CertificateError::Read { path: path.to_owned(), source })
}

fn parse(
    certificate: &[u8],
    key: &[u8],
    certificate_from: &str,
    key_from: &str,
) -> Result<CertifiedKey, CertificateError> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate)
        .collect::<Result<_, _>>()
        .map_err(|error| CertificateError::Certificate(certificate_from.to_owned(), Some(error)))?;
    if chain.is_empty() {
        return Err(CertificateError::Certificate(certificate_from.to_owned(), None));
    }
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|error| CertificateError::Key(key_from.to_owned(), error))?;
    certified(chain, key, certificate_from, key_from)
}

fn certified(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    certificate_from: &str,
    key_from: &str,
) -> Result<CertifiedKey, CertificateError> {
    CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|source| CertificateError::Pair {
        certificate: certificate_from.to_owned(),
        key: key_from.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemClock;

    /// A certificate and its key, as PEM.
    fn pem() -> (String, String) {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
    }

    /// A directory like a Secret volume of the kubelet: files are symlinks into `..data`, which is a symlink to a
    /// version.
    struct Mounted(tempfile::TempDir);

    impl Mounted {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            for name in ["tls.crt", "tls.key"] {
                std::os::unix::fs::symlink(format!("..data/{name}"), folder.path().join(name)).unwrap();
            }
            Self(folder)
        }

        fn swap(&self, version: &str, (certificate, key): (&str, &str)) {
            let folder = self.0.path();
            std::fs::create_dir(folder.join(version)).unwrap();
            std::fs::write(folder.join(version).join("tls.crt"), certificate).unwrap();
            std::fs::write(folder.join(version).join("tls.key"), key).unwrap();
            std::os::unix::fs::symlink(version, folder.join("..next")).unwrap();
            std::fs::rename(folder.join("..next"), folder.join("..data")).unwrap();
        }

        fn open(&self) -> Result<Certificates, CertificateError> {
            Certificates::from_files(self.0.path().join("tls.crt"), self.0.path().join("tls.key"))
        }
    }

    async fn while_watching(certificates: &Certificates, time: Duration) {
        let _ = tokio::time::timeout(time, certificates.watch()).await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_updated_secret_is_served_within_ten_seconds() {
        let mounted = Mounted::new();
        let (first, second) = (pem(), pem());
        mounted.swap("..1", (&first.0, &first.1));
        let certificates = mounted.open().unwrap();
        let before = certificates.certificate();
        while_watching(&certificates, Duration::from_secs(25)).await;
        assert_eq!(certificates.certificate(), before);

        let watching = certificates.clone();
        let watch = tokio::spawn(async move { watching.watch().await });
        tokio::time::sleep(Duration::from_secs(1)).await;
        mounted.swap("..2", (&second.0, &second.1));
        tokio::time::sleep(POLL).await;
        let expected = CertificateDer::from_pem_slice(second.0.as_bytes()).unwrap();
        assert_eq!(certificates.certificate(), expected);
        watch.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_certificate_and_key_that_do_not_match_are_not_served() {
        let mounted = Mounted::new();
        let (first, second) = (pem(), pem());
        mounted.swap("..1", (&first.0, &first.1));
        let mut registry = Registry::default();
        let certificates = mounted.open().unwrap().with_metrics(CertificateMetrics::register(&mut registry));
        let before = certificates.certificate();
        mounted.swap("..2", (&second.0, &first.1));
        while_watching(&certificates, POLL * 3).await;
        assert_eq!(certificates.certificate(), before);
        // The invalid pair is read repeatedly, but parsed once.
        assert_eq!(certificates.metrics.errors.get(), 1);
        assert!(certificates.metrics.reads.get() >= 3);

        mounted.swap("..3", (&second.0, &second.1));
        while_watching(&certificates, POLL).await;
        assert_ne!(certificates.certificate(), before);
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_is_missing_for_a_while_changes_nothing() {
        let mounted = Mounted::new();
        let first = pem();
        mounted.swap("..1", (&first.0, &first.1));
        let certificates = mounted.open().unwrap();
        let before = certificates.certificate();
        std::fs::remove_file(mounted.0.path().join("..1/tls.key")).unwrap();
        while_watching(&certificates, POLL * 2).await;
        assert_eq!(certificates.certificate(), before);
        std::fs::write(mounted.0.path().join("..1/tls.key"), &first.1).unwrap();
        while_watching(&certificates, POLL).await;
        assert_eq!(certificates.certificate(), before);
    }

    #[test]
    fn an_error_names_the_unusable_file() {
        let mounted = Mounted::new();
        let missing = mounted.open().unwrap_err().to_string();
        assert!(missing.contains("tls.crt") && missing.contains("must be a readable PEM file"), "{missing}");
        let (first, second) = (pem(), pem());
        mounted.swap("..1", ("no certificate", &first.1));
        assert!(
            matches!(mounted.open(), Err(CertificateError::Certificate(file, None)) if file.ends_with("tls.crt"))
        );
        mounted.swap("..2", (&first.0, "no key"));
        assert!(matches!(mounted.open(), Err(CertificateError::Key(file, _)) if file.ends_with("tls.key")));
        mounted.swap("..3", (&first.0, &second.1));
        assert!(matches!(mounted.open(), Err(CertificateError::Pair { .. })));
    }

    #[test]
    fn a_certificate_in_memory_can_only_be_replaced_by_a_matching_pair() {
        let certificates = Certificates::self_signed(&["localhost"], &SystemClock).unwrap();
        let (first, second) = (pem(), pem());
        certificates.replace(first.0.as_bytes(), first.1.as_bytes()).unwrap();
        let shown = certificates.certificate();
        assert_eq!(shown, CertificateDer::from_pem_slice(first.0.as_bytes()).unwrap());
        certificates.replace(second.0.as_bytes(), first.1.as_bytes()).unwrap_err();
        assert_eq!(certificates.certificate(), shown);
    }
}
