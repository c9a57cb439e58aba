//! Which requests the client retries. The servers count requests; the clock is real.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result};
use http::{HeaderValue, Method, Request, StatusCode, header};
use kube::Config;
use kubewright_runtime::connect::{self, ClientMetrics, Options};
use kubewright_runtime::internal::serve::{BindAddress, Handler, Server, text};
use kubewright_runtime::metrics::Metrics;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::operator::Log;

/// A server without TLS that rejects the first requests with a status and counts all.
struct Busy {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
    _task: JoinSet<()>,
}

impl Busy {
    async fn new(times: usize, status: StatusCode, retry_after: Option<&'static str>) -> Result<Self> {
        let asked = Arc::new(AtomicUsize::new(0));
        let counting = asked.clone();
        let handler = Handler::new(move |_| {
            let busy = counting.fetch_add(1, Ordering::SeqCst) < times;
            async move {
                if !busy {
                    return text(StatusCode::CREATED, "{}");
                }
                let mut response = text(status, "");
                if let Some(seconds) = retry_after {
                    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(seconds));
                }
                response
            }
        });
        let address: BindAddress = "127.0.0.1:0".parse()?;
        let server = Server::bind(&address, "--test").await?.context("the address is on")?;
        let address = server.address();
        let mut task = JoinSet::new();
        task.spawn(server.run(handler, std::future::pending()));
        Ok(Self { address, asked, _task: task })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn client(address: SocketAddr, metrics: Option<ClientMetrics>) -> Result<kube::Client> {
    let config = Config::new(format!("http://{address}").parse()?);
    Ok(connect::client(config, Options { metrics, ..Options::default() })?)
}

/// Sends a request and returns the status.
async fn send(client: &kube::Client, method: Method) -> Result<StatusCode> {
    let request = Request::builder().method(method).uri("/api/v1/namespaces/default/configmaps");
    Ok(client.send(request.body(kube::client::Body::from(b"{}".to_vec()))?).await?.status())
}

#[tokio::test]
async fn a_rejected_write_is_sent_once() -> Result<()> {
    for status in
        [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE, StatusCode::GATEWAY_TIMEOUT]
    {
        let server = Busy::new(usize::MAX, status, None).await?;
        let client = client(server.address, None)?;
        for (number, method) in
            [Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::GET].into_iter().enumerate()
        {
            assert_eq!(send(&client, method.clone()).await?, status, "{method}");
            assert_eq!(server.asked(), number + 1, "{method} after {status}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_request_is_retried_if_the_server_sends_retry_after() -> Result<()> {
    let log = Log::keep()?;
    let server = Busy::new(2, StatusCode::SERVICE_UNAVAILABLE, Some("0")).await?;
    let metrics = Metrics::new();
    let client = client(server.address, Some(metrics.with_registry(ClientMetrics::register)))?;
    assert_eq!(send(&client, Method::POST).await?, StatusCode::CREATED);
    assert_eq!(server.asked(), 3);
    let logged = log.saying("Retrying request");
    assert_eq!(logged.len(), 2, "{logged:?}");
    for part in ["method=POST", "path=/api/v1/namespaces/default/configmaps", "attempt=2", "status=503"] {
        assert!(logged[1].contains(part), "{part} is not in {}", logged[1]);
    }
    let (_, page) = metrics.page(None);
    let host = server.address;
    for line in [
        format!("rest_client_request_retries_total{{code=\"503\",verb=\"POST\",host=\"{host}\"}} 2"),
        // Each attempt counts, as in client-go.
        format!("rest_client_requests_total{{code=\"503\",method=\"POST\",host=\"{host}\"}} 2"),
        format!("rest_client_requests_total{{code=\"201\",method=\"POST\",host=\"{host}\"}} 1"),
    ] {
        assert!(page.lines().any(|shown| shown == line), "{line} is not in\n{page}");
    }
    Ok(())
}

#[tokio::test]
async fn only_the_first_retry_of_a_request_is_logged_at_info() -> Result<()> {
    let log = Log::keep()?;
    // Nothing listens on this port any more.
    let address = TcpListener::bind("127.0.0.2:0").await?.local_addr()?;
    let client = client(address, None)?;
    send(&client, Method::GET).await.expect_err("the connection is refused");
    let logged = log.saying("Retrying request");
    assert_eq!(logged.len(), 5, "{logged:?}");
    let at_info: Vec<&String> = logged.iter().filter(|line| line.contains("INFO")).collect();
    assert!(matches!(&at_info[..], [first] if first.contains("attempt=1")), "{at_info:?}");
    assert!(logged[1..].iter().all(|line| line.contains("DEBUG")), "{logged:?}");
    Ok(())
}

/// A server that reads the headers of each request, closes the first connections, and responds on later ones.
async fn breaking(times: usize) -> Result<(SocketAddr, Arc<AtomicUsize>, JoinSet<()>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let (address, asked) = (listener.local_addr()?, Arc::new(AtomicUsize::new(0)));
    let (mut task, counting) = (JoinSet::new(), asked.clone());
    task.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let Ok(byte) = stream.read_u8().await else { break };
                head.push(byte);
            }
            if counting.fetch_add(1, Ordering::SeqCst) >= times {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").await;
            }
        }
    });
    Ok((address, asked, task))
}

#[tokio::test]
async fn a_broken_connection_is_retried_by_reads_only() -> Result<()> {
    let (address, asked, _server) = breaking(1).await?;
    assert_eq!(send(&client(address, None)?, Method::GET).await?, StatusCode::OK);
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        let (address, asked, _server) = breaking(1).await?;
        send(&client(address, None)?, method.clone()).await.expect_err("the response was lost");
        assert_eq!(asked.load(Ordering::SeqCst), 1, "{method}");
    }
    Ok(())
}

#[tokio::test]
async fn a_config_without_retries_gets_the_first_response() -> Result<()> {
    let server = Busy::new(1, StatusCode::SERVICE_UNAVAILABLE, Some("0")).await?;
    let mut config = Config::new(format!("http://{}", server.address).parse()?);
    config.default_retry = false;
    let client = connect::client(config, Options::default())?;
    assert_eq!(send(&client, Method::GET).await?, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(server.asked(), 1);
    Ok(())
}

#[tokio::test]
async fn a_warning_of_the_server_is_logged_once() -> Result<()> {
    let log = Log::keep()?;
    let sent = Arc::new(AtomicUsize::new(0));
    let handler = Handler::new(move |_| {
        let number = sent.fetch_add(1, Ordering::SeqCst);
        async move {
            let mut response = text(StatusCode::OK, "{}");
            let warnings =
                ["299 - \"v1beta1 of Shelf is deprecated\"", "299 - \"unknown field \\\"spec.x\\\"\""];
            // The first two responses have the first warning, the others both.
            for warning in &warnings[..=usize::from(number > 1)] {
                response.headers_mut().append(header::WARNING, HeaderValue::from_static(warning));
            }
            response
        }
    });
    let server = Server::bind(&"127.0.0.1:0".parse()?, "--test").await?.context("the address is on")?;
    let client = client(server.address(), None)?;
    let mut task = JoinSet::new();
    task.spawn(server.run(handler, std::future::pending()));
    let logged = || log.saying("API server warning: ");
    for (method, count) in [(Method::GET, 1), (Method::POST, 1), (Method::PATCH, 2), (Method::GET, 2)] {
        assert_eq!(send(&client, method).await?, StatusCode::OK);
        assert_eq!(logged().len(), count, "{:?}", logged());
    }
    let logged = logged();
    assert!(logged[0].contains("WARN") && logged[0].contains("v1beta1 of Shelf is deprecated"), "{logged:?}");
    assert!(logged[1].contains(r#"unknown field "spec.x""#), "{logged:?}");
    Ok(())
}
