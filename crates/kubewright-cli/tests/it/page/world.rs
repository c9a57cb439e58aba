//! Test fixtures: an API server with a page, and functions that change its objects.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use kube::Client;
use kubewright_apiserver::certs::{Authority, Identity};
use kubewright_apiserver::{ApiServer, Options};
use kubewright_cluster::{Cluster, Nodes};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::DEADLINE;
use kubewright_cli::Page;

pub(super) struct World {
    pub(super) client: Client,
    pub(super) page: Page,
    /// Aborted on drop.
    tasks: JoinSet<()>,
}

impl World {
    /// A server without controllers.
    pub(super) async fn start() -> Self {
        let client = Client::new(ApiServer::new(Options::default()), "default");
        let page = Page::start(client.clone(), 0).await.expect("a port is free");
        Self { client, page, tasks: JoinSet::new() }
    }

    /// A server in which Deployments create Pods.
    pub(super) async fn with_cluster() -> Self {
        let mut world = Self::start().await;
        let options =
            kubewright_cluster::Options { nodes: Nodes::count(1), ..kubewright_cluster::Options::default() };
        let cluster = Cluster::new(world.client.clone(), &options).expect("a cluster");
        world.tasks.spawn(async {
            cluster.run_until(std::future::pending()).await.expect("the cluster runs");
        });
        world
    }

    pub(super) async fn create(&self, path: &str, object: &Value) -> Value {
        create(&self.client, path, object).await
    }

    pub(super) async fn merge(&self, path: &str, patch: &Value) -> Value {
        let request = Request::patch(path).header("content-type", "application/merge-patch+json");
        send(&self.client, request, patch).await
    }

    pub(super) async fn delete(&self, path: &str) {
        send(&self.client, Request::delete(path), &json!({})).await;
    }

    pub(super) async fn config_map(&self, name: &str, data: &Value) -> Value {
        let map = json!({ "metadata": { "name": name }, "data": data });
        self.create("/api/v1/namespaces/default/configmaps", &map).await
    }

    /// Creates a CRD in `example.com` and returns its path.
    pub(super) async fn define(&self, kind: &str) -> String {
        let (single, plural) = (kind.to_lowercase(), format!("{}s", kind.to_lowercase()));
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let version = json!({
            "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema },
            "subresources": { "status": {} },
        });
        let definition = json!({
            "metadata": { "name": format!("{plural}.example.com") },
            "spec": {
                "group": "example.com", "scope": "Namespaced", "versions": [version],
                "names": { "kind": kind, "plural": plural, "singular": single },
            },
        });
        self.create(definitions, &definition).await;
        format!("{definitions}/{plural}.example.com")
    }

    pub(super) async fn journal(&self) -> Journal {
        let stream = TcpStream::connect(self.page.journal_address()).await.expect("the journal listens");
        Journal { stream, token: self.page.journal_token().to_owned() }
    }
}

pub(super) async fn create(client: &Client, path: &str, object: &Value) -> Value {
    send(client, Request::post(path), object).await
}

async fn send(client: &Client, request: http::request::Builder, body: &Value) -> Value {
    let request = request.body(body.to_string().into_bytes()).expect("a request");
    let uri = request.uri().clone();
    client.request(request).await.unwrap_or_else(|error| panic!("{uri}: {error}"))
}

/// A TLS client with a client certificate.
pub(super) async fn connect(url: &str, authority: &Authority, who: &Identity) -> Client {
    let yaml = kubewright_apiserver::serve::kubeconfig(url, authority.pem(), who);
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&yaml).expect("a kubeconfig");
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("a configuration");
    config.try_into().expect("a client")
}

/// The operator's side of the journal.
pub(super) struct Journal {
    stream: TcpStream,
    pub(super) token: String,
}

impl Journal {
    pub(super) async fn hello(&mut self, operator: &str, controllers: &[&str]) {
        let hello = json!({ "type": "hello", "at": now(), "operator": operator, "pid": 4711, "controllers": controllers, "token": self.token });
        self.write(&hello).await;
    }

    pub(super) async fn write(&mut self, record: &Value) {
        self.raw(&format!("{record}\n")).await;
    }

    pub(super) async fn raw(&mut self, text: &str) {
        // The page may have closed the connection already.
        let _ = self.stream.write_all(text.as_bytes()).await;
    }

    pub(super) async fn until_closed(&mut self) {
        let read =
            timeout(DEADLINE, self.stream.read(&mut [0])).await.expect("the journal is closed in time");
        assert!(matches!(read, Ok(0) | Err(_)), "nothing is ever written to an operator");
    }
}

/// The current time in the journal's format.
pub(super) fn now() -> String {
    ago(Duration::ZERO)
}

/// A past time in the journal's format.
pub(super) fn ago(before: Duration) -> String {
    let at = k8s_openapi::jiff::Timestamp::now()
        - k8s_openapi::jiff::SignedDuration::try_from(before).expect("short");
    format!("{at:.6}")
}

/// A request to the page.
pub(super) struct Call {
    path: String,
    method: &'static str,
    host: Option<&'static str>,
    last: Option<String>,
}

pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
}

impl Call {
    pub(super) fn get(path: &str) -> Self {
        Self { path: path.to_owned(), method: "GET", host: None, last: None }
    }

    pub(super) fn host(mut self, host: &'static str) -> Self {
        self.host = Some(host);
        self
    }

    pub(super) fn method(mut self, method: &'static str) -> Self {
        self.method = method;
        self
    }

    pub(super) async fn send(self, page: &Page) -> Answer {
        let response = self.begin(page).await;
        let (status, headers) = (response.status(), response.headers().clone());
        if headers["content-type"] == "text/event-stream" {
            return Answer { status, headers, text: String::new() };
        }
        let body = response.into_body().collect().await.expect("an answer").to_bytes();
        Answer { status, headers, text: String::from_utf8(body.to_vec()).expect("it is text") }
    }

    async fn begin(self, page: &Page) -> http::Response<Incoming> {
        let socket = TcpStream::connect(page.address()).await.expect("the page listens");
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(socket)).await.expect("a connection");
        tokio::spawn(connection);
        let own = page.address().to_string();
        let mut request =
            Request::builder().method(self.method).uri(self.path).header("host", self.host.unwrap_or(&own));
        if let Some(last) = self.last {
            request = request.header("last-event-id", last);
        }
        let request = request.body(Full::<Bytes>::default()).expect("a request");
        timeout(DEADLINE, sender.send_request(request)).await.expect("an answer in time").expect("an answer")
    }
}

/// A stream of server-sent events.
pub(super) struct Stream {
    body: Incoming,
    buffer: String,
    seen: Vec<Value>,
}

impl Stream {
    pub(super) async fn open(page: &Page, last: Option<&str>) -> Self {
        let call = Call { last: last.map(str::to_owned), ..Call::get("/events") };
        let response = call.begin(page).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { body: response.into_body(), buffer: String::new(), seen: Vec::new() }
    }

    /// The next message with its ID.
    pub(super) async fn next(&mut self) -> (String, Value) {
        timeout(DEADLINE, self.read()).await.expect("a message in time").expect("the stream goes on")
    }

    /// The first message that matches.
    pub(super) async fn until(&mut self, is: impl Fn(&Value) -> bool) -> (String, Value) {
        let deadline = tokio::time::Instant::now() + DEADLINE;
        loop {
            let message = tokio::time::timeout_at(deadline, self.next()).await.expect("it comes in time");
            if is(&message.1) {
                return message;
            }
        }
    }

    /// All messages so far.
    pub(super) fn seen(&self) -> &[Value] {
        &self.seen
    }

    pub(super) async fn until_closed(&mut self) {
        while self.read().await.is_some() {}
    }

    async fn read(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some((message, rest)) = self.buffer.split_once("\n\n") {
                let field =
                    |name: &str| message.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                let parsed = field("id: ").zip(field("data: "));
                let read = self.buffer.len() - rest.len();
                self.buffer.drain(..read);
                // Comments are keep-alives.
                let Some((id, data)) = parsed else { continue };
                let data: Value = serde_json::from_str(&data).expect("it is JSON");
                self.seen.push(data.clone());
                return Some((id, data));
            }
            let data = self.body.frame().await?.ok()?.into_data().expect("no trailers");
            self.buffer.push_str(std::str::from_utf8(&data).expect("messages are sent whole"));
        }
    }
}
