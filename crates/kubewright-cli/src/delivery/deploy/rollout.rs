//! Waits for the rollout of a Deployment, as `kubectl rollout status` does.
//!
//! It stops early if a Pod cannot become ready, and prints the reason ([`super::diagnosis`]).

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::Api;

use super::diagnosis::{Detail, Diagnosis};
use crate::delivery::rendered::Object;
use crate::dev::api_error;
use crate::error::Hint as _;
use crate::readiness::{self, State};
use crate::ui::Ui;

/// Time between two requests.
const PAUSE: Duration = Duration::from_millis(500);

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
            .map_err(api_error)
            .with_context(|| format!("cannot read {}", object.id()))?;
        let status = serde_json::to_value(&deployment).context("cannot read the Deployment")?;
        let readiness = readiness::of("apps", "Deployment", &status);
        if readiness.is_ready() {
            let took = started.elapsed().as_secs_f64();
            ui.note(&format!("{} is available after {took:.1} s", object.id()));
            return Ok(());
        }
        if readiness.state == State::Failed {
            let diagnosis = Diagnosis::of(client, &deployment, Detail::NotReady).await?;
            return Err(failed(object, &readiness.reason, &diagnosis, ui));
        }
        if readiness.reason != last {
            ui.note(&format!("waiting for {}: {}", object.id(), readiness.reason));
            last = readiness.reason;
        }
        let is_late = started.elapsed() >= timeout;
        let detail = if is_late { Detail::NotReady } else { Detail::Failing };
        let diagnosis = Diagnosis::of(client, &deployment, detail).await?;
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
