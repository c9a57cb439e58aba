//! Recipe: requeue and backoff.

use std::time::Duration;

use anyhow::bail;
use kubewright::k8s_openapi::api::core::v1::ConfigMap;
use kubewright::prelude::*;
use kubewright::queue::Backoff;
use kubewright::terminal;
use kubewright::{Context, Key, Result};

/// Imports the URL of a ConfigMap.
pub struct ImportReconciler;

impl Reconciler for ImportReconciler {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, cx: &Context) -> Result<Outcome> {
        let Some(url) = map.data.as_ref().and_then(|data| data.get("url")) else {
            return Ok(Outcome::done()); // runs again on the next event
        };
        if !url.starts_with("https://") {
            // A retry cannot help: runs again when the ConfigMap changes.
            return Err(terminal(anyhow::anyhow!("{url} is not an https URL")));
        }
        if url.contains("unreachable") {
            bail!("failed to connect to {url}"); // runs again with backoff
        }
        if cx.retries() > 0 {
            cx.events().normal(map, "Imported").note(format!("Imported after {} failures", cx.retries()));
        }
        Ok(Outcome::requeue_after(Duration::from_hours(1))) // imports changes of the source
    }
}

pub fn register(manager: &Manager) -> Result<()> {
    manager
        .controller(ImportReconciler)
        .backoff(Backoff { base: Duration::from_secs(1), max: Duration::from_mins(5) })
        .backoff_jitter(0.1)
        .timeout(Duration::from_mins(2))
        .register()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use anyhow::ensure;
    use kubewright::is_terminal;
    use kubewright_envtest::{Environment, Mode, eventually};

    use super::*;

    fn map(url: &str) -> String {
        format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}, data: {{url: '{url}'}}}}")
    }

    #[tokio::test]
    async fn each_result_says_when_the_key_runs_again() -> Result<()> {
        let env = Environment::start().await?;
        let key = Key::namespaced("default", "a");
        env.apply_yaml("default", &map("https://example.com")).await?;
        let outcome = env.reconcile_once(&ImportReconciler, &key).await?;
        assert_eq!(outcome, Outcome::requeue_after(Duration::from_hours(1)));
        env.apply_yaml("default", &map("ftp://example.com")).await?;
        assert!(is_terminal(&env.reconcile_once(&ImportReconciler, &key).await.unwrap_err()));
        env.apply_yaml("default", &map("https://unreachable.example.com")).await?;
        assert!(!is_terminal(&env.reconcile_once(&ImportReconciler, &key).await.unwrap_err()));
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn a_failing_key_backs_off_and_a_change_ends_it() -> Result<()> {
        let env = Environment::builder().mode(Mode::Embedded).start().await?;
        let manager = env.manager("imports")?;
        register(&manager)?;
        let running = env.run(manager);
        env.apply_yaml("default", &map("https://unreachable.example.com")).await?;
        let errors =
            || running.metrics().value("controller_runtime_reconcile_errors_total", &[]).unwrap_or(0.0);
        eventually(Duration::from_hours(1), async || {
            ensure!(errors() >= 5.0, "{} errors", errors());
            Ok(())
        })
        .await?;
        // After 1, 2, 4, ... 256 s the delay is 5 minutes.
        eventually(Duration::from_hours(1), async || {
            ensure!(errors() >= 12.0, "{} errors", errors());
            Ok(())
        })
        .await?;
        env.apply_yaml("default", &map("https://example.com")).await?;
        eventually(Duration::from_mins(1), async || {
            let events = env.events("default").await?;
            ensure!(events.iter().any(|event| event.reason.as_deref() == Some("Imported")), "no event");
            Ok(())
        })
        .await?;
        Ok(running.stop().await?)
    }
}
