//! Tests of fault injection.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_envtest::{Effect, Environment, Mode, objects};
use kubewright_runtime::{Key, ListOptions};

async fn environment() -> Result<Environment> {
    Ok(Environment::builder().mode(Mode::Embedded).seed(1).start().await?)
}

fn map(name: &str) -> kube::api::DynamicObject {
    objects(&format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}")).unwrap().remove(0)
}

#[tokio::test(start_paused = true)]
async fn a_write_with_a_lost_response_takes_effect() -> Result<()> {
    let env = environment().await?;
    env.faults().next(1, Effect::LoseResponse, |request| request.verb == "patch");
    assert!(env.apply(map("a")).await.is_err());
    let key = Key::namespaced("default", "a");
    assert!(env.runtime_client().get_opt::<ConfigMap>(&key).await?.is_some());
    let request = env.faults().requests();
    let patch = request.iter().find(|request| request.verb == "patch").expect("the request was recorded");
    assert_eq!(
        (patch.fault, patch.code, patch.line().as_str()),
        (Some("response lost"), None, "patch configmaps default/a")
    );
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn errors_and_delays_occur_as_often_as_configured() -> Result<()> {
    let env = environment().await?;
    let client = env.runtime_client();
    env.faults().next(1, Effect::conflict(), |request| request.is_of("configmaps"));
    env.faults().next(1, Effect::Delay(Duration::from_secs(3)), |request| request.is_of("configmaps"));
    let list = ListOptions::namespace("default");
    assert!(client.list::<ConfigMap>(&list).await.is_err_and(|error| error.is_conflict()));
    let started = tokio::time::Instant::now();
    client.list::<ConfigMap>(&list).await?;
    assert_eq!(started.elapsed(), Duration::from_secs(3));
    client.list::<ConfigMap>(&list).await?;
    assert_eq!(started.elapsed(), Duration::from_secs(3));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn random_faults_are_determined_by_the_seed() -> Result<()> {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let env = environment().await?;
        env.faults().sometimes(3, 4, Effect::internal_error(), |request| request.is_of("configmaps"));
        let mut failed = Vec::new();
        for _ in 0..40 {
            failed.push(
                env.runtime_client().list::<ConfigMap>(&ListOptions::namespace("default")).await.is_err(),
            );
        }
        runs.push(failed);
    }
    assert_eq!(runs[0], runs[1]);
    assert!(runs[0].contains(&true) && runs[0].contains(&false));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn reads_are_stale_until_they_are_healed() -> Result<()> {
    let env = environment().await?;
    assert!(env.freeze_reads());
    env.apply(map("late")).await?;
    let key = Key::namespaced("default", "late");
    assert!(env.runtime_client().get_opt::<ConfigMap>(&key).await?.is_none());
    env.faults().heal();
    assert!(env.runtime_client().get_opt::<ConfigMap>(&key).await?.is_some());
    Ok(())
}
