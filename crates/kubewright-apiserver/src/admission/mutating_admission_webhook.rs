//! MutatingAdmissionWebhook: calls matching webhooks in sequence, each with the object that the previous one
//! returned.

use std::sync::Arc;

use kubewright_apimachinery::status::ApiError;
use kubewright_cel::{self as cel, Bindings};
use serde_json::{Value, json};

use super::webhook::{
    Authorization, Entries, Hook, HookError, Invocation, Matched, Versioned, admission_request, call,
    in_version,
};
use super::{Admission, Attributes, Cluster, Notes, Operation, Plugin};
use crate::off_worker::off_worker;

pub(super) struct MutatingAdmissionWebhook;

impl Plugin for MutatingAdmissionWebhook {
    fn name(&self) -> &'static str {
        "MutatingAdmissionWebhook"
    }

    fn handles(&self, _operation: Operation) -> bool {
        true
    }

    fn admit<'a>(
        &'a self,
        cluster: &'a Cluster,
        attributes: &'a mut Attributes<'_>,
        notes: &'a mut Notes,
    ) -> Admission<'a> {
        match cluster.webhooks().mutating.relevant(cluster, attributes) {
            Some(hooks) => Admission::Pending(Box::pin(dispatch(hooks, cluster, attributes, notes))),
            None => Admission::ALLOWED,
        }
    }
}

pub(super) type Hooks = Arc<Entries<Hook>>;

/// Whether a webhook matches, and the version that it requests.
pub(super) async fn should_call(
    hook: &Hook,
    cluster: &Cluster,
    attributes: &Attributes<'_>,
) -> Result<Option<Invocation>, ApiError> {
    let Some(invocation) = hook.criteria.matches(cluster, attributes)? else { return Ok(None) };
    if hook.conditions.is_empty() {
        return Ok(Some(invocation));
    }
    let versioned = Versioned::new(cluster, attributes, &invocation).await.map_err(ApiError::internal)?;
    let request = admission_request(attributes, &invocation);
    let authorization = Authorization::new(cluster, attributes);
    let bindings = Bindings::new()
        .with("object", cel::Value::from(&versioned.object))
        .with("oldObject", cel::Value::from(&versioned.old_object))
        .with("request", cel::Value::from(&request))
        .with("namespaceObject", cel::Value::Null)
        .with("authorizer", cel::Value::Authorization(cel::Authorization::new(&authorization)));
    match off_worker(|| hook.conditions.evaluate(&bindings)) {
        Matched::Yes => Ok(Some(invocation)),
        Matched::No => Ok(None),
        Matched::Failed(why) => {
            Err(ApiError::forbidden(attributes.resource.qualified(), attributes.name, &why))
        }
    }
}

async fn dispatch(
    hooks: Hooks,
    cluster: &Cluster,
    attributes: &mut Attributes<'_>,
    notes: &mut Notes,
) -> Result<(), ApiError> {
    let again = notes.reinvocation.again;
    if again {
        notes.reinvocation.webhooks().begin_again(&attributes.object);
    }
    for (index, hook) in hooks.iter().flat_map(|(_, hooks)| hooks.iter()).enumerate() {
        let Some(invocation) = should_call(hook, cluster, attributes).await? else { continue };
        if again && !notes.reinvocation.webhooks().is_pending(&hook.uid) {
            continue;
        }
        let place = format!("round_{}_index_{index}", u8::from(again));
        let answer = call(hook, cluster, attributes, &invocation, true).await;
        let patched = answer.and_then(|verdict| verdict.settle(&hook.name, notes));
        let outcome = match patched {
            Ok(Some(patched)) => replace(cluster, attributes, patched).await.map_err(HookError::Final),
            Ok(None) => Ok(false),
            Err(error) => Err(error),
        };
        let changed = matches!(outcome, Ok(true));
        let annotation =
            json!({"configuration": hook.configuration, "webhook": hook.name, "mutated": changed});
        notes
            .audit_annotations
            .insert(format!("mutation.webhook.admission.k8s.io/{place}"), annotation.to_string());
        if changed {
            notes.reinvocation.webhooks().require_previous();
            notes.reinvocation.changed();
        }
        if hook.reinvocable {
            notes.reinvocation.webhooks().ran(&hook.uid);
        }
        match outcome {
            Ok(_) => {}
            Err(HookError::Calling(why)) if hook.fails_open => {
                tracing::warn!(webhook = hook.name, error = %why, "failed calling webhook, failing open");
                notes.audit_annotations.insert(
                    format!("failed-open.mutation.webhook.admission.k8s.io/{place}"),
                    hook.name.clone(),
                );
            }
            Err(error) => return Err(error.into_failure(&hook.name)),
        }
    }
    notes.reinvocation.webhooks().finish(&attributes.object);
    Ok(())
}

/// Stores a patched object. Returns whether it differs from the previous one.
async fn replace(
    cluster: &Cluster,
    attributes: &mut Attributes<'_>,
    patched: Value,
) -> Result<bool, ApiError> {
    let before = attributes.unpacked();
    let object =
        in_version(cluster, attributes, patched, attributes.kind).await.map_err(ApiError::internal)?;
    attributes.replace(object)?;
    Ok(attributes.unpacked() != before)
}
