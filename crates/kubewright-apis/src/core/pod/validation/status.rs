//! Validation of pod status.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{annotations, checks, internal, resources, security};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

const STATUSES: [(&str, &str); 3] = [
    ("containerStatuses", "containers"),
    ("initContainerStatuses", "initContainers"),
    ("ephemeralContainerStatuses", "ephemeralContainers"),
];

pub(in crate::core::pod) fn update(new: &Value, old: &Value) -> ErrorList {
    let path = Path::new("status");
    let mut errors = ErrorList::new();
    annotations::updates(new, old, &mut errors);
    let (after, before) = (new.at("status"), old.at("status"));
    conditions(after, &path, &mut errors);
    nominated_node(new, old, &path.child("nominatedNodeName"), &mut errors);
    if let Some(generation @ ..0) = after.int_at("observedGeneration") {
        let detail = "must be a non-negative integer";
        errors.push(FieldError::invalid(&path.child("observedGeneration"), generation, detail));
    }
    let class = Value::from(after.str_at("qosClass"));
    errors.extend(meta::immutable(&class, &Value::from(before.str_at("qosClass")), &path.child("qosClass")));
    for (statuses, containers) in STATUSES {
        transitions(after, before, old.at("spec"), (statuses, containers), &path, &mut errors);
    }
    resource_claims(new, &path, &mut errors);
    extended_resource_claim(new, &path.child("extendedResourceClaimStatus"), &mut errors);
    addresses(after, before, ("podIPs", "PodIP"), &path, &mut errors);
    host_addresses(after, before, &path, &mut errors);
    for (statuses, _) in STATUSES {
        users(new, statuses, &path, &mut errors);
    }
    for (statuses, containers) in STATUSES {
        allocated_resources(new, statuses, containers, &path, &mut errors);
    }
    errors
}

fn conditions(status: &Value, path: &Path, errors: &mut ErrorList) {
    for (condition, path) in checks::items(status, "conditions", path) {
        if let Some(generation @ ..0) = condition.int_at("observedGeneration") {
            let detail = "must be a non-negative integer";
            errors.push(FieldError::invalid(&path.child("observedGeneration"), generation, detail));
        }
        let ty = condition.str_at("type");
        if !matches!(ty, "PodScheduled" | "Ready" | "Initialized") {
            checks::label_key(ty, &path.child("Type"), errors);
        }
    }
}

fn nominated_node(new: &Value, old: &Value, path: &Path, errors: &mut ErrorList) {
    let name = new.str_at("status.nominatedNodeName");
    if name.is_empty() || name == old.str_at("status.nominatedNodeName") {
        return;
    }
    checks::dns_subdomain(name, path, errors);
    if !old.str_at("spec.nodeName").is_empty() {
        errors.push(FieldError::forbidden(path, "may not be set on pods that are already bound to a node"));
    }
}

/// Rejects the transition of a terminated container to another state, unless it may be restarted.
fn transitions(
    after: &Value,
    before: &Value,
    spec: &Value,
    (statuses, containers): (&str, &str),
    path: &Path,
    errors: &mut ErrorList,
) {
    let is_ephemeral = containers == "ephemeralContainers";
    if !is_ephemeral && may_restart_all(spec) {
        return;
    }
    let running = |now: &&Value| !now.has("state.terminated");
    let back: HashSet<&str> =
        after.list_at(statuses).iter().filter(running).map(|now| now.str_at("name")).collect();
    // The first container with a name takes precedence.
    let by_name: HashMap<&str, &Value> = spec
        .list_at(containers)
        .iter()
        .rev()
        .map(|container| (container.str_at("name"), container))
        .collect();
    for (was, path) in checks::items(before, statuses, path) {
        if !was.has("state.terminated") {
            continue;
        }
        let name = was.str_at("name");
        let code = was.int_at("state.terminated.exitCode").unwrap_or_default();
        let container = by_name.get(name);
        let allowed = !is_ephemeral && container.is_some_and(|container| restarts(container, spec, code));
        if back.contains(name) && !allowed {
            let detail = "may not be transitioned to non-terminated state";
            errors.push(FieldError::forbidden(&path.child("state"), detail));
        }
    }
}

/// Whether the exit of a container may restart all containers.
fn may_restart_all(spec: &Value) -> bool {
    let mut containers = spec.list_at("containers").iter().chain(spec.list_at("initContainers"));
    containers.any(|container| {
        let mut rules = container.list_at("restartPolicyRules").iter();
        rules.any(|rule| rule.str_at("action") == "RestartAllContainers")
    })
}

/// Whether a container that exited with `code` is restarted.
fn restarts(container: &Value, spec: &Value, code: i64) -> bool {
    let is_match = |rule: &&Value| {
        let listed = rule.list_at("exitCodes.values").iter().any(|value| value.as_i64() == Some(code));
        match rule.str_at("exitCodes.operator") {
            "In" => listed,
            "NotIn" => !listed,
            _ => false,
        }
    };
    // The first matching rule decides, otherwise the restart policy.
    let rule = container.list_at("restartPolicyRules").iter().find(is_match);
    if rule.is_some_and(|rule| rule.str_at("action") == "Restart") {
        return true;
    }
    let policy = container.at("restartPolicy").as_str().unwrap_or_else(|| spec.str_at("restartPolicy"));
    match policy {
        "Always" => true,
        "OnFailure" => code != 0,
        _ => false,
    }
}

fn resource_claims(pod: &Value, path: &Path, errors: &mut ErrorList) {
    let known: HashSet<&str> =
        pod.list_at("spec.resourceClaims").iter().map(|claim| claim.str_at("name")).collect();
    let mut seen = HashSet::new();
    for (status, path) in checks::items(pod.at("status"), "resourceClaimStatuses", path) {
        let name = status.str_at("name");
        if !known.contains(name) {
            let detail = "must match the name of an entry in `spec.resourceClaims`";
            errors.push(FieldError::invalid(&path.child("name"), name, detail));
        }
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        if let Some(claim) = status.at("resourceClaimName").as_str() {
            checks::dns_subdomain(claim, &path.child("resourceClaimName"), errors);
        }
    }
}

fn extended_resource_claim(pod: &Value, path: &Path, errors: &mut ErrorList) {
    let status = pod.at("status.extendedResourceClaimStatus");
    if status.is_null() {
        return;
    }
    let containers: HashMap<&str, &Value> = ["initContainers", "containers"]
        .into_iter()
        .flat_map(|kind| pod.at("spec").list_at(kind))
        .map(|container| (container.str_at("name"), container))
        .collect();
    if status.list_at("requestMappings").is_empty() {
        let detail = "at least one request mapping is required";
        errors.push(FieldError::required(&path.child("requestMappings"), detail));
    }
    let mut seen = HashSet::new();
    for (mapping, at) in checks::items(status, "requestMappings", path) {
        let key = ["containerName", "resourceName", "requestName"].map(|name| (name, mapping.str_at(name)));
        let [(_, container), (_, resource), (_, request)] = key;
        match containers.get(container) {
            Some(container) if container.map_at("resources.requests").contains_key(resource) => {}
            Some(_) => errors.push(FieldError::invalid(
                &at.child("resourceName"),
                resource,
                "must match the extended resource name of an entry in spec.initContainers.resources.requests or \
                 spec.containers.resources.requests",
            )),
            None => errors.push(FieldError::invalid(
                &at.child("containerName"),
                container,
                "must match the name of an entry in spec.initContainers.name or spec.containers.name",
            )),
        }
        checks::dns_label(request, &path.child("requestName"), errors);
        if !seen.insert(key) {
            errors.extend(key.map(|(name, value)| FieldError::duplicate(&at.child(name), value)));
        }
    }
    match status.str_at("resourceClaimName") {
        "" => errors.push(FieldError::required(&path.child("resourceClaimName"), "")),
        name => checks::dns_subdomain(name, &path.child("resourceClaimName"), errors),
    }
}

fn host_addresses(after: &Value, before: &Value, path: &Path, errors: &mut ErrorList) {
    let Some(first) = after.list_at("hostIPs").first() else { return };
    let ip = first.str_at("ip");
    if after.str_at("hostIP") != ip {
        let path = path.child("hostIPs").index(0).child("ip");
        errors.push(FieldError::invalid(&path, ip, "must be equal to `hostIP`"));
    }
    addresses(after, before, ("hostIPs", "HostIP"), path, errors);
}

/// Validates a list of at most one address per family. Old addresses are not validated again.
fn addresses(after: &Value, before: &Value, (list, name): (&str, &str), path: &Path, errors: &mut ErrorList) {
    let ips = |status: &'_ Value| -> Vec<String> {
        status.list_at(list).iter().map(|entry| entry.str_at("ip").to_owned()).collect()
    };
    let (ips, were) = (ips(after), ips(before));
    let were: Vec<&str> = were.iter().map(String::as_str).collect();
    let path = path.child(list);
    for (index, ip) in ips.iter().enumerate() {
        checks::legacy_ip(ip, &were, &path.index(index), errors);
    }
    if ips.len() < 2 {
        return;
    }
    let mut families = HashSet::new();
    for ip in &ips {
        let Some(ip) = names::parse_ip_sloppy(ip) else {
            let detail = format!("failed to check for dual stack with error:ip {ip} is invalid");
            errors.push(FieldError::internal(&path, detail));
            families.clear();
            break;
        };
        families.insert(ip.is_ipv6());
    }
    if families.len() != 2 || ips.len() > 2 {
        let printed: Vec<String> =
            after.list_at(list).iter().map(|entry| internal::compact(name, entry)).collect();
        let detail = "may specify no more than one IP for each IP family";
        errors.push(FieldError::invalid_printed(&path, format!("[{}]", printed.join(",")), detail));
    }
}

fn users(pod: &Value, statuses: &str, path: &Path, errors: &mut ErrorList) {
    for (status, path) in checks::items(pod.at("status"), statuses, path) {
        let user = status.at("user.linux");
        if user.is_null() {
            continue;
        }
        let path = path.child("user").child("linux");
        match pod.at("spec.os.name").as_str() {
            Some("windows") => errors.push(FieldError::forbidden(&path, "cannot be set for a windows pod")),
            None | Some("linux") => {
                for name in ["uid", "gid"] {
                    security::id(user.at(name), &path.child(name), errors);
                }
                for (group, path) in checks::items(user, "supplementalGroups", &path) {
                    security::id(group, &path, errors);
                }
            }
            Some(_) => {}
        }
    }
}

/// Validates the allocated resources in container statuses.
fn allocated_resources(pod: &Value, statuses: &str, containers: &str, path: &Path, errors: &mut ErrorList) {
    let name = "allocatedResourcesStatus";
    for (status, path) in checks::items(pod.at("status"), statuses, path) {
        if containers == "ephemeralContainers" {
            if !status.list_at(name).is_empty() {
                let detail = "must not be specified in container status";
                errors.push(FieldError::forbidden(&path.child(name), detail));
            }
            continue;
        }
        let mut of_pod = pod.at("spec").list_at(containers).iter();
        let container = of_pod.find(|container| container.str_at("name") == status.str_at("name"));
        for (allocated, path) in checks::items(status, name, &path) {
            if let Some(container) = container {
                resources::allocated_name(allocated.str_at("name"), container, &path.child("name"), errors);
            }
            let mut seen = HashSet::new();
            for (device, path) in checks::items(allocated, "resources", &path) {
                let health = device.str_at("health");
                let supported = ["Healthy", "Unhealthy", "Unknown"];
                if !supported.contains(&health) {
                    errors.push(FieldError::not_supported(&path.child("health"), health, &supported));
                }
                match device.at("message").as_str() {
                    Some("") => {
                        let detail = "must be non-empty if specified";
                        errors.push(FieldError::required(&path.child("message"), detail));
                    }
                    Some(message) if message.len() > 1024 => {
                        errors.push(FieldError::too_long(&path.child("message"), 1024));
                    }
                    _ => {}
                }
                let id = device.str_at("resourceID");
                if !seen.insert(id) {
                    errors.push(FieldError::duplicate(&path.child("resourceID"), id));
                }
            }
        }
    }
}
