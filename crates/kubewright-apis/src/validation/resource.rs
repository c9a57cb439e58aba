//! Validation of `resource.k8s.io`: device requests, and immutable fields.
//!
//! Published devices and CEL selectors are not validated.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{one_of, required};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::json;
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

const MAX_REQUESTS: usize = 32;
const MAX_ALTERNATIVES: usize = 8;

pub(super) fn create(kind: &str, object: &Value) -> ErrorList {
    match kind {
        "ResourceClaim" => claim_spec(object.at("spec"), &Path::new("spec")),
        "ResourceClaimTemplate" => template(object.at("spec"), &Path::new("spec")),
        _ => ErrorList::new(),
    }
}

/// Validates an object that replaces `old`. The spec of a claim is immutable.
pub(super) fn update(kind: &str, new: &Value, old: &Value) -> ErrorList {
    let mut errors = create(kind, new);
    let fixed = matches!(kind, "ResourceClaim" | "ResourceClaimTemplate");
    if fixed && new.at("spec") != old.at("spec") {
        let shown = json::to_string(new.at("spec"));
        errors.push(FieldError::invalid_printed(&Path::new("spec"), shown, meta::IMMUTABLE));
    }
    errors
}

fn template(template: &Value, path: &Path) -> ErrorList {
    let metadata = path.child("metadata");
    let mut errors = meta::annotations(template.at("metadata.annotations"), &metadata.child("annotations"));
    errors.extend(meta::labels(template.at("metadata.labels"), &metadata.child("labels")));
    for name in template.map_at("metadata").keys() {
        if !matches!(name.as_str(), "annotations" | "labels") && template.at("metadata").has(name) {
            errors.push(FieldError::forbidden(&metadata.child(name), "cannot be set"));
        }
    }
    errors.extend(claim_spec(template.at("spec"), &path.child("spec")));
    errors
}

fn claim_spec(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = path.child("devices").child("requests");
    let requests = spec.list_at("devices.requests");
    if requests.len() > MAX_REQUESTS {
        errors.push(FieldError::too_many(&path, requests.len(), MAX_REQUESTS));
    }
    let mut seen = BTreeSet::new();
    for (i, request) in requests.iter().enumerate() {
        let path = path.index(i);
        errors.extend(request_name(request, &path));
        errors.extend(one_request(request, &path));
        let name = request.str_at("name");
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
    }
    errors
}

fn request_name(request: &Value, path: &Path) -> ErrorList {
    let name = request.str_at("name");
    match required(name, &path.child("name")) {
        Some(error) => vec![error],
        None => meta::invalid(&path.child("name"), name, names::dns1123_label(name)).collect(),
    }
}

fn one_request(request: &Value, path: &Path) -> ErrorList {
    let alternatives = request.list_at("firstAvailable");
    match (request.has("exactly"), alternatives.is_empty()) {
        (true, true) => device_request(request.at("exactly"), &path.child("exactly")),
        (false, false) => {
            let path = path.child("firstAvailable");
            let mut errors = ErrorList::new();
            if alternatives.len() > MAX_ALTERNATIVES {
                errors.push(FieldError::too_many(&path, alternatives.len(), MAX_ALTERNATIVES));
            }
            for (i, alternative) in alternatives.iter().enumerate() {
                errors.extend(request_name(alternative, &path.index(i)));
                errors.extend(device_request(alternative, &path.index(i)));
            }
            errors
        }
        (true, false) => {
            let detail =
                "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set";
            vec![FieldError::invalid_printed(path, json::to_string(request), detail)]
        }
        (false, true) => {
            vec![FieldError::required(path, "exactly one of `exactly` or `firstAvailable` is required")]
        }
    }
}

fn device_request(request: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let class = request.str_at("deviceClassName");
    if class.is_empty() {
        errors.push(FieldError::required(&path.child("deviceClassName"), ""));
    } else {
        let messages = names::dns1123_subdomain(class);
        errors.extend(meta::invalid(&path.child("deviceClassName"), class, messages));
    }
    let count = request.int_at("count").unwrap_or_default();
    let at = path.child("count");
    match request.str_at("allocationMode") {
        "All" if count != 0 => {
            let detail = "must not be specified when allocationMode is 'All'";
            errors.push(FieldError::invalid(&at, count, detail));
        }
        "ExactCount" if count <= 0 => {
            errors.push(FieldError::invalid(&at, count, "must be greater than zero"));
        }
        "All" | "ExactCount" => {}
        mode => errors.extend(one_of(mode, &["All", "ExactCount"], &path.child("allocationMode"))),
    }
    errors
}
