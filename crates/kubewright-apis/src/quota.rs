//! Resource usage of objects for ResourceQuota, and quota scopes.
//!
//! Pure functions shared by the admission plugin, which rejects excess usage, and the quota controller. A
//! kind is written as `plural.group`, such as `deployments.apps`.

mod pod;

use std::collections::BTreeMap;

use serde_json::Value;

use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::quantity::{Notation, Quantity};

pub use self::pod::missing_requests;

/// Quantities by resource name of the quota.
pub type Amounts = BTreeMap<String, Quantity>;

const COUNT: &str = "count/";
const STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";
/// Kinds that are also counted by their plural, as before `count/` was introduced.
const COUNTED_BY_NAME: [&str; 7] = [
    "pods",
    "services",
    "persistentvolumeclaims",
    "configmaps",
    "resourcequotas",
    "replicationcontrollers",
    "secrets",
];

/// The kind that a resource name refers to: `pods` for `limits.cpu`, `deployments.apps` for
/// `count/deployments.apps`.
pub fn kind_of(name: &str) -> Option<&str> {
    if let Some(counted) = name.strip_prefix(COUNT) {
        return Some(counted);
    }
    if COUNTED_BY_NAME.contains(&name) {
        return Some(name);
    }
    if matches!(name, "services.nodeports" | "services.loadbalancers") {
        return Some("services");
    }
    if name == "requests.storage" || name.contains(STORAGE_CLASS) {
        return Some("persistentvolumeclaims");
    }
    pod::is_compute(name).then_some("pods")
}

/// The usage of an object. `now` is a Unix time in seconds.
pub fn usage(kind: &str, object: &Value, now: i64) -> Amounts {
    let mut used = Amounts::from([(format!("{COUNT}{kind}"), whole(1))]);
    match kind {
        "pods" => used.extend(pod::usage(object, now)),
        "services" => {
            let ports = i64::try_from(object.list_at("spec.ports").len()).unwrap_or(i64::MAX);
            let (balancers, ports) = match object.str_at("spec.type") {
                "LoadBalancer" if object.at("spec.allocateLoadBalancerNodePorts") == false => (1, 0),
                "LoadBalancer" => (1, ports),
                "NodePort" => (0, ports),
                _ => (0, 0),
            };
            used.insert("services".to_owned(), whole(1));
            used.insert("services.loadbalancers".to_owned(), whole(balancers));
            used.insert("services.nodeports".to_owned(), whole(ports));
        }
        "persistentvolumeclaims" => claim(object, &mut used),
        _ if COUNTED_BY_NAME.contains(&kind) => {
            used.insert(kind.to_owned(), whole(1));
        }
        _ => {}
    }
    used
}

fn claim(object: &Value, used: &mut Amounts) {
    let class = match object.at("metadata.annotations")["volume.beta.kubernetes.io/storage-class"].as_str() {
        Some(class) => class,
        None => object.str_at("spec.storageClassName"),
    };
    let mut charge = |name: &str, much: Quantity| {
        if !class.is_empty() {
            used.insert(format!("{class}{STORAGE_CLASS}{name}"), much.clone());
        }
        used.insert(name.to_owned(), much);
    };
    charge("persistentvolumeclaims", whole(1));
    let asked = object.at("spec.resources.requests.storage");
    if let Some(much) = Quantity::from_json(asked).ok().filter(|_| !asked.is_null()) {
        charge("requests.storage", much);
    }
}

/// Whether an object matches the scopes of a quota. Only pods have scopes.
pub fn is_in_scope(quota: &Value, kind: &str, object: &Value) -> bool {
    let by_name = quota.list_at("spec.scopes").iter().filter_map(Value::as_str);
    let selected = quota.list_at("spec.scopeSelector.matchExpressions");
    let mut scopes = by_name
        .map(|name| (name, &Value::Null))
        .chain(selected.iter().map(|requirement| (requirement.str_at("scopeName"), requirement)));
    scopes.all(|(name, requirement)| kind == "pods" && pod::is_in_scope(object, name, requirement))
}

/// Adds `more` to `sum`.
pub fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, much) in more {
        let total = sum.get(name).map_or_else(|| much.clone(), |sum| sum + much);
        sum.insert(name.clone(), total);
    }
}

/// Parses a map of quantities. Invalid ones are dropped.
pub fn amounts(list: &Value) -> Amounts {
    let list = list.as_object().into_iter().flatten();
    list.filter_map(|(name, much)| Some((name.clone(), Quantity::from_json(much).ok()?))).collect()
}

fn whole(value: i64) -> Quantity {
    Quantity::new(value, Notation::DecimalSi)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(amounts: &Amounts) -> String {
        amounts.iter().map(|(name, much)| format!("{name}={much}")).collect::<Vec<_>>().join(",")
    }

    #[test]
    fn resource_names_refer_to_kinds() {
        for (name, kind) in [
            ("count/deployments.apps", Some("deployments.apps")),
            ("configmaps", Some("configmaps")),
            ("services.nodeports", Some("services")),
            ("requests.storage", Some("persistentvolumeclaims")),
            ("gold.storageclass.storage.k8s.io/requests.storage", Some("persistentvolumeclaims")),
            ("cpu", Some("pods")),
            ("limits.memory", Some("pods")),
            ("requests.example.com/gpu", Some("pods")),
            ("requests.hugepages-2Mi", Some("pods")),
            ("example.com/gpu", None),
            ("deployments", None),
        ] {
            assert_eq!(kind_of(name), kind, "{name}");
        }
    }

    #[test]
    fn services_and_claims_use_node_ports_and_storage() {
        let service = json!({ "spec": { "type": "LoadBalancer", "ports": [{}, {}] } });
        assert_eq!(
            text(&usage("services", &service, 0)),
            "count/services=1,services=1,services.loadbalancers=1,services.nodeports=2"
        );
        let claim = json!({ "spec": { "storageClassName": "gold", "resources": { "requests": { "storage": "1Gi" } } } });
        assert_eq!(
            text(&usage("persistentvolumeclaims", &claim, 0)),
            "count/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/persistentvolumeclaims=1,\
             gold.storageclass.storage.k8s.io/requests.storage=1Gi,persistentvolumeclaims=1,requests.storage=1Gi"
        );
        assert_eq!(text(&usage("deployments.apps", &json!({}), 0)), "count/deployments.apps=1");
        assert_eq!(text(&usage("secrets", &json!({}), 0)), "count/secrets=1,secrets=1");
    }

    #[test]
    fn a_quota_with_a_scope_counts_pods_only() {
        let quota = json!({ "spec": { "scopes": ["NotTerminating"] } });
        assert!(is_in_scope(&quota, "pods", &json!({})));
        assert!(!is_in_scope(&quota, "services", &json!({})));
        assert!(is_in_scope(&json!({}), "services", &json!({})));
    }
}
