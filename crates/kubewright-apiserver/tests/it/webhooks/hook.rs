//! A webhook server: TLS on 127.0.0.1, its own certificate, and a function that responds to reviews.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kubewright_apiserver::certs::Authority;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

type Answer = Arc<dyn Fn(&str, &Value) -> Option<Value> + Send + Sync>;

/// The path at which the webhook closes the connection instead of responding.
pub(crate) const DIES: &str = "/dies";

/// A running webhook server. It stops with the test.
pub(crate) struct Hook {
    pub(crate) address: SocketAddr,
    ca: String,
    pub(crate) received: Arc<Mutex<Vec<Value>>>,
    pub(crate) connections: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Hook {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Hook {
    /// Responds with the result of `answer` for the path and the review's request; `None` never responds. Requests to
    /// [`DIES`] close the connection.
    pub(crate) async fn start(
        answer: impl Fn(&str, &Value) -> Option<Value> + Send + Sync + 'static,
    ) -> Self {
        let authority = Authority::new().unwrap();
        let identity = authority.server(&["127.0.0.1".parse().unwrap()]).unwrap();
        Self::serve(identity.cert, identity.key, authority.pem(), answer).await
    }

    /// As [`Hook::start`], with this certificate, which a CA with the certificate `ca` issued.
    pub(crate) async fn serve(
        cert: CertificateDer<'static>,
        key: PrivateKeyDer<'static>,
        ca: &str,
        answer: impl Fn(&str, &Value) -> Option<Value> + Send + Sync + 'static,
    ) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert], key)
            .unwrap();
        // As Go's servers. The API server must choose HTTP/1.1, which is all that is served here.
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let answer: Answer = Arc::new(answer);
        let seen = (received.clone(), connections.clone());
        let task = tokio::spawn(accept(listener, TlsAcceptor::from(Arc::new(config)), answer, seen));
        let ca = base64::engine::general_purpose::STANDARD.encode(ca);
        Self { address, ca, received, connections, task }
    }

    /// A `clientConfig` that trusts it.
    pub(crate) fn client(&self, path: &str) -> Value {
        json!({"url": format!("https://{}{path}", self.address), "caBundle": self.ca})
    }

    /// A `clientConfig` with a Service.
    pub(crate) fn service(&self, name: &str, path: &str) -> Value {
        json!({"service": {"namespace": "default", "name": name, "path": path}, "caBundle": self.ca})
    }

    pub(crate) fn take(&self) -> Vec<Value> {
        std::mem::take(&mut self.received.lock().unwrap())
    }
}

/// An AdmissionReview with `response` to `request`.
pub(crate) fn review(request: &Value, mut response: Value) -> Value {
    response["uid"] = request["uid"].clone();
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

/// A response that allows the request with a JSON patch.
pub(crate) fn patch(operations: &Value) -> Value {
    let patch = base64::engine::general_purpose::STANDARD.encode(operations.to_string());
    json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})
}

async fn accept(
    listener: TcpListener,
    tls: TlsAcceptor,
    answer: Answer,
    (received, connections): (Arc<Mutex<Vec<Value>>>, Arc<AtomicUsize>),
) {
    while let Ok((stream, _)) = listener.accept().await {
        connections.fetch_add(1, Ordering::Relaxed);
        let (tls, answer, received) = (tls.clone(), answer.clone(), received.clone());
        tokio::spawn(async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                let (answer, received) = (answer.clone(), received.clone());
                async move {
                    let path = request.uri().path().to_owned();
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    let review: Value = serde_json::from_slice(&body).unwrap();
                    received.lock().unwrap().push(review.clone());
                    if path == DIES {
                        return Err(io::Error::other("the webhook dies"));
                    }
                    let Some(answer) = answer(&path, &review["request"]) else {
                        return std::future::pending().await;
                    };
                    let bytes = Bytes::from(answer.to_string());
                    Ok::<_, io::Error>(http::Response::new(Full::new(bytes)))
                }
            });
            // Errors are ignored: the client may close the connection at any time.
            drop(
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await,
            );
        });
    }
}
