//! ResourceQuotas count existing objects and limit new ones.

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, ResourceQuota, Service};
use kubewright_cluster::Options;
use kubewright_envtest::eventually;
use kubewright_runtime::Delete;
use serde_json::{Value, json};

use crate::world::{LIMIT, World, deployment, pod};

fn quota(name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": name }, "spec": spec })
}

/// Waits until a quota has this usage.
async fn uses(world: &World, name: &str, used: &[(&str, &str)]) -> Result<()> {
    eventually(LIMIT, async || {
        let quota = world.client().get::<ResourceQuota>(&world.key(name)).await?;
        let status = quota.status.clone().unwrap_or_default();
        ensure!(status.hard == quota.spec.as_ref().and_then(|spec| spec.hard.clone()), "{status:?}");
        let shown = status.used.unwrap_or_default();
        let shown: Vec<_> = shown.iter().map(|(name, much)| (name.as_str(), much.0.as_str())).collect();
        ensure!(shown == used, "{shown:?}");
        Ok(())
    })
    .await?;
    Ok(())
}

fn refusal(result: Result<()>) -> String {
    format!("{:#}", result.expect_err("it is refused"))
}

#[tokio::test(start_paused = true)]
async fn a_quota_limits_the_pods_of_a_deployment() -> Result<()> {
    let world = World::start(Options::default()).await?;
    world.apply(quota("q", &json!({ "hard": { "pods": "2", "count/deployments.apps": "1" } }))).await?;
    uses(&world, "q", &[("count/deployments.apps", "0"), ("pods", "0")]).await?;
    world.apply(deployment("web", 3, "web:1")).await?;
    world.ready_pods(2).await?;
    uses(&world, "q", &[("count/deployments.apps", "1"), ("pods", "2")]).await?;
    eventually(LIMIT, async || {
        let told = world.events("web").await?;
        let why = "is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2";
        ensure!(
            told.iter()
                .any(|it| it.starts_with("FailedCreate: Error creating: pods \"web-") && it.ends_with(why)),
            "{told:?}"
        );
        Ok(())
    })
    .await?;
    assert!(
        refusal(world.apply(deployment("api", 1, "web:1")).await).contains(
            "deployments.apps \"api\" is forbidden: exceeded quota: q, requested: count/deployments.apps=1, used: \
             count/deployments.apps=1, limited: count/deployments.apps=1"
        )
    );
    world
        .client()
        .modify::<Deployment>(&world.key("web"), |it| it.spec.as_mut().unwrap().replicas = Some(1))
        .await?;
    world.ready_pods(1).await?;
    uses(&world, "q", &[("count/deployments.apps", "1"), ("pods", "1")]).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn pod_requests_count_until_the_pod_finishes() -> Result<()> {
    let world = World::start(Options::default()).await?;
    let hard = json!({ "requests.cpu": "1", "limits.memory": "2Gi" });
    world.apply(quota("q", &json!({ "hard": hard }))).await?;
    uses(&world, "q", &[("limits.memory", "0"), ("requests.cpu", "0")]).await?;
    let asking = |name: &str, cpu: &str| {
        let resources = json!({ "requests": { "cpu": cpu }, "limits": { "memory": "1Gi" } });
        let containers = json!([{ "name": "web", "image": "web:1", "resources": resources }]);
        pod(name, &json!({}), &json!({ "restartPolicy": "Never", "containers": containers }))
    };
    let plain = pod("plain", &json!({}), &json!({}));
    assert!(
        refusal(world.apply(plain).await).contains(
            "pods \"plain\" is forbidden: failed quota: q: must specify limits.memory,requests.cpu"
        )
    );
    world.apply(asking("a", "600m")).await?;
    let too_much = refusal(world.apply(asking("b", "500m")).await);
    assert!(
        too_much.contains("exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=600m, limited: requests.cpu=1"),
        "{too_much}"
    );
    // The pod runs for a second.
    uses(&world, "q", &[("limits.memory", "0"), ("requests.cpu", "0")]).await?;
    world.apply(asking("b", "500m")).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn services_and_config_maps_are_counted_and_released() -> Result<()> {
    let world = World::start(Options::default()).await?;
    let hard = json!({ "services.loadbalancers": "1", "services.nodeports": "1", "configmaps": "3" });
    world.apply(quota("q", &json!({ "hard": hard }))).await?;
    // One ConfigMap exists from the beginning.
    let used = |maps, services| {
        [("configmaps", maps), ("services.loadbalancers", services), ("services.nodeports", services)]
    };
    uses(&world, "q", &used("1", "0")).await?;
    let service = |kind: &str| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" },
            "spec": { "type": kind, "selector": { "app": "web" }, "ports": [{ "port": 80 }] },
        })
    };
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
    world.apply(service("ClusterIP")).await?;
    world.apply(map).await?;
    uses(&world, "q", &used("2", "0")).await?;
    world.apply(service("LoadBalancer")).await?;
    uses(&world, "q", &used("2", "1")).await?;
    let mut other = service("NodePort");
    other["metadata"]["name"] = json!("other");
    assert!(refusal(world.apply(other).await).contains(
        "exceeded quota: q, requested: services.nodeports=1, used: services.nodeports=1, limited: services.nodeports=1"
    ));
    world.client().delete_key::<Service>(&world.key("web"), &Delete::new()).await?;
    world.client().delete_key::<ConfigMap>(&world.key("a"), &Delete::new()).await?;
    uses(&world, "q", &used("1", "0")).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_scope_selects_the_counted_pods() -> Result<()> {
    let world = World::start(Options::default()).await?;
    world.apply(quota("short", &json!({ "hard": { "pods": "5" }, "scopes": ["Terminating"] }))).await?;
    world.apply(quota("long", &json!({ "hard": { "pods": "5" }, "scopes": ["NotTerminating"] }))).await?;
    uses(&world, "short", &[("pods", "0")]).await?;
    world.apply(pod("a", &json!({}), &json!({ "activeDeadlineSeconds": 3600 }))).await?;
    world.apply(pod("b", &json!({}), &json!({}))).await?;
    world.apply(pod("c", &json!({}), &json!({}))).await?;
    uses(&world, "short", &[("pods", "1")]).await?;
    uses(&world, "long", &[("pods", "2")]).await?;
    Ok(())
}
