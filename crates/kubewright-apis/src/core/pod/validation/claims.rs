//! Validation of ephemeral volume claim templates and of resource claims.

use std::collections::HashSet;

use serde_json::Value;

use super::{checks, internal};
use crate::validation::label_selector;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::quantity::Quantity;

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// Validates a volume claim template. Its metadata may only have labels and annotations.
pub(super) fn template(template: &Value, path: &Path, errors: &mut ErrorList) {
    let (metadata, metadata_path) = (template.at("metadata"), path.child("metadata"));
    errors.extend(meta::annotations(metadata.at("annotations"), &metadata_path.child("annotations")));
    errors.extend(meta::labels(metadata.at("labels"), &metadata_path.child("labels")));
    for (name, value) in template.map_at("metadata") {
        if !matches!(name.as_str(), "annotations" | "labels") && !value.is_null() {
            errors.push(FieldError::forbidden(&metadata_path.child(name), "cannot be set"));
        }
    }
    volume_claim_spec(template.at("spec"), &path.child("spec"), errors);
}

fn volume_claim_spec(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let modes: Vec<&str> = checks::strings(spec, "accessModes").collect();
    let modes_path = path.child("accessModes");
    if modes.is_empty() {
        errors.push(FieldError::required(&modes_path, "at least 1 access mode is required"));
    }
    errors.extend(label_selector::validate(spec.at("selector"), &path.child("selector")));
    for mode in modes.iter().filter(|mode| !ACCESS_MODES.contains(mode)) {
        errors.push(FieldError::not_supported(&modes_path, *mode, &ACCESS_MODES));
    }
    let is_other = |mode: &&str| ACCESS_MODES.contains(mode) && *mode != "ReadWriteOncePod";
    if modes.contains(&"ReadWriteOncePod") && modes.iter().any(is_other) {
        errors
            .push(FieldError::forbidden(&modes_path, "may not use ReadWriteOncePod with other access modes"));
    }
    let storage_path = path.child("resources").key("storage");
    match spec.map_at("resources.requests").get("storage").map(Quantity::from_json) {
        None => errors.push(FieldError::required(&storage_path, "")),
        Some(Ok(size)) if size.sign() <= 0 => {
            errors.push(FieldError::invalid(&storage_path, size.to_string(), "must be greater than zero"));
        }
        Some(_) => {}
    }
    class_name(spec, "storageClassName", path, errors);
    checks::optional_one_of(spec, "volumeMode", &["Block", "Filesystem"], path, errors);
    data_sources(spec, path, errors);
    class_name(spec, "volumeAttributesClassName", path, errors);
}

fn class_name(spec: &Value, field: &str, path: &Path, errors: &mut ErrorList) {
    let name = spec.str_at(field);
    if !name.is_empty() {
        checks::dns_subdomain(name, &path.child(field), errors);
    }
}

/// Validates data sources. `dataSourceRef` may refer to other namespaces.
fn data_sources(spec: &Value, path: &Path, errors: &mut ErrorList) {
    for name in ["dataSource", "dataSourceRef"] {
        let (source, path) = (spec.at(name), path.child(name));
        if source.is_null() {
            continue;
        }
        checks::required(source, "name", &path, errors);
        checks::required(source, "kind", &path, errors);
        let (group, kind) = (source.str_at("apiGroup"), source.str_at("kind"));
        if !group.is_empty() {
            checks::dns_subdomain(group, &path.child("apiGroup"), errors);
        } else if kind != "PersistentVolumeClaim" {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.push(FieldError::invalid(&path, kind, detail));
        }
        let namespace = source.str_at("namespace");
        if !namespace.is_empty() {
            checks::dns_label(namespace, &path.child("namespace"), errors);
        }
    }
    let (old, new) = (spec.at("dataSource"), spec.at("dataSourceRef"));
    if old.is_null() || new.is_null() {
        return;
    }
    let same = ["apiGroup", "kind", "name"].into_iter().all(|name| old.at(name) == new.at(name));
    let detail = if !new.str_at("namespace").is_empty() {
        "may not be specified when dataSourceRef.namespace is specified"
    } else if same {
        return;
    } else {
        "must match dataSourceRef"
    };
    // Upstream prints the path itself, which marshals to `{}`.
    errors.push(FieldError::invalid_printed(path, "{}", detail));
}

/// Validates the resource claims of a pod. A mirror pod must not have any.
pub(super) fn resource_claims(spec: &Value, is_mirror: bool, path: &Path, errors: &mut ErrorList) {
    let mut seen = HashSet::new();
    for (claim, path) in checks::items(spec, "resourceClaims", path) {
        if is_mirror {
            errors.push(checks::forbidden_object("static pods do not support resource claims"));
            continue;
        }
        let name = claim.str_at("name");
        let name_path = path.child("name");
        if name.is_empty() {
            errors.push(FieldError::required(&name_path, ""));
        } else if seen.insert(name) {
            checks::dns_label(name, &name_path, errors);
        } else {
            errors.push(FieldError::duplicate(&name_path, name));
        }
        let sources = ["resourceClaimName", "resourceClaimTemplateName"];
        let detail = match sources.iter().filter(|source| claim.has(source)).count() {
            0 => Some("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
            1 => None,
            _ => Some("at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"),
        };
        if let Some(detail) = detail {
            errors.push(FieldError::invalid_printed(
                &path,
                internal::compact("PodResourceClaim", claim),
                detail,
            ));
        }
        for source in sources {
            if let Some(name) = claim.at(source).as_str() {
                checks::dns_subdomain(name, &path.child(source), errors);
            }
        }
    }
}
