//! Validation of container and pod-level resource requirements and quantities.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::checks;
use crate::core::pod::defaults::resources::{amounts, is_huge_pages, is_pod_level, total};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::quantity::Quantity;

/// Standard resources without a domain prefix.
const STANDARD: [&str; 20] = [
    "configmaps",
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
    "storage",
];

/// Maximum number of names in an error.
const MAX_NAMED: usize = 100;

/// Resources whose quantities must be integers.
const COUNTED: [&str; 9] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];

/// Validates the resources of a container. `claims` are the names of the pod's resource claims.
pub(super) fn of_container(requirements: &Value, claims: &[&str], path: &Path, errors: &mut ErrorList) {
    requirements_of(requirements, container_name, claims, path, errors);
}

/// Validates pod-level resources, including their consistency with the containers.
pub(super) fn of_pod(spec: &Value, claims: &[&str], path: &Path, errors: &mut ErrorList) {
    let resources = spec.at("resources");
    if resources.is_null() {
        return;
    }
    let path = path.child("resources");
    if spec.str_at("os.name") == "windows" {
        errors.push(FieldError::forbidden(&path, "may not be set for a windows pod"));
        return;
    }
    if resources.has("claims") {
        errors.push(FieldError::forbidden(
            &path.child("claims"),
            "claims may not be set for Resources at pod-level",
        ));
    }
    requirements_of(resources, pod_name, claims, &path, errors);
    consistency(spec, &path, errors);
}

/// Validates the quantity of a resource.
pub(crate) fn quantity(name: &str, value: &Value, path: &Path, errors: &mut ErrorList) {
    let Ok(quantity) = Quantity::from_json(value) else { return };
    if quantity.sign() < 0 {
        errors.push(FieldError::invalid(path, quantity.to_string(), checks::NOT_NEGATIVE));
    }
    if (COUNTED.contains(&name) || is_extended(name)) && quantity.milli_value() % 1000 != 0 {
        errors.push(FieldError::invalid(path, quantity.to_string(), "must be an integer"));
    }
}

/// Whether a resource is a native Kubernetes resource.
pub(super) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether a resource can be overcommitted.
fn is_overcommitted(name: &str) -> bool {
    is_native(name) && !is_huge_pages(name)
}

/// Whether a resource is an extended resource: domain-prefixed and valid in quotas.
fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::label_key(&format!("requests.{name}")).is_empty()
}

/// Validates a resource name.
fn resource_name(name: &str, path: &Path, errors: &mut ErrorList) {
    let messages = names::label_key(name);
    if !messages.is_empty() {
        checks::named(name, messages, path, errors);
        return;
    }
    let is_huge = is_huge_pages(name) || name.starts_with("requests.hugepages-");
    if !name.contains('/') && !STANDARD.contains(&name) && !is_huge {
        let detail = "must be a standard resource type or fully qualified";
        errors.push(FieldError::invalid(path, name, detail));
    }
}

fn container_name(name: &str, path: &Path, errors: &mut ErrorList) {
    resource_name(name, path, errors);
    // Names with more than one slash also count as qualified.
    if !name.contains('/') {
        if !matches!(name, "cpu" | "memory" | "ephemeral-storage") && !is_huge_pages(name) {
            errors.push(FieldError::invalid(path, name, "must be a standard resource for containers"));
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.push(FieldError::invalid(path, name, "doesn't follow extended resource name standard"));
    }
}

fn pod_name(name: &str, path: &Path, errors: &mut ErrorList) {
    let before = errors.len();
    resource_name(name, path, errors);
    if errors.len() == before && !is_pod_level(name) {
        errors.push(FieldError::not_supported(path, name, &["cpu", "hugepages-", "memory"]));
    }
}

fn requirements_of(
    requirements: &Value,
    name_rule: fn(&str, &Path, &mut ErrorList),
    claims: &[&str],
    path: &Path,
    errors: &mut ErrorList,
) {
    let (limits_path, requests_path) = (path.child("limits"), path.child("requests"));
    let limits = requirements.map_at("limits");
    let requests = requirements.map_at("requests");
    for (name, value) in limits {
        let path = limits_path.key(name);
        name_rule(name, &path, errors);
        quantity(name, value, &path, errors);
        pages(name, value, &path, errors);
    }
    for (name, value) in requests {
        let path = requests_path.key(name);
        name_rule(name, &path, errors);
        quantity(name, value, &path, errors);
        let (Ok(request), limit) = (Quantity::from_json(value), limits.get(name)) else { continue };
        match limit.map(Quantity::from_json) {
            Some(Ok(limit)) => {
                let detail = if request != limit && !is_overcommitted(name) {
                    Some(format!("must be equal to {name} limit of {limit}"))
                } else if request > limit {
                    Some(format!("must be less than or equal to {name} limit of {limit}"))
                } else {
                    None
                };
                if let Some(detail) = detail {
                    errors.push(FieldError::invalid(&requests_path, request.to_string(), detail));
                }
            }
            None if !is_overcommitted(name) => {
                let detail = "Limit must be set for non overcommitable resources";
                errors.push(FieldError::required(&limits_path, detail));
            }
            Some(Err(_)) | None => {}
        }
        pages(name, value, &path, errors);
    }
    let mut names = limits.keys().chain(requests.keys());
    let has_compute = names.clone().any(|name| matches!(name.as_str(), "cpu" | "memory"));
    if !has_compute && names.any(|name| is_huge_pages(name)) {
        errors.push(FieldError::forbidden(path, "HugePages require cpu or memory"));
    }
    claim_names(requirements, claims, &path.child("claims"), errors);
}

/// Validates that a quantity is a multiple of the huge page size.
fn pages(name: &str, value: &Value, path: &Path, errors: &mut ErrorList) {
    let Some(size) = name.strip_prefix("hugepages-") else { return };
    let Ok(quantity) = Quantity::from_json(value) else { return };
    let size = Quantity::parse(size).map_or(0, |size| size.value());
    // An invalid or zero size has no multiples.
    if size <= 0 || quantity.value() % size != 0 {
        let detail = format!("{quantity} is not positive integer multiple of {name}");
        errors.push(FieldError::invalid(path, quantity.to_string(), detail));
    }
}

/// Validates that the claims of a container are unique and refer to claims of the pod, which are sorted.
fn claim_names(requirements: &Value, of_pod: &[&str], path: &Path, errors: &mut ErrorList) {
    let mut seen: HashSet<String> = HashSet::new();
    let mut parts: HashMap<String, usize> = HashMap::new();
    for (index, claim) in requirements.list_at("claims").iter().enumerate() {
        let path = path.index(index);
        let (name, request) = (claim.str_at("name"), claim.str_at("request"));
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        if seen.contains(name) {
            errors.push(FieldError::duplicate(&path, name));
        } else {
            let mut key = name.to_owned();
            if !request.is_empty() {
                checks::dns_label(request, &path.child("request"), errors);
                key = format!("{name}/{request}");
            }
            if seen.contains(&key) {
                errors.push(FieldError::duplicate(&path, key.as_str()));
            } else if request.is_empty() {
                let parts = parts.get(name).copied().unwrap_or_default();
                errors.extend((0..parts).map(|_| FieldError::duplicate(&path, name)));
            }
            if let Some((claim, _)) = key.split_once('/')
                && !seen.contains(&key)
            {
                *parts.entry(claim.to_owned()).or_default() += 1;
            }
            seen.insert(key);
        }
        if of_pod.binary_search(&name).is_err() {
            let known = if of_pod.is_empty() {
                " which is empty".to_owned()
            } else {
                // Upstream lists all names in each error.
                format!(": {}", of_pod[..of_pod.len().min(MAX_NAMED)].join(", "))
            };
            let detail = format!("must be one of the names in pod.spec.resourceClaims{known}");
            errors.push(FieldError { detail, ..FieldError::not_found(&path, name) });
        }
    }
}

/// Validates that the sum of container requests is within the pod's, and each limit within the pod's limit.
fn consistency(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let requests = amounts(spec.at("resources.requests"));
    for (name, sum) in total(spec, "requests") {
        if let Some(request) = requests.get(&name)
            && sum > *request
        {
            let detail = format!("must be greater than or equal to aggregate container requests of {sum}");
            errors.push(FieldError::invalid(&path.child("requests").key(&name), request.to_string(), detail));
        }
    }
    let limits = amounts(spec.at("resources.limits"));
    for (name, sum) in total(spec, "limits").into_iter().filter(|(name, _)| is_huge_pages(name)) {
        if let Some(limit) = limits.get(&name)
            && sum > *limit
        {
            let detail = format!("must be greater than or equal to aggregate container limits of {sum}");
            errors.push(FieldError::invalid(&path.child("limits").key(&name), limit.to_string(), detail));
        }
    }
    for (index, container) in spec.list_at("containers").iter().enumerate() {
        for (name, amount) in amounts(container.at("resources.limits")) {
            if let Some(limit) = limits.get(&name)
                && amount > *limit
            {
                let detail = format!("must be less than or equal to pod limits of {limit}");
                // Upstream's path has this form.
                let path = path.child("containers").index(index).key(&name).child("limits");
                errors.push(FieldError::invalid(&path, amount.to_string(), detail));
            }
        }
    }
}

/// Validates the name of an allocated resource: a requested resource or a claim of the container.
pub(super) fn allocated_name(name: &str, container: &Value, path: &Path, errors: &mut ErrorList) {
    let detail = if name.starts_with("claim:") {
        let is_named = |claim: &Value| match claim.str_at("request") {
            "" => name == format!("claim:{}", claim.str_at("name")),
            request => name == format!("claim:{}/{request}", claim.str_at("name")),
        };
        if container.list_at("resources.claims").iter().any(is_named) {
            return;
        }
        "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or \
         'claim:<claimName>' if request is empty"
    } else if container.map_at("resources.requests").contains_key(name) {
        return;
    } else {
        "must match one of the container's resource requests"
    };
    errors.push(FieldError::invalid(path, name, detail));
}
