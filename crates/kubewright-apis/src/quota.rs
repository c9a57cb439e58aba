//! Resource usage of objects for ResourceQuota, and quota scopes.
//!
//! Pure functions shared by the admission plugin, which rejects excess usage, and the quota controller. A
//! kind is written as `plural.group`, such as `deployments.apps`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::kinds::KINDS;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::quantity::{Notation, Quantity};

pub use crate::core::pod::quota::missing_requests;

/// Quantities by resource name of the quota.
pub type Amounts = BTreeMap<String, Quantity>;

const COUNT: &str = "count/";

/// A kind that quotas know by more than `count/`.
pub(crate) struct Quota {
    /// The plural. Objects are also counted by it, as before `count/` was introduced.
    pub(crate) plural: &'static str,
    /// Whether a resource name of a quota refers to the kind.
    pub(crate) measures: fn(&str) -> bool,
    /// The usage of an object, if it is more than one object of the plural. `now` is a Unix time in seconds.
    pub(crate) usage: Option<fn(object: &Value, now: i64) -> Amounts>,
    /// Whether an object matches a scope, given its name and requirement.
    pub(crate) is_in_scope: fn(&Value, &str, &Value) -> bool,
}

impl Quota {
    /// A kind whose objects are counted by their plural.
    pub(crate) const fn counted(plural: &'static str) -> Self {
        Self { plural, measures: |_| false, usage: None, is_in_scope: |_, _, _| false }
    }

    fn of(kind: &str) -> Option<&'static Self> {
        Self::all().find(|quota| quota.plural == kind)
    }

    fn all() -> impl Iterator<Item = &'static Self> {
        KINDS.iter().filter_map(|rules| rules.quota)
    }
}

/// The kind that a resource name refers to: `pods` for `limits.cpu`, `deployments.apps` for
/// `count/deployments.apps`.
pub fn kind_of(name: &str) -> Option<&str> {
    if let Some(counted) = name.strip_prefix(COUNT) {
        return Some(counted);
    }
    // The resource of a storage class also has the form of an extended resource of pods. The row of
    // PersistentVolumeClaim comes first.
    Quota::all().find(|quota| quota.plural == name || (quota.measures)(name)).map(|quota| quota.plural)
}

/// The usage of an object. `now` is a Unix time in seconds.
pub fn usage(kind: &str, object: &Value, now: i64) -> Amounts {
    let mut used = Amounts::from([(format!("{COUNT}{kind}"), whole(1))]);
    if let Some(quota) = Quota::of(kind) {
        match quota.usage {
            Some(usage) => used.extend(usage(object, now)),
            None => _ = used.insert(kind.to_owned(), whole(1)),
        }
    }
    used
}

/// Whether an object matches the scopes of a quota. Only pods have scopes.
pub fn is_in_scope(quota: &Value, kind: &str, object: &Value) -> bool {
    let by_name = quota.list_at("spec.scopes").iter().filter_map(Value::as_str);
    let selected = quota.list_at("spec.scopeSelector.matchExpressions");
    let mut scopes = by_name
        .map(|name| (name, &Value::Null))
        .chain(selected.iter().map(|requirement| (requirement.str_at("scopeName"), requirement)));
    let is_in = |name: &str, requirement: &Value| {
        Quota::of(kind).is_some_and(|quota| (quota.is_in_scope)(object, name, requirement))
    };
    scopes.all(|(name, requirement)| is_in(name, requirement))
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

pub(crate) fn whole(value: i64) -> Quantity {
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
