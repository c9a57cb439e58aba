//! The conversion of a CRD that several environments use.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kubewright_envtest::{Effect, RecordedRequest, eventually};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{CRD, Cluster, SOON, builder, conversion_url, crd, run};
use crate::webhooks::{OneReplica, api, page, v1};

#[tokio::test]
async fn the_conversion_of_the_first_environment_may_end_first() -> Result<()> {
    let cluster = Cluster::start()?;
    let observer = cluster.builder().start().await?;
    let before = crd(&observer).await?;
    let (first, second) = (cluster.environment().await?, cluster.environment().await?);
    let of_first = run(&first, OneReplica).await?;
    let of_second = run(&second, OneReplica).await?;
    let second_url = conversion_url(&crd(&observer).await?).to_owned();
    drop((of_first, first));
    assert_eq!(conversion_url(&crd(&observer).await?), second_url);
    drop((of_second, second));
    assert_eq!(crd(&observer).await?, before);
    Ok(())
}

#[tokio::test]
async fn environments_that_set_a_conversion_at_the_same_time_lose_none() -> Result<()> {
    let cluster = Cluster::start()?;
    let observer = cluster.builder().start().await?;
    let before = crd(&observer).await?;
    let start = || cluster.environment();
    let environments = tokio::try_join!(start(), start(), start())?;
    let (one, two, three) = &environments;
    let running = tokio::try_join!(run(one, OneReplica), run(two, OneReplica), run(three, OneReplica))?;
    assert_ne!(conversion_url(&crd(&observer).await?), "");
    drop((running, environments));
    assert_eq!(crd(&observer).await?, before);
    Ok(())
}

/// Creates pages of v2 until `stop`. Returns their number.
async fn create_pages(kubeconfig: PathBuf, stop: CancellationToken) -> Result<usize> {
    let env = builder(kubeconfig).webhook_host("127.0.0.1").start().await?;
    let namespace = env.namespace().await?;
    let _running = run(&env, OneReplica).await?;
    let mut number = 0;
    while !stop.is_cancelled() {
        let page = page("v2", &format!("page-{number}"), &json!({ "heading": "A" }));
        api(&env, &namespace, "v2").create(&PostParams::default(), &page).await?;
        number += 1;
    }
    Ok(number)
}

#[tokio::test]
async fn objects_are_converted_while_another_environment_ends() -> Result<()> {
    let cluster = Cluster::start()?;
    let observer = cluster.builder().start().await?;
    let stop = CancellationToken::new();
    let other_test = std::thread::spawn({
        let (kubeconfig, stop) = (cluster.kubeconfig.clone(), stop.clone());
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(create_pages(kubeconfig, stop))
        }
    });
    let _stop = stop.clone().drop_guard();
    for _ in 0..5 {
        let pages = async || {
            let all = Api::<v1::Page>::all(observer.client()).list(&ListParams::default()).await?;
            anyhow::Ok(all.items.len())
        };
        let before = pages().await?;
        let env = cluster.environment().await?;
        let running = run(&env, OneReplica).await?;
        eventually(SOON, async || {
            ensure!(pages().await? > before || other_test.is_finished(), "no page was created");
            Ok(())
        })
        .await?;
        drop((running, env));
    }
    stop.cancel();
    assert!(other_test.join().unwrap()? > 0);
    Ok(())
}

/// The CRD with the conversion of a project's config/crd.
fn crd_with_service(crd: &Value) -> Result<CustomResourceDefinition> {
    let conversion = json!({
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": { "service": { "name": "webhook-service", "namespace": "system", "path": "/convert" } },
            "conversionReviewVersions": ["v1"],
        },
    });
    crd_with(crd, conversion)
}

fn crd_with(crd: &Value, conversion: Value) -> Result<CustomResourceDefinition> {
    let mut spec = crd["spec"].clone();
    spec["conversion"] = conversion;
    Ok(serde_json::from_value(json!({ "metadata": { "name": CRD }, "spec": spec }))?)
}

#[tokio::test]
async fn a_crd_is_applied_again_while_an_environment_converts_it() -> Result<()> {
    let cluster = Cluster::start()?;
    let observer = cluster.builder().start().await?;
    let env = cluster.environment().await?;
    observer.install(&[crd_with_service(&crd(&observer).await?)?]).await?;
    let before = crd(&observer).await?;
    let running = run(&env, OneReplica).await?;
    let during = crd(&observer).await?;
    for again in [crd_with_service(&before)?, crd_with(&before, Value::Null)?] {
        observer.install(&[again]).await?;
        assert_eq!(crd(&observer).await?, during);
    }
    drop((running, env));
    assert_eq!(crd(&observer).await?, before);
    Ok(())
}

#[tokio::test]
async fn a_crd_is_applied_while_the_environment_that_converts_it_ends() -> Result<()> {
    let cluster = Cluster::start()?;
    let observer = cluster.builder().start().await?;
    let before = crd(&observer).await?;
    let env = cluster.environment().await?;
    let running = run(&env, OneReplica).await?;
    let is_apply =
        |request: &RecordedRequest| request.is_of("customresourcedefinitions") && request.is_write();
    let again = [crd_with(&before, Value::Null)?];
    observer.faults().forget();
    observer.faults().next(1, Effect::Delay(Duration::from_secs(1)), is_apply);
    let end = async {
        eventually(SOON, async || {
            ensure!(observer.faults().count(is_apply) == 1, "not applied yet");
            Ok(())
        })
        .await?;
        drop((running, env));
        anyhow::Ok(())
    };
    let apply = async { Ok(observer.install(&again).await?) };
    tokio::try_join!(apply, end)?;
    assert_eq!(crd(&observer).await?, before);
    Ok(())
}

#[tokio::test]
async fn a_conversion_that_another_client_sets_stays() -> Result<()> {
    let cluster = Cluster::start()?;
    let observer = cluster.builder().start().await?;
    let env = cluster.environment().await?;
    let running = run(&env, OneReplica).await?;
    let api = Api::<CustomResourceDefinition>::all(observer.client());
    let none = json!([{ "op": "add", "path": "/spec/conversion", "value": { "strategy": "None" } }]);
    let none = Patch::<()>::Json(serde_json::from_value(none)?);
    api.patch(CRD, &PatchParams::default(), &none).await?;
    let service = crd_with_service(&crd(&observer).await?)?.spec.conversion;
    let service = json!([{ "op": "add", "path": "/spec/conversion", "value": service }]);
    let service = Patch::<()>::Json(serde_json::from_value(service)?);
    api.patch(CRD, &PatchParams::default(), &service).await?;
    let set = crd(&observer).await?["spec"].clone();
    drop((running, env));
    let after = crd(&observer).await?;
    assert_eq!(after["spec"], set);
    assert_eq!((&after["labels"], &after["annotations"]), (&Value::Null, &Value::Null));
    Ok(())
}
