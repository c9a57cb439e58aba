//! Tests of Node.

use serde_json::{Value, json};

use super::RULES;
use crate::testing::{messages, row};

fn set_defaults(mut object: Value) -> Value {
    (RULES.defaults)(&mut object);
    object
}

#[test]
fn allocatable_defaults_to_capacity() {
    let node =
        set_defaults(json!({"spec": {"podCIDR": "10.2.0.0/24"}, "status": {"capacity": {"cpu": "4"}}}));
    assert_eq!(node["status"]["allocatable"], json!({"cpu": "4"}));
    assert_eq!(node["spec"]["podCIDRs"], json!(["10.2.0.0/24"]));
}

#[test]
fn the_status_of_a_node_is_kept_on_create_but_not_on_update() {
    let mut node = json!({"metadata": {"name": "n"}, "status": {"phase": "Running"}});
    let created = node.clone();
    (RULES.prepare_create)(&mut node);
    assert_eq!(node, created);
    let mut new = json!({"metadata": {"name": "n"}, "spec": {"unschedulable": true}, "status": {}});
    (RULES.prepare_update)(&mut new, &node);
    assert_eq!(new["status"], json!({"phase": "Running"}));
    (RULES.prepare_subresource)("status", &mut new, &node);
    assert_eq!(new.get("spec"), None);
}

#[test]
fn taints_need_supported_effects_and_are_unique() {
    let taint = json!({"key": "a", "effect": "NoSchedule"});
    let node = json!({"spec": {"taints": [taint, taint, {"key": "a", "effect": "Bogus"}]}});
    assert_eq!(
        messages(&(RULES.validate)(&node)),
        [
            "metadata.taints[1]: Duplicate value: {\"Key\":\"a\",\"Value\":\"\",\"Effect\":\"NoSchedule\",\
             \"TimeAdded\":null}: taints must be unique by key and effect pair",
            "metadata.taints[2].effect: Unsupported value: \"Bogus\": supported values: \"NoSchedule\", \
             \"PreferNoSchedule\", \"NoExecute\"",
        ]
    );
}

#[test]
fn pod_cidrs_and_provider_id_of_a_node_are_immutable() {
    let old = json!({"spec": {"podCIDRs": ["10.2.0.0/24"], "providerID": "a"}});
    let new = json!({"spec": {"podCIDRs": ["10.3.0.0/24"]}});
    assert_eq!(
        messages(&(RULES.validate_update)(&new, &old)),
        [
            "spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \"\" to valid",
            "spec.providerID: Forbidden: node updates may not change providerID except from \"\" to valid",
        ]
    );
}

#[test]
fn a_node_shows_its_status_roles_and_system() {
    let parts = json!({
        "metadata": {"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "x", "node-role.kubernetes.io/": ""}},
        "spec": {"unschedulable": true},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"kubeletVersion": "v1.2.3", "osImage": "Linux", "kernelVersion": "5", "architecture": "amd64"},
            "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}],
        },
    });
    assert_eq!(
        row("v1", "Node", parts),
        json!([
            "o",
            "Ready,SchedulingDisabled",
            "worker,x",
            "60m",
            "v1.2.3",
            "192.0.2.1",
            "<none>",
            "Linux",
            "5 (amd64)",
            "<unknown>"
        ])
    );
    assert_eq!(
        row("v1", "Node", json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}))[1],
        "NotReady"
    );
    assert_eq!(row("v1", "Node", json!({}))[1], "Unknown");
}
