//! The HTTPS client that calls admission and conversion webhooks.
//!
//! A [`Target`] is one client configuration, compiled once: address, trust and idle connections. A call ends
//! within its timeout, and no lock is held while it waits. Errors have kube-apiserver's wording, because
//! clients see them. Connections are HTTP/1.1 and reused, as upstream's. In-process handlers ([`Handlers`]) are
//! called without a socket.
//!
//! It sends bytes and returns the decoded response; it does not interpret reviews.

mod answer;
mod handlers;
mod service;
mod verifier;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use kubewright_apimachinery::field::quote;
use kubewright_apimachinery::object::Fields as _;
use rustls_pki_types::ServerName;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

pub(crate) use handlers::Handlers;
pub use handlers::WebhookAddress;

use crate::ids::Ids;
use crate::registry::lister::Lister;
use answer::Answer;

/// Maximum size of a response.
const MAX_ANSWER: usize = 8 * 1024 * 1024;
/// Default timeout.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of idle connections of a target, as in client-go.
const MAX_IDLE: usize = 25;

/// Calls the webhooks of one server.
pub(crate) struct WebhookClient {
    /// In-process handlers.
    pub(crate) handlers: Handlers,
    /// Reads the endpoints of Services.
    lister: Lister,
    ids: Arc<Ids>,
}

impl WebhookClient {
    pub(crate) fn new(handlers: Handlers, lister: Lister, ids: Arc<Ids>) -> Self {
        Self { handlers, lister, ids }
    }

    /// The UID of a review.
    pub(crate) fn new_uid(&self) -> String {
        self.ids.uid()
    }
}

/// One `clientConfig` of a webhook.
pub(crate) struct Target {
    address: WebhookAddress,
    /// Host and port for the `Host` header.
    authority: String,
    host: String,
    port: u16,
    path: String,
    server_name: ServerName<'static>,
    tls: TlsConnector,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target")
            .field("authority", &self.authority)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Target {
    /// Compiles a `clientConfig` of a webhook configuration or CustomResourceDefinition.
    pub(crate) fn compile(config: &Value) -> Result<Self, String> {
        let tls = verifier::connector(config.str_at("caBundle"))?;
        let service = config.at("service");
        let (address, host, port, path, authority) = if service.is_null() {
            let url = config.str_at("url");
            if url.is_empty() {
                return Err("webhook configuration must have either service or URL".to_owned());
            }
            let uri: http::Uri = url.parse().map_err(|error| format!("Unparsable URL: {error}"))?;
            let authority =
                uri.authority().map(|authority| authority.as_str().to_owned()).unwrap_or_default();
            let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
            let port = uri.port_u16().unwrap_or(443);
            let address = WebhookAddress::Url(format!("https://{authority}"));
            (address, host, port, uri.path().to_owned(), authority)
        } else {
            let (namespace, name) = (service.str_at("namespace"), service.str_at("name"));
            let port = service.int_at("port").and_then(|port| u16::try_from(port).ok()).unwrap_or(443);
            let host = format!("{name}.{namespace}.svc");
            let address = WebhookAddress::Service { namespace: namespace.to_owned(), name: name.to_owned() };
            let authority = format!("{host}:{port}");
            (address, host, port, service.str_at("path").to_owned(), authority)
        };
        let server_name = ServerName::try_from(host.clone())
            .map_err(|_| format!("parse {}: invalid host name", quote(&authority)))?;
        let path = format!("/{}", path.trim_matches('/'));
        Ok(Self { address, authority, host, port, path, server_name, tls, idle: Mutex::default() })
    }

    /// Posts a review. Errors have upstream's wording.
    pub(crate) async fn post(
        &self,
        client: &WebhookClient,
        review: Bytes,
        timeout: Option<u64>,
    ) -> Result<Value, String> {
        let limit = timeout.map_or(DEFAULT_TIMEOUT, Duration::from_secs);
        let url = format!("https://{}{}?timeout={}s", self.authority, self.path, limit.as_secs());
        let failed = |why: String| format!("Post {}: {why}", quote(&url));
        match tokio::time::timeout(limit, self.exchange(client, review, limit)).await {
            Ok(Ok(answer)) => answer.decode(),
            Ok(Err(why)) => Err(failed(why)),
            Err(_) => Err(failed("context deadline exceeded".to_owned())),
        }
    }

    async fn exchange(
        &self,
        client: &WebhookClient,
        review: Bytes,
        limit: Duration,
    ) -> Result<Answer, String> {
        let request = |review: Bytes| {
            http::Request::builder()
                .method("POST")
                .uri(format!("{}?timeout={}s", self.path, limit.as_secs()))
                .header(header::HOST, &self.authority)
                .header(header::CONTENT_TYPE, "application/json")
                .header(header::ACCEPT, "application/json, */*")
                .header(header::USER_AGENT, "kube-apiserver-admission")
                .body(Full::new(review))
                .map_err(|error| error.to_string())
        };
        if let Some(handler) = client.handlers.get(&self.address) {
            let (parts, body) = handler(request(review)?).await?.into_parts();
            return Ok(Answer::new(&parts, body));
        }
        // The webhook may have closed an idle connection; then try another or open a new one.
        while let Some(mut idle) = self.take_idle() {
            if idle.ready().await.is_err() {
                continue;
            }
            match idle.send_request(request(review.clone())?).await {
                Ok(response) => return self.finish(idle, response).await,
                Err(error) if error.is_canceled() || error.is_incomplete_message() || error.is_closed() => {}
                Err(error) => return Err(transport_error(&error)),
            }
        }
        let mut connection = self.connect(client).await?;
        match connection.send_request(request(review)?).await {
            Ok(response) => self.finish(connection, response).await,
            Err(error) => Err(transport_error(&error)),
        }
    }

    async fn finish(
        &self,
        connection: SendRequest<Full<Bytes>>,
        response: http::Response<hyper::body::Incoming>,
    ) -> Result<Answer, String> {
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, MAX_ANSWER).collect().await.map_err(|error| {
            match error.downcast::<hyper::Error>() {
                Ok(error) => transport_error(&error),
                Err(_) => format!("the response is larger than {MAX_ANSWER} bytes"),
            }
        })?;
        self.put_idle(connection);
        Ok(Answer::new(&parts, body.to_bytes()))
    }

    async fn connect(&self, client: &WebhookClient) -> Result<SendRequest<Full<Bytes>>, String> {
        let addresses = match &self.address {
            WebhookAddress::Service { namespace, name } => {
                service::endpoints(&client.lister, namespace, name, self.port)?
            }
            WebhookAddress::Url(_) => self.resolve().await?,
        };
        let mut refused = String::new();
        for address in addresses {
            match TcpStream::connect(address).await {
                Ok(stream) => return self.handshake(stream).await,
                Err(error) => refused = dial_error(address, &error),
            }
        }
        Err(refused)
    }

    async fn resolve(&self) -> Result<Vec<SocketAddr>, String> {
        match tokio::net::lookup_host((self.host.as_str(), self.port)).await {
            Ok(addresses) => Ok(addresses.collect()),
            Err(_) => Err(format!("dial tcp: lookup {}: no such host", self.host)),
        }
    }

    async fn handshake(&self, stream: TcpStream) -> Result<SendRequest<Full<Bytes>>, String> {
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        let stream = self
            .tls
            .connect(self.server_name.clone(), stream)
            .await
            .map_err(|error| verifier::handshake_error(&error))?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| transport_error(&error))?;
        // Ends when the sender is dropped or the webhook closes the connection.
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "webhook connection failed");
            }
        });
        Ok(sender)
    }

    fn take_idle(&self) -> Option<SendRequest<Full<Bytes>>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(connection) = idle.pop() {
            if !connection.is_closed() {
                return Some(connection);
            }
        }
        None
    }

    fn put_idle(&self, connection: SendRequest<Full<Bytes>>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE && !connection.is_closed() {
            idle.push(connection);
        }
    }
}

/// A shared compiled target, or the error of an invalid configuration.
pub(crate) type SharedTarget = Result<Arc<Target>, String>;

fn dial_error(address: SocketAddr, error: &std::io::Error) -> String {
    let why = match error.kind() {
        std::io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        std::io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        std::io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        std::io::ErrorKind::TimedOut => "connect: connection timed out".to_owned(),
        _ => error.to_string(),
    };
    format!("dial tcp {address}: {why}")
}

fn transport_error(error: &hyper::Error) -> String {
    use std::error::Error as _;
    if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        return "EOF".to_owned();
    }
    if error.is_parse() {
        return "net/http: HTTP/1.x transport connection broken: malformed HTTP response".to_owned();
    }
    match error.source().and_then(|source| source.downcast_ref::<std::io::Error>()) {
        Some(io) if io.kind() == std::io::ErrorKind::ConnectionReset => {
            "read: connection reset by peer".to_owned()
        }
        Some(io) if io.kind() == std::io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        _ => error.to_string(),
    }
}
