//! Error messages and exit codes of the operator.

use std::net::TcpListener;

use anyhow::Result;
use rustix::process::Signal;

use crate::cluster::{Cluster, kubeconfig_flag};
use crate::program::{Ended, Environment, Program};

async fn run(arguments: &[&str], environment: Environment<'_>) -> Result<Ended> {
    Program::start(arguments, environment)?.end().await
}

#[tokio::test]
async fn help_and_version_exit_with_success() -> Result<()> {
    let help = run(&["--help"], &[]).await?;
    help.succeeded()?;
    assert!(help.stdout.starts_with("Labels every ConfigMap with the number of its keys\n"), "{help:#?}");
    assert!(help.stdout.contains("\n  config-map-labeller --leader-elect "), "{help:#?}");
    let version = run(&["--version"], &[]).await?;
    version.succeeded()?;
    assert_eq!(version.stdout, format!("config-map-labeller {}\n", env!("CARGO_PKG_VERSION")));
    Ok(())
}

#[tokio::test]
async fn an_invalid_flag_value_exits_with_code_two() -> Result<()> {
    let ended = run(&["--metrics-bind-address=8443"], &[]).await?;
    assert_eq!(ended.status, Some(2));
    assert!(
        ended.log[0].starts_with("error: invalid value '8443' for '--metrics-bind-address"),
        "{ended:#?}"
    );
    Ok(())
}

#[tokio::test]
async fn a_missing_kubeconfig_is_reported_with_its_path() -> Result<()> {
    let error = run(&["--kubeconfig=nowhere"], &[]).await?.error()?;
    assert_eq!(
        error,
        "invalid --kubeconfig nowhere; check it with `kubectl --kubeconfig`: failed to read nowhere: No such file or \
         directory (os error 2)"
    );
    Ok(())
}

#[tokio::test]
async fn with_the_text_log_format_the_error_is_plain_text() -> Result<()> {
    let ended = run(&["--kubeconfig=nowhere", "--log-format=text"], &[]).await?;
    assert_eq!(ended.status, Some(1));
    assert_eq!(ended.log.len(), 1, "{ended:#?}");
    assert!(ended.last().starts_with("error: invalid --kubeconfig nowhere; "), "{ended:#?}");
    Ok(())
}

#[tokio::test]
async fn an_error_is_printed_even_if_logging_is_off() -> Result<()> {
    let ended = run(&["--kubeconfig=nowhere", "--log-level=off"], &[]).await?;
    assert_eq!(ended.status, Some(1));
    assert!(ended.last().starts_with("error: invalid --kubeconfig nowhere; "), "{ended:#?}");
    Ok(())
}

#[tokio::test]
async fn without_a_cluster_the_error_names_kubeconfig() -> Result<()> {
    let home = Cluster::start().await?.empty_home()?;
    let error = run(&[], &[("HOME", &home.to_string_lossy())]).await?.error()?;
    assert!(error.starts_with("no cluster configured: set KUBECONFIG or --kubeconfig"), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_port_in_use_is_reported_with_its_flag() -> Result<()> {
    let cluster = Cluster::start().await?;
    let taken = TcpListener::bind("127.0.0.1:0")?;
    let address = taken.local_addr()?;
    let kubeconfig = kubeconfig_flag(&cluster.kubeconfig());
    let probes = format!("--health-probe-bind-address={address}");
    let error = run(&[&kubeconfig, &probes], &[]).await?.error()?;
    assert!(
        error.starts_with(&format!("--health-probe-bind-address: {address} is already in use; ")),
        "{error}"
    );
    Ok(())
}

#[tokio::test]
async fn a_missing_certificate_is_reported_with_its_path() -> Result<()> {
    let cluster = Cluster::start().await?;
    let arguments = [
        &*kubeconfig_flag(&cluster.kubeconfig()),
        "--health-probe-bind-address=0",
        "--metrics-bind-address=127.0.0.1:0",
        "--metrics-cert-path=nowhere",
        "--metrics-cert-name=cert.pem",
    ];
    let error = run(&arguments, &[]).await?.error()?;
    assert!(
        error.starts_with(
            "failed to load the certificate of the metrics server: cannot read nowhere/cert.pem"
        ),
        "{error}"
    );
    Ok(())
}

#[tokio::test]
async fn leader_election_outside_of_a_pod_needs_a_namespace() -> Result<()> {
    let cluster = Cluster::start().await?;
    let error = run(&[&kubeconfig_flag(&cluster.kubeconfig()), "--leader-elect"], &[]).await?.error()?;
    assert!(error.contains("set --leader-election-namespace"), "{error}");
    Ok(())
}

#[tokio::test]
async fn an_invalid_environment_variable_is_reported() -> Result<()> {
    let ended = run(&[], &[("WATCH_NAMESPACE", "Team_A")]).await?;
    assert_eq!(ended.status, Some(1));
    assert!(
        ended.last().starts_with("error: invalid WATCH_NAMESPACE: invalid namespace \"Team_A\""),
        "{ended:#?}"
    );
    let ended = run(&[], &[("RUST_LOG", "info,kube=wran")]).await?;
    assert_eq!(ended.status, Some(1));
    assert!(ended.last().starts_with("error: invalid directive \"kube=wran\" in RUST_LOG"), "{ended:#?}");
    Ok(())
}

#[tokio::test]
async fn an_unreachable_server_is_retried() -> Result<()> {
    let cluster = Cluster::start().await?;
    // A closed port on an address where no other test listens.
    let closed = TcpListener::bind("127.0.0.2:0")?.local_addr()?;
    let mut operator = Program::on(&cluster.kubeconfig_by(closed)?, &[], &[])?;
    let line = operator.logs("Failed to list or watch").await?;
    assert_eq!(line["level"], "warn");
    let error = line["error"].as_str().unwrap_or_default();
    assert!(error.contains("refused"), "{line}");
    operator.signal(Signal::TERM)?;
    operator.end().await?.succeeded()
}
