//! Waits for the rollout of a Deployment, as `kubectl rollout status` does.
//!
//! It stops early if a Pod cannot become ready, and prints the reason ([`super::diagnosis`]).

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::Api;

use super::diagnosis::Diagnosis;
use crate::delivery::rendered::Object;
use crate::dev::told;
use crate::error::Hint as _;
use crate::ui::Ui;

/// Time between two requests.
const PAUSE: Duration = Duration::from_millis(500);

/// How far a rollout is.
#[derive(Debug, PartialEq, Eq)]
enum Status {
    Done,
    Waiting(String),
    Failed(String),
}

/// Waits until all replicas of a Deployment run the current Pod template and are available.
pub(crate) async fn wait(client: &kube::Client, object: &Object, timeout: Duration, ui: &Ui) -> Result<()> {
    let started = Instant::now();
    let namespace = object.namespace().unwrap_or_else(|| client.default_namespace()).to_owned();
    let api: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
    let mut last = String::new();
    loop {
        let deployment = api
            .get(object.name())
            .await
            .map_err(told)
            .with_context(|| format!("cannot read {}", object.id()))?;
        let waiting = match status(&deployment) {
            Status::Done => {
                ui.note(&format!(
                    "{} is available after {:.1} s",
                    object.id(),
                    started.elapsed().as_secs_f64()
                ));
                return Ok(());
            }
            Status::Failed(reason) => {
                let diagnosis = Diagnosis::of(client, &deployment).await?;
                return Err(failed(object, &reason, &diagnosis, ui));
            }
            Status::Waiting(what) => what,
        };
        if waiting != last {
            ui.note(&format!("waiting for {}: {waiting}", object.id()));
            last = waiting;
        }
        let is_late = started.elapsed() >= timeout;
        let diagnosis = Diagnosis::of(client, &deployment).await?;
        if let Some(reason) = diagnosis.final_problem() {
            return Err(failed(object, &reason, &diagnosis, ui));
        }
        if is_late {
            let reason = format!("not available within {timeout:?}");
            return Err(failed(object, &reason, &diagnosis, ui)).hint("wait longer with --timeout");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn failed(object: &Object, reason: &str, diagnosis: &Diagnosis, ui: &Ui) -> anyhow::Error {
    ui.print_styled_error(&diagnosis.to_string());
    anyhow!("{} failed: {reason}", object.id())
}

/// The status of a rollout, by the rules of kubectl.
fn status(deployment: &Deployment) -> Status {
    let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let Some(status) = &deployment.status else {
        return Status::Waiting("the Deployment controller has not seen it".to_owned());
    };
    if status.observed_generation.unwrap_or_default() < deployment.metadata.generation.unwrap_or_default() {
        return Status::Waiting("the Deployment controller has not seen the new version".to_owned());
    }
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let late = conditions.iter().find(|condition| {
        condition.type_ == "Progressing" && condition.reason.as_deref() == Some("ProgressDeadlineExceeded")
    });
    if let Some(late) = late {
        return Status::Failed(
            late.message.clone().unwrap_or_else(|| "progress deadline exceeded".to_owned()),
        );
    }
    let updated = status.updated_replicas.unwrap_or_default();
    let available = status.available_replicas.unwrap_or_default();
    let old = status.replicas.unwrap_or_default() - updated;
    if updated < wanted {
        return Status::Waiting(format!("{updated} of {wanted} replicas are updated"));
    }
    if old > 0 {
        return Status::Waiting(format!("{old} old replicas are terminating"));
    }
    if available < updated {
        return Status::Waiting(format!("{available} of {updated} replicas are available"));
    }
    Status::Done
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn of(status: &Value) -> Status {
        let object = json!({
            "metadata": {"generation": 2},
            "spec": {"replicas": 2, "selector": {}, "template": {}},
            "status": status,
        });
        super::status(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn a_rollout_is_done_when_all_new_replicas_are_available() {
        let waiting = |text: &str| Status::Waiting(text.to_owned());
        assert_eq!(of(&json!(null)), waiting("the Deployment controller has not seen it"));
        assert_eq!(
            of(
                &json!({"observedGeneration": 1, "updatedReplicas": 2, "availableReplicas": 2, "replicas": 2})
            ),
            waiting("the Deployment controller has not seen the new version")
        );
        let with = |updated: i32, replicas: i32, available: i32| {
            of(
                &json!({"observedGeneration": 2, "updatedReplicas": updated, "replicas": replicas, "availableReplicas": available}),
            )
        };
        assert_eq!(with(1, 2, 2), waiting("1 of 2 replicas are updated"));
        assert_eq!(with(2, 3, 2), waiting("1 old replicas are terminating"));
        assert_eq!(with(2, 2, 1), waiting("1 of 2 replicas are available"));
        assert_eq!(with(2, 2, 2), Status::Done);
    }

    #[test]
    fn an_exceeded_deadline_is_a_failure() {
        let condition = json!({"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "late"});
        assert_eq!(
            of(&json!({"observedGeneration": 2, "conditions": [condition]})),
            Status::Failed("late".to_owned())
        );
    }
}
