//! The permissions of the deployed roles, compared with the requests of the operator.

use std::collections::BTreeSet;

use kubewright_manifests::rbac::Call;
use serde_json::Value;

use super::Cluster;

/// The permissions that the operator's ServiceAccount has and that no request used, such as `get pods`.
#[track_caller]
pub(super) fn unused(cluster: &Cluster, calls: &BTreeSet<Call>) -> Vec<String> {
    let mut unused = BTreeSet::new();
    for (binding, role) in [("clusterrolebindings", "clusterrole"), ("rolebindings", "role")] {
        for binding in items(&cluster.json(&["get", binding, "--all-namespaces"])) {
            let is_operator = |subject: &Value| {
                subject["kind"] == "ServiceAccount" && subject["name"] == "markdown-view-controller-manager"
            };
            if !items_of(&binding["subjects"]).any(is_operator) {
                continue;
            }
            let name = binding["roleRef"]["name"].as_str().expect("a binding has a role");
            let namespace = binding["metadata"]["namespace"].as_str().unwrap_or_default();
            let found = cluster.json(&["get", role, name, "-n", namespace]);
            for rule in items_of(&found["rules"]) {
                unused.extend(unused_of(rule, namespace, calls));
            }
        }
    }
    unused.into_iter().collect()
}

/// The unused permissions of a rule. With names, each of them must be used.
fn unused_of(rule: &Value, namespace: &str, calls: &BTreeSet<Call>) -> Vec<String> {
    let mut unused = Vec::new();
    let names = strings(&rule["resourceNames"]);
    let names: Vec<Option<&str>> =
        if names.is_empty() { vec![None] } else { names.iter().copied().map(Some).collect() };
    for group in strings(&rule["apiGroups"]) {
        for resource in strings(&rule["resources"]) {
            for verb in strings(&rule["verbs"]) {
                for name in &names {
                    let uses = |call: &Call| {
                        call.uses(verb)
                            && call.group == group
                            && call.resource == resource
                            && name.is_none_or(|name| call.name == name)
                            && (namespace.is_empty() || call.namespace == namespace)
                    };
                    if !calls.iter().any(uses) {
                        let dot = if group.is_empty() { "" } else { "." };
                        let name = name.map(|name| format!(" {name}")).unwrap_or_default();
                        unused.push(format!("{verb} {resource}{dot}{group}{name}"));
                    }
                }
            }
        }
    }
    unused
}

fn items(list: &Value) -> Vec<Value> {
    items_of(&list["items"]).cloned().collect()
}

fn items_of(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn strings(value: &Value) -> Vec<&str> {
    items_of(value).filter_map(Value::as_str).collect()
}
