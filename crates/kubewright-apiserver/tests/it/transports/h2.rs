//! A minimal HTTP/2 client over TLS, with hyper and rustls.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kubewright_apiserver::certs::Identity;
use kubewright_apiserver::serve::Listening;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// One connection, shared by clones and closed with the last of them.
#[derive(Clone)]
pub(crate) struct Sender {
    requests: http2::SendRequest<Full<Bytes>>,
    url: String,
}

impl Sender {
    /// Sends a request; its URI has only a path.
    pub(crate) async fn send(&mut self, request: Request<Vec<u8>>) -> Result<Response<Incoming>> {
        let (mut parts, body) = request.into_parts();
        parts.uri = format!("{}{}", self.url, parts.uri).parse()?;
        let request = Request::from_parts(parts, Full::new(Bytes::from(body)));
        self.requests.ready().await?;
        Ok(self.requests.send_request(request).await?)
    }
}

/// Connects with a client certificate, or anonymously.
pub(crate) async fn connect(listening: &Listening, identity: Option<&Identity>) -> Result<Sender> {
    let mut roots = RootCertStore::empty();
    roots.add(listening.authority().der().clone())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let mut config = match identity {
        Some(identity) => {
            builder.with_client_auth_cert(vec![identity.cert.clone()], identity.key.clone_key())?
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = TcpStream::connect(listening.address()).await?;
    stream.set_nodelay(true)?;
    let name = ServerName::from(listening.address().ip());
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    anyhow::ensure!(
        stream.get_ref().1.alpn_protocol() == Some(b"h2".as_slice()),
        "the server does not speak HTTP/2"
    );
    let (requests, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .context("the HTTP/2 handshake failed")?;
    // Ends when the last sender is dropped, or the server closes the connection.
    tokio::spawn(connection);
    Ok(Sender { requests, url: listening.url() })
}
