//! TaintNodesByCondition: adds the not-ready taint to new nodes.

use kubewright_apimachinery::object::Fields as _;
use serde_json::{Value, json};

use super::{Admission, Attributes, Cluster, Notes, Operation, Plugin};

pub(super) struct TaintNodesByCondition;

impl Plugin for TaintNodesByCondition {
    fn name(&self) -> &'static str {
        "TaintNodesByCondition"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Create
    }

    fn admit<'a>(
        &'a self,
        _cluster: &'a Cluster,
        attributes: &'a mut Attributes<'_>,
        _notes: &'a mut Notes,
    ) -> Admission<'a> {
        if attributes.is_for("", "nodes") {
            add_not_ready_taint(&mut attributes.object);
        }
        Admission::ALLOWED
    }
}

fn add_not_ready_taint(node: &mut Value) {
    const KEY: &str = "node.kubernetes.io/not-ready";
    let mut taints = node.list_at("spec.taints").to_vec();
    if taints.iter().any(|taint| taint.str_at("key") == KEY && taint.str_at("effect") == "NoSchedule") {
        return;
    }
    taints.push(json!({"key": KEY, "effect": "NoSchedule"}));
    node.set_at("spec.taints", taints);
}
