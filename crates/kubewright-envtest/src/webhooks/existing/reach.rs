//! Tests whether the API server of an existing cluster reaches this process.
//!
//! A webhook that is not reached refuses every write of its kind. The test uses a configuration of its own, which matches
//! one ConfigMap only, and a dry-run write of that ConfigMap. The webhook server has nothing at the path of the test, so
//! no handler runs. The API server reads configurations in order, so it then knows those that were written before.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kubewright_manifests::declare::Webhook;
use serde_json::json;

/// Label of the ConfigMap.
const PROBE: &str = "kubewright.dev/envtest-probe";
/// A namespace that every cluster has.
const NAMESPACE: &str = "default";
/// How long API servers may take to see the configuration, and a webhook to time out.
const PATIENCE: Duration = Duration::from_secs(15);
const TIMEOUT_SECONDS: i32 = 5;
const PAUSE: Duration = Duration::from_millis(100);
/// The error of a webhook server that was reached and has nothing at the path.
const REACHED: &str = "the server could not find the requested resource";

/// The webhook of the test. It matches no object of another session.
pub(super) fn webhook(session: &str, is_mutating: bool) -> Webhook {
    let webhook = Webhook {
        name: "probe.kubewright.dev".into(),
        mutating: is_mutating,
        path: "/kubewright-envtest-probe".into(),
        groups: vec![String::new()],
        versions: vec!["v1".into()],
        resources: vec!["configmaps".into()],
        verbs: vec!["create".into()],
        namespace_selector: Some(json!({})),
        object_selector: Some(json!({ "matchLabels": { PROBE: session } })),
        timeout_seconds: Some(TIMEOUT_SECONDS),
        configuration: if is_mutating { "mutating-probe" } else { "validating-probe" }.into(),
        ..Webhook::default()
    };
    webhook.with_defaults()
}

/// Writes the ConfigMap until the API server calls the webhook. If the call fails, returns the reason. A user who may not
/// create ConfigMaps gets no answer, which is not an error.
pub(super) async fn call(client: &kube::Client, session: &str) -> Result<(), String> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let mut map = ConfigMap::default();
    map.metadata.generate_name = Some("kubewright-envtest-probe-".to_owned());
    map.metadata.labels = Some([(PROBE.to_owned(), session.to_owned())].into());
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let called = async {
        loop {
            match api.create(&dry_run, &map).await {
                // The API server does not know the configuration yet.
                Ok(_) => tokio::time::sleep(PAUSE).await,
                Err(kube::Error::Api(status)) => return reason(&status.message).map_or(Ok(()), Err),
                Err(error) => return Err(error.to_string()),
            }
        }
    };
    let late = || Err(format!("it has called no webhook after {PATIENCE:?}"));
    tokio::time::timeout(PATIENCE, called).await.unwrap_or_else(|_| late())
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
