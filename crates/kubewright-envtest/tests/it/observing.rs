//! Metrics of a manager, waiting on a paused clock, and the reported Kubernetes version.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kubewright_envtest::{Environment, Metrics, Mode, consistently, eventually};
use kubewright_runtime::Key;

use crate::markdown_view::{MarkdownView, Viewer};

const VIEW: &str = "{apiVersion: view.example.com/v1, kind: MarkdownView, metadata: {name: a}, \
                    spec: {markdowns: {README.md: '# Read me'}}}";

#[tokio::test(start_paused = true)]
async fn metrics_of_a_running_manager_can_be_read_by_name_and_labels() -> Result<()> {
    let env = Environment::builder().mode(Mode::Embedded).crd::<MarkdownView>().start().await?;
    let manager = env.manager("markdown-view")?;
    manager.controller(Viewer).owns::<ConfigMap>().owns::<Service>().register()?;
    assert_eq!(Metrics::of(&manager).value("controller_runtime_reconcile_total", &[]), None);
    let running = env.run(manager);
    env.apply_yaml("default", VIEW).await?;
    let reconciled = eventually(Duration::from_secs(10), async || {
        let metrics = running.metrics();
        let labels = [("controller", "markdownview"), ("result", "success")];
        let reconciled = metrics.value("controller_runtime_reconcile_total", &labels);
        ensure!(reconciled.is_some_and(|times| times >= 1.0), "{}", metrics.text());
        Ok(reconciled)
    })
    .await?;
    assert!(reconciled <= running.metrics().value("controller_runtime_reconcile_total", &[]));
    Ok(running.stop().await?)
}

#[tokio::test(start_paused = true)]
async fn waiting_on_a_paused_clock_takes_no_real_time() -> Result<()> {
    let env = Environment::builder().mode(Mode::Embedded).crd::<MarkdownView>().start().await?;
    let manager = env.manager("markdown-view")?;
    manager.controller(Viewer).register()?;
    let running = env.run(manager);
    env.apply_yaml("default", VIEW).await?;
    let (key, client) = (Key::namespaced("default", "a"), env.runtime_client());
    let paused = tokio::time::Instant::now();
    let there = async || client.get::<Service>(&key).await.map(drop);
    eventually(Duration::from_mins(5), there).await?;
    consistently(Duration::from_mins(5), there).await?;
    let never = async || {
        if client.get_opt::<Service>(&key).await.is_ok_and(|it| it.is_some()) {
            Err("still there")
        } else {
            Ok(())
        }
    };
    let error = eventually(Duration::from_mins(5), never).await.unwrap_err();
    assert_eq!(error.last_seen.as_deref(), Some("still there"));
    assert!(paused.elapsed() >= Duration::from_mins(10), "{:?}", paused.elapsed());
    // Polling every 100 ms would take 6,000 polls.
    let polls = env
        .faults()
        .count(|request| request.is_of("services") && request.verb == "get" && !request.is_operator);
    assert!(polls < 300, "{polls} polls");
    Ok(running.stop().await?)
}

#[tokio::test]
async fn the_embedded_server_reports_the_configured_version() -> Result<()> {
    let env = Environment::builder().mode(Mode::Embedded).kubernetes_version("1.34").start().await?;
    assert_eq!(env.client().apiserver_version().await?.git_version, "v1.34.0");
    assert_eq!(
        Environment::builder().mode(Mode::Embedded).start().await?.client().apiserver_version().await?.minor,
        "36"
    );
    let Err(error) = Environment::builder().mode(Mode::Embedded).kubernetes_version("latest").start().await
    else {
        panic!("`latest` was accepted as a version")
    };
    assert_eq!(
        error.to_string(),
        "\"latest\" is not a Kubernetes version; use a version such as 1.34 or v1.34.2"
    );
    Ok(())
}
