//! Validation of APIServices.

use serde_json::Value;

use super::{one_of, required};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta::{self, bytes};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

pub(super) fn create(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = object.at("spec");
    let path = Path::new("spec");
    let (group, version) = (spec.str_at("group"), spec.str_at("version"));
    if group.is_empty() {
        if version != "v1" {
            let detail = "only v1 may have an empty group and it better be legacy kube";
            errors.push(FieldError::required(&path.child("group"), detail));
        }
    } else {
        errors.extend(meta::invalid(&path.child("group"), group, names::dns1123_subdomain(group)));
    }
    errors.extend(meta::invalid(&path.child("version"), version, names::dns1035_label(version)));
    for (name, max) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
        let value = spec.int_at(name).unwrap_or_default();
        if !(1..=max).contains(&value) {
            let detail = format!("must be positive and less than {max}");
            errors.push(FieldError::invalid(&path.child(name), value, detail));
        }
    }
    let bundle = spec.str_at("caBundle");
    let insecure = spec.bool_at("insecureSkipTLSVerify");
    let insecure_path = path.child("insecureSkipTLSVerify");
    if !spec.has("service") {
        if !bundle.is_empty() {
            let shown = format!("{} bytes", bytes::length(bundle));
            let detail = "local APIServices may not have a caBundle";
            errors.push(FieldError::invalid(&path.child("caBundle"), shown, detail));
        }
        if insecure {
            let detail = "local APIServices may not have insecureSkipTLSVerify";
            errors.push(FieldError::invalid(&insecure_path, true, detail));
        }
        return errors;
    }
    let service = spec.at("service");
    let path = path.child("service");
    errors.extend(required(service.str_at("namespace"), &path.child("namespace")));
    errors.extend(required(service.str_at("name"), &path.child("name")));
    let port = service.int_at("port").unwrap_or_default();
    let problems = names::port_number(port);
    if !problems.is_empty() {
        let detail = format!("port is not valid: {}", problems.join(", "));
        errors.push(FieldError::invalid(&path.child("port"), port, detail));
    }
    if insecure && !bundle.is_empty() {
        errors.push(FieldError::invalid(&insecure_path, true, "may not be true if caBundle is present"));
    }
    errors
}

pub(super) fn status(object: &Value) -> ErrorList {
    let path = Path::new("status").child("conditions");
    let conditions = object.list_at("status.conditions").iter().enumerate();
    conditions
        .filter_map(|(i, condition)| {
            one_of(condition.str_at("status"), &["True", "False", "Unknown"], &path.index(i).child("status"))
        })
        .collect()
}
