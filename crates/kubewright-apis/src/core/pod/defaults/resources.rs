//! Defaults of resource requirements, and sums over the containers of a pod.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::quantity::Quantity;

/// Quantities by resource name.
pub(crate) type Amounts = BTreeMap<String, Quantity>;

/// Parses a map of quantities.
pub(crate) fn amounts(quantities: &Value) -> Amounts {
    let entries = quantities.as_object().into_iter().flatten();
    entries.filter_map(|(name, value)| Some((name.clone(), Quantity::from_json(value).ok()?))).collect()
}

/// Total `requests` or `limits` of a pod's containers.
///
/// Regular containers and sidecars run concurrently. Each init container runs concurrently with the sidecars
/// started before it. The total is the maximum of these phases.
pub(crate) fn total(spec: &Value, kind: &str) -> Amounts {
    let of = |container: &Value| amounts(container.at("resources").at(kind));
    let mut total = Amounts::new();
    for container in spec.list_at("containers") {
        add(&mut total, &of(container));
    }
    let mut sidecars = Amounts::new();
    let mut peak = Amounts::new();
    for container in spec.list_at("initContainers") {
        let mut needed = of(container);
        if is_sidecar(container) {
            add(&mut total, &needed);
            add(&mut sidecars, &needed);
            needed.clone_from(&sidecars);
        } else {
            add(&mut needed, &sidecars);
        }
        raise(&mut peak, &needed);
    }
    raise(&mut total, &peak);
    total
}

/// Whether an init container is a sidecar (`restartPolicy: Always`).
pub(crate) fn is_sidecar(container: &Value) -> bool {
    container.str_at("restartPolicy") == "Always"
}

/// Whether a resource can be set in the pod-level `resources`.
pub(crate) fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || is_huge_pages(name)
}

pub(crate) fn is_huge_pages(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// Copies limits to requests that are unset.
pub(super) fn requests_from_limits(container: &mut Value) {
    let Some(Value::Object(limits)) = container.at_mut("resources.limits").cloned() else { return };
    let requests = container.object_mut("resources.requests");
    for (name, limit) in limits {
        requests.entry(name).or_insert(limit);
    }
}

/// Completes pod-level resources if any are set: huge page limits from the containers, then requests from the
/// containers, then requests from limits.
pub(super) fn pod_level(spec: &mut Value) {
    let resources = spec.at("resources");
    if resources.map_at("limits").is_empty() && resources.map_at("requests").is_empty() {
        return;
    }
    let pages = total(spec, "limits").into_iter().filter(|(name, _)| is_huge_pages(name));
    for (name, limit) in pages.collect::<Vec<_>>() {
        if !spec.map_at("resources.requests").contains_key(&name) {
            default_amount(spec.object_mut("resources.limits"), name, &limit);
        }
    }
    if spec.map_at("resources.limits").is_empty() {
        return;
    }
    for (name, request) in total(spec, "requests") {
        if matches!(name.as_str(), "cpu" | "memory") {
            default_amount(spec.object_mut("resources.requests"), name, &request);
        }
    }
    let limits = spec.map_at("resources.limits").clone();
    for (name, limit) in limits.into_iter().filter(|(name, _)| is_pod_level(name)) {
        spec.object_mut("resources.requests").entry(name).or_insert(limit);
    }
}

/// Rounds quantities up to milli-units.
pub(crate) fn round_up(parent: &mut Value, path: &str) {
    let Some(Value::Object(quantities)) = parent.at_mut(path) else { return };
    for value in quantities.values_mut() {
        let Ok(quantity) = Quantity::from_json(value) else { continue };
        let milli = quantity.milli_value();
        let rounded = Quantity::from_milli(milli, quantity.notation());
        if milli.unsigned_abs() < i64::MAX.unsigned_abs() && rounded != quantity {
            *value = Value::from(rounded.to_string());
        }
    }
}

fn default_amount(map: &mut Map<String, Value>, name: String, amount: &Quantity) {
    map.entry(name).or_insert_with(|| Value::from(amount.to_string()));
}

fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let total = sum.get(name).map_or_else(|| amount.clone(), |sum| sum + amount);
        sum.insert(name.clone(), total);
    }
}

fn raise(to: &mut Amounts, least: &Amounts) {
    for (name, amount) in least {
        if to.get(name).is_none_or(|at| amount > at) {
            to.insert(name.clone(), amount.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn with_cpu(cpu: &str) -> Value {
        json!({"resources": {"requests": {"cpu": cpu}}})
    }

    #[test]
    fn a_total_is_the_containers_or_the_largest_init_container() {
        let mut spec =
            json!({"containers": [with_cpu("100m"), with_cpu("200m")], "initContainers": [with_cpu("1")]});
        assert_eq!(total(&spec, "requests")["cpu"].to_string(), "1");
        spec["initContainers"] = json!([with_cpu("50m")]);
        assert_eq!(total(&spec, "requests")["cpu"].to_string(), "300m");
    }

    #[test]
    fn sidecars_are_added_to_containers_and_later_init_containers() {
        let mut sidecar = with_cpu("100m");
        sidecar["restartPolicy"] = json!("Always");
        let spec = json!({"containers": [with_cpu("100m")], "initContainers": [sidecar, with_cpu("500m")]});
        assert_eq!(total(&spec, "requests")["cpu"].to_string(), "600m");
    }

    #[test]
    fn quantities_are_rounded_up_to_milli_units() {
        let mut container = json!({"limits": {"cpu": "100u", "memory": "16Gi", "a": "9E"}});
        round_up(&mut container, "limits");
        assert_eq!(container, json!({"limits": {"cpu": "1m", "memory": "16Gi", "a": "9E"}}));
    }

    #[test]
    fn pod_level_requests_are_derived_from_containers_and_then_limits() {
        let mut spec = json!({
            "resources": {"limits": {"cpu": "2", "memory": "1Gi"}}, "containers": [with_cpu("100m"), with_cpu("200m")],
        });
        pod_level(&mut spec);
        assert_eq!(spec["resources"]["requests"], json!({"cpu": "300m", "memory": "1Gi"}));
    }
}
