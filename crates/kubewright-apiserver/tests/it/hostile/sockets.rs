//! Clients that send nothing, send slowly, send too much, or keep the server busy.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use futures_util::future::join_all;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use kubewright_apiserver::authn::User;
use kubewright_apiserver::certs::Identity;
use kubewright_apiserver::serve::Listening;
use kubewright_apiserver::{ApiServer, Options};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::ServerName;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::MAPS;
use crate::transports::connect;

async fn listening() -> Result<Listening> {
    Ok(Listening::open(ApiServer::new(Options::default()), 0).await?)
}

/// An HTTP/1.1 connection over TLS, with a client certificate or without.
async fn tls(listening: &Listening, identity: Option<&Identity>) -> Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(listening.authority().der().clone())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let config = match identity {
        Some(identity) => {
            config.with_client_auth_cert(vec![identity.cert.clone()], identity.key.clone_key())?
        }
        None => config.with_no_client_auth(),
    };
    let stream = TcpStream::connect(listening.address()).await?;
    let name = ServerName::from(listening.address().ip());
    Ok(TlsConnector::from(Arc::new(config)).connect(name, stream).await?)
}

/// Reads until the server closes the connection. An abrupt end counts as closed.
async fn read_to_close(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut read = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        read.extend_from_slice(&buffer[..count]);
    }
    String::from_utf8_lossy(&read).into_owned()
}

// The paused clock advances to the server's deadline as soon as both sides wait.
#[tokio::test(start_paused = true)]
async fn a_connection_without_a_handshake_is_closed() -> Result<()> {
    let listening = listening().await?;
    let mut silent = TcpStream::connect(listening.address()).await?;
    assert_eq!(read_to_close(&mut silent).await, "");
    let mut half = TcpStream::connect(listening.address()).await?;
    half.write_all(&[22, 3, 1, 2, 0, 1]).await?;
    assert_eq!(read_to_close(&mut half).await, "");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_request_is_closed() -> Result<()> {
    let listening = listening().await?;
    let mut stream = tls(&listening, None).await?;
    assert_eq!(read_to_close(&mut stream).await, "");
    let mut stream = tls(&listening, None).await?;
    stream.write_all(b"GET /version HTTP/1.1\r\nHost:").await?;
    assert!(!read_to_close(&mut stream).await.contains("200 OK"));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_body_does_not_arrive_times_out() -> Result<()> {
    let listening = listening().await?;
    let admin = listening.admin();
    // A write is not a watch, and an object can have the name of a subresource.
    for target in [
        format!("POST {MAPS}"),
        format!("POST {MAPS}?watch=1"),
        format!("PUT {MAPS}/log"),
        format!("PUT {MAPS}/exec"),
    ] {
        let mut stream = tls(&listening, Some(admin)).await?;
        let head = format!("{target} HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{{");
        stream.write_all(head.as_bytes()).await?;
        let answer = read_to_close(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 504"), "{target}: {answer}");
        assert!(
            answer.contains("request did not complete within the allotted timeout"),
            "{target}: {answer}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_refusal_reaches_a_client_that_is_still_sending() -> Result<()> {
    let listening = listening().await?;
    let refused = send_large(&listening, None).await?;
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
    let refused = send_large(&listening, Some(listening.admin())).await?;
    assert!(refused.starts_with("HTTP/1.1 413"), "{refused}");
    Ok(())
}

/// Sends a body of 8 MiB, and then reads the start of the response.
async fn send_large(listening: &Listening, identity: Option<&Identity>) -> Result<String> {
    let stream = tls(listening, identity).await?;
    let (mut reader, mut writer) = tokio::io::split(stream);
    let size = 8 << 20;
    let send = async {
        let head = format!("POST {MAPS} HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n");
        writer.write_all(head.as_bytes()).await?;
        // A client that reads the response only after it has sent the whole body.
        let chunk = vec![b' '; 65_536];
        for _ in 0..size / chunk.len() {
            writer.write_all(&chunk).await?;
        }
        writer.flush().await
    };
    send.await?;
    let mut start = [0; 12];
    reader.read_exact(&mut start).await?;
    Ok(String::from_utf8_lossy(&start).into_owned())
}

fn by(user: &str, method: Method, path: &str) -> http::request::Builder {
    let user = User::authenticated(user, []);
    Request::builder().method(method).uri(path).extension(user)
}

#[tokio::test]
async fn requests_in_flight_are_limited_except_for_administrators() -> Result<()> {
    let server = ApiServer::new(Options {
        authorization: kubewright_apiserver::authz::Authorization::AlwaysAllow,
        ..Options::default()
    });
    // Bodies that never end keep the requests in flight.
    let unfinished = || {
        http_body_util::StreamBody::new(futures_util::stream::pending::<
            Result<http_body::Frame<Bytes>, std::io::Error>,
        >())
    };
    let held: Vec<_> = (0..200)
        .map(|_| server.handle(by("a", Method::POST, MAPS).body(unfinished()).expect("a request")))
        .collect();
    let mut held = Box::pin(join_all(held.into_iter().map(|handled| async { handled.await.status() })));
    let polled = futures_util::poll!(held.as_mut());
    assert!(polled.is_pending(), "all 200 wait for their bodies");
    let body = || Full::new(Bytes::from(r#"{"metadata":{"name":"a"}}"#));
    let refused = server.handle(by("a", Method::POST, MAPS).body(body())?).await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.headers()["retry-after"], "1");
    assert_eq!(
        refused.into_body().collect().await?.to_bytes(),
        "Too many requests, please try again later.\n"
    );
    let read = server.handle(by("a", Method::GET, MAPS).body(body())?).await;
    assert_eq!(read.status(), StatusCode::OK, "reads have a limit of their own");
    let admin = server.handle(Request::builder().method(Method::POST).uri(MAPS).body(body())?).await;
    assert_eq!(admin.status(), StatusCode::CREATED);
    drop(held);
    let after = server.handle(by("a", Method::POST, MAPS).body(body())?).await;
    assert_eq!(after.status(), StatusCode::CONFLICT, "the permits are returned");
    Ok(())
}

#[tokio::test]
async fn buffered_bodies_have_a_total_limit() -> Result<()> {
    let server = ApiServer::new(Options::default());
    let chunk = Bytes::from(vec![b' '; 2 << 20]);
    let partial = || {
        let first = futures_util::stream::iter([Ok(http_body::Frame::data(chunk.clone()))]);
        let rest = futures_util::stream::pending::<Result<_, std::io::Error>>();
        http_body_util::StreamBody::new(futures_util::StreamExt::chain(first, rest))
    };
    let request = || Request::builder().method(Method::POST).uri(MAPS);
    let held: Vec<_> =
        (0..64).map(|_| server.handle(request().body(partial()).expect("a request"))).collect();
    let mut held = Box::pin(join_all(held.into_iter().map(|handled| async { handled.await.status() })));
    assert!(futures_util::poll!(held.as_mut()).is_pending());
    let refused = server.handle(request().body(partial())?).await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.headers()["retry-after"], "1");
    let small = Full::new(Bytes::from(r#"{"metadata":{"name":"a"}}"#));
    assert_eq!(server.handle(request().body(small)?).await.status(), StatusCode::CREATED);
    Ok(())
}

/// A request that needs seconds of CPU time does not delay others, even on one worker thread.
#[test]
fn an_expensive_request_does_not_block_others() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let listening = runtime.block_on(async { runtime.spawn(async { listening().await }).await? })?;
    let clients = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    clients.block_on(async {
        let mut admin = connect(&listening, Some(listening.admin())).await?;
        let pattern = json!({"type": "string", "pattern": r"\p{L}{1,1000}!"});
        let schema = json!({"type": "object", "properties": {"text": pattern}});
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "slows.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": {"plural": "slows", "kind": "Slow"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                }],
            },
        });
        let post = |path: &str, body: String| {
            Request::builder()
                .method(Method::POST)
                .uri(path)
                .header("content-type", "application/json")
                .body(body.into_bytes())
        };
        let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        assert_eq!(admin.send(post(crds, crd.to_string())?).await?.status(), StatusCode::CREATED);
        let slow = json!({
            "apiVersion": "example.com/v1", "kind": "Slow", "metadata": {"name": "a"},
            "text": "\u{e4}".repeat(20_000),
        });
        let request = post("/apis/example.com/v1/namespaces/default/slows", slow.to_string())?;
        let mut sender = connect(&listening, Some(listening.admin())).await?;
        let busy = tokio::spawn(async move { sender.send(request).await.map(|answer| answer.status()) });
        // New connections and requests are served while the expensive request runs.
        for _ in 0..3 {
            let mut other = connect(&listening, Some(listening.admin())).await?;
            let read = Request::builder().uri("/api/v1/namespaces/default").body(Vec::new())?;
            assert_eq!(other.send(read).await?.status(), StatusCode::OK);
        }
        assert!(!busy.is_finished(), "the expensive request ended too early for this test");
        assert_eq!(busy.await??, StatusCode::UNPROCESSABLE_ENTITY);
        anyhow::Ok(())
    })?;
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(())
}
