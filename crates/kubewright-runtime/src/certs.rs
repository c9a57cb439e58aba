//! The certificate that a server shows, and its change while the server runs.
//!
//! [`Certificates`] owns one certificate chain with its key. The invariant: what is shown is always a pair that
//! belongs together. A new pair that cannot be used is logged and left alone, and the last good one stays.
//!
//! Files are read again by path, and compared by content: a mounted secret changes by the swap of a symlink,
//! which leaves times and inotify watches of the files themselves untouched. This module opens no socket and
//! makes no authority.

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

/// How often files are compared with what is shown.
const POLL: Duration = Duration::from_secs(10);
/// How long a certificate lasts that nobody checks: longer than a process.
const SELF_SIGNED_YEARS: i16 = 10;

/// A certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("cannot read {path}: give the path of a PEM file that this program may read")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The certificate is not PEM.
    #[error("{0} holds no certificate in PEM form")]
    Certificate(String, #[source] Option<rustls_pki_types::pem::Error>),
    /// The key is not PEM.
    #[error("{0} holds no private key in PEM form")]
    Key(String, #[source] rustls_pki_types::pem::Error),
    /// The two do not belong together, or the key is of a kind that is not known.
    #[error("the certificate in {certificate} and the key in {key} cannot be used together")]
    Pair {
        /// Where the certificate comes from.
        certificate: String,
        /// Where the key comes from.
        key: String,
        /// Why.
        #[source]
        source: rustls::Error,
    },
    /// A certificate of one's own could not be made.
    #[error("a self-signed certificate could not be made")]
    Make(#[from] rcgen::Error),
}

/// How often certificates were read, under controller-runtime's names.
#[derive(Debug, Clone, Default)]
pub struct CertificateMetrics {
    reads: Counter,
    errors: Counter,
}

impl CertificateMetrics {
    /// Makes the counters and registers them.
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

/// A certificate chain with its key, as one server or several show it. Clones share it.
///
/// ```
/// use kubewright_runtime::SystemClock;
/// use kubewright_runtime::certs::Certificates;
///
/// let certificates = Certificates::self_signed(&["localhost", "127.0.0.1"], &SystemClock)?;
/// let tls = certificates.server_config();
/// assert_eq!(tls.alpn_protocols, [b"http/1.1".to_vec()]);
/// # Ok::<(), kubewright_runtime::certs::CertificateError>(())
/// ```
#[derive(Clone)]
pub struct Certificates {
    shown: Arc<Shown>,
    files: Option<Arc<Files>>,
    metrics: CertificateMetrics,
}

/// What a handshake asks for.
struct Shown(RwLock<Arc<CertifiedKey>>);

struct Files {
    certificate: PathBuf,
    key: PathBuf,
    /// What the last look found, so that each change is tried, and complained of, once. None if it could not be read.
    seen: Mutex<Option<Contents>>,
}

/// The text of both files.
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

    /// Is this other than what was seen last? From now on it is that.
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
    /// A new key with a certificate for these DNS names and addresses, signed by itself. This is what metrics are
    /// served with when no certificate is given: the traffic is encrypted, and a scraper cannot check the peer.
    pub fn self_signed(names: &[&str], clock: &dyn Clock) -> Result<Self, CertificateError> {
        let mut params =
            rcgen::CertificateParams::new(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())?;
        let today = clock.now().to_zoned(jiff::tz::TimeZone::UTC).date();
        let yesterday = today.yesterday().unwrap_or(today);
        let day = |year: i16, of: jiff::civil::Date| {
            // The 29th of February is not in every year; the 28th is.
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

    /// A chain and a key in PEM form.
    pub fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Self, CertificateError> {
        Ok(Self::showing(parse(certificate, key, "memory", "memory")?, None))
    }

    /// A chain and a key in files, which [`Certificates::watch`] reads again when they change.
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

    /// Counts reads of files in `metrics`.
    #[must_use]
    pub fn with_metrics(mut self, metrics: CertificateMetrics) -> Self {
        self.metrics = metrics;
        self
    }

    /// Shows another pair from the next handshake on. Connections that are open keep theirs.
    pub fn replace(&self, certificate: &[u8], key: &[u8]) -> Result<(), CertificateError> {
        self.show(parse(certificate, key, "memory", "memory")?);
        Ok(())
    }

    /// What TLS needs to show this certificate, with HTTP/1.1 on offer.
    pub fn server_config(&self) -> Arc<ServerConfig> {
        let resolver: Arc<dyn ResolvesServerCert> = self.shown.clone();
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring speaks the default versions of TLS")
            .with_no_client_auth()
            .with_cert_resolver(resolver);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Arc::new(config)
    }

    /// The certificate that is shown now, without those that vouch for it.
    pub fn certificate(&self) -> CertificateDer<'static> {
        let shown = self.shown.0.read().unwrap_or_else(PoisonError::into_inner);
        shown.cert.first().cloned().unwrap_or_else(|| CertificateDer::from(Vec::new()))
    }

    /// Follows the files, looking every 10 s by tokio's clock. Never ends; without files it only waits.
    pub async fn watch(&self) {
        let Some(files) = &self.files else { return std::future::pending().await };
        let mut ticks = tokio::time::interval(POLL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.look(files);
        }
    }

    /// Two small files, read in place: to hand this to another thread would cost more than the reading.
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
                tracing::info!(certificate = %files.certificate.display(), "a new certificate is in use");
            }
            Err(error) => {
                self.metrics.errors.inc();
                if changed {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(error, "the certificate changed and cannot be used; the old one stays");
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

    /// A folder as the kubelet mounts a secret: files that point through `..data`, which points to a version.
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
    async fn a_secret_that_is_swapped_is_shown_within_ten_seconds() {
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
    async fn a_pair_that_does_not_belong_together_is_not_shown() {
        let mounted = Mounted::new();
        let (first, second) = (pem(), pem());
        mounted.swap("..1", (&first.0, &first.1));
        let mut registry = Registry::default();
        let certificates = mounted.open().unwrap().with_metrics(CertificateMetrics::register(&mut registry));
        let before = certificates.certificate();
        mounted.swap("..2", (&second.0, &first.1));
        while_watching(&certificates, POLL * 3).await;
        assert_eq!(certificates.certificate(), before);
        // The wrong pair is read often, and tried once.
        assert_eq!(certificates.metrics.errors.get(), 1);
        assert!(certificates.metrics.reads.get() >= 3);

        mounted.swap("..3", (&second.0, &second.1));
        while_watching(&certificates, POLL).await;
        assert_ne!(certificates.certificate(), before);
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_is_gone_for_a_while_changes_nothing() {
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
    fn what_cannot_be_used_is_said_with_its_file() {
        let mounted = Mounted::new();
        let missing = mounted.open().unwrap_err().to_string();
        assert!(missing.contains("tls.crt") && missing.contains("give the path"), "{missing}");
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
    fn what_is_in_memory_can_be_replaced_by_a_pair_only() {
        let certificates = Certificates::self_signed(&["localhost"], &SystemClock).unwrap();
        let (first, second) = (pem(), pem());
        certificates.replace(first.0.as_bytes(), first.1.as_bytes()).unwrap();
        let shown = certificates.certificate();
        assert_eq!(shown, CertificateDer::from_pem_slice(first.0.as_bytes()).unwrap());
        certificates.replace(second.0.as_bytes(), first.1.as_bytes()).unwrap_err();
        assert_eq!(certificates.certificate(), shown);
    }
}
