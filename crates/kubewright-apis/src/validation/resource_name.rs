//! Names and quantities of resources in LimitRanges, ResourceQuotas and RuntimeClasses.

use serde_json::{Map, Value};

use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::quantity::Quantity;

/// Resources whose quantities must be integers.
const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// Other standard resources of quotas.
const MEASURED: [&str; 10] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];

pub(crate) fn is_quota_resource(name: &str) -> bool {
    COUNTED.contains(&name)
        || MEASURED.contains(&name)
        || is_huge_page(name)
        || name.starts_with("requests.hugepages-")
}

/// Validates a quantity: not negative, and an integer for counted resources.
pub(crate) fn resource_amount(name: &str, amount: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Ok(amount) = Quantity::from_json(amount) else { return errors };
    if amount.sign() < 0 {
        errors.push(FieldError::invalid(path, amount.to_string(), "must be greater than or equal to 0"));
    }
    let counted = COUNTED.contains(&name) || is_extended(name);
    if counted && amount.milli_value() % 1000 != 0 {
        errors.push(FieldError::invalid(path, amount.to_string(), "must be an integer"));
    }
    errors
}

/// Validates a resource name.
pub(crate) fn resource(name: &str, path: &Path) -> ErrorList {
    let errors: ErrorList = meta::invalid(path, name, names::label_key(name)).collect();
    if errors.is_empty() && !name.contains('/') && !is_quota_resource(name) && name != "storage" {
        return vec![FieldError::invalid(path, name, "must be a standard resource type or fully qualified")];
    }
    errors
}

/// Validates a resource name of containers.
pub(crate) fn container_resource(name: &str, path: &Path) -> ErrorList {
    let mut errors = resource(name, path);
    if !name.contains('/') {
        if !matches!(name, "cpu" | "memory" | "ephemeral-storage") && !is_huge_page(name) {
            errors.push(FieldError::invalid(path, name, "must be a standard resource for containers"));
        }
    } else if !name.contains("kubernetes.io/") && !is_extended(name) {
        errors.push(FieldError::invalid(path, name, "doesn't follow extended resource name standard"));
    }
    errors
}

/// Validates container limits, such as the overhead of a RuntimeClass.
pub(crate) fn container_limits(limits: &Map<String, Value>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (name, amount) in limits {
        let path = path.key(name);
        errors.extend(container_resource(name, &path));
        errors.extend(resource_amount(name, amount, &path));
    }
    errors
}

/// Whether requests may be less than limits. True for standard resources except huge pages.
pub(crate) fn may_overcommit(name: &str) -> bool {
    (!name.contains('/') || name.contains("kubernetes.io/")) && !is_huge_page(name)
}

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn is_extended(name: &str) -> bool {
    let native = !name.contains('/') || name.contains("kubernetes.io/");
    !native && !name.starts_with("requests.") && names::label_key(&format!("requests.{name}")).is_empty()
}
