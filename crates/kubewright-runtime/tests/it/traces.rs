//! Traces as received by an OpenTelemetry collector.
//!
//! The exporter is configured by the environment of its process and sets up the logging of the whole program. So the
//! test runs itself again as a child process, the operator, next to a local OTLP receiver.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result, bail, ensure};
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_runtime::internal::serve::{Handler, text};
use kubewright_runtime::internal::traces;
use kubewright_runtime::{Context, Manager, Outcome, Patch, Reconciler, logs};
use serde_json::json;
use tower::ServiceExt as _;

use crate::operator::{Running, options};
use crate::serve;
use crate::world::{World, eventually};

/// Set in the child process.
const CHILD: &str = "KUBEWRIGHT_TEST_TRACED";

/// Patches the object `good`, and fails for `bad`.
struct Patches;

impl Reconciler for Patches {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, cx: &Context) -> kubewright_runtime::Result<Outcome> {
        if map.metadata.name.as_deref() == Some("bad") {
            return Err(kubewright_runtime::terminal(std::io::Error::other("it is bad")));
        }
        let patch = Patch::merge(json!({"data": {"traced": "yes"}}));
        cx.client().patch(map, &patch).await?;
        Ok(Outcome::done())
    }
}

/// The operator: reconciles both objects and stops.
async fn operate() -> Result<()> {
    let exporter = traces::init(&logs::Options::default(), "guestbook")?;
    let world = World::new();
    world.config_maps(&["good", "bad"]).await?;
    let parents = Arc::new(Mutex::new(Vec::new()));
    let (seen, server) = (parents.clone(), world.server.clone());
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        if request.method() == Method::PATCH {
            seen.lock().unwrap().push(format!("{:?}", request.headers().get("traceparent")));
        }
        server.clone().oneshot(request)
    });
    let kube = kube::Client::new(service, "default");
    let manager = Manager::new(kube, options().namespaces(["default"]))?;
    manager.controller(Patches).named("patcher").register()?;
    let running = Running::start(&manager);
    eventually("the patch", || !parents.lock().unwrap().is_empty()).await;
    running.end().await?;
    println!("traceparent: {:?}", parents.lock().unwrap());
    drop(exporter);
    Ok(())
}

#[tokio::test]
async fn reconciles_and_their_requests_are_exported() -> Result<()> {
    if std::env::var_os(CHILD).is_some() {
        return operate().await;
    }
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let received = bodies.clone();
    let handler = Handler::new(move |request| {
        let received = received.clone();
        async move {
            let path = request.uri().path().to_owned();
            let body = request
                .into_body()
                .collect()
                .await
                .map(http_body_util::Collected::to_bytes)
                .unwrap_or_default();
            received.lock().unwrap().push((path, body));
            text(StatusCode::OK, "")
        }
    });
    let collector = serve::Running::start(serve::local().await?, handler);
    let mut child = Command::new(std::env::current_exe()?);
    child
        .args(["traces::reconciles_and_their_requests_are_exported", "--exact", "--nocapture"])
        .env(CHILD, "1")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}", collector.address))
        .env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
        .stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || child.output()).await??;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{printed}\n{}", String::from_utf8_lossy(&output.stderr));

    let bodies = bodies.lock().unwrap().clone();
    ensure!(bodies.iter().all(|(path, _)| path == "/v1/traces"), "{bodies:?}");
    let mut spans = Vec::new();
    for (_, body) in &bodies {
        for resource in Message(body).all(1) {
            let of = attributes(&Message(Message(resource).all(1).next().context("a resource")?), 1)?;
            assert_eq!((&*of["service.name"], &*of["deployment.environment"]), ("guestbook", "test"));
            for scope in Message(resource).all(2) {
                spans.extend(Message(scope).all(2).map(Span::read).collect::<Result<Vec<_>>>()?);
            }
        }
    }
    let reconcile = |name: &str| {
        let is = |span: &&Span| span.name == "reconcile" && span.attributes["k8s.object.name"] == name;
        spans.iter().find(is).with_context(|| format!("a reconcile of {name} in {spans:?}"))
    };
    let good = reconcile("good")?;
    let expected = [
        ("controller", "patcher"),
        ("controller_kind", "ConfigMap"),
        ("k8s.namespace.name", "default"),
        ("result", "done"),
    ];
    for (name, value) in expected {
        assert_eq!(good.attributes.get(name).map(|it| &**it), Some(value), "{name} in {good:?}");
    }
    assert!(!good.attributes["reconcile_id"].is_empty());
    let patch = spans.iter().find(|span| span.name == "PATCH").context("the request is a span")?;
    assert_eq!((&patch.parent, &patch.trace), (&good.id, &good.trace));
    assert_eq!(patch.attributes["url.path"], "/api/v1/namespaces/default/configmaps/good");
    assert_eq!(patch.attributes["http.response.status_code"], "200");
    // The server can add its spans to the same trace.
    let parent = format!("00-{}-{}-01", hex(&patch.trace), hex(&patch.id));
    assert!(printed.contains(&parent), "missing {parent} in {printed}");
    let bad = reconcile("bad")?;
    assert_eq!(bad.attributes["result"], "terminal");
    assert_eq!(bad.error.as_deref(), Some("it is bad"));
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// A protobuf message, with a minimal decoder.
struct Message<'a>(&'a [u8]);

enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Message<'a> {
    fn fields(&self) -> Result<Vec<(u64, Field<'a>)>> {
        let (mut rest, mut fields) = (self.0, Vec::new());
        while !rest.is_empty() {
            let tag = varint(&mut rest)?;
            let field = match tag & 7 {
                0 => Field::Number(varint(&mut rest)?),
                1 => Field::Bytes(take(&mut rest, 8)?),
                2 => {
                    let length = usize::try_from(varint(&mut rest)?)?;
                    Field::Bytes(take(&mut rest, length)?)
                }
                5 => Field::Bytes(take(&mut rest, 4)?),
                wire => bail!("unknown wire type {wire}"),
            };
            fields.push((tag >> 3, field));
        }
        Ok(fields)
    }

    /// The values of a field that are bytes, strings or messages.
    fn all(&self, number: u64) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let fields = self.fields().unwrap_or_default();
        fields.into_iter().filter_map(move |(at, field)| match field {
            Field::Bytes(bytes) if at == number => Some(bytes),
            _ => None,
        })
    }

    fn text(&self, number: u64) -> Result<String> {
        Ok(String::from_utf8(self.all(number).next().unwrap_or_default().to_vec())?)
    }
}

fn varint(rest: &mut &[u8]) -> Result<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    bail!("varint is too long")
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length).context("message is truncated")?;
    *rest = left;
    Ok(taken)
}

/// The attributes of a span or a resource.
fn attributes(message: &Message<'_>, field: u64) -> Result<BTreeMap<String, String>> {
    let pair = |pair: &[u8]| -> Result<(String, String)> {
        let value = Message(pair).all(2).next().unwrap_or_default();
        let value = match Message(value).fields()?.pop() {
            Some((1, Field::Bytes(text))) => String::from_utf8(text.to_vec())?,
            Some((_, Field::Number(number))) => number.to_string(),
            _ => String::new(),
        };
        Ok((Message(pair).text(1)?, value))
    };
    message.all(field).map(pair).collect()
}

#[derive(Debug)]
struct Span {
    trace: Vec<u8>,
    id: Vec<u8>,
    parent: Vec<u8>,
    name: String,
    attributes: BTreeMap<String, String>,
    error: Option<String>,
}

impl Span {
    fn read(span: &[u8]) -> Result<Self> {
        let message = Message(span);
        let bytes = |number| message.all(number).next().unwrap_or_default().to_vec();
        Ok(Self {
            trace: bytes(1),
            id: bytes(2),
            parent: bytes(4),
            name: message.text(5)?,
            attributes: attributes(&message, 9)?,
            error: message.all(15).next().map(|status| Message(status).text(2)).transpose()?,
        })
    }
}
