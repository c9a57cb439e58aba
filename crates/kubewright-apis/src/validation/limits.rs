//! Validation of LimitRanges, ResourceQuotas and their resource names.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::strings;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::json;
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;
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

pub(super) fn limit_range(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("spec").child("limits");
    let mut seen = BTreeSet::new();
    for (i, limit) in object.list_at("spec.limits").iter().enumerate() {
        let path = path.index(i);
        let kind = limit.str_at("type");
        errors.extend(limit_type(kind, &path.child("type")));
        if !seen.insert(kind) {
            errors.push(FieldError::duplicate(&path.child("type"), kind));
        }
        errors.extend(limit_names(limit, kind, &path));
        errors.extend(limit_amounts(limit, kind, &path));
    }
    errors
}

fn limit_type(kind: &str, path: &Path) -> ErrorList {
    let errors: ErrorList = meta::invalid(path, kind, names::label_key(kind)).collect();
    if errors.is_empty()
        && !kind.contains('/')
        && !matches!(kind, "Pod" | "Container" | "PersistentVolumeClaim")
    {
        return vec![FieldError::invalid(path, kind, "must be a standard limit type or fully qualified")];
    }
    errors
}

fn limit_names(limit: &Value, kind: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let named = |field: &str| -> ErrorList {
        let path = path.child(field);
        let check = if matches!(kind, "Pod" | "Container") { container_resource } else { resource };
        limit.map_at(field).keys().flat_map(|name| check(name, &path.key(name))).collect()
    };
    errors.extend(named("max"));
    errors.extend(named("min"));
    for field in ["default", "defaultRequest"] {
        if kind != "Pod" {
            errors.extend(named(field));
        } else if !limit.map_at(field).is_empty() {
            errors
                .push(FieldError::forbidden(&path.child(field), "may not be specified when `type` is 'Pod'"));
        }
    }
    let bounded = ["min", "max"].iter().any(|field| limit.map_at(field).contains_key("storage"));
    if kind == "PersistentVolumeClaim" && !bounded {
        let detail = "either minimum or maximum storage value is required, but neither was provided";
        errors.push(FieldError::required(&path.child("limits"), detail));
    }
    errors.extend(named("maxLimitRequestRatio"));
    errors
}

fn limit_amounts(limit: &Value, kind: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let fields: &[&str] = match kind {
        "Pod" => &["max", "min", "maxLimitRequestRatio"],
        _ => &["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"],
    };
    let names: BTreeSet<&String> = fields.iter().flat_map(|field| limit.map_at(field).keys()).collect();
    for name in names {
        let amount = |field: &str| {
            let value = limit.map_at(field).get(name.as_str()).filter(|_| fields.contains(&field))?;
            Quantity::from_json(value).ok()
        };
        let (min, max) = (amount("min"), amount("max"));
        let (default, request) = (amount("default"), amount("defaultRequest"));
        // The compared values, the invalid field and the printed value, which may be another one.
        let ordered = [
            (&min, "min value", &max, "max value", "min", &min),
            (&min, "min value", &request, "default request value", "defaultRequest", &request),
            (&request, "default request value", &max, "max value", "defaultRequest", &request),
            (&request, "default request value", &default, "default limit value", "defaultRequest", &request),
            (&min, "min value", &default, "default value", "default", &min),
            (&default, "default value", &max, "max value", "default", &max),
        ];
        for (low, low_name, high, high_name, field, shown) in ordered {
            if let (Some(low), Some(high), Some(shown)) = (low, high, shown)
                && low > high
            {
                let detail = format!("{low_name} {low} is greater than {high_name} {high}");
                errors.push(FieldError::invalid(&path.child(field).key(name), shown.to_string(), detail));
            }
        }
        if let Some(ratio) = amount("maxLimitRequestRatio") {
            errors.extend(ratio_problems(&ratio, min.as_ref(), max.as_ref(), |detail| {
                FieldError::invalid(&path.child("maxLimitRequestRatio").key(name), ratio.to_string(), detail)
            }));
        }
        if let (Some(default), Some(request)) = (&default, &request)
            && !may_overcommit(name)
            && default != request
        {
            let detail =
                format!("default value {default} must equal to defaultRequest value {request} in {name}");
            errors.push(FieldError::invalid(
                &path.child("defaultRequest").key(name),
                request.to_string(),
                detail,
            ));
        }
    }
    errors
}

fn ratio_problems(
    ratio: &Quantity,
    min: Option<&Quantity>,
    max: Option<&Quantity>,
    error: impl Fn(String) -> FieldError,
) -> ErrorList {
    let mut errors = ErrorList::new();
    if ratio.milli_value() < 1000 {
        errors.push(error(format!("ratio {ratio} is less than 1")));
    }
    if let (Some(min), Some(max)) = (min, max) {
        let limit = max.to_f64() / min.to_f64();
        if ratio.to_f64() > limit {
            errors.push(error(format!("ratio {ratio} is greater than max/min = {limit:.6}")));
        }
    }
    errors
}

pub(super) fn resource_quota(object: &Value) -> ErrorList {
    let mut errors = quota_spec(object.at("spec"));
    errors.extend(quota_status(object));
    errors
}

pub(super) fn resource_quota_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = resource_quota(new);
    errors.extend(quota_spec(new.at("spec")));
    let scopes = |object| strings(object, "spec.scopes").into_iter().collect::<BTreeSet<_>>();
    if scopes(new) != scopes(old) {
        let path = Path::new("spec").child("scopes");
        errors.push(FieldError::invalid(&path, new.at("spec.scopes").clone(), meta::IMMUTABLE));
    }
    errors
}

pub(super) fn quota_status(object: &Value) -> ErrorList {
    let path = Path::new("status");
    let mut errors = quota_amounts(object.map_at("status.hard"), &path.child("hard"));
    errors.extend(quota_amounts(object.map_at("status.used"), &path.child("used")));
    errors
}

fn quota_spec(spec: &Value) -> ErrorList {
    let path = Path::new("spec");
    let mut errors = quota_amounts(spec.map_at("hard"), &path.child("hard"));
    errors.extend(quota_scopes(spec, &path.child("scopes")));
    errors.extend(scope_selector(spec, &path.child("scopeSelector").child("matchExpressions")));
    errors
}

fn quota_amounts(amounts: &Map<String, Value>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (name, amount) in amounts {
        let path = path.key(name);
        errors.extend(resource(name, &path));
        if !name.contains('/') && !is_quota_resource(name) {
            errors.push(FieldError::invalid(&path, name.as_str(), "must be a standard resource for quota"));
        }
        errors.extend(resource_amount(name, amount, &path));
    }
    errors
}

fn quota_scopes(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let scopes = strings(spec, "scopes");
    let shown = |detail: &str| FieldError::invalid(path, spec.at("scopes").clone(), detail);
    for scope in &scopes {
        if !is_scope(scope) {
            errors.push(shown("unsupported scope"));
        }
        for name in spec.map_at("hard").keys() {
            if is_quota_resource(name) && !is_scope_of(scope, name) {
                errors.push(shown("unsupported scope applied to resource"));
            }
        }
    }
    errors.extend(conflicts(&scopes).map(|()| shown("conflicting scopes")));
    errors
}

fn scope_selector(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let requirements = spec.list_at("scopeSelector.matchExpressions");
    for requirement in requirements {
        let scope = requirement.str_at("scopeName");
        let operator = requirement.str_at("operator");
        let values = requirement.list_at("values");
        if !is_scope(scope) {
            errors.push(FieldError::invalid(&path.child("scopeName"), scope, "unsupported scope"));
        }
        for name in spec.map_at("hard").keys() {
            if is_quota_resource(name) && !is_scope_of(scope, name) {
                let shown = printed_selector(requirements);
                errors.push(FieldError::invalid_printed(
                    path,
                    shown,
                    "unsupported scope applied to resource",
                ));
            }
        }
        if !matches!(scope, "PriorityClass" | "VolumeAttributesClass")
            && is_scope(scope)
            && operator != "Exists"
        {
            let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                          ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                          ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            errors.push(FieldError::invalid(&path.child("operator"), operator, detail));
        }
        match (operator, values.is_empty()) {
            ("In" | "NotIn", true) => {
                let detail =
                    "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                errors.push(FieldError::required(&path.child("values"), detail));
            }
            ("Exists" | "DoesNotExist", false) => {
                let detail =
                    "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                errors.push(FieldError::invalid(&path.child("values"), values.to_vec(), detail));
            }
            ("In" | "NotIn" | "Exists" | "DoesNotExist", _) => {}
            _ => errors.push(FieldError::invalid(
                &path.child("operator"),
                operator,
                "not a valid selector operator",
            )),
        }
    }
    let scopes: Vec<&str> = requirements.iter().map(|requirement| requirement.str_at("scopeName")).collect();
    errors.extend(
        conflicts(&scopes)
            .map(|()| FieldError::invalid(path, spec.at("scopes").clone(), "conflicting scopes")),
    );
    errors
}

/// A scope selector with Go's field names.
fn printed_selector(requirements: &[Value]) -> String {
    let requirements: Vec<String> = requirements
        .iter()
        .map(|requirement| {
            format!(
                "{{\"ScopeName\":{},\"Operator\":{},\"Values\":{}}}",
                requirement.at("scopeName"),
                requirement.at("operator"),
                json::to_string(requirement.at("values"))
            )
        })
        .collect();
    format!("{{\"MatchExpressions\":[{}]}}", requirements.join(","))
}

/// One item per pair of mutually exclusive scopes.
fn conflicts(scopes: &[&str]) -> impl Iterator<Item = ()> {
    let pairs = [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];
    let found: Vec<()> =
        pairs.iter().filter(|pair| pair.iter().all(|scope| scopes.contains(scope))).map(|_| ()).collect();
    found.into_iter()
}

fn is_scope(scope: &str) -> bool {
    matches!(
        scope,
        "Terminating"
            | "NotTerminating"
            | "BestEffort"
            | "NotBestEffort"
            | "PriorityClass"
            | "CrossNamespacePodAffinity"
            | "VolumeAttributesClass"
    )
}

fn is_scope_of(scope: &str, resource: &str) -> bool {
    let of_pods = resource == "pods"
        || ["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"]
            .contains(&resource);
    match scope {
        "Terminating"
        | "NotTerminating"
        | "NotBestEffort"
        | "PriorityClass"
        | "CrossNamespacePodAffinity" => of_pods,
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => matches!(resource, "persistentvolumeclaims" | "requests.storage"),
        _ => true,
    }
}

fn is_quota_resource(name: &str) -> bool {
    COUNTED.contains(&name)
        || MEASURED.contains(&name)
        || is_huge_page(name)
        || name.starts_with("requests.hugepages-")
}

/// Validates a quantity: not negative, and an integer for counted resources.
pub(super) fn resource_amount(name: &str, amount: &Value, path: &Path) -> ErrorList {
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
fn resource(name: &str, path: &Path) -> ErrorList {
    let errors: ErrorList = meta::invalid(path, name, names::label_key(name)).collect();
    if errors.is_empty() && !name.contains('/') && !is_quota_resource(name) && name != "storage" {
        return vec![FieldError::invalid(path, name, "must be a standard resource type or fully qualified")];
    }
    errors
}

/// Validates a resource name of containers.
fn container_resource(name: &str, path: &Path) -> ErrorList {
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
pub(super) fn container_limits(limits: &Map<String, Value>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (name, amount) in limits {
        let path = path.key(name);
        errors.extend(container_resource(name, &path));
        errors.extend(resource_amount(name, amount, &path));
    }
    errors
}

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn is_extended(name: &str) -> bool {
    let native = !name.contains('/') || name.contains("kubernetes.io/");
    !native && !name.starts_with("requests.") && names::label_key(&format!("requests.{name}")).is_empty()
}

/// Whether requests may be less than limits. True for standard resources except huge pages.
fn may_overcommit(name: &str) -> bool {
    (!name.contains('/') || name.contains("kubernetes.io/")) && !is_huge_page(name)
}
