//! Recipe: events.

use kubewright::k8s_openapi::api::core::v1::ConfigMap;
use kubewright::prelude::*;
use kubewright::{Context, Result};

/// Warns about ConfigMaps that will not fit into an environment variable.
pub struct SizeReconciler;

const LIMIT: usize = 128;

impl Reconciler for SizeReconciler {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, cx: &Context) -> Result<Outcome> {
        let data = map.data.iter().flatten();
        for (key, value) in data.filter(|(_, value)| value.len() > LIMIT) {
            cx.events()
                .warning(map, "ValueTooLong")
                .action("Validate")
                .note(format!("The value of {key} has {} bytes, more than {LIMIT}", value.len()));
        }
        Ok(Outcome::done())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anyhow::ensure;
    use kubewright_envtest::{Environment, eventually, matches_yaml};

    use super::*;

    #[tokio::test]
    async fn a_long_value_gets_a_warning() -> Result<()> {
        let env = Environment::start().await?;
        let namespace = env.namespace().await?;
        let manager = env.manager("sizes")?;
        manager.controller(SizeReconciler).register()?;
        let running = env.run(manager);
        let value = "x".repeat(LIMIT + 1);
        let map =
            format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}, data: {{long: {value}}}}}");
        env.apply_yaml(&namespace, &map).await?;

        let event = eventually(Duration::from_secs(30), async || {
            let events = env.events(&namespace).await?;
            ensure!(!events.is_empty(), "no event");
            Ok(events[0].clone())
        })
        .await?;
        let expected = "{type: Warning, reason: ValueTooLong, action: Validate, regarding: {kind: ConfigMap, name: a}, \
             note: 'The value of long has 129 bytes, more than 128'}";
        matches_yaml(&*event, expected)?;
        Ok(running.stop().await?)
    }
}
