//! A minimal client: one HTTP/2 connection over TLS.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::objects::Call;

/// A connection. Clones share it; it closes when the last clone is dropped.
#[derive(Clone)]
pub(in crate::suites) struct Connection {
    url: Arc<str>,
    sender: SendRequest<Full<Bytes>>,
}

impl Connection {
    /// Connects with the credentials of a kubeconfig written by our server.
    pub(in crate::suites) async fn open(kubeconfig: &str) -> Result<Self> {
        let url = value(kubeconfig, "server")?;
        let authority = url.strip_prefix("https://").context("the server's URL is not https")?;
        let address: std::net::SocketAddr = authority.parse().context("the server's URL has no address")?;
        let stream = TcpStream::connect(address).await.context("connect to the server")?;
        stream.set_nodelay(true)?;
        let connector = TlsConnector::from(Arc::new(config(kubeconfig)?));
        let stream =
            connector.connect(ServerName::from(address.ip()), stream).await.context("TLS handshake")?;
        if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            bail!("the server does not support HTTP/2");
        }
        // Uses hyper's default window and frame sizes. Tuned ones would make the server look faster.
        let (sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.context("HTTP/2 handshake")?;
        // Ends with the last sender. Errors are returned to pending requests.
        tokio::spawn(connection);
        Ok(Self { url: url.into(), sender })
    }

    pub(in crate::suites) fn url(&self) -> &str {
        &self.url
    }

    pub(in crate::suites) async fn send(&self, call: Call) -> Result<Response<Incoming>> {
        let mut sender = self.sender.clone();
        sender.ready().await.context("the connection is closed")?;
        sender.send_request(call).await.context("send the request")
    }
}

fn config(kubeconfig: &str) -> Result<ClientConfig> {
    let pem = |key: &str| -> Result<Vec<u8>> {
        STANDARD.decode(value(kubeconfig, key)?).with_context(|| format!("{key} is not base64"))
    };
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&pem("certificate-authority-data")?)?)?;
    let certificate = CertificateDer::from_pem_slice(&pem("client-certificate-data")?)?;
    let key = PrivateKeyDer::from_pem_slice(&pem("client-key-data")?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![certificate], key)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

/// A value in a kubeconfig written by our server, which has one cluster and one user.
fn value<'a>(kubeconfig: &'a str, key: &str) -> Result<&'a str> {
    kubeconfig
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(key)?.strip_prefix(':').map(str::trim))
        .with_context(|| format!("no {key} in the kubeconfig"))
}
