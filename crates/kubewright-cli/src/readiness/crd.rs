//! Waits until a CRD is served.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::Api;
use kubewright_runtime::eventually;

use super::of;
use crate::dev::api_error;
use crate::error::Hint as _;

/// Timeout for a CRD to become Established.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until a CRD is Established. An error of the API server is not retried.
pub(crate) async fn wait(api: &Api<CustomResourceDefinition>, name: &str) -> Result<()> {
    let established = eventually(PATIENCE, async || match api.get(name).await {
        Ok(crd) => match serde_json::to_value(&crd) {
            Ok(object) => {
                let readiness = of("apiextensions.k8s.io", "CustomResourceDefinition", &object);
                if readiness.is_ready() { Ok(Ok(())) } else { Err(readiness.reason) }
            }
            Err(error) => Ok(Err(anyhow!(error))),
        },
        Err(error) => Ok(Err(api_error(error))),
    });
    let established = established.await.map_err(|never| anyhow!("{never}"));
    established
        .and_then(|answer| answer)
        .with_context(|| format!("the CRD {name} did not become Established"))
        .hint(format!("see its conditions: `kubectl describe crd {name}`"))
}
