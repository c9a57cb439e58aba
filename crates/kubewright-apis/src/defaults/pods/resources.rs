//! Defaults of resource requirements, and the sums over a pod's containers that they and other rules need.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::quantity::Quantity;

/// Amounts by resource.
pub(crate) type Amounts = BTreeMap<String, Quantity>;

/// The amounts of a map of quantities.
pub(crate) fn amounts(quantities: &Value) -> Amounts {
    let entries = quantities.as_object().into_iter().flatten();
    entries.filter_map(|(name, value)| Some((name.clone(), Quantity::from_json(value).ok()?))).collect()
}

/// What the containers of a pod need together, of their `requests` or `limits`.
///
/// Regular containers and sidecars run side by side; each init container runs beside the sidecars started
/// before it. The pod needs the greatest of these.
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

/// Whether an init container keeps running beside the others.
pub(crate) fn is_sidecar(container: &Value) -> bool {
    container.str_at("restartPolicy") == "Always"
}

/// Whether a resource may be set for the pod as a whole.
pub(crate) fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || is_huge_pages(name)
}

/// Whether the resource is pages of a size greater than usual.
pub(crate) fn is_huge_pages(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// Where limits are set and requests are not, requests are the limits.
pub(super) fn requests_from_limits(container: &mut Value) {
    let Some(Value::Object(limits)) = container.at_mut("resources.limits").cloned() else { return };
    let requests = container.object_mut("resources.requests");
    for (name, limit) in limits {
        requests.entry(name).or_insert(limit);
    }
}

/// Completes the resources of a pod as a whole, once they are set in part: limits of huge pages from the
/// containers, then requests from the containers, then requests from limits.
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

/// Rounds the quantities of a map up to thousandths.
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
    fn a_pod_needs_its_containers_or_its_greatest_init_container() {
        let mut spec =
            json!({"containers": [with_cpu("100m"), with_cpu("200m")], "initContainers": [with_cpu("1")]});
        assert_eq!(total(&spec, "requests")["cpu"].to_string(), "1");
        spec["initContainers"] = json!([with_cpu("50m")]);
        assert_eq!(total(&spec, "requests")["cpu"].to_string(), "300m");
    }

    #[test]
    fn sidecars_count_beside_containers_and_later_init_containers() {
        let mut sidecar = with_cpu("100m");
        sidecar["restartPolicy"] = json!("Always");
        let spec = json!({"containers": [with_cpu("100m")], "initContainers": [sidecar, with_cpu("500m")]});
        assert_eq!(total(&spec, "requests")["cpu"].to_string(), "600m");
    }

    #[test]
    fn quantities_are_rounded_up_to_thousandths() {
        let mut container = json!({"limits": {"cpu": "100u", "memory": "16Gi", "a": "9E"}});
        round_up(&mut container, "limits");
        assert_eq!(container, json!({"limits": {"cpu": "1m", "memory": "16Gi", "a": "9E"}}));
    }

    #[test]
    fn a_pods_own_requests_follow_its_containers_and_then_its_limits() {
        let mut spec = json!({
            "resources": {"limits": {"cpu": "2", "memory": "1Gi"}}, "containers": [with_cpu("100m"), with_cpu("200m")],
        });
        pod_level(&mut spec);
        assert_eq!(spec["resources"]["requests"], json!({"cpu": "300m", "memory": "1Gi"}));
    }
}
