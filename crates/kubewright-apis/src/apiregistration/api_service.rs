//! APIService.

use serde_json::{Value, json};

use crate::kinds::KindRules;
use crate::registry::{RegistryRules, Stamp};
use crate::reset_fields;
use crate::strategy::{keep, keep_spec_and_metadata};
use crate::table::row::{Row, condition};
use crate::validation::{one_of, required};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta::{self, Check, NameRule, bytes};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    group: "apiregistration.k8s.io",
    kind: "APIService",
    defaults: |object| {
        if object.has("spec.service") {
            object.default_at("spec.service.port", 443);
        }
    },
    prepare_create,
    prepare_update: |new, old| keep(new, old, "status"),
    prepare_subresource: keep_spec_and_metadata,
    name: |object| NameRule::ApiService {
        required: format!("{}.{}", object.str_at("spec.version"), object.str_at("spec.group")),
    },
    update_checks: &[Check::Update, Check::New],
    validate,
    validate_update: |new, _| validate(new),
    validate_subresource: |subresource, new, _| match subresource {
        "status" => status(new),
        _ => ErrorList::new(),
    },
    reset_fields: reset_fields::metadata_and_spec,
    cells,
    registry: RegistryRules { stamp, ..RegistryRules::CONDITIONAL_UPDATE },
    ..KindRules::DEFAULT
};

/// Sets the missing times of a new object's conditions.
fn stamp(new: &mut Value, old: Option<&Value>, write: &Stamp<'_>) {
    if old.is_some() {
        return;
    }
    for condition in new.list_mut("status.conditions").into_iter().flatten() {
        condition.default_at("lastTransitionTime", write.time());
    }
}

fn prepare_create(object: &mut Value) {
    object.set_at("status", json!({}));
    if !object.has("spec.service") {
        let available = json!({
            "type": "Available", "status": "True", "reason": "Local",
            "message": "Local APIServices are always available", "lastTransitionTime": null
        });
        object.set_at("status.conditions", json!([available]));
    }
}

fn validate(object: &Value) -> ErrorList {
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

fn status(object: &Value) -> ErrorList {
    let path = Path::new("status").child("conditions");
    let conditions = object.list_at("status.conditions").iter().enumerate();
    conditions
        .filter_map(|(i, condition)| {
            one_of(condition.str_at("status"), &["True", "False", "Unknown"], &path.index(i).child("status"))
        })
        .collect()
}

fn cells(row: &Row<'_>) -> Vec<Value> {
    let service = row.object.at("spec.service");
    let service = if service.is_null() {
        "Local".to_owned()
    } else {
        format!("{}/{}", service.str_at("namespace"), service.str_at("name"))
    };
    let available = condition(row.list("status.conditions"), "Available");
    let available = available.map(|c| (c.str_at("status"), c.str_at("reason")));
    let status = match available {
        None => "Unknown".to_owned(),
        Some((status @ "True", _) | (status, "")) => status.to_owned(),
        Some((status, reason)) => format!("{status} ({reason})"),
    };
    vec![row.name(), service.into(), status.into(), row.age()]
}

#[cfg(test)]
mod tests;
