//! A silent peer: a TCP proxy between the client and a real listener keeps its sockets open but stops forwarding.
//! Requests and watches must detect it and recover by themselves, with the default options.
//!
//! Connections are opened on the real clock. During the silence the clock is paused, so that it jumps from timer to
//! timer until the client opens another connection.

use std::time::Duration;

use anyhow::{Context as _, Result};
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kubewright_apiserver::serve::Listening;
use kubewright_apiserver::{ApiServer, Options as ServerOptions};
use kubewright_runtime::client::{Error, WatchEvent};
use kubewright_runtime::connect::{self, Options};
use kubewright_runtime::{Cache, CacheOptions, Client, Key, ListOptions};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::connect_relay::Relay;
use crate::world::config_map;

/// A cluster behind a proxy.
struct Cluster {
    server: ApiServer,
    relay: Relay,
    kube: kube::Client,
    _listening: Listening,
}

impl Cluster {
    async fn new(http2: bool) -> Result<Self> {
        let server = ApiServer::new(ServerOptions { seed: Some(1), ..ServerOptions::default() });
        let listening = Listening::open(server.clone(), 0).await?;
        let relay = Relay::to(listening.address()).await;
        let kubeconfig = Kubeconfig::from_yaml(&listening.kubeconfig())?;
        let mut config =
            kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        config.cluster_url = format!("https://{}", relay.address()).parse()?;
        let kube = connect::client(config, Options { http2, ..Options::default() })?;
        Ok(Self { server, relay, kube, _listening: listening })
    }

    /// Creates a ConfigMap directly, without the proxy.
    async fn create(&self, name: &str) -> Result<()> {
        let direct = kube::Client::new(self.server.clone(), "default");
        Api::default_namespaced(direct).create(&PostParams::default(), &config_map(name)).await?;
        Ok(())
    }

    /// Silences the open connections. New ones work.
    async fn fall_silent(&self) {
        let open = self.relay.seen().open;
        self.relay.fall_silent();
        self.relay.until(|seen| seen.silenced == open).await;
        self.relay.speak();
    }

    /// Advances the clock until the client opens another connection. Returns how long that took.
    async fn noticed(&self) -> Duration {
        let (before, started) = (self.relay.seen().accepted, Instant::now());
        tokio::time::pause();
        while self.relay.seen().accepted == before {
            tokio::time::sleep(Duration::from_millis(500)).await;
            assert!(started.elapsed() < Duration::from_mins(30), "nothing noticed the silence");
        }
        tokio::time::resume();
        started.elapsed()
    }
}

#[tokio::test]
async fn a_request_over_http_2_recovers_within_fifteen_seconds() -> Result<()> {
    let cluster = Cluster::new(true).await?;
    cluster.create("a").await?;
    let (client, key) = (Client::new(cluster.kube.clone()), Key::namespaced("default", "a"));
    client.get::<ConfigMap>(&key).await?;
    cluster.fall_silent().await;
    // The ping fails the read, which is retried.
    let (got, after) = tokio::join!(client.get::<ConfigMap>(&key), cluster.noticed());
    got?;
    assert!(after <= Duration::from_secs(16), "{after:?}");
    Ok(())
}

#[tokio::test]
async fn a_request_over_http_1_fails_at_its_deadline_and_the_next_one_works() -> Result<()> {
    let cluster = Cluster::new(false).await?;
    let client = Client::new(cluster.kube.clone());
    client.create(&config_map("a")).await?;
    cluster.fall_silent().await;
    let requests = async {
        let (started, lost) = (Instant::now(), client.create(&config_map("b")).await);
        let error = lost.err().context("the response was lost")?;
        assert!(matches!(error, Error::Timeout(_)) && error.is_timeout(), "{error}");
        assert_eq!(started.elapsed().as_secs(), 30);
        // The dead connection is not used again.
        client.create(&config_map("c")).await?;
        anyhow::Ok(())
    };
    let (requests, _) = tokio::join!(requests, cluster.noticed());
    requests
}

/// A watch and an informer that both see an object created during the silence.
async fn watches_recover(http2: bool, within: Duration) -> Result<()> {
    let cluster = Cluster::new(http2).await?;
    cluster.create("a").await?;
    let cache = Cache::new(CacheOptions { seed: Some(1), ..CacheOptions::default() })?;
    let (informer, stop) = (cache.informer::<ConfigMap>(), CancellationToken::new());
    let running = tokio::spawn({
        let (cache, kube, stop) = (cache.clone(), cluster.kube.clone(), stop.clone());
        async move { cache.run(kube, stop).await }
    });
    informer.synced().await?;
    let mut watch =
        Client::new(cluster.kube.clone()).watch::<ConfigMap>(&ListOptions::namespace("default"))?;
    let added = |event: Option<Result<WatchEvent<ConfigMap>, Error>>| match event {
        Some(Ok(WatchEvent::Added(map))) => map.metadata.name,
        _ => None,
    };
    while added(watch.next().await).as_deref() != Some("a") {}
    cluster.fall_silent().await;
    cluster.create("b").await?;
    let key = Key::namespaced("default", "b");
    let seen = async {
        while added(watch.next().await).as_deref() != Some("b") {}
        let mut follower = informer.follower();
        while informer.entry(&key).is_none() {
            follower.next().await.context("the informer has not ended")?;
        }
        anyhow::Ok(())
    };
    let (mut seen, mut first, started) = (std::pin::pin!(seen), None, Instant::now());
    // Over HTTP/1.1 each has its own connection and detects the silence separately.
    loop {
        tokio::select! {
            biased;
            seen = &mut seen => break seen?,
            after = cluster.noticed() => first.get_or_insert(after),
        };
        // On the real clock, the new connection delivers the missed events.
        if let Ok(seen) = tokio::time::timeout(Duration::from_secs(2), &mut seen).await {
            break seen?;
        }
    }
    // The new connection may deliver before the clock is read.
    let after = first.unwrap_or_else(|| started.elapsed());
    assert!(after <= within, "{after:?}");
    stop.cancel();
    running.await?;
    Ok(())
}

#[tokio::test]
async fn watches_over_http_2_recover_within_fifteen_seconds() -> Result<()> {
    watches_recover(true, Duration::from_secs(16)).await
}

#[tokio::test]
async fn watches_over_http_1_recover_after_their_timeout() -> Result<()> {
    // The proxy acknowledges TCP keepalives, so only the timeout of the watch detects the silence.
    watches_recover(false, Duration::from_secs(10 * 60 + 16)).await
}
