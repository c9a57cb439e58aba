//! Sockets, TLS and HTTP to the API server.
//!
//! Owns the HTTP clients, one pool for normal requests and one for upgrades, and all options that detect a dead peer.
//! It does not change requests and does not retry.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Request, Response, StatusCode, Uri, header};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::Body;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio_rustls::TlsConnector;
use tower::{BoxError, Service};

use super::pool::{ConnectionPool, PooledBody};
use super::proxy::{self, Proxy};
use super::stream::{Io, Stream};
use super::tls::{self, Identity};
use super::{ConnectError, Options};

type HttpClient = legacy::Client<Connector, Body>;

/// The cluster as an HTTP service for requests with absolute URIs.
#[derive(Clone)]
pub(super) struct Transport {
    shared: ConnectionPool<HttpClient>,
    upgrades: ConnectionPool<HttpClient>,
    identity: Arc<Identity>,
    answer_within: Option<Duration>,
}

impl Transport {
    pub(super) fn new(
        config: &kube::Config,
        options: &Options,
        identity: Arc<Identity>,
    ) -> Result<Self, ConnectError> {
        let mut tls = tls::client_config(config, identity.clone())?;
        let http1 = Arc::new(tls.clone());
        if options.http2 {
            tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        }
        let name = config
            .tls_server_name
            .as_ref()
            .map(|name| {
                ServerName::try_from(name.clone())
                    .map_err(|error| ConnectError::ServerName(name.clone(), error))
            })
            .transpose()?;
        let proxy = config.proxy_url.clone().map(Proxy::new).transpose()?;
        let (tcp, within) = (tcp(options), config.connect_timeout);
        let upgrades = Connector { tcp, proxy, tls: http1.clone(), http1, name, within };
        let shared = Connector { tls: Arc::new(tls), ..upgrades.clone() };
        let mut http = legacy::Client::builder(TokioExecutor::new());
        http.timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .http2_keep_alive_interval(options.ping_interval)
            .http2_keep_alive_timeout(options.ping_timeout)
            .http2_keep_alive_while_idle(true);
        let over = |connector: Connector| {
            let http = http.clone();
            move || http.build(connector.clone())
        };
        Ok(Self {
            shared: ConnectionPool::new(options.requests_per_connection, over(shared)),
            // Each upgrade has its own connection.
            upgrades: ConnectionPool::new(usize::MAX, over(upgrades)),
            identity,
            answer_within: config.read_timeout,
        })
    }
}

impl Service<Request<Body>> for Transport {
    type Response = Response<PooledBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<PooledBody>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // `exec` needs an HTTP/1.1 upgrade.
        let upgrades = request.headers().contains_key(header::UPGRADE);
        let pool = if upgrades { &self.upgrades } else { &self.shared };
        self.identity.refresh();
        let (client, slot) = pool.slot(self.identity.generation());
        let (identity, within) = (self.identity.clone(), self.answer_within);
        let answer = client.request(request);
        async move {
            let answer = match within {
                Some(within) => tokio::time::timeout(within, answer).await??,
                None => answer.await?,
            };
            if answer.status() == StatusCode::UNAUTHORIZED {
                identity.expire();
            }
            Ok(answer.map(|body| PooledBody::new(body, slot)))
        }
        .boxed()
    }
}

/// A TCP connector with the socket options that detect a dead peer.
fn tcp(options: &Options) -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(options.keepalive_idle));
    tcp.set_keepalive_interval(Some(options.keepalive_interval));
    tcp.set_keepalive_retries(Some(options.keepalive_probes));
    #[cfg(any(target_os = "linux", target_os = "android"))]
    tcp.set_tcp_user_timeout(Some(options.tcp_user_timeout()));
    tcp
}

/// Connects with a timeout, including proxy and TLS.
#[derive(Clone)]
struct Connector {
    tcp: HttpConnector,
    proxy: Option<Proxy>,
    /// TLS with the cluster.
    tls: Arc<ClientConfig>,
    /// TLS with a proxy, limited to HTTP/1.1.
    http1: Arc<ClientConfig>,
    /// The TLS server name of the cluster, if it is not its host.
    name: Option<ServerName<'static>>,
    within: Option<Duration>,
}

impl Connector {
    async fn connect(mut self, to: Uri) -> Result<Stream, BoxError> {
        let io = match self.proxy.take() {
            None => self.dial(&to).await?,
            Some(proxy) => {
                let mut io = self.dial(&proxy.at).await?;
                if proxy.at.scheme_str() == Some("https") {
                    let name = name_of(&proxy.at)?;
                    io = Box::new(TlsConnector::from(self.http1.clone()).connect(name, io).await?);
                }
                proxy.tunnel(&mut *io, &to).await?;
                io
            }
        };
        if to.scheme_str() != Some("https") {
            return Ok(Stream::new(io, false));
        }
        let name = match self.name {
            Some(name) => name,
            None => name_of(&to)?,
        };
        let io = TlsConnector::from(self.tls).connect(name, io).await?;
        let http2 = io.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok(Stream::new(Box::new(io), http2))
    }

    async fn dial(&mut self, to: &Uri) -> Result<Box<dyn Io>, BoxError> {
        poll_fn(|cx| self.tcp.poll_ready(cx)).await?;
        Ok(Box::new(self.tcp.call(to.clone()).await?.into_inner()))
    }
}

fn name_of(uri: &Uri) -> Result<ServerName<'static>, BoxError> {
    let host = proxy::bare(uri.host().unwrap_or_default());
    Ok(ServerName::try_from(host.to_owned())?)
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Stream, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let (connecting, within) = (self.clone().connect(to), self.within);
        async move {
            match within {
                None => connecting.await,
                Some(within) => tokio::time::timeout(within, connecting).await?,
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn sockets_have_keepalive_and_user_timeout() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri: Uri = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let stream = tcp(&Options::default()).call(uri).await.unwrap().into_inner();
        let socket = socket2::SockRef::from(&stream);
        assert!(socket.tcp_nodelay().unwrap());
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), Duration::from_secs(5));
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), Duration::from_secs(3));
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), 3);
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(Duration::from_millis(12_500)));
    }

    #[test]
    fn a_dead_peer_is_detected_within_fifteen_seconds() {
        let limit = Duration::from_secs(15);
        let options = Options::default();
        assert!(options.ping_interval + options.ping_timeout <= limit);
        let last_probe = options.keepalive_idle + options.keepalive_interval * options.keepalive_probes;
        assert!(last_probe <= limit);
        // The kernel checks the timeout at each probe; it must expire at exactly the last one.
        assert!(options.tcp_user_timeout() < last_probe);
        assert!(options.tcp_user_timeout() + options.keepalive_interval > last_probe);
    }
}
