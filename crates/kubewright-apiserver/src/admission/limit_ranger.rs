//! LimitRanger: applies the defaults of LimitRanges to containers, and enforces their constraints.

use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::quantity::Quantity;
use kubewright_apis::quota::{Amounts, add, amounts};
use serde_json::Value;

use super::{Admission, Attributes, Cluster, Notes, Operation, Plugin};

pub(super) struct LimitRanger;

impl Plugin for LimitRanger {
    fn name(&self) -> &'static str {
        "LimitRanger"
    }

    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update)
    }

    fn admit<'a>(
        &'a self,
        cluster: &'a Cluster,
        attributes: &'a mut Attributes<'_>,
        _notes: &'a mut Notes,
    ) -> Admission<'a> {
        if applies(attributes) && attributes.kind.kind == "Pod" {
            for range in cluster.list("limitranges", attributes.namespace) {
                set_defaults(&mut attributes.object, &range);
            }
        }
        Admission::ALLOWED
    }

    fn validate<'a>(
        &'a self,
        cluster: &'a Cluster,
        attributes: &'a Attributes<'_>,
        _notes: &'a mut Notes,
    ) -> Admission<'a> {
        if !applies(attributes) {
            return Admission::ALLOWED;
        }
        for range in cluster.list("limitranges", attributes.namespace) {
            let errors = match attributes.kind.kind {
                "Pod" => pod_errors(&attributes.object, &range),
                _ => claim_errors(&attributes.object, &range),
            };
            if !errors.is_empty() {
                return Err(attributes.forbidden(&aggregate(&errors))).into();
            }
        }
        Admission::ALLOWED
    }
}

const ANNOTATION: &str = "kubernetes.io/limit-ranger";
/// The largest value that can be expressed in thousandths.
const MAX_MILLI_VALUE: i64 = i64::MAX / 1000;

/// Applies to pods on create and resize, and to claims, unless they are being deleted.
fn applies(attributes: &Attributes<'_>) -> bool {
    if attributes.old_object.is_some_and(|old| old.has("metadata.deletionTimestamp")) {
        return false;
    }
    match (attributes.kind.group, attributes.kind.kind, attributes.subresource) {
        ("", "Pod", "resize") => attributes.operation == Operation::Update,
        ("", "Pod", "") => attributes.operation == Operation::Create,
        ("", "PersistentVolumeClaim", "") => true,
        _ => false,
    }
}

fn limits_of<'a>(range: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    range.list_at("spec.limits").iter().filter(move |limit| limit.str_at("type") == kind)
}

/// Sets the default requests and limits of containers and lists them in an annotation.
fn set_defaults(pod: &mut Value, range: &Value) {
    let mut requests = serde_json::Map::new();
    let mut limits = serde_json::Map::new();
    for limit in limits_of(range, "Container") {
        requests.extend(limit.map_at("defaultRequest").clone());
        limits.extend(limit.map_at("default").clone());
    }
    let mut set = Vec::new();
    for (list, what) in [("spec.containers", "container"), ("spec.initContainers", "init container")] {
        for container in pod.list_mut(list).into_iter().flatten() {
            let name = container.str_at("name").to_owned();
            // Upstream sets limits before requests, but lists requests first.
            let set_limits = merge(container, "resources.limits", &limits);
            let set_requests = merge(container, "resources.requests", &requests);
            if !set_requests.is_empty() {
                set.push(format!("{} request for {what} {name}", set_requests.join(", ")));
            }
            if !set_limits.is_empty() {
                set.push(format!("{} limit for {what} {name}", set_limits.join(", ")));
            }
        }
    }
    if !set.is_empty() {
        let text = format!("LimitRanger plugin set: {}", set.join("; "));
        pod.object_mut("metadata.annotations").insert(ANNOTATION.to_owned(), text.into());
    }
}

/// Adds the missing resources and returns their names in order.
fn merge(container: &mut Value, path: &str, defaults: &serde_json::Map<String, Value>) -> Vec<String> {
    let missing: Vec<(&String, &Value)> =
        defaults.iter().filter(|(name, _)| !container.map_at(path).contains_key(*name)).collect();
    let mut set: Vec<String> = missing.iter().map(|(name, _)| (*name).clone()).collect();
    for (name, quantity) in missing {
        container.object_mut(path).insert(name.clone(), quantity.clone());
    }
    set.sort();
    set
}

fn pod_errors(pod: &Value, range: &Value) -> Vec<String> {
    let mut errors = Vec::new();
    for limit in range.list_at("spec.limits") {
        match limit.str_at("type") {
            "Container" => {
                let containers =
                    pod.list_at("spec.containers").iter().chain(pod.list_at("spec.initContainers"));
                for container in containers {
                    let asked = |what: &str| amounts(&container.at("resources")[what]);
                    check(limit, "Container", &asked("requests"), &asked("limits"), &mut errors);
                }
            }
            "Pod" => check(limit, "Pod", &sum(pod, "requests"), &sum(pod, "limits"), &mut errors),
            _ => {}
        }
    }
    errors
}

fn check(limit: &Value, kind: &str, requests: &Amounts, limits: &Amounts, errors: &mut Vec<String>) {
    for (name, enforced) in amounts(limit.at("min")) {
        errors.extend(below_min(kind, &name, &enforced, requests, limits));
    }
    for (name, enforced) in amounts(limit.at("max")) {
        errors.extend(above_max(kind, &name, &enforced, requests, limits));
    }
    for (name, enforced) in amounts(limit.at("maxLimitRequestRatio")) {
        errors.extend(above_ratio(kind, &name, &enforced, requests, limits));
    }
}

fn claim_errors(claim: &Value, range: &Value) -> Vec<String> {
    let requests = amounts(claim.at("spec.resources.requests"));
    let mut errors = Vec::new();
    for limit in limits_of(range, "PersistentVolumeClaim") {
        for (name, enforced) in amounts(limit.at("min")) {
            errors.extend(below_min("PersistentVolumeClaim", &name, &enforced, &requests, &Amounts::new()));
        }
        for (name, enforced) in amounts(limit.at("max")) {
            let usage = format!("maximum {name} usage per PersistentVolumeClaim is {enforced}");
            match requests.get(&name) {
                None => errors.push(format!("{usage}.  No request is specified")),
                Some(request) if less(&enforced, request) => {
                    errors.push(format!("{usage}, but request is {request}"));
                }
                Some(_) => {}
            }
        }
    }
    errors
}

/// The values at a common precision: in thousandths, unless one of them is too large.
fn comparable<const N: usize>(quantities: [&Quantity; N]) -> [i64; N] {
    let fits = quantities.iter().all(|quantity| quantity.value() <= MAX_MILLI_VALUE);
    quantities.map(|quantity| if fits { quantity.milli_value() } else { quantity.value() })
}

fn less(one: &Quantity, other: &Quantity) -> bool {
    let [one, other] = comparable([one, other]);
    one < other
}

fn below_min(
    kind: &str,
    name: &str,
    enforced: &Quantity,
    requests: &Amounts,
    limits: &Amounts,
) -> Option<String> {
    let usage = format!("minimum {name} usage per {kind} is {enforced}");
    let Some(request) = requests.get(name) else { return Some(format!("{usage}.  No request is specified")) };
    if less(request, enforced) {
        return Some(format!("{usage}, but request is {request}"));
    }
    let limit = limits.get(name).filter(|limit| less(limit, enforced))?;
    Some(format!("{usage}, but limit is {limit}"))
}

fn above_max(
    kind: &str,
    name: &str,
    enforced: &Quantity,
    requests: &Amounts,
    limits: &Amounts,
) -> Option<String> {
    let usage = format!("maximum {name} usage per {kind} is {enforced}");
    let Some(limit) = limits.get(name) else { return Some(format!("{usage}.  No limit is specified")) };
    if less(enforced, limit) {
        return Some(format!("{usage}, but limit is {limit}"));
    }
    let request = requests.get(name).filter(|request| less(enforced, request))?;
    Some(format!("{usage}, but request is {request}"))
}

fn above_ratio(
    kind: &str,
    name: &str,
    enforced: &Quantity,
    requests: &Amounts,
    limits: &Amounts,
) -> Option<String> {
    let allowed = format!("{name} max limit to request ratio per {kind} is {enforced}");
    let zero = Quantity::new(0, enforced.notation());
    let request = requests.get(name).unwrap_or(&zero);
    let limit = limits.get(name).unwrap_or(&zero);
    let values = comparable([request, limit, enforced]);
    if values[0] == 0 {
        return Some(format!("{allowed}, but no request is specified or request is 0"));
    }
    if values[1] == 0 {
        return Some(format!("{allowed}, but no limit is specified or limit is 0"));
    }
    #[expect(clippy::cast_precision_loss, reason = "upstream compares floats")]
    let ratio = values[1] as f64 / values[0] as f64;
    (ratio > enforced.to_f64()).then(|| format!("{allowed}, but provided ratio is {ratio:.6}"))
}

/// The resources of a pod: the sum of containers and sidecars or the largest init container, unless they are
/// set at pod level.
fn sum(pod: &Value, what: &str) -> Amounts {
    let of = |container: &Value| amounts(&container.at("resources")[what]);
    let mut total = Amounts::new();
    for container in pod.list_at("spec.containers") {
        add(&mut total, &of(container));
    }
    let (mut sidecars, mut largest) = (Amounts::new(), Amounts::new());
    for container in pod.list_at("spec.initContainers") {
        let own = of(container);
        let at_start = if container.str_at("restartPolicy") == "Always" {
            add(&mut total, &own);
            add(&mut sidecars, &own);
            sidecars.clone()
        } else {
            let mut together = own;
            add(&mut together, &sidecars);
            together
        };
        raise(&mut largest, &at_start);
    }
    raise(&mut total, &largest);
    for (name, quantity) in amounts(&pod.at("spec.resources")[what]) {
        if matches!(&*name, "cpu" | "memory") || name.starts_with("hugepages-") {
            total.insert(name, quantity);
        }
    }
    total
}

fn raise(amounts: &mut Amounts, others: &Amounts) {
    for (name, quantity) in others {
        match amounts.get_mut(name) {
            Some(own) if *own >= *quantity => {}
            Some(own) => *own = quantity.clone(),
            None => drop(amounts.insert(name.clone(), quantity.clone())),
        }
    }
}

/// Joins errors as Go's error aggregates do, without duplicates.
pub(super) fn aggregate(errors: &[String]) -> String {
    let mut seen: Vec<&str> = Vec::new();
    for error in errors {
        if !seen.contains(&error.as_str()) {
            seen.push(error);
        }
    }
    match seen[..] {
        [one] => one.to_owned(),
        _ => format!("[{}]", seen.join(", ")),
    }
}
