//! Tests whether the API server of an existing cluster reaches this machine.
//!
//! A webhook that is not reached refuses every write of its kind. The test uses a configuration of its own, which matches
//! one ConfigMap only, and a dry-run write of that ConfigMap. The operator serves nothing at the path of the test, so no
//! handler runs.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kubewright_manifests::declare::Webhook;
use kubewright_manifests::webhook::{Endpoint, configurations_at};
use serde_json::json;

use super::{LABEL, apply, delete};

/// Label of the ConfigMap.
const PROBE: &str = "kubewright.dev/dev-probe";
/// How long API servers may take to see the configuration, and a webhook to time out.
const PATIENCE: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(200);
/// The error of a webhook server that was reached and has nothing at the path.
const REACHED: &str = "the server could not find the requested resource";

/// Returns why the API server does not reach the endpoint. `None` if it does, or if the user may not create ConfigMaps.
pub(super) async fn probe(
    client: &kube::Client,
    project: &str,
    prefix: &str,
    endpoint: Endpoint<'_>,
) -> Result<Option<String>> {
    let webhook = Webhook {
        name: "probe.kubewright.dev".into(),
        path: "/kubewright-dev-probe".into(),
        groups: vec![String::new()],
        versions: vec!["v1".into()],
        resources: vec!["configmaps".into()],
        verbs: vec!["create".into()],
        namespace_selector: Some(json!({})),
        object_selector: Some(json!({ "matchLabels": { PROBE: project } })),
        configuration: "probe".into(),
        ..Webhook::default()
    };
    let mut configurations = configurations_at([&webhook.with_defaults()], endpoint, prefix);
    for configuration in &mut configurations {
        configuration["metadata"]["labels"] = json!({ LABEL: project });
        apply(client, configuration).await?;
    }
    let reason = write(client, project).await;
    let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    for configuration in &configurations {
        delete(&api, configuration["metadata"]["name"].as_str(), &[]).await?;
    }
    Ok(reason)
}

/// Writes the ConfigMap until the webhook is called.
async fn write(client: &kube::Client, project: &str) -> Option<String> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let mut map = ConfigMap::default();
    map.metadata.generate_name = Some("kubewright-dev-probe-".to_owned());
    map.metadata.labels = Some([(PROBE.to_owned(), project.to_owned())].into());
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let written = async {
        loop {
            match api.create(&dry_run, &map).await {
                // The API server does not know the configuration yet.
                Ok(_) => tokio::time::sleep(PAUSE).await,
                Err(kube::Error::Api(status)) => return reason(&status.message),
                Err(_) => return None,
            }
        }
    };
    tokio::time::timeout(PATIENCE, written).await.unwrap_or(None)
}

/// The reason in the API server's error, without the name of the webhook.
fn reason(message: &str) -> Option<String> {
    let (_, reason) = message.split_once("failed calling webhook")?;
    if reason.contains(REACHED) {
        return None;
    }
    let reason = reason.split_once(": ").map_or(reason, |(_, reason)| reason);
    Some(reason.trim_start_matches("failed to call webhook: ").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_in_the_error_of_the_api_server() {
        let failed = "Internal error occurred: failed calling webhook \"probe.kubewright.dev\": failed to call webhook: ";
        let refused =
            "Post \"https://10.0.0.5:1/p?timeout=5s\": dial tcp 10.0.0.5:1: connect: connection refused";
        assert_eq!(reason(&format!("{failed}{refused}")).as_deref(), Some(refused));
        assert_eq!(reason(&format!("{failed}{REACHED}")), None);
        assert_eq!(reason("configmaps is forbidden: User \"dev\" cannot create resource"), None);
    }
}
