//! The smallest operator. README.md and docs/runtime.md show it; a test compares them.

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright::prelude::*;
use kubewright::serde_json::json;
use kubewright::{Context, Patch, Result};

struct Labeller;

#[rbac(groups = "", resources = "configmaps", verbs = "patch")]
impl Reconciler for Labeller {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, cx: &Context) -> Result<Outcome> {
        let keys = map.data.iter().flatten().count().to_string();
        if map.labels().get("keys") != Some(&keys) {
            let patch = Patch::merge(json!({ "metadata": { "labels": { "keys": keys } } }));
            cx.client().patch(map, &patch).await?;
        }
        Ok(Outcome::done())
    }
}

#[kubewright::main]
async fn main(manager: Manager) -> Result<()> {
    manager.controller(Labeller).register()?;
    manager.run().await
}
