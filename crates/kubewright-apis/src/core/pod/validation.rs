//! Validation of Pod, and of pod templates in other kinds.
//!
//! Errors have upstream's order. Feature gates have their defaults in this version; strategies drop fields of
//! disabled features before validation.

mod annotations;
pub(crate) mod checks;
mod claims;
mod containers;
mod diff;
mod environment;
pub(crate) mod internal;
mod mounts;
mod network;
mod os;
mod probes;
pub(crate) mod resize;
pub(crate) mod resources;
pub(crate) mod scheduling;
pub(crate) mod security;
pub(crate) mod status;
pub(crate) mod update;
mod volumes;

use serde_json::Value;

use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

/// Validates a pod template: labels, annotations and spec.
pub(crate) fn pod_template(template: &Value, path: &Path) -> ErrorList {
    let (metadata, spec) = (template.at("metadata"), template.at("spec"));
    let (annotations_path, spec_path) = (path.child("annotations"), path.child("spec"));
    let mut errors = meta::labels(metadata.at("labels"), &path.child("labels"));
    errors.extend(meta::annotations(metadata.at("annotations"), &annotations_path));
    annotations::of_pod(metadata, spec, &annotations_path, &mut errors);
    errors.extend(pod_spec(spec, metadata, &spec_path, true));
    annotations::match_fields(metadata, spec, &spec_path, &mut errors);
    if !spec.list_at("ephemeralContainers").is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        errors.push(FieldError::forbidden(&spec_path.child("ephemeralContainers"), detail));
    }
    errors
}

/// Validates a pod spec. `pod_meta` is the metadata of the pod or template.
pub(crate) fn pod_spec(spec: &Value, pod_meta: &Value, path: &Path, in_template: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    let pod_name = if in_template { "" } else { pod_meta.str_at("name") };
    if !spec.has("terminationGracePeriodSeconds") {
        errors.push(FieldError::required(&path.child("terminationGracePeriodSeconds"), ""));
    }
    let volumes = volumes::volumes(spec, pod_name, path, &mut errors);
    let mut claims: Vec<&str> =
        spec.list_at("resourceClaims").iter().map(|claim| claim.str_at("name")).collect();
    claims.retain(|name| !name.is_empty());
    claims.sort_unstable();
    claims.dedup();
    let is_mirror = !in_template && annotations::is_mirror(pod_meta);
    claims::resource_claims(spec, is_mirror, path, &mut errors);
    let pod = containers::Pod { spec, volumes, claims };
    containers::containers(&pod, path, &mut errors);
    resources::of_pod(spec, &pod.claims, path, &mut errors);
    network::host_network(spec, in_template, path, &mut errors);
    policies(spec, path, &mut errors);
    errors.extend(meta::labels(spec.at("nodeSelector"), &path.child("nodeSelector")));
    security::pod(spec, path, &mut errors);
    scheduling::affinity(spec, path, &mut errors);
    network::dns_config(spec, path, &mut errors);
    for (gate, path) in checks::items(spec, "readinessGates", path) {
        checks::label_key(gate.str_at("conditionType"), &path.child("conditionType"), &mut errors);
    }
    scheduling::scheduling_gates(spec, path, &mut errors);
    scheduling::topology_spread(spec, path, &mut errors);
    security::host_process(spec, path, &mut errors);
    network::host_users(spec, path, &mut errors);
    network::hostname_override(spec, path, &mut errors);
    plain_fields(spec, path, &mut errors);
    os::os(spec, path, &mut errors);
    files_of_variables(spec, path, &mut errors);
    errors
}

pub(super) fn create(pod: &Value) -> ErrorList {
    let path = Path::new("spec");
    let (metadata, spec) = (pod.at("metadata"), pod.at("spec"));
    let mut errors = pod_as_such(pod);
    if !spec.list_at("ephemeralContainers").is_empty() {
        errors.push(FieldError::forbidden(&path.child("ephemeralContainers"), "cannot be set on create"));
    }
    if !spec.str_at("nodeName").is_empty() && !spec.list_at("schedulingGates").is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden(&path.child("nodeName"), detail));
    }
    annotations::match_fields(metadata, spec, &path, &mut errors);
    errors
}

/// Validation of pods on create and update that templates do not have in full.
fn pod_as_such(pod: &Value) -> ErrorList {
    let path = Path::new("spec");
    let (metadata, spec) = (pod.at("metadata"), pod.at("spec"));
    let mut errors = ErrorList::new();
    annotations::of_pod(metadata, spec, &Path::new("metadata").child("annotations"), &mut errors);
    errors.extend(pod_spec(spec, metadata, &path, false));
    if spec.str_at("serviceAccountName").is_empty() {
        for (volume, path) in checks::items(spec, "volumes", &path) {
            for (source, path) in checks::items(volume.at("projected"), "sources", &path.child("projected")) {
                if source.has("serviceAccountToken") {
                    let detail = "must not be specified when serviceAccountName is not set";
                    errors.push(FieldError::forbidden(&path.child("serviceAccountToken"), detail));
                }
            }
        }
    }
    containers::trimmed_images(spec, &path, &mut errors);
    errors
}

fn policies(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let restart = ["Always", "OnFailure", "Never"];
    checks::one_of(spec.str_at("restartPolicy"), &restart, &path.child("restartPolicy"), errors);
    let dns = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    checks::one_of(spec.str_at("dnsPolicy"), &dns, &path.child("dnsPolicy"), errors);
}

/// Validates fields that only have format rules.
fn plain_fields(spec: &Value, path: &Path, errors: &mut ErrorList) {
    optional_name(spec, "serviceAccountName", names::dns1123_subdomain, path, errors);
    optional_name(spec, "nodeName", names::dns1123_subdomain, path, errors);
    checks::in_range(spec, "activeDeadlineSeconds", 1, i64::from(i32::MAX), path, errors);
    optional_name(spec, "hostname", names::dns1123_label, path, errors);
    optional_name(spec, "subdomain", names::dns1123_label, path, errors);
    scheduling::tolerations(spec, path, errors);
    network::host_aliases(spec, path, errors);
    optional_name(spec, "priorityClassName", names::dns1123_subdomain, path, errors);
    if let Some(class) = spec.at("runtimeClassName").as_str() {
        checks::dns_subdomain(class, &path.child("runtimeClassName"), errors);
    }
    if let Some(policy) = spec.at("preemptionPolicy").as_str() {
        let supported = ["PreemptLowerPriority", "Never"];
        checks::one_of(policy, &supported, &path.child("preemptionPolicy"), errors);
    }
    if spec.has("overhead") {
        // Upstream validates the overhead as the limits of a container.
        let limits = serde_json::json!({"limits": spec.at("overhead")});
        resources::of_container(&limits, &[], &path.child("overhead"), errors);
    }
}

fn optional_name(
    spec: &Value,
    field: &str,
    form: fn(&str) -> Vec<String>,
    path: &Path,
    errors: &mut ErrorList,
) {
    let value = spec.str_at(field);
    if !value.is_empty() {
        checks::named(value, form(value), &path.child(field), errors);
    }
}

/// Validates that the volume of a `fileKeyRef` is an emptyDir.
fn files_of_variables(spec: &Value, path: &Path, errors: &mut ErrorList) {
    for (container, path) in checks::containers(spec, path) {
        for (variable, path) in checks::items(container, "env", &path) {
            if !variable.has("valueFrom.fileKeyRef") {
                continue;
            }
            let name = variable.str_at("valueFrom.fileKeyRef.volumeName");
            let path = path.child("valueFrom").child("fileKeyRef").child("volumeName");
            match spec.list_at("volumes").iter().rfind(|volume| volume.str_at("name") == name) {
                None => errors.push(FieldError::not_found(&path, name)),
                Some(volume) if !volume.has("emptyDir") => {
                    errors.push(FieldError::invalid(
                        &path,
                        name,
                        "referenced volume must be of type emptyDir",
                    ));
                }
                Some(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;

pub(crate) use scheduling::tolerations;
