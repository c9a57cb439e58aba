//! Recipe: kinds that are known only at run time.

use kubewright::kube::api::DynamicObject;
use kubewright::prelude::*;
use kubewright::serde_json::json;
use kubewright::{Context, Gvk, Key, Patch, RegisterError, Result};

/// Labels objects of any kind.
pub struct Labeller;

#[rbac(groups = "example.com", resources = "*", verbs = "get, list, watch, patch")]
impl Reconciler for Labeller {
    type Object = DynamicObject;

    async fn reconcile(&self, object: &DynamicObject, cx: &Context) -> Result<Outcome> {
        let size = object.data["spec"]["size"].as_str().unwrap_or("unknown");
        if object.labels().get("size").is_none_or(|label| label != size) {
            let patch = Patch::merge(json!({ "metadata": { "labels": { "size": size } } }));
            cx.client().patch(object, &patch).await?;
        }
        Ok(Outcome::done())
    }
}

/// Watches kinds such as `example.com/v1/Widget`. The kinds are looked up once the manager runs: before that, there may
/// be no cluster.
pub fn register(manager: &Manager, kinds: Vec<Gvk>) -> Result<(), RegisterError> {
    let added_to = manager.clone();
    manager.task("kinds", move |cx| async move {
        for gvk in kinds {
            let kind = cx.client().kind(&gvk).await?;
            added_to.dynamic_controller(kind, Labeller).register()?;
        }
        Ok(())
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anyhow::ensure;
    use kubewright::k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    use kubewright_envtest::{Environment, eventually, objects};

    use super::*;

    fn definition(yaml: &str) -> Result<CustomResourceDefinition> {
        Ok(objects(yaml)?.remove(0).try_parse()?)
    }

    fn crd(kind: &str) -> String {
        let singular = kind.to_lowercase();
        format!(
            "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {singular}s.example.com}}
spec:
  group: example.com
  scope: Namespaced
  names: {{plural: {singular}s, singular: {singular}, kind: {kind}}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"
        )
    }

    #[tokio::test]
    async fn one_reconciler_serves_several_kinds() -> Result<()> {
        let env = Environment::start().await?;
        let kinds = ["Widget", "Gadget"];
        for kind in kinds {
            env.install(&[definition(&crd(kind))?]).await?;
        }
        let gvks = kinds.map(|kind| Gvk::new("example.com", "v1", kind));
        let manager = env.manager("labeller")?;
        register(&manager, gvks.to_vec())?;
        let running = env.run(manager);
        for (kind, gvk) in kinds.iter().zip(&gvks) {
            let object = format!(
                "{{apiVersion: example.com/v1, kind: {kind}, metadata: {{name: a}}, spec: {{size: big}}}}"
            );
            env.apply_yaml("default", &object).await?;
            eventually(Duration::from_secs(30), async || {
                let object = env.runtime_client().get_dynamic(gvk, &Key::namespaced("default", "a")).await?;
                ensure!(object.labels().get("size").is_some_and(|size| size == "big"), "{kind} has no label");
                Ok(())
            })
            .await?;
        }
        Ok(running.stop().await?)
    }
}
