//! Validation of `storage.k8s.io`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::volumes::{self, sources};
use super::{not_negative, one_of, required, strings};
use crate::validation::label_selector;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::json;
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::quantity::Quantity;

const MAX_PARAMETERS: usize = 512;
const MAX_PARAMETERS_SIZE: usize = 256 * 1024;
const MAX_ATTACHMENT_METADATA: usize = 256 * 1024;
const MAX_ERROR_MESSAGE: usize = 1024;
const MAX_NODE_ID: usize = 256;
const ONE_SOURCE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";

pub(super) fn create(kind: &str, object: &Value) -> ErrorList {
    match kind {
        "StorageClass" => storage_class(object),
        "VolumeAttachment" => attachment(object),
        "CSINode" => node(object),
        "CSIDriver" => driver(object),
        "CSIStorageCapacity" => capacity(object),
        "VolumeAttributesClass" => attributes_class(object),
        _ => ErrorList::new(),
    }
}

pub(super) fn update(kind: &str, new: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    match kind {
        "StorageClass" => {
            errors.extend(storage_class(new));
            for name in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
                errors.extend(meta::immutable(new.at(name), old.at(name), &Path::new(name)));
            }
        }
        "VolumeAttachment" => {
            errors.extend(attachment(new));
            errors.extend(attachment(new));
            if new.at("spec") != old.at("spec") {
                let printed = printed_attachment(new.at("spec"));
                errors.push(FieldError::invalid_printed(&Path::new("spec"), printed, meta::IMMUTABLE));
            }
        }
        "CSINode" => {
            errors.extend(node(new));
            errors.extend(node(new));
            errors.extend(node_drivers_changed(new, old));
        }
        "CSIDriver" => {
            errors.extend(driver(new));
            let path = Path::new("spec");
            // Upstream's message has a typo in the first name.
            for (name, shown) in
                [("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")]
            {
                errors.extend(meta::immutable(
                    new.at("spec").at(name),
                    old.at("spec").at(name),
                    &path.child(shown),
                ));
            }
        }
        "CSIStorageCapacity" => {
            errors.extend(capacity(new));
            let topology = Path::new("nodeTopology");
            errors.extend(label_selector::immutable(
                new.at("nodeTopology"),
                old.at("nodeTopology"),
                &topology,
            ));
            let class = Path::new("storageClassName");
            errors.extend(meta::immutable(new.at("storageClassName"), old.at("storageClassName"), &class));
        }
        "VolumeAttributesClass" => {
            for name in ["driverName", "parameters"] {
                if new.at(name) != old.at(name) {
                    let detail = format!("updates to {name} are forbidden.");
                    errors.push(FieldError::forbidden(&Path::new(name), detail));
                }
            }
            errors.extend(attributes_class(new));
        }
        _ => {}
    }
    errors
}

fn storage_class(object: &Value) -> ErrorList {
    let mut errors = provisioner(object.str_at("provisioner"), &Path::new("provisioner"));
    errors.extend(parameters(object.map_at("parameters"), &Path::new("parameters")));
    let policy = object.str_at("reclaimPolicy");
    if !policy.is_empty() {
        errors.extend(one_of(policy, &["Delete", "Retain"], &Path::new("reclaimPolicy")));
    }
    let mode = Path::new("volumeBindingMode");
    match object.at("volumeBindingMode").as_str() {
        Some(value) => errors.extend(one_of(value, &["Immediate", "WaitForFirstConsumer"], &mode)),
        None => errors.push(FieldError::required(&mode, "")),
    }
    errors.extend(topologies(object.list_at("allowedTopologies"), &Path::new("allowedTopologies")));
    errors
}

fn attributes_class(object: &Value) -> ErrorList {
    let mut errors = provisioner(object.str_at("driverName"), &Path::new("driverName"));
    let path = Path::new("parameters");
    errors.extend(parameters(object.map_at("parameters"), &path));
    if object.map_at("parameters").is_empty() {
        errors.push(FieldError::required(&path, "must contain at least one key/value pair"));
    }
    errors
}

fn provisioner(name: &str, path: &Path) -> ErrorList {
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let lower = name.to_lowercase();
    meta::invalid(path, &lower, names::label_key(&lower)).collect()
}

fn parameters(parameters: &Map<String, Value>, path: &Path) -> ErrorList {
    if parameters.len() > MAX_PARAMETERS {
        return vec![FieldError::too_long(path, MAX_PARAMETERS)];
    }
    let mut errors = ErrorList::new();
    if parameters.contains_key("") {
        errors.push(FieldError::invalid(path, "", "field can not be empty."));
    }
    if size(parameters) > MAX_PARAMETERS_SIZE {
        errors.push(FieldError::too_long(path, MAX_PARAMETERS_SIZE));
    }
    errors
}

fn size(texts: &Map<String, Value>) -> usize {
    texts.iter().map(|(key, value)| key.len() + value.as_str().unwrap_or_default().len()).sum()
}

fn topologies(terms: &[Value], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (i, term) in terms.iter().enumerate() {
        let path = path.index(i).child("matchLabelExpressions");
        let requirements = term.list_at("matchLabelExpressions");
        let mut keys = BTreeSet::new();
        let mut meaning = BTreeSet::new();
        for (j, requirement) in requirements.iter().enumerate() {
            let path = path.index(j);
            let values = strings(requirement, "values");
            if values.is_empty() {
                errors.push(FieldError::required(&path.child("values"), ""));
            }
            let mut unique = BTreeSet::new();
            for (k, value) in values.into_iter().enumerate() {
                if !unique.insert(value) {
                    errors.push(FieldError::duplicate(&path.child("values").index(k), value));
                }
            }
            let key = requirement.str_at("key");
            errors.extend(meta::invalid(&path.child("key"), key, names::label_key(key)));
            if !keys.insert(key) {
                errors.push(FieldError::duplicate(&path.child("key"), key));
            }
            meaning.insert((key, unique));
        }
        if !seen.insert(meaning) {
            errors.push(FieldError::duplicate(&path, ""));
        }
    }
    errors
}

fn attachment(object: &Value) -> ErrorList {
    let spec = object.at("spec");
    let path = Path::new("spec");
    let mut errors = sources::driver_name(spec.str_at("attacher"), &path.child("attacher"));
    let source = path.child("source");
    match (spec.at("source.persistentVolumeName").as_str(), spec.has("source.inlineVolumeSpec")) {
        (None, false) => errors.push(FieldError::required(&source, ONE_SOURCE)),
        (Some(_), true) => errors.push(FieldError::forbidden(&source, ONE_SOURCE)),
        (Some(""), false) => {
            let detail = "must specify non empty persistentVolumeName";
            errors.push(FieldError::required(&source.child("persistentVolumeName"), detail));
        }
        (Some(name), false) => {
            let path = source.child("persistentVolumeName");
            errors.extend(meta::invalid(&path, name, names::dns1123_subdomain(name)));
        }
        (None, true) => {
            let path = source.child("inlineVolumeSpec");
            errors.extend(volumes::inline_volume(spec.at("source.inlineVolumeSpec"), &path));
        }
    }
    let node = spec.str_at("nodeName");
    errors.extend(meta::invalid(&path.child("nodeName"), node, names::dns1123_subdomain(node)));
    errors.extend(attachment_status(object.at("status")));
    errors
}

fn attachment_status(status: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("status");
    if size(status.map_at("attachmentMetadata")) > MAX_ATTACHMENT_METADATA {
        errors.push(FieldError::too_long(&path.child("attachmentMetadata"), MAX_ATTACHMENT_METADATA));
    }
    for name in ["attachError", "detachError"] {
        let path = path.child(name);
        if status.at(name).str_at("message").len() > MAX_ERROR_MESSAGE {
            // Upstream prints the limit of another field.
            errors.push(FieldError::too_long(&path.child("message"), MAX_ATTACHMENT_METADATA));
        }
        if let Some(code @ ..0) = status.at(name).int_at("errorCode") {
            let detail = format!("must be between 0 and {}, inclusive", i32::MAX);
            errors.push(FieldError::invalid(&path.child("errorCode"), code, detail));
        }
    }
    errors
}

fn printed_attachment(spec: &Value) -> String {
    // Upstream's internal type has no JSON names for the inline spec. Here it has those of the API.
    format!(
        "{{\"Attacher\":{},\"Source\":{{\"PersistentVolumeName\":{},\"InlineVolumeSpec\":{}}},\"NodeName\":{}}}",
        json::quote(spec.str_at("attacher")),
        json::to_string(spec.at("source.persistentVolumeName")),
        json::to_string(spec.at("source.inlineVolumeSpec")),
        json::quote(spec.str_at("nodeName"))
    )
}

fn node(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("spec").child("drivers");
    let mut seen = BTreeSet::new();
    for (i, driver) in object.list_at("spec.drivers").iter().enumerate() {
        let path = path.index(i);
        let name = driver.str_at("name");
        errors.extend(sources::driver_name(name, &path.child("name")));
        let id = driver.str_at("nodeID");
        errors.extend(required(id, &path.child("nodeID")));
        if id.len() > MAX_NODE_ID {
            let detail = format!("must be {MAX_NODE_ID} characters or less");
            errors.push(FieldError::invalid(&path.child("nodeID"), id, detail));
        }
        errors.extend(not_negative(driver.at("allocatable"), "count", &path.child("allocatable")));
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        let mut keys = BTreeSet::new();
        for key in strings(driver, "topologyKeys") {
            errors.extend(required(key, &path));
            if !keys.insert(key) {
                errors.push(FieldError::duplicate(&path, key));
            }
            errors.extend(meta::invalid(&path, key, names::label_key(key)));
        }
    }
    errors
}

/// Drivers may be added and removed. Existing ones are immutable except for `allocatable`.
fn node_drivers_changed(new: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    for old in old.list_at("spec.drivers") {
        for new in new.list_at("spec.drivers").iter().filter(|new| new.str_at("name") == old.str_at("name")) {
            if ["nodeID", "topologyKeys"].iter().any(|name| new.at(name) != old.at(name)) {
                let printed = format!(
                    "{{\"Name\":{},\"NodeID\":{},\"TopologyKeys\":{},\"Allocatable\":null}}",
                    json::quote(new.str_at("name")),
                    json::quote(new.str_at("nodeID")),
                    json::to_string(new.at("topologyKeys"))
                );
                let path = Path::new("spec").child("drivers");
                errors.push(FieldError::invalid_printed(&path, printed, meta::IMMUTABLE));
            }
        }
    }
    errors
}

fn driver(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = object.at("spec");
    let path = Path::new("spec");
    let policies = ["File", "None", "ReadWriteOnceWithFSType"];
    if let Some(policy) = spec.at("fsGroupPolicy").as_str() {
        errors.extend(one_of(policy, &policies, &path.child("fsGroupPolicy")));
    }
    errors.extend(token_requests(spec.list_at("tokenRequests"), &path.child("tokenRequests")));
    for mode in strings(spec, "volumeLifecycleModes") {
        errors.extend(one_of(mode, &["Persistent", "Ephemeral"], &path.child("volumeLifecycleModes")));
    }
    if let Some(period @ ..10) = spec.int_at("nodeAllocatableUpdatePeriodSeconds") {
        let path = path.child("nodeAllocatableUpdatePeriodSeconds");
        errors.push(FieldError::invalid(&path, period, "must be greater than or equal to 10 seconds"));
    }
    errors
}

fn token_requests(requests: &[Value], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (i, request) in requests.iter().enumerate() {
        let path = path.index(i);
        let audience = request.str_at("audience");
        if !seen.insert(audience) {
            errors.push(FieldError::duplicate(&path.child("audience"), audience));
            continue;
        }
        let Some(seconds) = request.int_at("expirationSeconds") else { continue };
        let path = path.child("expirationSeconds");
        if seconds < 600 {
            errors.push(FieldError::invalid(
                &path,
                seconds,
                "may not specify a duration less than 10 minutes",
            ));
        }
        if seconds > 1 << 32 {
            errors.push(FieldError::invalid(
                &path,
                seconds,
                "may not specify a duration larger than 2^32 seconds",
            ));
        }
    }
    errors
}

fn capacity(object: &Value) -> ErrorList {
    let mut errors = label_selector::validate(object.at("nodeTopology"), &Path::new("nodeTopology"));
    let class = object.str_at("storageClassName");
    errors.extend(meta::invalid(&Path::new("storageClassName"), class, names::dns1123_subdomain(class)));
    if let Ok(amount) = Quantity::from_json(object.at("capacity"))
        && amount.sign() < 0
    {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(&Path::new("capacity"), amount.to_string(), detail));
    }
    errors
}
