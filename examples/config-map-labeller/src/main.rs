//! An operator that labels every ConfigMap with the number of its keys.
//!
//! It has no CRD, so there is nothing to install. The tests run it as a program against the embedded API
//! server. It also runs against any cluster in a kubeconfig, and only writes this label:
//!
//! ```console
//! KUBECONFIG=~/.kube/config cargo run -p config-map-labeller -- --namespace default
//! kubectl get configmaps --label-columns config-map-labeller.example.com/keys
//! ```
//!
//! If you have no cluster, start one with `cargo run -- apiserver --kubeconfig labeller.kubeconfig` in
//! another terminal.

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright::prelude::*;
use kubewright::serde_json::json;
use kubewright::tracing::info;
use kubewright::{Context, Patch, Result};

const LABEL: &str = "config-map-labeller.example.com/keys";

struct Labeller;

#[rbac(groups = "", resources = "configmaps", verbs = "patch")]
impl Reconciler for Labeller {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, cx: &Context) -> Result<Outcome> {
        let keys = map.data.iter().flatten().count() + map.binary_data.iter().flatten().count();
        let wanted = keys.to_string();
        if map.labels().get(LABEL) == Some(&wanted) {
            return Ok(Outcome::done());
        }
        info!(keys, "Labelling ConfigMap");
        let patch = Patch::merge(json!({"metadata": {"labels": {LABEL: wanted}}}));
        cx.client().patch(map, &patch).await?;
        Ok(Outcome::done())
    }
}

#[kubewright::main]
async fn main(manager: Manager) -> Result<()> {
    manager.controller(Labeller).register()?;
    manager.run().await
}
