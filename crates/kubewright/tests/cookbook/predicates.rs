//! Recipe: predicates.

use kubewright::controller::{Event, Predicate, Watch};
use kubewright::k8s_openapi::api::apps::v1::Deployment;
use kubewright::k8s_openapi::api::core::v1::Pod;
use kubewright::prelude::*;
use kubewright::tracing;
use kubewright::{Context, Key, Result};

pub struct DeploymentReconciler;

impl Reconciler for DeploymentReconciler {
    type Object = Deployment;

    async fn reconcile(&self, _: &Deployment, cx: &Context) -> Result<Outcome> {
        tracing::info!(because = %cx.causes(), "{} reconciled", cx.key());
        Ok(Outcome::done())
    }
}

/// Passes created and deleted Pods, and updates that change the phase.
fn phase_changed() -> Predicate<Pod> {
    Predicate::new(|event: &Event<'_, Pod>| match (event.old(), event.new_object()) {
        (Some(old), Some(new)) => phase(&old) != phase(&new),
        _ => true,
    })
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

pub fn register(manager: &Manager) -> Result<()> {
    let changed = Predicate::generation_changed().or(Predicate::annotations_changed());
    manager
        .controller_with(DeploymentReconciler, Watch::new().labels("team=web").filter(changed))
        .watches_with(Watch::<Pod>::new().labels("app").filter(phase_changed()), |pod, _| {
            let name = pod.labels().get("app").map_or("", String::as_str);
            vec![Key::new(pod.namespace().as_deref(), name)]
        })
        .register()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anyhow::ensure;
    use kubewright_envtest::{Environment, Mode, Running, consistently, eventually};

    use super::*;

    const OBJECTS: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {team: web}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-1, labels: {app: web}}
spec: {containers: [{name: web, image: nginx}]}
";

    fn runs(running: &Running) -> f64 {
        running.metrics().value("controller_runtime_reconcile_total", &[]).unwrap_or(0.0)
    }

    /// Waits until there were more runs than `before`, and returns their number when nothing happens any more.
    async fn more_runs(running: &Running, before: f64) -> Result<f64> {
        let changed = async || {
            ensure!(runs(running) > before, "{before} runs");
            Ok(())
        };
        eventually(Duration::from_mins(1), changed).await?;
        same_runs(running).await
    }

    async fn same_runs(running: &Running) -> Result<f64> {
        tokio::time::sleep(Duration::from_secs(10)).await;
        let now = runs(running);
        let same = async || {
            ensure!((runs(running) - now).abs() < 0.5, "more than {now} runs");
            Ok(())
        };
        consistently(Duration::from_mins(1), same).await?;
        Ok(now)
    }

    #[tokio::test(start_paused = true)]
    async fn only_selected_events_reconcile() -> Result<()> {
        let env = Environment::builder().mode(Mode::Embedded).start().await?;
        env.apply_yaml("default", OBJECTS).await?;
        let manager = env.manager("predicates")?;
        register(&manager)?;
        let running = env.run(manager);
        let client = env.runtime_client();
        let (web, pod) = (Key::namespaced("default", "web"), Key::namespaced("default", "web-1"));
        let first = more_runs(&running, 0.0).await?;

        client.modify::<Deployment>(&web, |it| _ = it.labels_mut().insert("a".into(), "b".into())).await?;
        assert_eq!(format!("{first}"), format!("{}", same_runs(&running).await?), "labels are not selected");
        client
            .modify::<Deployment>(&web, |it| _ = it.annotations_mut().insert("a".into(), "b".into()))
            .await?;
        let annotated = more_runs(&running, first).await?;

        client.modify::<Pod>(&pod, |it| _ = it.labels_mut().insert("a".into(), "b".into())).await?;
        assert_eq!(
            format!("{annotated}"),
            format!("{}", same_runs(&running).await?),
            "the phase is the same"
        );
        let status = kubewright::serde_json::json!({ "phase": "Running" });
        client.set_status(&*client.get::<Pod>(&pod).await?, &status).await?;
        more_runs(&running, annotated).await?;
        Ok(running.stop().await?)
    }
}
