//! TLS handshakes in memory, at the time of the simulation.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kubewright_runtime::internal::certs::Certificates;
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConnection};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

const NAME: &str = "webhook-service.system.svc";
/// Handshakes end after a few flights.
const FLIGHTS: usize = 10;

/// The number of bundles whose clients are kept.
const KEPT: usize = 64;
/// Whether a bundle trusts a certificate changes only when one of them expires, so handshakes of the same pair need not be
/// repeated at every check. Expired certificates stay expired and are found by the next handshake.
const REPEATED_AFTER: SignedDuration = SignedDuration::from_mins(5);

/// The clients of the API servers, by bundle.
#[derive(Default)]
pub(super) struct Handshakes {
    pub(super) count: u64,
    /// The last handshake of each pair of bundle and certificate, by their hash.
    last: HashMap<u64, Timestamp>,
    clients: HashMap<String, Arc<ClientConfig>>,
    clock: Arc<SimulatedTime>,
}

#[derive(Debug, Default)]
struct SimulatedTime(AtomicU64);

impl TimeProvider for SimulatedTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(self.0.load(Ordering::Relaxed))))
    }
}

impl Handshakes {
    /// Whether there was no handshake of this pair recently.
    pub(super) fn is_due(&self, bundle: &str, served: &Certificates, now: Timestamp) -> bool {
        let last = self.last.get(&pair(bundle, served));
        last.is_none_or(|last| now.duration_since(*last) >= REPEATED_AFTER)
    }

    /// A full handshake with a server, by a client that trusts `bundle`.
    pub(super) fn connect(
        &mut self,
        bundle: &str,
        served: &Certificates,
        now: Timestamp,
    ) -> Result<(), String> {
        self.count += 1;
        if self.last.len() >= KEPT {
            self.last.retain(|_, last| now.duration_since(*last) < REPEATED_AFTER);
        }
        self.last.insert(pair(bundle, served), now);
        self.clock.0.store(u64::try_from(now.as_second()).expect("after 1970"), Ordering::Relaxed);
        let config = self.client(bundle)?;
        let name = ServerName::try_from(NAME).expect("a DNS name");
        let mut client = ClientConnection::new(config, name).map_err(|error| error.to_string())?;
        let mut server = ServerConnection::new(served.server_config()).map_err(|error| error.to_string())?;
        for _ in 0..FLIGHTS {
            let mut flight = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut flight).expect("a buffer");
            }
            let mut unread = flight.as_slice();
            while !unread.is_empty() {
                server.read_tls(&mut unread).expect("a buffer");
                // A client that refuses the certificate sends an alert. The client's own error is clearer.
                let _ = server.process_new_packets();
            }
            let mut flight = Vec::new();
            while server.wants_write() {
                server.write_tls(&mut flight).expect("a buffer");
            }
            let mut unread = flight.as_slice();
            while !unread.is_empty() {
                client.read_tls(&mut unread).expect("a buffer");
                client.process_new_packets().map_err(|error| error.to_string())?;
            }
            if !client.is_handshaking() && !server.is_handshaking() {
                return Ok(());
            }
        }
        Err("the handshake does not end".to_owned())
    }

    fn client(&mut self, bundle: &str) -> Result<Arc<ClientConfig>, String> {
        if let Some(client) = self.clients.get(bundle) {
            return Ok(client.clone());
        }
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
            roots.add(certificate.map_err(|error| error.to_string())?).map_err(|error| error.to_string())?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut client = ClientConfig::builder_with_details(provider, self.clock.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        // Without resumption every handshake verifies the certificate.
        client.resumption = rustls::client::Resumption::disabled();
        let client = Arc::new(client);
        if self.clients.len() >= KEPT {
            self.clients.clear();
        }
        self.clients.insert(bundle.to_owned(), client.clone());
        Ok(client)
    }
}

fn pair(bundle: &str, served: &Certificates) -> u64 {
    let mut hasher = DefaultHasher::new();
    (bundle, served.certificate().as_ref()).hash(&mut hasher);
    hasher.finish()
}
