//! Validation of downward API and projected volumes.
//!
//! Cluster trust bundles and pod certificates belong to disabled features; the strategy drops them before
//! validation.

use std::collections::HashSet;

use serde_json::Value;

use super::sources;
use crate::core::pod::validation::{checks, environment};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;

const FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

pub(super) fn downward_api(source: &Value, path: &Path, errors: &mut ErrorList) {
    checks::file_mode(source, "defaultMode", path, errors);
    for item in source.list_at("items") {
        // Upstream omits the index of the item.
        downward_file(item, path, errors);
    }
}

fn downward_file(file: &Value, path: &Path, errors: &mut ErrorList) {
    checks::required(file, "path", path, errors);
    checks::local_file(file.str_at("path"), &path.child("path"), errors);
    let (field, resource) = (file.at("fieldRef"), file.at("resourceFieldRef"));
    if !field.is_null() {
        environment::field_selector(field, &FIELDS, &path.child("fieldRef"), errors);
        if !resource.is_null() {
            let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
            errors.push(FieldError::invalid(path, "resource", detail));
        }
    } else if resource.is_null() {
        errors.push(FieldError::required(path, "one of fieldRef and resourceFieldRef is required"));
    } else {
        environment::resource_selector(resource, true, &path.child("resourceFieldRef"), errors);
    }
    checks::file_mode(file, "mode", path, errors);
}

pub(super) fn projected(source: &Value, path: &Path, errors: &mut ErrorList) {
    checks::file_mode(source, "defaultMode", path, errors);
    let mut files = HashSet::new();
    for (projection, at) in checks::items(source, "sources", path) {
        let mut count = 0;
        for name in ["secret", "configMap"] {
            if projection.has(name) {
                count += 1;
                keys(projection.at(name), &at.child(name), path, &mut files, errors);
            }
        }
        if projection.has("downwardAPI") {
            count += 1;
            for file in projection.list_at("downwardAPI.items") {
                downward_file(file, &at.child("downwardAPI"), errors);
                let value = file.str_at("path");
                if !value.is_empty() && !files.insert(value) {
                    errors.push(FieldError::invalid(path, value, "conflicting duplicate paths"));
                }
            }
        }
        if projection.has("serviceAccountToken") {
            count += 1;
            token(projection.at("serviceAccountToken"), &at.child("serviceAccountToken"), path, errors);
        }
        if count > 1 {
            errors.push(FieldError::forbidden(&at, "may not specify more than 1 volume type per source"));
        }
    }
}

fn keys<'a>(
    projection: &'a Value,
    path: &Path,
    volume_path: &Path,
    files: &mut HashSet<&'a str>,
    errors: &mut ErrorList,
) {
    checks::required(projection, "name", path, errors);
    for (item, path) in checks::items(projection, "items", path) {
        sources::key_to_path(item, &path, errors);
        let file = item.str_at("path");
        if !file.is_empty() && !files.insert(file) {
            let name = projection.str_at("name");
            errors.push(FieldError::invalid(volume_path, name, "conflicting duplicate paths"));
        }
    }
}

fn token(token: &Value, path: &Path, volume_path: &Path, errors: &mut ErrorList) {
    let seconds = token.int_at("expirationSeconds").unwrap_or_default();
    let seconds_path = path.child("expirationSeconds");
    if seconds < 600 {
        let detail = "may not specify a duration less than 10 minutes";
        errors.push(FieldError::invalid(&seconds_path, seconds, detail));
    }
    if seconds > 1 << 32 {
        let detail = "may not specify a duration larger than 2^32 seconds";
        errors.push(FieldError::invalid(&seconds_path, seconds, detail));
    }
    match token.str_at("path") {
        "" => errors.push(FieldError::required(&volume_path.child("path"), "")),
        file => checks::local_file(file, &volume_path.child("path"), errors),
    }
}
