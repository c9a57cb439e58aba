//! Validation of `spec.conversion`.

use serde_json::Value;

use super::super::spec::Spec;
use super::demands::Demands;
use super::one_of;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta::{bytes, invalid};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::webhook_client;

const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// Validates `spec.conversion`. The webhook errors have the paths of upstream's internal type.
pub(super) fn validate(spec: &Spec<'_>, demands: &Demands<'_>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let conversion = spec.raw.at("conversion");
    if conversion.is_null() {
        return errors;
    }
    let strategy = conversion.str_at("strategy");
    if strategy != "None" && spec.preserves_unknown_fields() {
        let detail = "must be None if spec.preserveUnknownFields is true";
        errors.push(FieldError::invalid(&path.child("strategy"), strategy, detail));
    }
    errors.extend(one_of(&path.child("strategy"), strategy, &["None", "Webhook"]));
    let config = conversion.at("webhook.clientConfig");
    let config_path = path.child("webhookClientConfig");
    let versions = conversion.at("webhook.conversionReviewVersions");
    let versions_path = path.child("conversionReviewVersions");
    if strategy == "Webhook" {
        errors.extend(client_config(config, demands, &config_path));
        errors.extend(review_versions(versions, demands, &versions_path));
        return errors;
    }
    let detail = "should not be set when strategy is not set to Webhook";
    if !config.is_null() {
        errors.push(FieldError::forbidden(&config_path, detail));
    }
    if versions.as_array().is_some_and(|versions| !versions.is_empty()) {
        errors.push(FieldError::forbidden(&versions_path, detail));
    }
    errors
}

/// Whether a stored conversion lists a known review version, or none at all.
pub(super) fn knows_version_or_none(conversion: &Value) -> bool {
    let versions = conversion.list_at("webhook.conversionReviewVersions");
    versions.is_empty() || versions.iter().any(is_known)
}

fn is_known(version: &Value) -> bool {
    version.as_str().is_some_and(|version| REVIEW_VERSIONS.contains(&version))
}

fn review_versions(versions: &Value, demands: &Demands<'_>, path: &Path) -> ErrorList {
    let list = versions.as_array().map_or(&[][..], Vec::as_slice);
    if list.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = ErrorList::new();
    for (i, version) in list.iter().enumerate() {
        let path = path.index(i);
        let text = version.as_str().unwrap_or_default();
        if list[..i].contains(version) {
            errors.push(FieldError::invalid(&path, text, "duplicate version"));
        } else {
            errors.extend(invalid(&path, text, names::dns1035_label(text)));
        }
    }
    if demands.known_review_version && !list.iter().any(is_known) {
        let detail = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        errors.push(FieldError::invalid(path, versions.clone(), detail));
    }
    errors
}

fn client_config(config: &Value, demands: &Demands<'_>, path: &Path) -> ErrorList {
    if config.is_null() {
        return vec![FieldError::required(path, "required when strategy is set to Webhook")];
    }
    let mut errors = webhook_client::client_config(config, path);
    let bundle = config.str_at("caBundle");
    if demands.ca_bundle
        && let Some(problem) = ca_bundle_problem(bundle)
    {
        errors.push(FieldError::invalid(&path.child("caBundle"), bundle, problem));
    }
    errors
}

/// The problem of a base64 CA bundle. Checks only that it contains a certificate block; does not parse
/// certificates. An empty bundle is valid.
pub(in crate::crd) fn ca_bundle_problem(bundle: &str) -> Option<&'static str> {
    if bundle.is_empty() {
        return None;
    }
    let labels = bytes::pem_labels(&bytes::decode(bundle));
    let certificate = labels.iter().any(|label| label == "CERTIFICATE");
    (!certificate).then_some("unable to load root certificates: unable to parse bytes as PEM block")
}
