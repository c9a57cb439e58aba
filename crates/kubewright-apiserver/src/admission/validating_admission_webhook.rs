//! ValidatingAdmissionWebhook: calls all matching webhooks concurrently.

use futures_util::future::join_all;
use kubewright_apimachinery::status::ApiError;

use super::mutating_admission_webhook::{Hooks, should_call};
use super::webhook::{HookError, call};
use super::{Admission, Attributes, Cluster, Notes, Operation, Plugin};

pub(super) struct ValidatingAdmissionWebhook;

impl Plugin for ValidatingAdmissionWebhook {
    fn name(&self) -> &'static str {
        "ValidatingAdmissionWebhook"
    }

    fn handles(&self, _operation: Operation) -> bool {
        true
    }

    fn validate<'a>(
        &'a self,
        cluster: &'a Cluster,
        attributes: &'a Attributes<'_>,
        notes: &'a mut Notes,
    ) -> Admission<'a> {
        match cluster.webhooks().validating.relevant(cluster, attributes) {
            Some(hooks) => Admission::Pending(Box::pin(dispatch(hooks, cluster, attributes, notes))),
            None => Admission::ALLOWED,
        }
    }
}

async fn dispatch(
    hooks: Hooks,
    cluster: &Cluster,
    attributes: &Attributes<'_>,
    notes: &mut Notes,
) -> Result<(), ApiError> {
    let mut relevant = Vec::new();
    for hook in hooks.iter().flat_map(|(_, hooks)| hooks.iter()) {
        if let Some(invocation) = should_call(hook, cluster, attributes).await? {
            relevant.push((hook, invocation));
        }
    }
    let calls = relevant.iter().map(|(hook, invocation)| call(hook, cluster, attributes, invocation, false));
    let answers = join_all(calls).await;
    let mut failure = None;
    for (index, ((hook, _), answer)) in relevant.iter().zip(answers).enumerate() {
        match answer.and_then(|verdict| verdict.settle(&hook.name, notes)) {
            Ok(_) => {}
            Err(HookError::Calling(why)) if hook.fails_open => {
                tracing::warn!(webhook = hook.name, error = %why, "failed calling webhook, failing open");
                let key = format!("failed-open.validating.webhook.admission.k8s.io/round_0_index_{index}");
                notes.audit_annotations.insert(key, hook.name.clone());
            }
            // As upstream, only one failure is reported.
            Err(error) => failure = failure.or_else(|| Some(error.into_failure(&hook.name))),
        }
    }
    failure.map_or(Ok(()), Err)
}
