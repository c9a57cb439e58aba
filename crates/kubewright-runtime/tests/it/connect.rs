//! The connection to the embedded API server over TLS. These tests use sockets, so they run on the real clock.

use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures_util::future::join_all;
use futures_util::{Stream, StreamExt as _};
use http::{Request, StatusCode, Version};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, ListParams, PostParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use kubewright_apiserver::serve::Listening;
use kubewright_apiserver::{ApiServer, Options as ServerOptions};
use kubewright_runtime::connect::{self, ClientMetrics, ConnectError, Options, user_agent};
use kubewright_runtime::metrics::Metrics;

use crate::connect_relay::Relay;

/// A generous timeout, so that a hanging test fails.
const DEADLINE: Duration = Duration::from_secs(20);

async fn soon<F: Future>(what: &str, future: F) -> Result<F::Output> {
    tokio::time::timeout(DEADLINE, future).await.with_context(|| format!("{what} took too long"))
}

async fn cluster() -> Result<Listening> {
    let options = ServerOptions { seed: Some(1), ..ServerOptions::default() };
    Ok(Listening::open(ApiServer::new(options), 0).await?)
}

async fn config(listening: &Listening) -> Result<Config> {
    let kubeconfig = Kubeconfig::from_yaml(&listening.kubeconfig())?;
    Ok(Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?)
}

/// The same cluster through another address.
async fn config_by_way_of(listening: &Listening, address: SocketAddr) -> Result<Config> {
    let mut config = config(listening).await?;
    config.cluster_url = format!("https://{address}").parse()?;
    Ok(config)
}

fn config_map(name: &str) -> ConfigMap {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let data = Some([("key".to_owned(), "value".to_owned())].into());
    ConfigMap { metadata, data, ..ConfigMap::default() }
}

type Watch = Pin<Box<dyn Stream<Item = kube::Result<WatchEvent<ConfigMap>>> + Send>>;

async fn watch(client: &Client) -> Result<Watch> {
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    // Only new events: nothing arrives until something changes.
    let now =
        api.list(&ListParams::default()).await?.metadata.resource_version.context("a list has a version")?;
    Ok(Box::pin(api.watch(&WatchParams::default(), &now).await?))
}

/// Waits until a watch has ended, with or without an error.
async fn ended(mut watch: Watch) {
    while let Some(Ok(_)) = watch.next().await {}
}

async fn version(client: &Client, request: http::request::Builder) -> Result<(StatusCode, Version)> {
    let response = client.send(request.uri("/version").body(kube::client::Body::empty())?).await?;
    Ok((response.status(), response.version()))
}

#[tokio::test]
async fn requests_work_over_http_2_and_http_1() -> Result<()> {
    let listening = cluster().await?;
    for (http2, spoken) in [(true, Version::HTTP_2), (false, Version::HTTP_11)] {
        let client = connect::client(config(&listening).await?, Options { http2, ..Options::default() })?;
        let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let name = format!("over-{http2}");
        api.create(&PostParams::default(), &config_map(&name)).await?;
        assert_eq!(api.get(&name).await?.metadata.name, Some(name));
        assert_eq!(version(&client, Request::get("/")).await?, (StatusCode::OK, spoken));
        assert_eq!(client.default_namespace(), "default");
    }
    Ok(())
}

#[tokio::test]
async fn upgrades_use_http_1() -> Result<()> {
    let listening = cluster().await?;
    let client = connect::client(config(&listening).await?, Options::default())?;
    let upgrade = Request::get("/").header("connection", "upgrade").header("upgrade", "websocket");
    assert_eq!(version(&client, upgrade).await?.1, Version::HTTP_11);
    Ok(())
}

#[tokio::test]
async fn requests_have_the_user_agent() -> Result<()> {
    let listening = cluster().await?;
    let options = Options { user_agent: user_agent("markdown-view", "0.3.0"), ..Options::default() };
    let client = connect::client(config(&listening).await?, options.clone())?;
    let made = Api::<ConfigMap>::default_namespaced(client)
        .create(&PostParams::default(), &config_map("mine"))
        .await?;
    let manager =
        |made: ConfigMap| made.metadata.managed_fields.and_then(|fields| fields.into_iter().next()?.manager);
    assert_eq!(manager(made).as_deref(), Some("markdown-view"));

    let mut own = config(&listening).await?;
    own.headers.push((http::header::USER_AGENT, "own/1".parse()?));
    let made = Api::<ConfigMap>::default_namespaced(connect::client(own, options)?)
        .create(&PostParams::default(), &config_map("theirs"))
        .await?;
    assert_eq!(manager(made).as_deref(), Some("own"));
    Ok(())
}

#[tokio::test]
async fn twenty_watches_share_one_connection() -> Result<()> {
    let listening = cluster().await?;
    let relay = Relay::to(listening.address()).await;
    let client = connect::client(config_by_way_of(&listening, relay.address()).await?, Options::default())?;
    client.apiserver_version().await?;
    let watches = join_all((0..20).map(|_| watch(&client))).await;
    let mut watches = watches.into_iter().collect::<Result<Vec<_>>>()?;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    api.create(&PostParams::default(), &config_map("seen-by-all")).await?;
    for watch in &mut watches {
        let event = soon("an event", watch.next()).await?;
        assert!(matches!(event, Some(Ok(WatchEvent::Added(_)))), "{event:?}");
    }
    assert_eq!(relay.seen().accepted, 1);
    Ok(())
}

#[tokio::test]
async fn watches_that_start_concurrently_end_up_on_one_connection() -> Result<()> {
    let listening = cluster().await?;
    let relay = Relay::to(listening.address()).await;
    let client = connect::client(config_by_way_of(&listening, relay.address()).await?, Options::default())?;
    let watches = join_all((0..20).map(|_| watch(&client))).await;
    let _watches = watches.into_iter().collect::<Result<Vec<_>>>()?;
    soon("closing the excess connections", relay.until(|seen| seen.open == 1)).await?;
    Ok(())
}

#[tokio::test]
async fn watches_beyond_the_limit_get_another_connection() -> Result<()> {
    let listening = cluster().await?;
    let relay = Relay::to(listening.address()).await;
    let options = Options { requests_per_connection: 8, ..Options::default() };
    let client = connect::client(config_by_way_of(&listening, relay.address()).await?, options)?;
    let mut watches = Vec::new();
    for _ in 0..20 {
        watches.push(watch(&client).await?);
    }
    assert_eq!(relay.seen().accepted, 3);
    // A watch that ends frees its slot.
    watches.truncate(7);
    watches.push(watch(&client).await?);
    assert_eq!(relay.seen().accepted, 3);
    Ok(())
}

#[tokio::test]
async fn a_silent_peer_is_detected_by_a_ping() -> Result<()> {
    let listening = cluster().await?;
    let relay = Relay::to(listening.address()).await;
    let options = Options {
        ping_interval: Duration::from_millis(50),
        ping_timeout: Duration::from_millis(150),
        ..Options::default()
    };
    let client = connect::client(config_by_way_of(&listening, relay.address()).await?, options)?;
    let watch = watch(&client).await?;
    relay.fall_silent();
    soon("detecting the silence", ended(watch)).await?;
    // The dead connection is not used again.
    let before = relay.seen().accepted;
    relay.speak();
    soon("a request on a new connection", client.apiserver_version()).await??;
    assert_eq!(relay.seen().accepted, before + 1);
    Ok(())
}

#[tokio::test]
async fn an_idle_watch_stays_open_while_pings_are_answered() -> Result<()> {
    let listening = cluster().await?;
    let relay = Relay::to(listening.address()).await;
    // A timeout that is long enough for a busy machine.
    let options =
        Options { ping_interval: Duration::from_millis(20), ping_timeout: DEADLINE, ..Options::default() };
    let client = connect::client(config_by_way_of(&listening, relay.address()).await?, options)?;
    let mut watch = watch(&client).await?;
    let before = relay.seen().asked;
    soon("ten pings", async {
        tokio::select! {
            biased;
            event = watch.next() => panic!("an idle watch got {event:?}"),
            _ = relay.until(|seen| seen.asked >= before + 10) => {}
        }
    })
    .await?;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    api.create(&PostParams::default(), &config_map("after-the-quiet")).await?;
    let event = soon("an event", watch.next()).await?;
    assert!(matches!(event, Some(Ok(WatchEvent::Added(_)))), "{event:?}");
    assert_eq!(relay.seen().accepted, 1);
    Ok(())
}

#[tokio::test]
async fn requests_are_counted_by_their_outcome() -> Result<()> {
    let listening = cluster().await?;
    let metrics = Metrics::new();
    let counted = metrics.with_registry(ClientMetrics::register);
    let options = Options { metrics: Some(counted), ..Options::default() };
    let client = connect::client(config(&listening).await?, options)?;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    api.create(&PostParams::default(), &config_map("counted")).await?;
    assert!(api.get_opt("missing").await?.is_none());
    let (_, page) = metrics.page(None);
    let host = listening.address();
    for line in [
        format!("rest_client_requests_total{{code=\"201\",method=\"POST\",host=\"{host}\"}} 1"),
        format!("rest_client_requests_total{{code=\"404\",method=\"GET\",host=\"{host}\"}} 1"),
        format!("rest_client_request_duration_seconds_count{{verb=\"GET\",host=\"{host}\"}} 1"),
    ] {
        assert!(page.lines().any(|shown| shown == line), "{line} is not in\n{page}");
    }
    Ok(())
}

#[tokio::test]
async fn request_durations_can_have_other_buckets() -> Result<()> {
    let listening = cluster().await?;
    let metrics = Metrics::new();
    let counted =
        metrics.with_registry(|registry| ClientMetrics::register_with_buckets(registry, [0.5, 3600.0]));
    let options = Options { metrics: Some(counted), ..Options::default() };
    let client = connect::client(config(&listening).await?, options)?;
    assert!(Api::<ConfigMap>::default_namespaced(client).get_opt("missing").await?.is_none());
    let (_, page) = metrics.page(None);
    let buckets: Vec<_> = page.lines().filter(|line| line.contains("duration_seconds_bucket")).collect();
    let host = listening.address();
    assert_eq!(buckets.len(), 3, "{buckets:?}");
    let last = format!(
        "rest_client_request_duration_seconds_bucket{{le=\"3600.0\",verb=\"GET\",host=\"{host}\"}} 1"
    );
    assert_eq!(buckets[1], last);
    Ok(())
}

#[tokio::test]
async fn an_invalid_configuration_has_a_helpful_error() -> Result<()> {
    let listening = cluster().await?;
    let mut named = config(&listening).await?;
    named.tls_server_name = Some("not a name".to_owned());
    let error = connect::client(named, Options::default()).err().context("no name")?;
    assert!(matches!(error, ConnectError::ServerName(..)), "{error}");
    let options = Options { user_agent: "line\nbreak".to_owned(), ..Options::default() };
    let error = connect::client(config(&listening).await?, options).err().context("no header")?;
    assert!(error.to_string().contains("printable ASCII"), "{error}");
    // The certificate is also valid for this name; the connection still goes to the address.
    let mut named = config(&listening).await?;
    named.tls_server_name = Some("kubernetes.default".to_owned());
    connect::client(named, Options::default())?.apiserver_version().await?;
    Ok(())
}
