//! Shutdown of the operator on signals, and failover to another replica.

use anyhow::Result;
use rustix::process::Signal;

use crate::cluster::Cluster;
use crate::program::Program;
use crate::relay::Relay;

const ELECTION: [&str; 4] = [
    "--leader-elect",
    "--leader-election-namespace=default",
    "--leader-election-retry-period=100ms",
    "--graceful-shutdown-timeout=2m",
];

#[tokio::test]
async fn a_leader_releases_its_lease_on_shutdown() -> Result<()> {
    let cluster = Cluster::start().await?;
    cluster.create("default", "first", 1).await?;
    let operator = Program::on(&cluster.kubeconfig(), &ELECTION, &[])?;
    cluster.labelled("default", "first", "1").await?;
    assert_ne!(cluster.holder().await?, "");
    operator.signal(Signal::TERM)?;
    operator.end().await?.succeeded()?;
    assert_eq!(cluster.holder().await?, "");
    Ok(())
}

#[tokio::test]
async fn another_replica_takes_over_when_the_leader_stops() -> Result<()> {
    let cluster = Cluster::start().await?;
    cluster.create("default", "first", 1).await?;
    let leader = Program::on(&cluster.kubeconfig(), &ELECTION, &[])?;
    cluster.labelled("default", "first", "1").await?;
    let holder = cluster.holder().await?;
    let mut other = Program::on(&cluster.kubeconfig(), &ELECTION, &[])?;
    other.logs("Starting health probe server").await?;
    leader.signal(Signal::TERM)?;
    leader.end().await?.succeeded()?;
    cluster.create("default", "second", 2).await?;
    cluster.labelled("default", "second", "2").await?;
    let next = cluster.holder().await?;
    assert!(!next.is_empty() && next != holder, "{next}");
    Ok(())
}

#[tokio::test]
async fn a_second_signal_exits_without_waiting_for_running_reconciles() -> Result<()> {
    let cluster = Cluster::start().await?;
    let relay = Relay::to(cluster.address()).await?;
    let kubeconfig = cluster.kubeconfig_by(relay.address)?;
    let endless = ["--namespace=default", "--graceful-shutdown-timeout=-1s"];
    let mut operator = Program::on(&kubeconfig, &endless, &[])?;
    cluster.create("default", "first", 1).await?;
    cluster.labelled("default", "first", "1").await?;

    // The watch delivers the ConfigMap, but the operator's write never reaches the server, so its reconcile
    // never ends.
    relay.hold();
    cluster.create("default", "second", 2).await?;
    for name in ["first", "second"] {
        assert_eq!(operator.logs("Labelling ConfigMap").await?["name"], name);
    }
    operator.signal(Signal::TERM)?;
    operator.logs("Shutdown signal received; a second one exits immediately").await?;
    operator.signal(Signal::TERM)?;
    let error = operator.end().await?.error()?;
    assert_eq!(error, "graceful shutdown interrupted by a second signal");
    assert_eq!(cluster.label("default", "second").await?, None);
    Ok(())
}
