//! Sockets, TLS and HTTP to the API server.
//!
//! Owns the HTTP clients, those that speak whatever the server prefers and the one for upgrades, and every option by
//! which a dead peer is noticed. It adds nothing to a request and retries none.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Request, Response, Uri, header};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt as _};
use rustls_pki_types::ServerName;
use tower::{BoxError, Service};

use super::lanes::{Lanes, Placed};
use super::{ConnectError, Options};

type HttpClient = legacy::Client<Connector, Body>;

/// The cluster as an HTTP service, for requests with whole URIs.
#[derive(Clone)]
pub(super) struct Transport {
    shared: Lanes<HttpClient>,
    upgrades: HttpClient,
    answer_within: Option<Duration>,
}

impl Transport {
    pub(super) fn new(config: &kube::Config, options: &Options) -> Result<Self, ConnectError> {
        let tls = config.rustls_client_config().map_err(ConnectError::Config)?;
        let name = config
            .tls_server_name
            .as_ref()
            .map(|name| {
                ServerName::try_from(name.clone())
                    .map_err(|error| ConnectError::ServerName(name.clone(), error))
            })
            .transpose()?;
        let connector = |http2: bool| {
            let mut builder = HttpsConnectorBuilder::new().with_tls_config(tls.clone()).https_or_http();
            if let Some(name) = &name {
                builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name.clone()));
            }
            let builder = builder.enable_http1();
            let tcp = tcp(options);
            Connector {
                tls: if http2 {
                    builder.enable_http2().wrap_connector(tcp)
                } else {
                    builder.wrap_connector(tcp)
                },
                within: config.connect_timeout,
            }
        };
        let mut http = legacy::Client::builder(TokioExecutor::new());
        http.timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .http2_keep_alive_interval(options.ping_interval)
            .http2_keep_alive_timeout(options.ping_timeout)
            .http2_keep_alive_while_idle(true);
        let (shared, upgrades) = (connector(options.http2), connector(false));
        Ok(Self {
            upgrades: http.build(upgrades),
            shared: Lanes::new(options.requests_per_connection, move || http.build(shared.clone())),
            answer_within: config.read_timeout,
        })
    }
}

impl Service<Request<Body>> for Transport {
    type Response = Response<Placed>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Placed>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // HTTP/2 has no upgrades as `exec` wants them.
        let (client, place) = if request.headers().contains_key(header::UPGRADE) {
            (self.upgrades.clone(), None)
        } else {
            let (client, place) = self.shared.place();
            (client, Some(place))
        };
        let within = self.answer_within;
        let answer = client.request(request);
        async move {
            let answer = match within {
                Some(within) => tokio::time::timeout(within, answer).await??,
                None => answer.await?,
            };
            Ok(answer.map(|body| Placed::new(body, place)))
        }
        .boxed()
    }
}

/// TCP with every option by which the kernel notices a dead peer.
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

/// Connects, TLS included, within a time.
#[derive(Clone)]
struct Connector {
    tls: HttpsConnector<HttpConnector>,
    within: Option<Duration>,
}

type Connected = <HttpsConnector<HttpConnector> as Service<Uri>>::Response;

impl Service<Uri> for Connector {
    type Response = Connected;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Connected, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tls.poll_ready(cx)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let connecting = self.tls.call(to);
        match self.within {
            None => connecting,
            Some(within) => async move { tokio::time::timeout(within, connecting).await? }.boxed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_kernel_is_told_when_a_silent_peer_is_dead() {
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
    fn a_dead_peer_is_noticed_within_fifteen_seconds() {
        let limit = Duration::from_secs(15);
        let options = Options::default();
        assert!(options.ping_interval + options.ping_timeout <= limit);
        let last_probe = options.keepalive_idle + options.keepalive_interval * options.keepalive_probes;
        assert!(last_probe <= limit);
        // The kernel compares at the last probe: less would end it a probe earlier, more a probe later.
        assert!(options.tcp_user_timeout() < last_probe);
        assert!(options.tcp_user_timeout() + options.keepalive_interval > last_probe);
    }
}
