//! Whether the webhook server answers, for certificate modes in which the manager does not know the CA.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::RootCertStore;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Less than the kubelet's default timeout of a probe, so that the reason is reported.
const TIMEOUT: Duration = Duration::from_millis(800);

/// Connects to the server, like controller-runtime's `StartedChecker`, and requests its certificate if it serves TLS. The
/// certificate is not verified: the names and the CA are those of the API server's configuration.
pub(crate) async fn check_started(address: SocketAddr, is_tls: bool) -> Result<(), String> {
    let unreachable = |error: io::Error| format!("webhook server is not reachable: {error}");
    let calling = async {
        let stream = TcpStream::connect(local(address)).await.map_err(unreachable)?;
        if !is_tls {
            return Ok(());
        }
        let name = ServerName::from(local(address).ip());
        match TlsConnector::from(Arc::new(without_roots())).connect(name, stream).await {
            Err(error) if !is_untrusted(&error) => Err(unreachable(error)),
            // The server has sent its certificate, which this client cannot trust.
            _ => Ok(()),
        }
    };
    let answer = tokio::time::timeout(TIMEOUT, calling).await;
    answer.unwrap_or_else(|_| Err(format!("webhook server did not answer within {TIMEOUT:?}")))
}

/// A server on all interfaces is called on loopback.
fn local(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

fn without_roots() -> rustls::ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring supports the default TLS versions")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth()
}

fn is_untrusted(error: &io::Error) -> bool {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    matches!(cause, Some(rustls::Error::InvalidCertificate(_)))
}
