//! Health probes and metrics of a manager over sockets. These tests run on the real clock.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt as _, Empty};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use kubewright_apiserver::authn::{MASTERS, User};
use kubewright_apiserver::authz::{Action, ActionOn, Authorization, Authorizer};
use kubewright_apiserver::{ApiServer, Options};
use kubewright_runtime::connect::ClientMetrics;
use kubewright_runtime::internal::ObserveLayer;
use kubewright_runtime::metrics::Metrics;
use kubewright_runtime::{Manager, ManagerError, ManagerOptions, Outcome, ReconcileError as Error, terminal};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use tokio::sync::watch;
use tower::{Layer as _, ServiceExt as _};

use crate::manager::replica;
use crate::operator::{Acts, Notes, Running, value};
use crate::serve::get;
use crate::world::{World, config_map};

const DEADLINE: Duration = Duration::from_secs(30);

/// Polls until `so` returns a value, on the real clock.
async fn until<T: Debug>(mut so: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
    tokio::time::timeout(DEADLINE, async {
        loop {
            if let Some(found) = so().await? {
                return Ok(found);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await?
}

/// A client of a server that responds to no request before the gate is open.
fn gated(server: ApiServer, gate: watch::Receiver<bool>) -> kube::Client {
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let (server, mut gate) = (server.clone(), gate.clone());
        async move {
            let _ = gate.wait_for(|open| *open).await;
            server.oneshot(request).await
        }
    });
    kube::Client::new(service, "default")
}

fn probed() -> Result<ManagerOptions> {
    let health_probe_bind_address = "127.0.0.1:0".parse()?;
    Ok(ManagerOptions { health_probe_bind_address, ..ManagerOptions::new("test").namespaces(["default"]) })
}

#[tokio::test]
async fn a_manager_is_live_immediately_and_ready_when_its_cache_has_synced() -> Result<()> {
    let (open, gate) = watch::channel(false);
    let manager = Manager::new(gated(ApiServer::new(Options::default()), gate), probed()?)?;
    manager.controller(Acts::<ConfigMap>::noting(&Notes::new())).register()?;
    let running = Running::start(&manager);
    let addresses = manager.addresses().await;
    assert_eq!(addresses.metrics, None);
    let probes = addresses.health_probe.context("probes are served")?;
    assert_ne!(probes.port(), 0);

    let ok = (200, "ok".to_owned());
    assert_eq!(get(probes, "/healthz").await?, ok);
    let unready = "[-]informer-sync failed: reason withheld\n[+]ping ok\nreadyz check failed\n";
    assert_eq!(get(probes, "/readyz").await?, (500, unready.to_owned()));
    let reason = "internal server error: not listed yet: v1, Kind=ConfigMap\n";
    assert_eq!(get(probes, "/readyz/informer-sync").await?, (500, reason.to_owned()));

    open.send_replace(true);
    until(async || Ok((get(probes, "/readyz").await? == ok).then_some(()))).await?;
    // Checks can be added at any time.
    manager.readyz().add("licence", || Err("it has expired".to_owned()));
    manager.healthz().add("disk", || Err("it is full".to_owned()));
    assert_eq!(get(probes, "/readyz/licence").await?.0, 500);
    assert_eq!(get(probes, "/healthz").await?.0, 500);
    assert_eq!(get(probes, "/readyz?exclude=licence").await?, ok);

    running.end().await?;
    assert!(get(probes, "/healthz").await.is_err(), "the port is closed");
    Ok(())
}

#[tokio::test]
async fn probes_are_served_until_the_last_reconcile_has_finished() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let (manager, notes) = (Manager::new(world.kube.clone(), probed()?)?, Notes::new());
    let (noted, (open, gate)) = (notes.clone(), watch::channel(false));
    let gated = Acts::<ConfigMap>::new(move |_, _| {
        let (notes, mut gate) = (noted.clone(), gate.clone());
        Box::pin(async move {
            notes.push("begins");
            gate.wait_for(|open| *open).await?;
            Ok(Outcome::done())
        })
    });
    manager.controller(gated).register()?;
    let running = Running::start(&manager);
    let probes = manager.addresses().await.health_probe.context("probes are served")?;
    until(async || Ok((notes.len() == 1).then_some(()))).await?;
    running.stop.cancel();
    assert_eq!(get(probes, "/healthz").await?.0, 200);
    assert!(!running.task.is_finished());
    open.send_replace(true);
    running.end().await
}

#[tokio::test]
async fn a_port_in_use_is_an_error_that_names_the_flag() -> Result<()> {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = taken.local_addr()?;
    let world = World::new();
    let options = ManagerOptions { metrics_bind_address: address.to_string().parse()?, ..probed()? };
    let error = Running::start(&Manager::new(world.kube.clone(), options)?).failed().await?;
    assert!(matches!(error, ManagerError::Bind(_)));
    let text = error.to_string();
    assert!(text.starts_with(&format!("--metrics-bind-address: {address} is already in use;")), "{text}");
    Ok(())
}

#[tokio::test]
async fn metrics_have_the_names_of_controller_runtime_and_correct_values() -> Result<()> {
    let world = World::new();
    world.config_maps(&["done", "fails", "later", "panics", "soon", "terminal", "times-out"]).await?;
    let metrics = Metrics::new();
    // The client and the manager share one registry, as in an operator's entry point.
    let counted = metrics.with_registry(ClientMetrics::register);
    let service = ObserveLayer::new(Some(counted)).layer(world.server.clone());
    let options = ManagerOptions {
        metrics: metrics.clone(),
        metrics_bind_address: "127.0.0.1:0".parse()?,
        ..replica("me")
    };
    let (manager, notes) = (Manager::new(kube::Client::new(service, "default"), options)?, Notes::new());
    let noted = notes.clone();
    let acts = Acts::<ConfigMap>::new(move |_, cx| {
        let (name, notes) = (cx.key().name().to_owned(), noted.clone());
        Box::pin(async move {
            let again = notes.times(&name).len() == 1;
            notes.push(&name);
            match name.as_str() {
                _ if again => Ok(Outcome::done()),
                "fails" => Err(Error::msg("the test wants this")),
                "later" => Ok(Outcome::requeue_after(Duration::from_millis(1))),
                "panics" => panic!("the test wants this"),
                "soon" => Ok(Outcome::requeue()),
                "terminal" => Err(terminal(Error::msg("the test wants this"))),
                "times-out" => std::future::pending().await,
                _ => Ok(Outcome::done()),
            }
        })
    });
    manager.controller(acts).concurrency(3).timeout(Duration::from_millis(20)).register()?;
    let running = Running::start(&manager);
    let address = manager.addresses().await.metrics.context("metrics are served")?;
    let success = r#"controller_runtime_reconcile_total{controller="configmap",result="success"}"#;
    let page = until(async || {
        let (status, page) = get(address, "/metrics").await?;
        assert_eq!(status, 200);
        Ok((value(&page, success) == Some(6.0)).then_some(page))
    })
    .await?;

    let expected = [
        (r#"controller_runtime_reconcile_total{controller="configmap",result="error"}"#, 4.0),
        (r#"controller_runtime_reconcile_total{controller="configmap",result="requeue"}"#, 1.0),
        (r#"controller_runtime_reconcile_total{controller="configmap",result="requeue_after"}"#, 1.0),
        (r#"controller_runtime_reconcile_errors_total{controller="configmap"}"#, 4.0),
        (r#"controller_runtime_terminal_reconcile_errors_total{controller="configmap"}"#, 1.0),
        (r#"controller_runtime_reconcile_panics_total{controller="configmap"}"#, 1.0),
        (r#"controller_runtime_reconcile_timeouts_total{controller="configmap"}"#, 1.0),
        (r#"controller_runtime_reconcile_time_seconds_count{controller="configmap"}"#, 12.0),
        (r#"controller_runtime_reconcile_time_seconds_bucket{le="60.0",controller="configmap"}"#, 12.0),
        (r#"controller_runtime_max_concurrent_reconciles{controller="configmap"}"#, 3.0),
        (r#"controller_runtime_active_workers{controller="configmap"}"#, 0.0),
        (r#"workqueue_adds_total{name="configmap",controller="configmap"}"#, 12.0),
        (r#"workqueue_retries_total{name="configmap",controller="configmap"}"#, 5.0),
        (r#"workqueue_queue_duration_seconds_count{name="configmap",controller="configmap"}"#, 12.0),
        (r#"workqueue_work_duration_seconds_count{name="configmap",controller="configmap"}"#, 12.0),
        (r#"workqueue_unfinished_work_seconds{name="configmap",controller="configmap"}"#, 0.0),
        (r#"workqueue_longest_running_processor_seconds{name="configmap",controller="configmap"}"#, 0.0),
        (r#"leader_election_master_status{name="test.example.org"}"#, 1.0),
        (r#"leader_election_slowpath_total{name="test.example.org"}"#, 0.0),
    ];
    for (name, expected) in expected {
        assert_eq!(value(&page, name), Some(expected), "{name}\n{page}");
    }
    for prefix in ["workqueue_depth{", "rest_client_requests_total{code=\"200\",method=\"GET\"", "process_"] {
        assert!(page.lines().any(|line| line.starts_with(prefix)), "{prefix}\n{page}");
    }
    running.end().await?;
    let (_, after) = metrics.page(None);
    assert_eq!(value(&after, r#"leader_election_master_status{name="test.example.org"}"#), Some(0.0));
    Ok(())
}

/// The user prometheus may get the metrics, administrators everything.
struct Rules;

impl Authorizer for Rules {
    fn allows(&self, user: &User, action: Action<'_>) -> bool {
        let scrape = action.verb == "get" && matches!(action.on, ActionOn::Path("/metrics"));
        user.is_in(MASTERS) || scrape && user.name == "prometheus"
    }
}

/// Gets the metrics over TLS with a token, trusting only this certificate.
async fn scrape(
    address: SocketAddr,
    trusted: &CertificateDer<'static>,
    token: &str,
) -> Result<(u16, String)> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusted.clone())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_only().enable_http1().build();
    let client = legacy::Client::builder(TokioExecutor::new()).build(connector);
    let mut request = Request::get(format!("https://{address}/metrics"));
    if !token.is_empty() {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let response =
        tokio::time::timeout(DEADLINE, client.request(request.body(Empty::<Bytes>::new())?)).await??;
    let status = response.status().as_u16();
    Ok((status, String::from_utf8(response.into_body().collect().await?.to_bytes().to_vec())?))
}

#[tokio::test]
async fn secure_metrics_require_authentication_and_authorization() -> Result<()> {
    let server = ApiServer::new(Options {
        authorization: Authorization::Custom(Arc::new(Rules)),
        ..Options::default()
    });
    server.add_token("scrape", User::authenticated("prometheus", []));
    server.add_token("curious", User::authenticated("eve", []));
    let folder = tempfile::tempdir()?;
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()])?;
    std::fs::write(folder.path().join("tls.crt"), made.cert.pem())?;
    std::fs::write(folder.path().join("tls.key"), made.signing_key.serialize_pem())?;
    let trusted = CertificateDer::from_pem_slice(made.cert.pem().as_bytes())?;
    let options = ManagerOptions {
        metrics_bind_address: "127.0.0.1:0".parse()?,
        metrics_secure: true,
        metrics_cert_path: Some(folder.path().to_owned()),
        ..ManagerOptions::new("test")
    };
    let manager = Manager::new(kube::Client::new(server, "default"), options)?;
    let running = Running::start(&manager);
    let address = manager.addresses().await.metrics.context("metrics are served")?;
    let (status, page) = scrape(address, &trusted, "scrape").await?;
    assert_eq!(status, 200);
    assert!(page.contains("certwatcher_read_certificate_total"), "{page}");
    assert_eq!(scrape(address, &trusted, "curious").await?.0, 403);
    assert_eq!(scrape(address, &trusted, "bogus").await?.0, 401);
    assert_eq!(scrape(address, &trusted, "").await?.0, 401);
    assert!(get(address, "/metrics").await.is_err(), "plain HTTP is not served");
    running.end().await
}

#[tokio::test]
async fn secure_metrics_use_the_configured_certificate_or_generate_one() -> Result<()> {
    let world = World::new();
    let secure = || -> Result<ManagerOptions> {
        let metrics_bind_address = "127.0.0.1:0".parse()?;
        Ok(ManagerOptions { metrics_bind_address, metrics_secure: true, ..ManagerOptions::new("test") })
    };
    let manager = Manager::new(world.kube.clone(), secure()?)?;
    let running = Running::start(&manager);
    assert!(manager.addresses().await.metrics.is_some());
    running.end().await?;

    let folder = tempfile::tempdir()?;
    let missing = ManagerOptions { metrics_cert_path: Some(folder.path().to_owned()), ..secure()? };
    let error = Running::start(&Manager::new(world.kube.clone(), missing)?).failed().await?;
    assert!(matches!(error, ManagerError::Certificate(_)), "{error}");
    Ok(())
}

#[cfg(unix)]
#[tokio::test]
async fn a_signal_stops_a_manager_and_a_second_one_does_not_wait() -> Result<()> {
    let world = World::new();
    world.api().create(&PostParams::default(), &config_map("a")).await?;
    let signal = |name: &str| {
        let process = std::process::id().to_string();
        std::process::Command::new("kill").args([name, &process]).status()
    };
    for insists in [false, true] {
        let (manager, (open, gate)) =
            (Manager::new(world.kube.clone(), probed()?)?, watch::channel(!insists));
        let notes = Notes::new();
        let noted = notes.clone();
        let gated = Acts::<ConfigMap>::new(move |_, cx| {
            let (notes, mut gate) = (noted.clone(), gate.clone());
            Box::pin(async move {
                notes.push("begins");
                cx.cancelled().await;
                notes.push("is asked to end");
                gate.wait_for(|open| *open).await?;
                Ok(Outcome::done())
            })
        });
        manager.controller(gated).register()?;
        let task = tokio::spawn(manager.run());
        until(async || Ok((notes.len() == 1).then_some(()))).await?;
        assert!(signal("-TERM")?.success());
        until(async || Ok((notes.len() == 2).then_some(()))).await?;
        if insists {
            assert!(signal("-INT")?.success());
        }
        let ended = tokio::time::timeout(DEADLINE, task).await??;
        let error = ended.as_ref().err().and_then(|error| error.downcast_ref());
        assert_eq!(matches!(error, Some(ManagerError::Interrupted)), insists, "{ended:?}");
        drop(open);
    }
    Ok(())
}
