//! In-process, HTTP/1.1 and HTTP/2 give the same responses: one script over all three, compared byte by byte.

mod h2;

pub(crate) use h2::connect;

use std::sync::Arc;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Version, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use kubewright_apiserver::clock::ManualClock;
use kubewright_apiserver::serve::Listening;
use kubewright_apiserver::{ApiServer, Options};
use serde_json::{Value, json};

use crate::world::{START, config_map, server, soon};

type Answer = Response<UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>>;

/// kube's client over TLS, from the kubeconfig that the server writes.
pub(crate) async fn tls_client(listening: &Listening) -> Result<Client> {
    let kubeconfig = Kubeconfig::from_yaml(&listening.kubeconfig())?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    // Without retries, so that a test sees the first response.
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

/// A transport to a server.
enum Transport {
    InProcess(ApiServer),
    Http1(Client),
    Http2(h2::Sender),
}

impl Transport {
    async fn send(&mut self, request: Request<Vec<u8>>) -> Result<Answer> {
        Ok(match self {
            Self::InProcess(server) => {
                let response = server.handle(request.map(|body| Full::new(Bytes::from(body)))).await;
                response.map(|body| body.map_err(Into::into).boxed_unsync())
            }
            Self::Http1(client) => {
                let response = client.send(request.map(Into::into)).await?;
                assert_eq!(response.version(), Version::HTTP_11);
                response.map(|body| body.map_err(Into::into).boxed_unsync())
            }
            Self::Http2(sender) => {
                let response = sender.send(request).await?;
                assert_eq!(response.version(), Version::HTTP_2);
                response.map(|body| body.map_err(Into::into).boxed_unsync())
            }
        })
    }
}

/// The observable parts of a response.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    request: String,
    status: StatusCode,
    headers: Vec<(&'static str, String)>,
    body: String,
}

fn seen_headers(response: &Answer) -> Vec<(&'static str, String)> {
    [
        "content-type",
        "cache-control",
        "warning",
        "retry-after",
        "etag",
        "vary",
        "allow",
        "x-content-type-options",
    ]
    .into_iter()
    .flat_map(|name| response.headers().get_all(name).into_iter().map(move |value| (name, value)))
    .map(|(name, value)| (name, String::from_utf8_lossy(value.as_bytes()).into_owned()))
    .collect()
}

/// Method, path, media type and body of a request.
type Step = (Method, &'static str, &'static str, Value);

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn script() -> Vec<Step> {
    let read = |path| (Method::GET, path, JSON, Value::Null);
    let map = serde_json::to_value(config_map("a")).expect("a ConfigMap is JSON");
    let mut unknown = map.clone();
    unknown["metadata"]["name"] = "warned".into();
    unknown["bogus"] = 1.into();
    vec![
        read("/healthz"),
        read("/readyz?verbose"),
        read("/version"),
        read("/api"),
        read("/apis"),
        read("/apis/apps/v1"),
        (Method::GET, "/apis", AGGREGATED, Value::Null),
        (Method::POST, MAPS, JSON, map.clone()),
        (Method::POST, MAPS, JSON, map),
        (Method::POST, MAPS, JSON, unknown),
        (Method::POST, MAPS, JSON, json!({"metadata": {"generateName": "made-"}})),
        (Method::POST, MAPS, JSON, json!({"metadata": {"name": "Not a name"}})),
        read("/api/v1/namespaces/default/configmaps/a"),
        (Method::HEAD, "/api/v1/namespaces/default/configmaps/a", JSON, Value::Null),
        read("/api/v1/namespaces/default/configmaps/nobody"),
        read("/api/v1/namespaces/default/bogus"),
        read("/bogus"),
        (
            Method::PUT,
            "/api/v1/namespaces/default/configmaps/a",
            JSON,
            json!({"metadata": {"name": "a", "resourceVersion": "1"}}),
        ),
        (
            Method::PATCH,
            "/api/v1/namespaces/default/configmaps/a",
            MERGE,
            json!({"data": {"umlaut": "ä 😀 \u{2028}"}}),
        ),
        (Method::PATCH, "/api/v1/namespaces/default/configmaps/a", "text/plain", json!({})),
        (Method::GET, "/api/v1/namespaces/default/configmaps?limit=1", TABLE, Value::Null),
        (Method::GET, "/api/v1/namespaces/default/configmaps/a", "application/yaml", Value::Null),
        (Method::GET, "/api/v1/namespaces/default/configmaps", "application/pdf", Value::Null),
        read("/api/v1/configmaps?labelSelector=a%20in%20(b&limit=3"),
        (
            Method::POST,
            "/api/v1/namespaces/default/services",
            JSON,
            json!({
                "metadata": {"name": "web"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]},
            }),
        ),
        (
            Method::DELETE,
            "/api/v1/namespaces/default/configmaps/a",
            JSON,
            json!({"preconditions": {"uid": "x"}}),
        ),
        (Method::DELETE, "/api/v1/namespaces/default/configmaps/a", JSON, Value::Null),
        (Method::DELETE, MAPS, JSON, Value::Null),
        (Method::OPTIONS, MAPS, JSON, Value::Null),
        read("/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=1"),
    ]
}

async fn play(transport: &mut Transport) -> Result<Vec<Seen>> {
    let mut seen = Vec::new();
    for (method, path, media, body) in script() {
        let step = format!("{method} {path} {media}");
        let mut request = Request::builder().method(&method).uri(path);
        request = if matches!(method, Method::GET | Method::HEAD) {
            request.header(header::ACCEPT, media)
        } else {
            request.header(header::CONTENT_TYPE, media)
        };
        let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(&body)? };
        let answer = soon(&step, transport.send(request.body(body)?)).await.with_context(|| step.clone())?;
        let (status, headers) = (answer.status(), seen_headers(&answer));
        let body = if path.contains("watch=1") {
            // A watch does not end; read its first events.
            lines(answer, 7).await?
        } else {
            let bytes = answer.into_body().collect().await.map_err(anyhow::Error::from_boxed)?.to_bytes();
            String::from_utf8(bytes.to_vec())?
        };
        seen.push(Seen { request: step, status, headers, body });
    }
    Ok(seen)
}

/// The first lines of a response that may not end.
async fn lines(answer: Answer, count: usize) -> Result<String> {
    let mut body = answer.into_body();
    let mut text = String::new();
    while text.matches('\n').count() < count {
        let Some(frame) = soon("a line", body.frame()).await else { break };
        let frame = frame.map_err(anyhow::Error::from_boxed)?;
        text.push_str(std::str::from_utf8(frame.data_ref().context("no data")?)?);
    }
    Ok(text)
}

/// A server with a fixed seed and a stopped clock, so that responses differ only by transport.
fn frozen() -> ApiServer {
    ApiServer::new(Options { clock: Arc::new(ManualClock::new(START)), seed: Some(7), ..Options::default() })
}

#[tokio::test]
async fn every_transport_gives_the_same_responses() -> Result<()> {
    let in_process = play(&mut Transport::InProcess(frozen())).await?;
    assert_eq!(
        in_process.iter().filter(|seen| seen.status.is_server_error()).collect::<Vec<_>>(),
        [] as [&Seen; 0]
    );

    let listening = Listening::open(frozen(), 0).await?;
    let http1 = play(&mut Transport::Http1(tls_client(&listening).await?)).await?;
    listening.close().await;

    let listening = Listening::open(frozen(), 0).await?;
    let sender = h2::connect(&listening, Some(listening.admin())).await?;
    let http2 = play(&mut Transport::Http2(sender)).await?;
    listening.close().await;

    for ((in_process, http1), http2) in in_process.iter().zip(&http1).zip(&http2) {
        assert_eq!(in_process, http1, "in-process and HTTP/1.1 differ");
        assert_eq!(in_process, http2, "in-process and HTTP/2 differ");
    }
    Ok(())
}

#[tokio::test]
async fn three_clients_of_one_server_see_each_others_writes() -> Result<()> {
    let server = server();
    let listening = Listening::open(server.clone(), 0).await?;
    let mut transports = [
        Transport::InProcess(server),
        Transport::Http1(tls_client(&listening).await?),
        Transport::Http2(h2::connect(&listening, Some(listening.admin())).await?),
    ];
    for at in 0..transports.len() {
        let body = json!({"metadata": {"name": format!("m{at}")}}).to_string().into_bytes();
        let request = Request::post(MAPS).header(header::CONTENT_TYPE, JSON).body(body)?;
        assert_eq!(transports[at].send(request).await?.status(), StatusCode::CREATED);
        let mut lists = Vec::new();
        for transport in &mut transports {
            let answer = transport.send(Request::get(MAPS).body(Vec::new())?).await?;
            let bytes = answer.into_body().collect().await.map_err(anyhow::Error::from_boxed)?.to_bytes();
            let list: Value = serde_json::from_slice(&bytes)?;
            assert_eq!(list["items"].as_array().map(Vec::len), Some(at + 1));
            lists.push(bytes);
        }
        assert!(lists.iter().all(|list| *list == lists[0]));
    }
    drop(transports);
    listening.close().await;
    Ok(())
}

/// client-go uses one connection for all its watches.
#[tokio::test]
async fn one_connection_carries_many_watches() -> Result<()> {
    const WATCHES: usize = 300;
    let server = server();
    let listening = Listening::open(server.clone(), 0).await?;
    let sender = h2::connect(&listening, Some(listening.admin())).await?;
    let mut watches = Vec::new();
    for _ in 0..WATCHES {
        let request = Request::get(format!("{MAPS}?watch=1")).body(Vec::new())?;
        watches.push(soon("opening a watch", sender.clone().send(request)).await?);
    }
    let maps: kube::Api<k8s_openapi::api::core::v1::ConfigMap> =
        kube::Api::default_namespaced(crate::world::client(&server));
    maps.create(&kube::api::PostParams::default(), &config_map("a")).await?;
    for watch in watches {
        let line = lines(watch.map(|body| body.map_err(Into::into).boxed_unsync()), 1).await?;
        assert!(line.starts_with("{\"type\":\"ADDED\""), "{line}");
    }
    listening.close().await;
    Ok(())
}

#[tokio::test]
async fn a_server_that_closes_ends_its_watches() -> Result<()> {
    let listening = Listening::open(server(), 0).await?;
    let mut sender = h2::connect(&listening, Some(listening.admin())).await?;
    let watch = sender.send(Request::get(format!("{MAPS}?watch=1")).body(Vec::new())?).await?;
    let closed = soon("closing", listening.close());
    let read = soon("the end of the watch", watch.into_body().collect());
    let ((), _) = tokio::join!(closed, read);
    Ok(())
}

#[tokio::test]
async fn kube_watches_over_tls_and_in_process() -> Result<()> {
    use futures_util::{StreamExt as _, TryStreamExt as _};
    use kube::runtime::watcher::{Config, watcher};
    let listening = Listening::open(server(), 0).await?;
    let client = tls_client(&listening).await?;
    let maps: kube::Api<k8s_openapi::api::core::v1::ConfigMap> = kube::Api::default_namespaced(client);
    maps.create(&kube::api::PostParams::default(), &config_map("a")).await?;
    for config in [Config::default(), Config::default().streaming_lists()] {
        let mut stream = std::pin::pin!(watcher(maps.clone(), config));
        let events: Vec<_> = soon("the list", stream.by_ref().take(3).try_collect()).await?;
        let events: Vec<String> = events.iter().map(ToString::to_string).collect();
        assert_eq!(events, ["Init", "InitApply(a)", "InitDone"]);
        maps.create(&kube::api::PostParams::default(), &config_map("b")).await?;
        assert_eq!(
            soon("b", stream.try_next()).await?.map(|event| event.to_string()).as_deref(),
            Some("Apply(b)")
        );
        maps.delete("b", &kube::api::DeleteParams::default()).await?;
        assert_eq!(
            soon("b", stream.try_next()).await?.map(|event| event.to_string()).as_deref(),
            Some("Delete(b)")
        );
    }
    listening.close().await;
    Ok(())
}
