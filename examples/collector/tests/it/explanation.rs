//! The log explains each reconcile: the objects that changed, and their changed fields.

use anyhow::Result;
use insta::assert_snapshot;
use kubewright_envtest::Logs;

use crate::operator::Operator;

/// The values of `because` in the log lines of the reconciles.
fn explanations(logs: &Logs) -> String {
    let lines = logs.lines_with("Collected Pod IPs");
    let because = lines.iter().filter_map(|line| line.split_once("because=\"")?.1.split_once('"'));
    because.map(|(because, _)| because.to_owned()).collect::<Vec<_>>().join("\n")
}

#[tokio::test(start_paused = true)]
async fn the_log_explains_the_reconciles_of_a_change_of_the_strategy() -> Result<()> {
    let operator = Operator::start().await?;
    operator.create().await?;
    let logs = Logs::capture();
    operator.set_strategy("Recreate").await?;
    assert_snapshot!(explanations(&logs), @"
    Deployment test-1/web modified: spec.strategy.rollingUpdate, spec.strategy.type
    Deployment test-1/web modified: status.observedGeneration
    ");
    drop(logs);
    operator.stop().await
}

#[tokio::test(start_paused = true)]
async fn the_log_explains_the_reconciles_of_a_scale_down() -> Result<()> {
    let operator = Operator::start().await?;
    operator.create().await?;
    let logs = Logs::capture();
    operator.scale(1).await?;
    assert_snapshot!(explanations(&logs), @"
    Deployment test-1/web modified: spec.replicas
    ReplicaSet test-1/web-76f464fd7c modified: metadata.annotations[deployment.kubernetes.io/desired-replicas], metadata.annotations[deployment.kubernetes.io/max-replicas], spec.replicas
    Deployment test-1/web modified: status.observedGeneration
    Pod test-1/web-76f464fd7c-vtff9 modified: metadata.deletionGracePeriodSeconds, metadata.deletionTimestamp; Pod test-1/web-76f464fd7c-c8gp8 modified: metadata.deletionGracePeriodSeconds, metadata.deletionTimestamp
    ReplicaSet test-1/web-76f464fd7c modified: status.observedGeneration; ConfigMap test-1/web-pod-ips modified: data.web-76f464fd7c-c8gp8, data.web-76f464fd7c-vtff9; Pod test-1/web-76f464fd7c-vtff9 modified; 3 more
    ReplicaSet test-1/web-76f464fd7c modified: status.availableReplicas, status.fullyLabeledReplicas, status.readyReplicas, status.replicas, status.terminatingReplicas
    ReplicaSet test-1/web-76f464fd7c modified: status.terminatingReplicas
    Deployment test-1/web modified: status.availableReplicas, status.readyReplicas, status.replicas, status.terminatingReplicas, status.updatedReplicas
    Deployment test-1/web modified: status.terminatingReplicas
    ");
    drop(logs);
    operator.stop().await
}
