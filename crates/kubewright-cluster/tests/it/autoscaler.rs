//! HorizontalPodAutoscalers follow the metrics within their scaling behaviour.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::{HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus};
use kubewright_cluster::Options;
use kubewright_envtest::{consistently, eventually};
use kubewright_runtime::Patch;
use serde_json::{Value, json};

use crate::world::{LIMIT, World, deployment};

fn autoscaler(target: &str, most: i32, measured: &str) -> Value {
    json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": "web", "annotations": { "kubewright.dev/metrics": measured } },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": target },
            "minReplicas": 1, "maxReplicas": most,
            "metrics": [{ "type": "Resource", "resource": {
                "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 50 },
            } }],
        },
    })
}

/// A Deployment whose pods request 100m CPU each.
fn asking(replicas: i32) -> Value {
    let mut web = deployment("web", replicas, "web:1");
    web["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({ "requests": { "cpu": "100m" } });
    web
}

async fn status(world: &World) -> Result<HorizontalPodAutoscalerStatus> {
    let it = world.client().get::<HorizontalPodAutoscaler>(&world.key("web")).await?;
    Ok(it.status.clone().unwrap_or_default())
}

/// The conditions, each as type, status and reason.
fn conditions(status: &HorizontalPodAutoscalerStatus) -> Vec<String> {
    let all = status.conditions.iter().flatten();
    all.map(|it| format!("{}={} {}", it.type_, it.status, it.reason.clone().unwrap_or_default())).collect()
}

async fn replicas(world: &World) -> Result<i32> {
    let web = world.client().get::<Deployment>(&world.key("web")).await?;
    Ok(web.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or_default())
}

#[tokio::test(start_paused = true)]
async fn a_deployment_scales_up_at_its_rate_and_down_after_five_minutes() -> Result<()> {
    let world = World::start(Options::default()).await?;
    world.apply(asking(1)).await?;
    world.rolled_out("web", 1).await?;
    world.apply(autoscaler("web", 5, "cpu=300m")).await?;
    world.ready_pods(5).await?;
    eventually(LIMIT, async || {
        let status = status(&world).await?;
        let metric = status.current_metrics.clone().unwrap_or_default();
        let current = metric.first().and_then(|it| it.resource.clone()).map(|it| it.current);
        ensure!(current.and_then(|it| it.average_utilization) == Some(60), "{status:?}");
        ensure!((status.current_replicas, status.desired_replicas) == (Some(5), 5), "{status:?}");
        ensure!(
            conditions(&status)
                == [
                    "AbleToScale=True ReadyForNewScale",
                    "ScalingActive=True ValidMetricFound",
                    "ScalingLimited=True TooManyReplicas"
                ],
            "{:?}",
            conditions(&status)
        );
        Ok(())
    })
    .await?;
    let events = world.events("web").await?;
    // The default policy allows doubling or four pods at once. Repeated events are aggregated.
    let note = "SuccessfulRescale: New size: 4; reason: cpu resource utilization (percentage of request) above target";
    assert!(events.contains(&note.to_owned()), "{events:?}");

    let less =
        Patch::merge(json!({ "metadata": { "annotations": { "kubewright.dev/metrics": "cpu=40m" } } }));
    let it = world.client().get::<HorizontalPodAutoscaler>(&world.key("web")).await?;
    world.client().patch(&*it, &less).await?;
    consistently(Duration::from_secs(270), async || {
        let now = replicas(&world).await?;
        ensure!(now == 5, "{now} already");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    let grown = status(&world).await?;
    assert!(conditions(&grown).contains(&"AbleToScale=True ScaleDownStabilized".to_owned()));
    world.ready_pods(1).await?;
    eventually(LIMIT, async || {
        let shrunk = status(&world).await?;
        ensure!((shrunk.current_replicas, shrunk.desired_replicas) == (Some(1), 1), "{shrunk:?}");
        ensure!(shrunk.last_scale_time > grown.last_scale_time, "{shrunk:?}");
        Ok(())
    })
    .await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn missing_scales_and_metrics_are_reported_and_bounds_still_apply() -> Result<()> {
    let world = World::start(Options::default()).await?;
    world.apply(autoscaler("web", 2, "")).await?;
    let has = async |condition: &str| {
        eventually(LIMIT, async || {
            let status = status(&world).await?;
            ensure!(conditions(&status).contains(&condition.to_owned()), "{:?}", conditions(&status));
            Ok(status)
        })
        .await
    };
    let missing = has("AbleToScale=False FailedGetScale").await?;
    assert_eq!(
        missing.conditions.unwrap()[0].message.as_deref(),
        Some(
            "the HPA controller was unable to get the target's current scale: deployments.apps \"web\" not found"
        )
    );
    world.apply(asking(3)).await?;
    world.rolled_out("web", 2).await?;
    let unknown = has("ScalingActive=False FailedGetResourceMetric").await?;
    assert!(unknown.last_scale_time.is_some());
    let events = world.events("web").await?;
    let note = "SuccessfulRescale: New size: 2; reason: Current number of replicas above Spec.MaxReplicas";
    assert!(events.contains(&note.to_owned()), "{events:?}");
    world
        .client()
        .modify::<Deployment>(&world.key("web"), |it| it.spec.as_mut().unwrap().replicas = Some(0))
        .await?;
    has("ScalingActive=False ScalingDisabled").await?;
    assert_eq!(replicas(&world).await?, 0);
    Ok(())
}
