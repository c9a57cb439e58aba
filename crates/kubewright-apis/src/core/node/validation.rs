//! Validation of nodes.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::core::pod::validation::{checks, internal, resources, scheduling};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

pub(super) fn create(node: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    // Upstream's paths of taints and swap start with `metadata`.
    let metadata = Path::new("metadata");
    taints(node, &metadata, &mut errors);
    node_resources(node, &mut errors);
    if let Some(capacity) = node.int_at("status.nodeInfo.swap.capacity") {
        checks::positive(capacity, &metadata.child("nodeSwapStatus").child("capacity"), &mut errors);
    }
    declared_features(node, &mut errors);
    pod_cidrs(node, &mut errors);
    errors
}

pub(super) fn update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = Path::new("spec");
    node_resources(new, &mut errors);
    declared_features(new, &mut errors);
    let mut addresses = HashSet::new();
    for (address, path) in checks::items(new.at("status"), "addresses", &Path::new("status")) {
        if !addresses.insert((address.str_at("type"), address.str_at("address"))) {
            let printed = internal::compact("NodeAddress", address);
            errors.push(FieldError { value: Some(printed), ..FieldError::duplicate(&path, Value::Null) });
        }
    }
    let (before, after) = (old.list_at("spec.podCIDRs"), new.list_at("spec.podCIDRs"));
    if !before.is_empty() {
        let changed = if before.len() == after.len() {
            before.iter().zip(after).filter(|(before, after)| before != after).count()
        } else {
            1
        };
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        errors.extend((0..changed).map(|_| FieldError::forbidden(&spec.child("podCIDRs"), detail)));
    }
    let provider = old.str_at("spec.providerID");
    if !provider.is_empty() && provider != new.str_at("spec.providerID") {
        let detail = "node updates may not change providerID except from \"\" to valid";
        errors.push(FieldError::forbidden(&spec.child("providerID"), detail));
    }
    if new.has("spec.configSource") {
        let path = spec.child("configSource");
        config_source(new.at("spec.configSource"), false, &path, &mut errors);
    }
    for name in ["assigned", "active", "lastKnownGood"] {
        let source = new.at("status.config").at(name);
        if !source.is_null() {
            let path = Path::new("status").child("config").child(name);
            config_source(source, true, &path, &mut errors);
        }
    }
    taints(new, &Path::new("metadata"), &mut errors);
    if new.str_at("spec.externalID") != old.str_at("spec.externalID") {
        errors.push(FieldError::forbidden(&spec.child("externalID"), "may not be updated"));
    }
    errors
}

fn taints(node: &Value, path: &Path, errors: &mut ErrorList) {
    let mut seen: HashMap<&str, HashSet<&str>> = HashMap::new();
    for (taint, path) in checks::items(node.at("spec"), "taints", path) {
        let (key, effect) = (taint.str_at("key"), taint.str_at("effect"));
        checks::label_key(key, &path.child("key"), errors);
        let value = taint.str_at("value");
        let messages = names::label_value(value);
        if !messages.is_empty() {
            errors.push(FieldError::invalid(&path.child("value"), value, messages.join(";")));
        }
        scheduling::taint_effect(effect, &path.child("effect"), errors);
        if !seen.entry(effect).or_default().insert(key) {
            let duplicate = FieldError::duplicate(&path, Value::Null);
            errors.push(FieldError {
                value: Some(internal::compact("Taint", taint)),
                detail: "taints must be unique by key and effect pair".to_owned(),
                ..duplicate
            });
        }
    }
}

fn node_resources(node: &Value, errors: &mut ErrorList) {
    for kind in ["capacity", "allocatable"] {
        for (name, value) in node.at("status").map_at(kind) {
            let path = Path::new("status").child(kind).child(name);
            resources::quantity(name, value, &path, errors);
        }
    }
}

/// Declared features must be sorted, unique and valid names.
fn declared_features(node: &Value, errors: &mut ErrorList) {
    let path = Path::new("status").child("declaredFeatures");
    let features: Vec<&str> = checks::strings(node.at("status"), "declaredFeatures").collect();
    for (index, feature) in features.iter().enumerate() {
        let quoted = kubewright_apimachinery::field::quote(feature);
        let detail = if feature.len() > names::SUBDOMAIN_MAX_LENGTH {
            let max = names::SUBDOMAIN_MAX_LENGTH;
            Some(format!("invalid feature name {quoted}: must be no more than {max} characters"))
        } else if is_feature(feature) {
            None
        } else {
            Some(format!(
                "invalid feature name {quoted}: must start with an UpperCamelCase segment, with subsequent segments \
                 separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric \
                 characters and slashes"
            ))
        };
        if let Some(detail) = detail {
            errors.push(FieldError::invalid(&path.index(index), *feature, detail));
        }
        if let Some(next) = features.get(index + 1) {
            let path = path.index(index + 1);
            match feature.cmp(next) {
                std::cmp::Ordering::Equal => errors.push(FieldError::duplicate(&path, *next)),
                std::cmp::Ordering::Greater => {
                    errors.push(FieldError::invalid(&path, *next, "list must be sorted alphabetically"));
                }
                std::cmp::Ordering::Less => {}
            }
        }
    }
}

fn is_feature(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.split('/').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric()))
}

fn pod_cidrs(node: &Value, errors: &mut ErrorList) {
    let path = Path::new("spec").child("podCIDRs");
    let cidrs: Vec<&str> = checks::strings(node.at("spec"), "podCIDRs").collect();
    for (index, cidr) in cidrs.iter().enumerate() {
        checks::named(cidr, names::legacy_cidr(cidr, true), &path.index(index), errors);
    }
    if cidrs.len() < 2 {
        return;
    }
    let mut families = HashSet::new();
    for cidr in &cidrs {
        let Some((ip, _)) = names::parse_cidr_sloppy(cidr) else {
            let reason = format!("invalid CIDR address: {cidr}");
            let detail = format!("invalid PodCIDRs. failed to check with dual stack with error:{reason}");
            errors.push(FieldError::internal(&path, detail));
            families.clear();
            break;
        };
        families.insert(ip.is_ipv6());
    }
    if families.len() != 2 || cidrs.len() > 2 {
        let detail = "may specify no more than one CIDR for each IP family";
        errors.push(FieldError::invalid(&path, cidrs, detail));
    }
}

/// Validates the deprecated kubelet config source, which is not used any more.
fn config_source(source: &Value, in_status: bool, path: &Path, errors: &mut ErrorList) {
    let map = source.at("configMap");
    if map.is_null() {
        let printed = internal::compact("NodeConfigSource", source);
        errors.push(FieldError::invalid_printed(
            path,
            printed,
            "exactly one reference subfield must be non-nil",
        ));
        return;
    }
    let path = path.child("configMap");
    for name in ["uid", "resourceVersion"] {
        match (in_status, map.str_at(name).is_empty()) {
            (true, true) => errors.push(FieldError::required(&path.child(name), "")),
            (false, false) => {
                errors.push(FieldError::forbidden(
                    &path.child(name),
                    format!("{name} must not be set in spec"),
                ));
            }
            _ => {}
        }
    }
    let mut name = |field: &str, form: fn(&str) -> Vec<String>| match map.str_at(field) {
        "" => errors.push(FieldError::required(&path.child(field), "")),
        value => checks::named(value, form(value), &path.child(field), errors),
    };
    name("namespace", names::dns1123_label);
    name("name", names::dns1123_subdomain);
    name("kubeletConfigKey", names::config_map_key);
}
