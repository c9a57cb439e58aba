//! Normal operation of the operator.

use anyhow::{Context as _, Result};
use rustix::process::Signal;

use crate::cluster::Cluster;
use crate::program::{Program, get};

#[tokio::test]
async fn existing_and_new_config_maps_are_labelled() -> Result<()> {
    let cluster = Cluster::start().await?;
    cluster.create("default", "first", 2).await?;
    let operator = Program::on(&cluster.kubeconfig(), &[], &[])?;
    let first = cluster.labelled("default", "first", "2").await?;
    cluster.create("default", "second", 0).await?;
    cluster.labelled("default", "second", "0").await?;

    let fields = first.metadata.managed_fields.context("no managedFields")?;
    let writers: Vec<_> = fields.iter().filter_map(|entry| entry.manager.as_deref()).collect();
    assert!(writers.contains(&"config-map-labeller"), "{writers:?}");
    operator.signal(Signal::INT)?;
    operator.end().await?.succeeded()
}

#[tokio::test]
async fn the_generated_role_has_exactly_the_needed_permissions() -> Result<()> {
    let cluster = Cluster::start().await?;
    cluster.create("default", "first", 1).await?;
    assert_ne!(cluster.unused(), Vec::<String>::new(), "the operator has not sent requests yet");
    let operator = Program::on(&cluster.kubeconfig(), &[], &[])?;
    cluster.labelled("default", "first", "1").await?;
    operator.signal(Signal::TERM)?;
    operator.end().await?.succeeded()?;
    assert_eq!(cluster.refused(), Vec::<String>::new());
    assert_eq!(cluster.unused(), Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn probes_and_metrics_are_served() -> Result<()> {
    let cluster = Cluster::start().await?;
    cluster.create("default", "first", 1).await?;
    let metrics = ["--metrics-bind-address=127.0.0.1:0", "--metrics-secure=false"];
    let mut operator = Program::on(&cluster.kubeconfig(), &metrics, &[])?;
    let probes = operator.address("Starting health probe server").await?;
    let metrics = operator.address("Starting metrics server").await?;
    cluster.labelled("default", "first", "1").await?;
    assert_eq!(get(probes, "/healthz").await?, (200, "ok".to_owned()));
    assert_eq!(get(probes, "/readyz").await?, (200, "ok".to_owned()));
    let (status, page) = get(metrics, "/metrics").await?;
    assert_eq!(status, 200);
    for name in ["controller_runtime_reconcile_total", "workqueue_depth", "rest_client_requests_total"] {
        assert!(page.contains(name), "{name} is missing: {page}");
    }
    Ok(())
}

#[tokio::test]
async fn metrics_use_tls_by_default() -> Result<()> {
    let cluster = Cluster::start().await?;
    let mut operator = Program::on(&cluster.kubeconfig(), &["--metrics-bind-address=127.0.0.1:0"], &[])?;
    let line = operator.logs("Starting metrics server").await?;
    assert_eq!(line["secure"], true);
    let address = line["address"].as_str().context("no address in the log line")?.parse()?;
    assert!(get(address, "/metrics").await.is_err(), "plain HTTP is rejected");
    Ok(())
}

#[tokio::test]
async fn only_the_selected_namespaces_are_watched() -> Result<()> {
    let cluster = Cluster::start().await?;
    for namespace in ["team-a", "team-b", "team-c"] {
        cluster.create_namespace(namespace).await?;
        cluster.create(namespace, "there", 1).await?;
    }
    let watched = [("WATCH_NAMESPACE", "team-a,team-b")];
    let mut operator = Program::on(&cluster.kubeconfig(), &[], &watched)?;
    assert_eq!(operator.logs("Starting manager").await?["namespaces"], "team-a,team-b");
    for namespace in ["team-a", "team-b"] {
        cluster.labelled(namespace, "there", "1").await?;
        cluster.create(namespace, "new", 1).await?;
        cluster.labelled(namespace, "new", "1").await?;
    }
    operator.signal(Signal::TERM)?;
    operator.end().await?.succeeded()?;
    assert_eq!(cluster.label("team-c", "there").await?, None);
    Ok(())
}

#[tokio::test]
async fn log_lines_contain_the_controller_and_the_object() -> Result<()> {
    let cluster = Cluster::start().await?;
    cluster.create("default", "first", 3).await?;
    let mut operator = Program::on(&cluster.kubeconfig(), &["--namespace=default"], &[])?;
    let starting = operator.logs("Starting manager").await?;
    assert_eq!(starting["operator"], "config-map-labeller");
    assert_eq!(starting["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(starting["server"], format!("https://{}/", cluster.address()));
    let labelling = operator.logs("Labelling ConfigMap").await?;
    let wanted = serde_json::json!({
        "level": "info", "keys": 3, "controller": "configmap", "namespace": "default", "name": "first",
    });
    for (field, value) in wanted.as_object().context("expected an object")? {
        assert_eq!(&labelling[field], value, "{labelling}");
    }
    assert!(labelling["reconcileID"].is_string(), "{labelling}");
    Ok(())
}

#[tokio::test]
async fn manifests_are_printed_without_a_cluster() -> Result<()> {
    let asked = Program::start(&["manifests"], &[])?.end().await?;
    asked.succeeded()?;
    let said: serde_json::Value = serde_json::from_str(&asked.stdout)?;
    assert_eq!(said["controllers"][0]["for"]["kind"], "ConfigMap", "{said:#}");
    // `kubewright manifests` sets this variable, which overrides the arguments.
    let printed = Program::start(&[], &[("KUBEWRIGHT_MANIFESTS", "1")])?.end().await?;
    printed.succeeded()?;
    assert_eq!(printed.stdout, asked.stdout);
    Ok(())
}
