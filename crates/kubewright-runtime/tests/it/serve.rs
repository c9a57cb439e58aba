//! The HTTP server over sockets. These tests run on the real clock.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::{Request, Response, StatusCode, Uri, Version};
use http_body_util::{BodyExt as _, Empty};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use kubewright_runtime::SystemClock;
use kubewright_runtime::internal::certs::Certificates;
use kubewright_runtime::internal::serve::{BindAddress, BindError, Handler, Limits, Server, text};
use rustls_pki_types::CertificateDer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

const DEADLINE: Duration = Duration::from_secs(20);

/// A running server.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    pub(crate) fn start(server: Server, handler: Handler) -> Self {
        let (stop, stopped) = oneshot::channel();
        let address = server.address();
        let task = tokio::spawn(server.run(handler, async {
            let _ = stopped.await;
        }));
        Self { address, stop, task }
    }

    /// Stops it, and returns its task.
    fn stop(self) -> JoinHandle<()> {
        let _ = self.stop.send(());
        self.task
    }
}

pub(crate) async fn local() -> Result<Server> {
    let address: BindAddress = "127.0.0.1:0".parse()?;
    Server::bind(&address, "--test-bind-address").await?.context("the address is on")
}

/// Sends a GET without TLS. Returns status and body.
pub(crate) async fn get(address: SocketAddr, path: &str) -> Result<(u16, String)> {
    let client = legacy::Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let uri: Uri = format!("http://{address}{path}").parse()?;
    read(tokio::time::timeout(DEADLINE, client.get(uri)).await??).await
}

async fn read(response: Response<hyper::body::Incoming>) -> Result<(u16, String)> {
    let status = response.status().as_u16();
    let body = response.into_body().collect().await?.to_bytes();
    Ok((status, String::from_utf8(body.to_vec())?))
}

/// Sends a GET over TLS, trusting only this certificate. Returns the HTTP version and the body.
async fn get_tls(
    address: SocketAddr,
    trusted: CertificateDer<'static>,
    http2: bool,
) -> Result<(Version, String)> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusted)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_only().enable_http1();
    let connector = if http2 { builder.enable_http2().build() } else { builder.build() };
    let client = legacy::Client::builder(TokioExecutor::new()).build(connector);
    let request = Request::get(format!("https://{address}/hello")).body(Empty::<Bytes>::new())?;
    let response = tokio::time::timeout(DEADLINE, client.request(request)).await??;
    let version = response.version();
    Ok((version, read(response).await?.1))
}

fn hello() -> Handler {
    Handler::paths([("/hello", Handler::new(|_| async { text(StatusCode::OK, "hello") }))])
}

#[tokio::test]
async fn known_paths_are_served_and_others_get_404() -> Result<()> {
    let running = Running::start(local().await?, hello());
    assert_eq!(get(running.address, "/hello?x=1").await?, (200, "hello".to_owned()));
    assert_eq!(get(running.address, "/hello/").await?, (404, "404 page not found\n".to_owned()));
    running.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_panicking_handler_returns_500_and_the_server_continues() -> Result<()> {
    let handler = Handler::new(|request| {
        assert!(request.uri().path() != "/at-once", "the test wants this");
        async move {
            assert!(request.uri().path() != "/later", "the test wants this");
            text(StatusCode::OK, "well")
        }
    });
    let running = Running::start(local().await?, handler);
    for path in ["/at-once", "/later"] {
        assert_eq!(get(running.address, path).await?.0, 500);
    }
    assert_eq!(get(running.address, "/").await?, (200, "well".to_owned()));
    Ok(())
}

#[tokio::test]
async fn a_self_signed_certificate_serves_http_1_also_to_http_2_clients() -> Result<()> {
    let certificates = Certificates::self_signed(&["localhost", "127.0.0.1"], &SystemClock)?;
    let running = Running::start(local().await?.with_tls(certificates.clone()), hello());
    let hello = "hello".to_owned();
    for http2 in [true, false] {
        let answer = get_tls(running.address, certificates.certificate(), http2).await?;
        assert_eq!(answer, (Version::HTTP_11, hello.clone()));
    }
    let other = Certificates::self_signed(&["localhost", "127.0.0.1"], &SystemClock)?;
    get_tls(running.address, other.certificate(), true)
        .await
        .expect_err("another certificate is not trusted");
    Ok(())
}

#[tokio::test]
async fn a_running_server_reloads_its_certificate_files() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
    let write = || -> Result<CertificateDer<'static>> {
        let pair = rcgen::KeyPair::generate()?;
        let made = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()])?.self_signed(&pair)?;
        std::fs::write(&certificate, made.pem())?;
        std::fs::write(&key, pair.serialize_pem())?;
        Ok(made.der().clone())
    };
    let first = write()?;
    let server = local().await?.with_tls(Certificates::from_files(&certificate, &key)?);
    let running = Running::start(server, hello());
    get_tls(running.address, first.clone(), true).await?;
    let second = write()?;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(10)).await;
    tokio::time::resume();
    get_tls(running.address, second, true).await?;
    get_tls(running.address, first, true).await.expect_err("the old certificate is gone");
    Ok(())
}

#[tokio::test]
async fn shutdown_waits_for_a_running_request() -> Result<()> {
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell, wait) = (begun.clone(), go.clone());
    let handler = Handler::new(move |_| {
        let (tell, wait) = (tell.clone(), wait.clone());
        async move {
            tell.notify_one();
            wait.notified().await;
            text(StatusCode::OK, "done")
        }
    });
    let running = Running::start(local().await?, handler);
    let address = running.address;
    let asked = tokio::spawn(get(address, "/"));
    begun.notified().await;
    let task = running.stop();
    // The port is closed while the request still runs.
    let refused = async { while tokio::net::TcpStream::connect(address).await.is_ok() {} };
    tokio::time::timeout(DEADLINE, refused).await.context("the port stays open")?;
    assert!(!task.is_finished());
    go.notify_one();
    assert_eq!(asked.await??, (200, "done".to_owned()));
    tokio::time::timeout(DEADLINE, task).await??;
    Ok(())
}

#[tokio::test]
async fn a_request_that_exceeds_the_drain_timeout_is_cancelled() -> Result<()> {
    let begun = Arc::new(Notify::new());
    let tell = begun.clone();
    let handler = Handler::new(move |_| {
        tell.notify_one();
        std::future::pending()
    });
    let running = Running::start(local().await?.with_drain(Duration::from_millis(20)), handler);
    let asked = tokio::spawn(get(running.address, "/"));
    begun.notified().await;
    tokio::time::timeout(DEADLINE, running.stop()).await??;
    asked.await?.expect_err("the connection was closed");
    Ok(())
}

#[tokio::test]
async fn the_error_for_a_port_in_use_names_the_flag_and_the_fix() -> Result<()> {
    let taken = local().await?;
    let address: BindAddress = taken.address().to_string().parse()?;
    let error = Server::bind(&address, "--metrics-bind-address").await.expect_err("the port is in use");
    assert!(matches!(error, BindError::InUse { .. }));
    let said = error.to_string();
    assert!(
        said.starts_with(&format!("--metrics-bind-address: {address} is already in use; stop")),
        "{said}"
    );
    // TEST-NET-1 is never a local address.
    let error = Server::bind(&"192.0.2.1:0".parse()?, "--x").await.expect_err("the address is not local");
    assert!(matches!(error, BindError::Listen { .. }), "{error}");
    Ok(())
}

#[tokio::test]
async fn port_0_listens_on_every_interface_and_off_on_none() -> Result<()> {
    let server = Server::bind(&":0".parse()?, "--x").await?.context("the address is on")?;
    assert!(server.address().ip().is_unspecified());
    let running = Running::start(server, hello());
    let address = SocketAddr::from(([127, 0, 0, 1], running.address.port()));
    assert_eq!(get(address, "/hello").await?.0, 200);
    assert!(Server::bind(&"0".parse()?, "--x").await?.is_none());
    Ok(())
}

/// Reads until the server closes the connection.
async fn read_to_end(stream: &mut tokio::net::TcpStream) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // A closed connection may also be reset.
    let _ = tokio::time::timeout(DEADLINE, stream.read_to_end(&mut bytes)).await?;
    Ok(bytes)
}

#[tokio::test]
async fn a_client_that_stops_sending_does_not_delay_others() -> Result<()> {
    let limits = Limits { total: 3, per_peer: 2 };
    let running = Running::start(local().await?.with_limits(limits), hello());
    let connect = || tokio::net::TcpStream::connect(running.address);
    // Both connections wait for the rest of a request.
    let mut slow = [connect().await?, connect().await?];
    for stream in &mut slow {
        stream.write_all(b"POST /hello HTTP/1.1\r\nContent-Length: 1000\r\n").await?;
    }
    let mut refused = connect().await?;
    assert_eq!(read_to_end(&mut refused).await?, b"", "the client has reached its limit");
    // Another client is served.
    let socket = tokio::net::TcpSocket::new_v4()?;
    socket.bind("127.0.0.2:0".parse()?)?;
    let mut other = socket.connect(running.address).await?;
    other.write_all(b"GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await?;
    let response = String::from_utf8(read_to_end(&mut other).await?)?;
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    // A closed connection frees its place.
    drop(slow);
    let served = async { while get(running.address, "/hello").await.is_err() {} };
    tokio::time::timeout(DEADLINE, served).await?;
    Ok(())
}

#[tokio::test]
async fn a_client_that_does_not_read_its_response_is_disconnected() -> Result<()> {
    // More than the buffers of both sockets hold.
    const SIZE: usize = 32 * 1024 * 1024;
    let begun = Arc::new(Notify::new());
    let tell = begun.clone();
    let handler = Handler::new(move |_| {
        tell.notify_one();
        async { text(StatusCode::OK, vec![b'a'; SIZE]) }
    });
    let server = local().await?.with_write_timeout(Duration::from_millis(100)).with_drain(DEADLINE * 2);
    let running = Running::start(server, handler);
    let mut client = tokio::net::TcpStream::connect(running.address).await?;
    client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await?;
    begun.notified().await;
    // The drain lasts longer than the deadline, so only the write timeout ends the connection in time.
    tokio::time::timeout(DEADLINE, running.stop()).await.context("the connection stays open")??;
    assert!(read_to_end(&mut client).await?.len() < SIZE);
    Ok(())
}

/// Sends a request on a connection that stays open, and reads the response.
async fn ask(stream: &mut tokio::net::TcpStream) -> Result<()> {
    stream.write_all(b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n").await?;
    let mut response = Vec::new();
    while !response.ends_with(b"hello") {
        let read = tokio::time::timeout(DEADLINE, stream.read_buf(&mut response)).await??;
        anyhow::ensure!(read > 0, "the connection was closed");
    }
    Ok(())
}

async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn an_idle_connection_stays_open_for_longer_than_clients_keep_it() -> Result<()> {
    let running = Running::start(local().await?, hello());
    let mut client = tokio::net::TcpStream::connect(running.address).await?;
    for _ in 0..3 {
        ask(&mut client).await?;
        pass(Duration::from_secs(100)).await;
    }
    ask(&mut client).await?;
    pass(Duration::from_secs(121)).await;
    assert_eq!(read_to_end(&mut client).await?, b"", "the server closes it in the end");
    Ok(())
}

#[tokio::test]
async fn a_connection_without_complete_headers_is_closed() -> Result<()> {
    let running = Running::start(local().await?, hello());
    let mut silent = tokio::net::TcpStream::connect(running.address).await?;
    let mut slow = tokio::net::TcpStream::connect(running.address).await?;
    for client in [&mut silent, &mut slow] {
        ask(client).await?;
    }
    let mut first = tokio::net::TcpStream::connect(running.address).await?;
    first.write_all(b"GET /hello HTTP/1.1\r\n").await?;
    slow.write_all(b"GET /hello HTTP/1.1\r\n").await?;
    // The server accepts in order, so it has read the connections above when it answers this one.
    get(running.address, "/hello").await?;
    pass(Duration::from_secs(33)).await;
    assert_eq!(read_to_end(&mut first).await?, b"");
    assert_eq!(read_to_end(&mut slow).await?, b"");
    ask(&mut silent).await
}
