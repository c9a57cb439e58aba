//! Validation of regular, init and ephemeral containers.

use std::collections::HashSet;

use serde_json::Value;

use super::volumes::Volumes;
use super::{checks, environment, mounts, probes, resources, security};
use crate::core::pod::defaults::resources::is_sidecar;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];

/// Fields that ephemeral containers may not have, in Go's order.
const NOT_EPHEMERAL: [&str; 9] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

/// Properties of the pod that container validation needs.
pub(super) struct Pod<'a> {
    pub(super) spec: &'a Value,
    pub(super) volumes: Volumes<'a>,
    /// Sorted names in `resourceClaims`.
    pub(super) claims: Vec<&'a str>,
}

impl Pod<'_> {
    fn grace(&self) -> Option<i64> {
        self.spec.int_at("terminationGracePeriodSeconds")
    }

    /// Whether the pod uses the host's user namespace, which is the default.
    fn has_host_users(&self) -> bool {
        self.spec.at("hostUsers").as_bool().unwrap_or(true)
    }
}

/// Validates all containers of a pod.
pub(super) fn containers(pod: &Pod<'_>, path: &Path, errors: &mut ErrorList) {
    regular(pod, path, errors);
    init(pod, path, errors);
    ephemeral(pod, path, errors);
}

fn regular(pod: &Pod<'_>, path: &Path, errors: &mut ErrorList) {
    if pod.spec.list_at("containers").is_empty() {
        errors.push(FieldError::required(&path.child("containers"), ""));
        return;
    }
    let mut seen = HashSet::new();
    for (container, path) in checks::items(pod.spec, "containers", path) {
        common(container, pod, &path, errors);
        let name = container.str_at("name");
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        probes::hooks_and_probes(container, pod.grace(), &path, errors);
        restart_policy(container, &path, errors);
    }
    let mut ports = HashSet::new();
    for (container, path) in checks::items(pod.spec, "containers", path) {
        host_ports(container, &mut ports, &path, errors);
    }
}

fn init(pod: &Pod<'_>, path: &Path, errors: &mut ErrorList) {
    let mut seen: HashSet<&str> = pod.spec.list_at("containers").iter().map(|c| c.str_at("name")).collect();
    let list_path = path.child("initContainers");
    for (container, path) in checks::items(pod.spec, "initContainers", path) {
        common(container, pod, &path, errors);
        restart_policy(container, &path, errors);
        let name = container.str_at("name");
        if seen.contains(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        } else if !name.is_empty() {
            seen.insert(name);
        }
        // Init containers run one at a time, so only ports of the same one can conflict. Upstream reports
        // index 0.
        host_ports(container, &mut HashSet::new(), &list_path.index(0), errors);
        let sidecar = is_sidecar(container);
        if sidecar {
            probes::hooks_and_probes(container, pod.grace(), &path, errors);
            continue;
        }
        for name in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if container.has(name) {
                let detail = "may not be set for init containers without restartPolicy=Always";
                errors.push(FieldError::forbidden(&path.child(name), detail));
            }
        }
        for (policy, path) in checks::items(container, "resizePolicy", &path) {
            if policy.str_at("restartPolicy") == "RestartContainer" {
                errors.push(FieldError::invalid(
                    &path.child("restartPolicy"),
                    "RestartContainer",
                    "must not be set to 'RestartContainer' for non-sidecar initContainers",
                ));
            }
        }
    }
}

fn ephemeral(pod: &Pod<'_>, path: &Path, errors: &mut ErrorList) {
    let others: HashSet<&str> = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|kind| pod.spec.list_at(kind))
        .map(|container| container.str_at("name"))
        .collect();
    let mut seen = others.clone();
    for (container, path) in checks::items(pod.spec, "ephemeralContainers", path) {
        common(container, pod, &path, errors);
        trimmed_image(container, &path, errors);
        let name = container.str_at("name");
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        let target = container.str_at("targetContainerName");
        if !target.is_empty() && !others.contains(target) {
            errors.push(FieldError::not_found(&path.child("targetContainerName"), target));
        }
        let forbidden = "cannot be set for an Ephemeral Container";
        for name in NOT_EPHEMERAL {
            let value = container.at(name);
            if !value.is_null() && value != &Value::Object(serde_json::Map::new()) {
                errors.push(FieldError::forbidden(&path.child(name), forbidden));
            }
        }
        for (mount, path) in checks::items(container, "volumeMounts", &path) {
            for name in ["subPath", "subPathExpr"] {
                if !mount.str_at(name).is_empty() {
                    errors.push(FieldError::forbidden(&path.child(name), forbidden));
                }
            }
        }
    }
}

/// Image rules for pods only, because templates may contain placeholders.
pub(super) fn trimmed_images(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let all = checks::items(spec, "containers", path).chain(checks::items(spec, "initContainers", path));
    for (container, path) in all {
        trimmed_image(container, &path, errors);
    }
}

/// Rejects an image with leading or trailing whitespace.
pub(super) fn trimmed_image(container: &Value, path: &Path, errors: &mut ErrorList) {
    let image = container.str_at("image");
    if image.trim() != image {
        let detail = "must not have leading or trailing whitespace";
        errors.push(FieldError::invalid(&path.child("image"), image, detail));
    }
}

/// Validation that all types of containers have in common.
fn common(container: &Value, pod: &Pod<'_>, path: &Path, errors: &mut ErrorList) {
    match container.str_at("name") {
        "" => errors.push(FieldError::required(&path.child("name"), "")),
        name => checks::dns_label(name, &path.child("name"), errors),
    }
    checks::required(container, "image", path, errors);
    checks::one_of(
        container.str_at("terminationMessagePolicy"),
        &["File", "FallbackToLogsOnError"],
        &path.child("terminationMessagePolicy"),
        errors,
    );
    ports(container, path, errors);
    environment::environment(container, path, errors);
    mounts::mounts(container, &pod.volumes, path, errors);
    let pull_policy = container.str_at("imagePullPolicy");
    checks::one_of(pull_policy, &PULL_POLICIES, &path.child("imagePullPolicy"), errors);
    let requirements = container.at("resources");
    resources::of_container(requirements, &pod.claims, &path.child("resources"), errors);
    resize_policy(container, pod.spec.str_at("restartPolicy"), &path.child("resizePolicy"), errors);
    security::container(
        container.at("securityContext"),
        pod.has_host_users(),
        &path.child("securityContext"),
        errors,
    );
}

fn ports(container: &Value, path: &Path, errors: &mut ErrorList) {
    let mut seen = HashSet::new();
    for (port, path) in checks::items(container, "ports", path) {
        let name = port.str_at("name");
        if !name.is_empty() {
            let messages = names::port_name(name);
            if !messages.is_empty() {
                checks::named(name, messages, &path.child("name"), errors);
            } else if !seen.insert(name) {
                errors.push(FieldError::duplicate(&path.child("name"), name));
            }
        }
        let number = port.int_at("containerPort").unwrap_or_default();
        if number == 0 {
            errors.push(FieldError::required(&path.child("containerPort"), ""));
        } else {
            checks::number(number, names::port_number(number), &path.child("containerPort"), errors);
        }
        let host_port = port.int_at("hostPort").unwrap_or_default();
        if host_port != 0 {
            checks::number(host_port, names::port_number(host_port), &path.child("hostPort"), errors);
        }
        checks::one_of(port.str_at("protocol"), &PROTOCOLS, &path.child("protocol"), errors);
    }
}

/// Rejects host ports that are used twice by concurrently running containers.
fn host_ports(container: &Value, taken: &mut HashSet<String>, path: &Path, errors: &mut ErrorList) {
    for (port, path) in checks::items(container, "ports", path) {
        let number = port.int_at("hostPort").unwrap_or_default();
        if number == 0 {
            continue;
        }
        let key = format!("{}/{}/{number}", port.str_at("protocol"), port.str_at("hostIP"));
        if taken.contains(&key) {
            errors.push(FieldError::duplicate(&path.child("hostPort"), key));
        } else {
            taken.insert(key);
        }
    }
}

fn resize_policy(container: &Value, pod_policy: &str, path: &Path, errors: &mut ErrorList) {
    let mut seen = HashSet::new();
    for (index, policy) in container.list_at("resizePolicy").iter().enumerate() {
        let (resource, restart) = (policy.str_at("resourceName"), policy.str_at("restartPolicy"));
        if !seen.insert(resource) {
            errors.push(FieldError::duplicate(&path.index(index), resource));
        }
        checks::one_of(resource, &["cpu", "memory"], path, errors);
        checks::one_of(restart, &["NotRequired", "RestartContainer"], path, errors);
        if pod_policy == "Never" && restart != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(FieldError::invalid(path, restart, detail));
        }
    }
}

fn restart_policy(container: &Value, path: &Path, errors: &mut ErrorList) {
    let rules = container.list_at("restartPolicyRules");
    let policy_path = path.child("restartPolicy");
    match container.at("restartPolicy").as_str() {
        None if rules.is_empty() => return,
        None => {
            let detail = "must specify restartPolicy when restart rules are used";
            errors.push(FieldError::required(&policy_path, detail));
        }
        Some(policy) => {
            let supported = ["Always", "Never", "OnFailure"];
            if !supported.contains(&policy) {
                errors.push(FieldError::not_supported(&policy_path, policy, &supported));
            }
        }
    }
    if rules.len() > 20 {
        errors.push(FieldError::too_many(&path.child("restartPolicyRules"), rules.len(), 20));
    }
    for (rule, path) in checks::items(container, "restartPolicyRules", path) {
        let action = rule.str_at("action");
        let actions = ["Restart", "RestartAllContainers"];
        if !actions.contains(&action) {
            errors.push(FieldError::not_supported(&path.child("action"), action, &actions));
        }
        let codes_path = path.child("exitCodes");
        if !rule.has("exitCodes") {
            errors.push(FieldError::required(&codes_path, "must be specified"));
            continue;
        }
        let operator = rule.str_at("exitCodes.operator");
        if !matches!(operator, "In" | "NotIn") {
            errors.push(FieldError::not_supported(&codes_path.child("operator"), operator, &["In", "NotIn"]));
        }
        let values = rule.list_at("exitCodes.values").len();
        if values > 255 {
            errors.push(FieldError::too_many(&codes_path.child("values"), values, 255));
        }
    }
}
