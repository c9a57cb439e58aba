//! Defaults of Pod, and of pod templates in other kinds.
//!
//! Like upstream's conversions, also synchronizes duplicate fields (`serviceAccount` and
//! `serviceAccountName`, `podIP` and `podIPs`), so that later steps can read either.

mod containers;
mod image;
pub(crate) mod resources;
mod volumes;

use serde_json::{Value, json};

use kubewright_apimachinery::object::Fields as _;

/// Annotations of old versions that the server removes from pods and templates.
const DROPPED_ANNOTATIONS: [&str; 4] = [
    "pod.alpha.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.beta.kubernetes.io/init-containers",
];

/// Sets the defaults of a pod template. Defaults that only apply to pods (`enableServiceLinks`, requests from
/// limits) are set when a pod is created from it.
pub(crate) fn pod_template(template: &mut Value) {
    drop_annotations(template);
    if let Some(spec) = object_at(template, "spec") {
        pod_spec(spec);
    }
}

/// Sets the defaults of the pod template at `path`, if any.
pub(crate) fn default_template(object: &mut Value, path: &str) {
    if let Some(template) = object.at_mut(path) {
        pod_template(template);
    }
}

/// Sets the defaults of a pod spec, in a Pod or in a template.
pub(crate) fn pod_spec(spec: &mut Value) {
    one_service_account(spec);
    spec.default_at("dnsPolicy", "ClusterFirst");
    spec.default_at("restartPolicy", "Always");
    spec.default_at("securityContext", json!({}));
    spec.default_at("terminationGracePeriodSeconds", 30);
    spec.default_at("schedulerName", "default-scheduler");
    for volume in list(spec, "volumes") {
        volumes::volume(volume);
    }
    for kind in ["initContainers", "containers", "ephemeralContainers"] {
        list(spec, kind).iter_mut().for_each(containers::container);
    }
    resources::round_up(spec, "overhead");
    resources::round_up(spec, "resources.limits");
    resources::round_up(spec, "resources.requests");
}

pub(super) fn pod(pod: &mut Value) {
    drop_annotations(pod);
    if let Some(status) = pod.at_mut("status") {
        one_address(
            status,
            "podIP",
            "podIPs",
            |ip| json!({ "ip": ip }),
            |entry| entry.str_at("ip").to_owned(),
        );
    }
    let Some(spec) = object_at(pod, "spec") else { return };
    for kind in ["containers", "initContainers"] {
        list(spec, kind).iter_mut().for_each(resources::requests_from_limits);
    }
    resources::pod_level(spec);
    spec.default_at("enableServiceLinks", true);
    if spec.bool_at("hostNetwork") {
        for kind in ["containers", "initContainers"] {
            list(spec, kind).iter_mut().for_each(containers::host_ports);
        }
    }
    pod_spec(spec);
}

/// Synchronizes `serviceAccount`, the deprecated name, with `serviceAccountName`, which takes precedence.
fn one_service_account(spec: &mut Value) {
    let mut name = spec.str_at("serviceAccountName");
    if name.is_empty() {
        name = spec.str_at("serviceAccount");
    }
    if name.is_empty() {
        return;
    }
    let name = name.to_owned();
    spec.set_at("serviceAccountName", name.as_str());
    spec.set_at("serviceAccount", name);
}

/// Synchronizes a field with the first element of a list. The field takes precedence.
pub(crate) fn one_address(
    parent: &mut Value,
    one: &str,
    many: &str,
    entry: impl Fn(&str) -> Value,
    address: impl Fn(&Value) -> String,
) {
    let single = parent.str_at(one).to_owned();
    let first = parent.list_at(many).first().map(address);
    if !single.is_empty() && first.as_ref() != Some(&single) {
        parent.set_at(many, vec![entry(&single)]);
    } else if let Some(first) = first {
        parent.set_at(one, first);
    }
}

fn drop_annotations(pod: &mut Value) {
    if let Some(Value::Object(annotations)) = pod.at_mut("metadata.annotations") {
        annotations.retain(|key, _| !DROPPED_ANNOTATIONS.contains(&key.as_str()));
    }
}

/// The object at `name`, created if absent.
pub(crate) fn object_at<'a>(parent: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    parent.object_mut(name);
    parent.at_mut(name)
}

/// The list at `name`, or an empty one.
fn list<'a>(parent: &'a mut Value, name: &str) -> &'a mut [Value] {
    parent.list_mut(name).map_or(&mut [], Vec::as_mut_slice)
}

#[cfg(test)]
mod tests;
