//! Defaults and validation of device requests.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::defaults::zero_to;
use crate::validation::{one_of, required};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::json;
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

const MAX_REQUESTS: usize = 32;

const MAX_ALTERNATIVES: usize = 8;

/// Device requests in a ResourceClaim or its template.
pub(crate) fn default_devices(object: &mut Value, path: &str) {
    for request in object.list_mut(&format!("{path}.requests")).into_iter().flatten() {
        if let Some(exactly) = request.at_mut("exactly") {
            default_request(exactly);
        }
        request.list_mut("firstAvailable").into_iter().flatten().for_each(default_request);
    }
}

fn default_request(request: &mut Value) {
    if request.str_at("allocationMode").is_empty() {
        request.set_at("allocationMode", "ExactCount");
    }
    if request.str_at("allocationMode") == "ExactCount" {
        zero_to(request, "count", 1);
    }
    for toleration in request.list_mut("tolerations").into_iter().flatten() {
        if toleration.str_at("operator").is_empty() {
            toleration.set_at("operator", "Equal");
        }
    }
}

pub(crate) fn claim_spec(spec: &Value, path: &Path) -> ErrorList {
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
