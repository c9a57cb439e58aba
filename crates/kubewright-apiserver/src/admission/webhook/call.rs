//! Calls a webhook.

use bytes::Bytes;
use kubewright_apimachinery::field::quote;
use kubewright_apimachinery::json;
use kubewright_apimachinery::patch::JsonPatch;
use kubewright_apimachinery::status::ApiError;
use serde_json::{Value, json};

use super::configuration::Hook;
use super::matching::Invocation;
use super::review::{Response, admission_request, rejection, verify};
use super::versions::Versioned;
use crate::admission::{Attributes, Cluster, Notes};

/// Why a webhook call did not admit a request.
#[derive(Debug)]
pub(crate) enum HookError {
    /// The call failed or its response is invalid: the failure policy decides.
    Calling(String),
    /// The webhook rejected the request, or the server failed.
    Final(ApiError),
}

impl HookError {
    /// The request's error under the failure policy `Fail`.
    pub(crate) fn into_failure(self, webhook: &str) -> ApiError {
        match self {
            Self::Calling(why) => {
                ApiError::internal(format!("failed calling webhook {}: {why}", quote(webhook)))
            }
            Self::Final(error) => error,
        }
    }
}

/// The result of a webhook call.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    response: Response,
    /// The patched object in the invocation's version, if there is a patch.
    pub(crate) patched: Option<Value>,
    rejected: Option<ApiError>,
}

impl Verdict {
    /// Adds warnings and audit annotations, and returns the patched object or the rejection.
    pub(crate) fn settle(self, webhook: &str, notes: &mut Notes) -> Result<Option<Value>, HookError> {
        for (key, value) in self.response.audit_annotations {
            notes.audit_annotations.insert(format!("{webhook}/{key}"), value);
        }
        for warning in self.response.warnings {
            notes.warn(warning);
        }
        match self.rejected {
            Some(error) => Err(HookError::Final(error)),
            None => Ok(self.patched),
        }
    }
}

/// Calls a webhook about a request.
pub(crate) async fn call(
    hook: &Hook,
    cluster: &Cluster,
    attributes: &Attributes<'_>,
    invocation: &Invocation,
    mutating: bool,
) -> Result<Verdict, HookError> {
    if attributes.dry_run {
        match hook.supports_dry_run {
            None => return Err(HookError::Calling("Webhook SideEffects is nil".to_owned())),
            Some(true) => {}
            Some(false) => {
                let why = format!("admission webhook {} does not support dry run", quote(&hook.name));
                return Err(HookError::Final(ApiError::bad_request(why)));
            }
        }
    }
    let Some(version) = hook.review_version else {
        let why = "could not create admission objects: webhook does not accept known AdmissionReview versions \
                   (v1, v1beta1)";
        return Err(HookError::Calling(why.to_owned()));
    };
    let target = hook
        .target
        .as_ref()
        .map_err(|why| HookError::Calling(format!("could not get REST client: {why}")))?;
    let versioned = Versioned::new(cluster, attributes, invocation)
        .await
        .map_err(|why| HookError::Final(ApiError::internal(why)))?;
    let uid = cluster.new_uid();
    let mut request = admission_request(attributes, invocation);
    request["uid"] = uid.as_str().into();
    request["object"] = versioned.object;
    request["oldObject"] = versioned.old_object;
    let review = json!({
        "kind": "AdmissionReview", "apiVersion": format!("admission.k8s.io/{version}"), "request": request,
    });
    let answer = target
        .post(cluster.webhook_client(), Bytes::from(json::to_vec(&review)), hook.timeout_seconds)
        .await
        .map_err(|why| HookError::Calling(format!("failed to call webhook: {why}")))?;
    let response = verify(&answer, version, &uid, mutating)
        .map_err(|why| HookError::Calling(format!("received invalid webhook response: {why}")))?;
    if !response.allowed {
        let rejected = Some(rejection(&hook.name, &response.result));
        return Ok(Verdict { response, patched: None, rejected });
    }
    let mut request = review;
    let patched = patched(hook, &response, request["request"]["object"].take())?;
    Ok(Verdict { response, patched, rejected: None })
}

fn patched(hook: &Hook, response: &Response, object: Value) -> Result<Option<Value>, HookError> {
    if response.patch.is_empty() {
        return Ok(None);
    }
    let patch = JsonPatch::decode(&response.patch).map_err(|error| {
        HookError::Calling(format!("received undecodable patch in webhook response: {error}"))
    })?;
    if patch.is_empty() {
        return Ok(None);
    }
    if object.is_null() {
        return Err(HookError::Final(ApiError::internal(format!(
            "admission webhook {} attempted to modify the object, which is not supported for this operation",
            quote(&hook.name)
        ))));
    }
    if response.patch_type != "JSONPatch" {
        return Err(HookError::Calling(format!("unsupported patch type {}", quote(&response.patch_type))));
    }
    patch.apply(object).map(Some).map_err(|error| HookError::Final(ApiError::internal(error)))
}
