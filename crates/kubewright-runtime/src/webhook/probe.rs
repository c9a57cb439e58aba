//! Tests whether API servers reach a webhook server.
//!
//! A webhook that is not reached refuses every write of its kind. The test uses a configuration of its own, which matches
//! one ConfigMap only, and dry-run writes of that ConfigMap. The webhook server serves nothing at the path of the test, so
//! no handler runs. The caller installs the configuration and deletes it.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

/// A namespace that every cluster has.
const NAMESPACE: &str = "default";
/// How long the webhook may take. Less than a useful [`Probe::patience`], so that a timeout is reported as a failed call.
const TIMEOUT_SECONDS: i32 = 5;
const PAUSE: Duration = Duration::from_millis(100);
/// The error of a webhook server that was reached and has nothing at the path.
const REACHED: &str = "the server could not find the requested resource";

/// A test of a webhook server.
pub struct Probe<'a> {
    /// The prefix of the ConfigMap's name, and the last part of the path that the API server calls.
    pub name: &'a str,
    /// The label of the ConfigMap, with a value that no concurrent test uses.
    pub label: (&'a str, &'a str),
    /// How long API servers may take to call the webhook.
    pub patience: Duration,
}

/// The result of a [`Probe`].
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The API server has reached the webhook server.
    Reached,
    /// The API server has failed to call the webhook, for this reason.
    Failed(String),
    /// The API server has refused the ConfigMap for another reason: the user may not create ConfigMaps.
    Refused,
    /// The API server has created the ConfigMap without the webhook, until the patience was over.
    NotCalled,
}

impl Probe<'_> {
    /// The webhook configuration. `base` is the URL of the webhook server without a path, `ca` its CA certificates as PEM.
    pub fn configuration(&self, is_mutating: bool, name: &str, base: &str, ca: &str) -> Value {
        let (label, value) = self.label;
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": if is_mutating { "MutatingWebhookConfiguration" } else { "ValidatingWebhookConfiguration" },
            "metadata": { "name": name },
            "webhooks": [{
                "name": "probe.kubewright.dev",
                "admissionReviewVersions": ["v1"],
                "clientConfig": { "url": format!("{base}/{}", self.name), "caBundle": STANDARD.encode(ca) },
                "failurePolicy": "Fail",
                "objectSelector": { "matchLabels": { label: value } },
                "rules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"],
                }],
                "sideEffects": "None",
                "timeoutSeconds": TIMEOUT_SECONDS,
            }],
        })
    }

    /// Writes the ConfigMap until the API server calls the webhook.
    pub async fn call(&self, client: &kube::Client) -> Result<Outcome, kube::Error> {
        let api: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
        let (label, value) = self.label;
        let mut map = ConfigMap::default();
        map.metadata.generate_name = Some(format!("{}-", self.name));
        map.metadata.labels = Some([(label.to_owned(), value.to_owned())].into());
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        let called = async {
            loop {
                match api.create(&dry_run, &map).await {
                    // The API server does not know the configuration yet.
                    Ok(_) => tokio::time::sleep(PAUSE).await,
                    Err(kube::Error::Api(status)) => return Ok(outcome(&status.message)),
                    Err(error) => return Err(error),
                }
            }
        };
        tokio::time::timeout(self.patience, called).await.unwrap_or(Ok(Outcome::NotCalled))
    }
}

/// The outcome in the API server's error. The reason is without the name of the webhook.
fn outcome(message: &str) -> Outcome {
    let Some((_, reason)) = message.split_once("failed calling webhook") else { return Outcome::Refused };
    if reason.contains(REACHED) {
        return Outcome::Reached;
    }
    let reason = reason.split_once(": ").map_or(reason, |(_, reason)| reason);
    Outcome::Failed(reason.trim_start_matches("failed to call webhook: ").to_owned())
}

#[cfg(test)]
mod tests {
    use kubewright_apiserver::{ApiServer, Options};

    use super::*;

    #[test]
    fn the_reason_is_in_the_error_of_the_api_server() {
        let failed = "Internal error occurred: failed calling webhook \"probe.kubewright.dev\": failed to call webhook: ";
        let refused =
            "Post \"https://10.0.0.5:1/p?timeout=5s\": dial tcp 10.0.0.5:1: connect: connection refused";
        assert_eq!(outcome(&format!("{failed}{refused}")), Outcome::Failed(refused.to_owned()));
        assert_eq!(outcome(&format!("{failed}{REACHED}")), Outcome::Reached);
        let forbidden = "configmaps is forbidden: User \"dev\" cannot create resource";
        assert_eq!(outcome(forbidden), Outcome::Refused);
    }

    #[tokio::test(start_paused = true)]
    async fn a_webhook_that_is_not_installed_is_not_called() {
        let client = kube::Client::new(ApiServer::new(Options::default()), "default");
        let label = ("kubewright.dev/probe", "a");
        let probe = Probe { name: "kubewright-probe", label, patience: Duration::from_secs(15) };
        assert_eq!(probe.call(&client).await.unwrap(), Outcome::NotCalled);
    }
}
