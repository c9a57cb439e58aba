//! AdmissionReviews: building requests and checking responses.

use base64::Engine as _;
use kubewright_apimachinery::field::quote;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::{ApiError, Cause, Details};
use serde_json::{Value, json};

use super::matching::Invocation;
use crate::admission::Attributes;
use crate::authn::User;

/// The `request` of an AdmissionReview, without uid and objects.
pub(crate) fn admission_request(attributes: &Attributes<'_>, invocation: &Invocation) -> Value {
    let resource = invocation.resource(attributes);
    let of_resource = |group: &str, version: &str, plural: &str| json!({"group": group, "version": version, "resource": plural});
    let of_kind = |kind: Gvk<'_>| json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
    let own = attributes.resource;
    let mut request = json!({
        "kind": of_kind(invocation.kind(attributes)),
        "resource": of_resource(resource.group(), resource.version(), resource.plural()),
        "requestKind": of_kind(attributes.kind),
        "requestResource": of_resource(own.group(), own.version(), own.plural()),
        "operation": attributes.operation.as_str(),
        "userInfo": user_info(attributes.user),
        "dryRun": attributes.dry_run,
        "options": attributes.options.to_value(attributes.operation),
    });
    let texts = [
        ("subResource", attributes.subresource),
        ("requestSubResource", attributes.subresource),
        ("name", attributes.name),
        ("namespace", attributes.namespace),
    ];
    for (field, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        request[field] = text.into();
    }
    request
}

/// A user as AdmissionReviews represent it.
fn user_info(user: &User) -> Value {
    let mut info = json!({});
    for (field, text) in [("username", &user.name), ("uid", &user.uid)] {
        if !text.is_empty() {
            info[field] = text.as_str().into();
        }
    }
    if !user.groups.is_empty() {
        info["groups"] = json!(user.groups);
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}

/// A valid response.
#[derive(Debug, Default)]
pub(super) struct Response {
    pub(super) allowed: bool,
    pub(super) patch: Vec<u8>,
    pub(super) patch_type: String,
    pub(super) result: Value,
    pub(super) warnings: Vec<String>,
    pub(super) audit_annotations: Vec<(String, String)>,
}

/// Checks a response. Errors have upstream's wording.
pub(super) fn verify(review: &Value, version: &str, uid: &str, mutating: bool) -> Result<Response, String> {
    let response = review.at("response");
    if response.is_null() {
        return Err("webhook response was absent".to_owned());
    }
    let patch = response.at("patch");
    let patch = match patch.as_str() {
        None => Vec::new(),
        Some(text) => base64::engine::general_purpose::STANDARD
            .decode(text)
            .map_err(|error| format!("response.patch is not base64: {error}"))?,
    };
    let mut patch_type = response.at("patchType").as_str();
    if version == "v1" {
        if response.str_at("uid") != uid {
            let (uid, given) = (quote(uid), quote(response.str_at("uid")));
            return Err(format!("expected response.uid={uid}, got {given}"));
        }
        let (api_version, kind) = (review.str_at("apiVersion"), review.str_at("kind"));
        if (api_version, kind) != ("admission.k8s.io/v1", "AdmissionReview") {
            let given =
                if api_version.contains('/') { api_version.to_owned() } else { format!("/{api_version}") };
            return Err(format!(
                "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {given}, Kind={kind}"
            ));
        }
        match (mutating, patch.is_empty(), patch_type) {
            (true, false, None) => {
                return Err("webhook returned response.patch but not response.patchType".to_owned());
            }
            (true, true, Some(_)) => {
                return Err("webhook returned response.patchType but not response.patch".to_owned());
            }
            (true, _, Some("")) => {
                return Err("webhook returned invalid response.patchType of \"\"".to_owned());
            }
            (false, false, _) => return Err("validating webhook may not return response.patch".to_owned()),
            (false, _, Some(_)) => {
                return Err("validating webhook may not return response.patchType".to_owned());
            }
            _ => {}
        }
    } else if !patch.is_empty() {
        patch_type = Some("JSONPatch");
    }
    let texts = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    Ok(Response {
        allowed: response.at("allowed").as_bool().unwrap_or(false),
        patch: if mutating { patch } else { Vec::new() },
        patch_type: patch_type.unwrap_or_default().to_owned(),
        result: response.at("status").clone(),
        warnings: response
            .list_at("warnings")
            .iter()
            .filter_map(|text| text.as_str().map(str::to_owned))
            .collect(),
        audit_annotations: response.map_at("auditAnnotations").iter().filter_map(texts).collect(),
    })
}

/// The error for a request that a webhook rejected.
pub(super) fn rejection(webhook: &str, result: &Value) -> ApiError {
    let denied = format!("admission webhook {} denied the request", quote(webhook));
    let (message, reason) = (result.str_at("message"), result.str_at("reason"));
    let message = match (message, reason) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    };
    let code = result.int_at("code").and_then(|code| u16::try_from(code).ok()).unwrap_or_default();
    let mut error = ApiError::new(code.max(400), reason.to_owned(), message);
    error.details = details(result.at("details")).map(Box::new);
    error
}

fn details(details: &Value) -> Option<Details> {
    let text = |object: &Value, field: &str| object.str_at(field).to_owned();
    let cause = |cause: &Value| Cause {
        reason: text(cause, "reason"),
        message: text(cause, "message"),
        field: text(cause, "field"),
    };
    details.as_object()?;
    Some(Details {
        name: text(details, "name"),
        group: text(details, "group"),
        kind: text(details, "kind"),
        uid: text(details, "uid"),
        causes: details.list_at("causes").iter().map(cause).collect(),
        retry_after_seconds: details
            .int_at("retryAfterSeconds")
            .and_then(|seconds| u32::try_from(seconds).ok())
            .unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "callers write the value in place")]
    fn v1(response: Value) -> Value {
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
    }

    #[test]
    fn responses_are_checked_as_upstream_checks_them() {
        let error = |review: Value, mutating| verify(&review, "v1", "u", mutating).unwrap_err();
        assert_eq!(error(json!({}), true), "webhook response was absent");
        assert_eq!(error(v1(json!({"uid": "x"})), true), "expected response.uid=\"u\", got \"x\"");
        assert_eq!(
            error(json!({"response": {"uid": "u"}}), true),
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind="
        );
        assert_eq!(
            error(v1(json!({"uid": "u", "patch": "W10="})), true),
            "webhook returned response.patch but not response.patchType"
        );
        assert_eq!(
            error(v1(json!({"uid": "u", "patchType": "JSONPatch"})), true),
            "webhook returned response.patchType but not response.patch"
        );
        assert_eq!(
            error(v1(json!({"uid": "u", "patch": "W10=", "patchType": "JSONPatch"})), false),
            "validating webhook may not return response.patch"
        );
        let old = verify(&json!({"response": {"allowed": true, "patch": "W10="}}), "v1beta1", "u", true);
        assert_eq!(old.unwrap().patch_type, "JSONPatch");
    }

    #[test]
    fn a_rejection_keeps_the_webhooks_status() {
        let error = rejection("a.b", &json!({"code": 418, "reason": "Teapot", "details": {"name": "n"}}));
        assert_eq!((error.code, &*error.reason), (418, "Teapot"));
        assert_eq!(error.message, "admission webhook \"a.b\" denied the request: Teapot");
        assert_eq!(error.details.unwrap().name, "n");
        let plain = rejection("a.b", &Value::Null);
        assert_eq!(plain.code, 400);
        assert_eq!(plain.message, "admission webhook \"a.b\" denied the request without explanation");
    }
}
