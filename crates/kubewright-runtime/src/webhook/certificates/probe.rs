//! Calls this replica's own webhook server as the API server does.
//!
//! A call trusts only the `caBundle` of one target, verifies the DNS name of the Service and requests the path that the
//! target names. It needs no other replica, so the first replica does not wait for itself: a Service routes to ready
//! endpoints only. The request is a GET: the path of a webhook rejects it before a handler runs, and that of an APIService
//! answers with its resources.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::Service;
use super::targets::ClientConfig as TargetConfig;
use crate::Clock;

/// The timeout of a call: the default timeout of a webhook.
const PATIENCE: Duration = Duration::from_secs(5);
/// The response to a GET of a webhook's path. Other paths get 404.
const WEBHOOK: &str = "HTTP/1.1 405";
/// The response to a GET of an API group's path.
const API: &str = "HTTP/1.1 2";

/// A webhook server did not answer as the API server needs it.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProbeError {
    #[error("cannot connect to {0}")]
    Connect(SocketAddr, #[source] io::Error),
    #[error("TLS handshake failed")]
    Handshake(#[source] io::Error),
    #[error("no response")]
    Response(#[source] io::Error),
    #[error("unexpected response {0:?}: no webhook is registered at this path")]
    Webhook(String),
    #[error("unexpected response {0:?}: the API server expects status 200 from an APIService")]
    Api(String),
    #[error("no response within {PATIENCE:?}")]
    TimedOut,
    #[error("invalid DNS name {0}")]
    Name(String),
}

/// The webhook server of this replica.
pub(super) struct Probe {
    address: SocketAddr,
    clock: Arc<dyn Clock>,
}

impl Probe {
    pub(super) fn new(address: SocketAddr, clock: Arc<dyn Clock>) -> Self {
        Self { address, clock }
    }

    /// Calls a path of the Service, trusting only the bundle of the target.
    pub(super) async fn call(&self, service: &Service, target: &TargetConfig) -> Result<(), ProbeError> {
        let call = self.call_now(service, target);
        tokio::time::timeout(PATIENCE, call).await.unwrap_or(Err(ProbeError::TimedOut))
    }

    async fn call_now(&self, service: &Service, target: &TargetConfig) -> Result<(), ProbeError> {
        let TargetConfig { path, bundle, is_api, .. } = target;
        let host = service.host();
        let name = ServerName::try_from(host.clone()).map_err(|_| ProbeError::Name(host.clone()))?;
        let stream = self.connect().await?;
        let connector = TlsConnector::from(Arc::new(self.config(bundle)));
        let mut stream = connector.connect(name, stream).await.map_err(ProbeError::Handshake)?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.map_err(ProbeError::Response)?;
        let mut status = vec![0; WEBHOOK.len()];
        stream.read_exact(&mut status).await.map_err(ProbeError::Response)?;
        let status = String::from_utf8_lossy(&status).into_owned();
        match is_api {
            true if status.starts_with(API) => Ok(()),
            true => Err(ProbeError::Api(status)),
            false if status == WEBHOOK => Ok(()),
            false => Err(ProbeError::Webhook(status)),
        }
    }

    /// A server on all interfaces is called on loopback. A dual-stack socket may lack one of the families.
    async fn connect(&self) -> Result<TcpStream, ProbeError> {
        let hosts: Vec<IpAddr> = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => vec![Ipv4Addr::LOCALHOST.into()],
            IpAddr::V6(ip) if ip.is_unspecified() => {
                vec![Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()]
            }
            ip => vec![ip],
        };
        let mut failure = None;
        for host in hosts {
            let address = SocketAddr::new(host, self.address.port());
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => failure = Some(ProbeError::Connect(address, error)),
            }
        }
        Err(failure.unwrap_or(ProbeError::TimedOut))
    }

    fn config(&self, bundle: &[u8]) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(CertificateDer::pem_slice_iter(bundle).filter_map(Result::ok));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let time = Arc::new(Time(Arc::clone(&self.clock)));
        ClientConfig::builder_with_details(provider, time)
            .with_safe_default_protocol_versions()
            .expect("ring supports the default TLS versions")
            .with_root_certificates(roots)
            .with_no_client_auth()
    }
}

/// The manager's clock, for the verification of certificates.
struct Time(Arc<dyn Clock>);

impl TimeProvider for Time {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.0.now().as_second()).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Time")
    }
}
