//! Recipe: a test with faults.

use std::time::Duration;

use anyhow::ensure;
use kubewright::k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kubewright::prelude::*;
use kubewright::{Context, Key, Result};
use kubewright_envtest::{Effect, Environment, Mode, RecordedRequest, eventually};

/// Creates a ConfigMap for each Secret of the type `example.com/ca`.
struct MirrorReconciler;

#[rbac(groups = "", resources = "configmaps", verbs = "create, patch")]
impl Reconciler for MirrorReconciler {
    type Object = Secret;

    async fn reconcile(&self, secret: &Secret, cx: &Context) -> Result<Outcome> {
        if secret.type_.as_deref() == Some("example.com/ca") {
            let ca = secret.data.as_ref().and_then(|data| data.get("ca.crt"));
            let ca = ca.map(|ca| String::from_utf8_lossy(&ca.0).into_owned()).unwrap_or_default();
            let map = object! { ConfigMap { metadata: { name: secret.name_any() }, data: { "ca.crt": ca } } };
            cx.apply_owned(map).await?;
        }
        Ok(Outcome::done())
    }
}

const SECRET: &str = "{apiVersion: v1, kind: Secret, type: example.com/ca, metadata: {name: ca}, \
                      stringData: {ca.crt: PEM}}";

#[tokio::test(start_paused = true)]
async fn the_mirror_survives_a_bad_network() -> Result<()> {
    for seed in 0..8 {
        let env = Environment::builder().mode(Mode::Embedded).seed(seed).start().await?;
        let manager = env.manager("mirror")?;
        manager.controller(MirrorReconciler).owns::<ConfigMap>().register()?;
        let running = env.run(manager);

        // Every third request of the operator fails, and the response of its first write is lost.
        let faults = env.faults().operator();
        faults.sometimes(seed, 3, Effect::internal_error(), |_| true);
        faults.next(1, Effect::LoseResponse, |asked| asked.is_of("configmaps") && asked.is_write());
        env.apply_yaml("default", SECRET).await?;
        faults.cut(RecordedRequest::is_watch);

        let mirrored = async || {
            let map = env.runtime_client().get::<ConfigMap>(&Key::namespaced("default", "ca")).await?;
            let data = map.data.clone().unwrap_or_default();
            ensure!(data.get("ca.crt").is_some_and(|ca| ca == "PEM"), "{data:?}");
            Ok(())
        };
        eventually(Duration::from_hours(1), mirrored).await?;

        // Without faults, the operator becomes idle: no write is repeated.
        faults.heal();
        tokio::time::sleep(Duration::from_mins(30)).await;
        faults.forget();
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(faults.count(|asked| asked.is_write() && asked.is_of("configmaps")), 0, "seed {seed}");
        running.stop().await?;
    }
    Ok(())
}
