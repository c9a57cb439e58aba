//! Validation of HorizontalPodAutoscaler.
//!
//! Uses the rules and field names of autoscaling/v2; objects of v1 are converted first.

mod behavior;
mod metrics;

use serde_json::Value;

use super::V2;
use crate::convert::convert;
use crate::validation::not_negative_all;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::gvk::split_api_version;
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

pub(super) fn create(object: &Value) -> ErrorList {
    let object = convert(object.clone(), V2);
    let spec = object.at("spec");
    validate(spec, 1, target_rule(spec), GroupRule::Optional)
}

pub(super) fn update(new: &Value, old: &Value) -> ErrorList {
    let new = convert(new.clone(), V2);
    let old = convert(old.clone(), V2);
    let (spec, before) = (new.at("spec"), old.at("spec"));
    // Existing objects may keep a value of 0.
    let lowest = i64::from(before.int_at("minReplicas") != Some(0));
    let mut target = target_rule(spec);
    if api_version(before.str_at("scaleTargetRef.apiVersion"), target).is_some() {
        target = GroupRule::Anything;
    }
    let mut described =
        before.list_at("metrics").iter().map(|metric| metric.str_at("object.describedObject.apiVersion"));
    let anything = described.any(|version| api_version(version, GroupRule::Optional).is_some());
    validate(spec, lowest, target, if anything { GroupRule::Anything } else { GroupRule::Optional })
}

pub(super) fn status(object: &Value) -> ErrorList {
    not_negative_all(object.at("status"), &["currentReplicas", "desiredReplicas"], &Path::new("status"))
}

/// The requirement on `apiVersion` of a reference.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GroupRule {
    /// A group is required.
    Required,
    /// Core or absent is accepted.
    Optional,
    /// Anything is accepted.
    Anything,
}

/// ReplicationController is the only scalable kind of the core group.
fn target_rule(spec: &Value) -> GroupRule {
    let core = spec.str_at("scaleTargetRef.kind") == "ReplicationController";
    if core { GroupRule::Optional } else { GroupRule::Required }
}

fn validate(spec: &Value, lowest: i64, target: GroupRule, described: GroupRule) -> ErrorList {
    let path = Path::new("spec");
    let mut errors = ErrorList::new();
    let min = spec.int_at("minReplicas");
    if let Some(min) = min.filter(|min| *min < lowest) {
        let detail = format!("must be greater than or equal to {lowest}");
        errors.push(FieldError::invalid(&path.child("minReplicas"), min, detail));
    }
    let at = path.child("maxReplicas");
    let max = spec.int_at("maxReplicas").unwrap_or_default();
    if max == 0 {
        errors.push(FieldError::required(&at, "must be set and greater than 0"));
    } else if max < 0 {
        errors.push(FieldError::invalid(&at, max, "must be greater than 0"));
    }
    if min.is_some_and(|min| max < min) {
        errors.push(FieldError::invalid(&at, max, "must be greater than or equal to `minReplicas`"));
    }
    errors.extend(reference(spec.at("scaleTargetRef"), target, &path.child("scaleTargetRef")));
    errors.extend(metrics::validate(spec, described, &path.child("metrics")));
    errors.extend(behavior::validate(spec.at("behavior"), &path.child("behavior")));
    errors
}

/// Validates a reference to a scale target or a described object.
fn reference(reference: &Value, rule: GroupRule, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for name in ["kind", "name"] {
        let at = path.child(name);
        match reference.str_at(name) {
            "" => errors.push(FieldError::required(&at, "")),
            value => errors.extend(meta::invalid(&at, value, names::path_segment_name(value))),
        }
    }
    let version = reference.str_at("apiVersion");
    if let Some(message) = api_version(version, rule) {
        errors.push(FieldError::invalid(&path.child("apiVersion"), version, message));
    }
    errors
}

fn api_version(version: &str, rule: GroupRule) -> Option<String> {
    if rule == GroupRule::Anything {
        None
    } else if version.matches('/').count() > 1 {
        Some(format!("unexpected GroupVersion string: {version}"))
    } else if rule == GroupRule::Required && split_api_version(version).0.is_empty() {
        Some("apiVersion must specify API group".to_owned())
    } else {
        None
    }
}
