//! Webhooks of an operator process on an existing cluster.

use std::time::Instant;

use anyhow::{Result, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, PostParams};
use kubewright_envtest::{Environment, eventually};
use serde_json::{Value, json};

use super::{
    Cluster, INSTALLED, KILLED, SOON, builder, configurations, conversion_url, crd, created, killed,
    the_next_start_cleans_up,
};
use crate::webhooks::{Operator, api, convert_by_service, page};

/// Creates a CRD that an operator of the cluster converts.
async fn other_crd(env: &Environment) -> Result<()> {
    let service = json!({ "name": "other-service", "namespace": "other", "path": "/convert" });
    let version = json!({
        "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": { "type": "object" } },
    });
    let crd = json!({
        "metadata": { "name": "others.other.example.com" },
        "spec": {
            "group": "other.example.com", "scope": "Namespaced", "versions": [version],
            "names": { "kind": "Other", "plural": "others" },
            "conversion": {
                "strategy": "Webhook",
                "webhook": { "clientConfig": { "service": service }, "conversionReviewVersions": ["v1"] },
            },
        },
    });
    let crd: CustomResourceDefinition = serde_json::from_value(crd)?;
    Api::all(env.client()).create(&PostParams::default(), &crd).await?;
    Ok(())
}

/// The URL by which the API server calls the operator of [`other_crd`].
async fn other_conversion_url(env: &Environment) -> Result<Option<String>> {
    let crds = Api::<CustomResourceDefinition>::all(env.client());
    let conversion = crds.get("others.other.example.com").await?.spec.conversion;
    Ok(conversion.and_then(|it| it.webhook?.client_config?.url))
}

#[tokio::test]
async fn an_operator_process_is_called_until_the_environment_is_dropped() -> Result<()> {
    let cluster = Cluster::start()?;
    let observer = cluster.builder().start().await?;
    other_crd(&observer).await?;
    convert_by_service(&observer).await?;
    let before = crd(&observer).await?;

    let env = cluster.environment().await?;
    let namespace = env.namespace().await?;
    let webhooks = env.operator_webhooks()?;
    let operator = Operator::start(&env, &webhooks)?;
    webhooks.install(&operator.manifests).await?;
    assert_eq!(created(&env, &namespace, "a").await?, 1);
    assert_eq!(created(&env, "default", "a").await?, Value::Null);
    let wrong = page("v1", "b", &json!({ "title": "", "replicas": 10 }));
    let refused = api(&env, &namespace, "v1").create(&PostParams::default(), &wrong).await.unwrap_err();
    let refused = refused.to_string();
    assert!(refused.contains("spec.replicas: Invalid value: 10: must be between 1 and 5"), "{refused}");
    let read = eventually(SOON, async || api(&env, &namespace, "v2").get("a").await).await?;
    assert_eq!(read.data["spec"], json!({ "heading": "A", "replicas": 1 }));
    assert!(conversion_url(&crd(&observer).await?).starts_with("https://127.0.0.1:"));
    assert_eq!(other_conversion_url(&observer).await?, None);
    let names = configurations(&observer).await?;
    assert!(names.len() == 2 && names.iter().all(|it| it.starts_with("operator-process-")), "{names:?}");

    operator.stop().await?;
    drop(env);
    assert_eq!(configurations(&observer).await?, [""; 0]);
    assert_eq!(crd(&observer).await?, before);
    Ok(())
}

#[tokio::test]
async fn the_next_start_removes_the_webhooks_of_an_operator_of_a_killed_process() -> Result<()> {
    if let Some(kubeconfig) = std::env::var_os(KILLED) {
        let env = builder(kubeconfig).webhook_host("127.0.0.1").start().await?;
        let webhooks = env.operator_webhooks()?;
        let operator = Operator::start(&env, &webhooks)?;
        webhooks.install(&operator.manifests).await?;
        println!("{INSTALLED}");
        return std::future::pending().await;
    }
    let cluster = Cluster::start()?;
    let observer = cluster.builder().start().await?;
    convert_by_service(&observer).await?;
    let before = crd(&observer).await?;
    let test = "existing::operator::the_next_start_removes_the_webhooks_of_an_operator_of_a_killed_process";
    killed(&cluster, test)?;
    assert_eq!(configurations(&observer).await?.len(), 2);
    assert_ne!(conversion_url(&crd(&observer).await?), "");

    the_next_start_cleans_up(&cluster, &observer, &before).await
}

#[tokio::test]
async fn the_webhooks_of_an_operator_stay_while_it_restarts() -> Result<()> {
    let cluster = Cluster::start()?;
    let env = cluster.environment().await?;
    let namespace = env.namespace().await?;
    let webhooks = env.operator_webhooks()?;
    let operator = Operator::start(&env, &webhooks)?;
    webhooks.install(&operator.manifests).await?;
    operator.stop().await?;
    drop(cluster.environment().await?);
    assert_eq!(configurations(&env).await?.len(), 2);

    let operator = Operator::start(&env, &webhooks)?;
    let replicas = eventually(SOON, async || created(&env, &namespace, "a").await).await?;
    assert_eq!(replicas, 1);
    operator.stop().await
}

#[tokio::test]
async fn an_operator_that_the_cluster_cannot_reach_is_not_called() -> Result<()> {
    let cluster = Cluster::start()?;
    let observer = cluster.builder().start().await?;
    convert_by_service(&observer).await?;
    let before = crd(&observer).await?;
    // An address of this machine that the operator does not listen on: for loopback it uses 127.0.0.1.
    let env = cluster.builder().webhook_host("127.0.0.2").start().await?;
    let webhooks = env.operator_webhooks()?;
    let operator = Operator::start(&env, &webhooks)?;
    let started = Instant::now();
    let error = webhooks.install(&operator.manifests).await.unwrap_err().to_string();
    ensure!(started.elapsed() < SOON, "it took {:?}", started.elapsed());
    let expected = "the cluster cannot reach the webhooks of this process at https://127.0.0.2:";
    assert!(error.contains(expected) && error.contains("connection refused"), "{error}");
    assert_eq!(configurations(&observer).await?, [""; 0]);
    assert_eq!(crd(&observer).await?, before);
    operator.stop().await
}

#[tokio::test]
async fn an_operator_on_an_existing_cluster_needs_a_host() -> Result<()> {
    let cluster = Cluster::start()?;
    let env = cluster.builder().start().await?;
    let error = env.operator_webhooks().unwrap_err();
    insta::assert_snapshot!(error, @"an existing cluster cannot call the webhooks of this process without its address; set KUBEWRIGHT_WEBHOOK_HOST to a name or address at which the cluster reaches this machine, or unset USE_EXISTING_CLUSTER");
    Ok(())
}
