//! NetworkPolicy.

mod validation;

use serde_json::{Value, json};

use crate::kinds::KindRules;
use crate::strategy::{count_spec, start_generation};
use crate::table::row::Row;
use kubewright_apimachinery::field::Path;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "NetworkPolicy",
    defaults,
    prepare_create: start_generation,
    prepare_update: count_spec,
    warnings: |new, _| warnings(new),
    validate: validation::policy,
    validate_update: |new, _| validation::policy(new),
    cells,
    ..super::GROUP
};

fn defaults(object: &mut Value) {
    for direction in ["spec.ingress", "spec.egress"] {
        for rule in object.list_mut(direction).into_iter().flatten() {
            for port in rule.list_mut("ports").into_iter().flatten() {
                port.default_at("protocol", "TCP");
            }
        }
    }
    if object.list_at("spec.policyTypes").is_empty() {
        // Egress rules imply the policy type Egress. Ingress is always included.
        let both = !object.list_at("spec.egress").is_empty();
        object
            .set_at("spec.policyTypes", if both { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) });
    }
}

fn warnings(policy: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in policy.at("spec").list_at(direction).iter().enumerate() {
            let path = Path::new("spec").child(direction).index(index).child(peers);
            for (index, peer) in rule.list_at(peers).iter().enumerate() {
                let path = path.index(index).child("ipBlock");
                let cidr = path.child("cidr");
                warnings.extend(names::cidr_warnings(cidr.as_str(), peer.str_at("ipBlock.cidr")));
                for (index, except) in peer.list_at("ipBlock.except").iter().enumerate() {
                    let path = path.child("except").index(index);
                    warnings.extend(names::cidr_warnings(path.as_str(), except.as_str().unwrap_or_default()));
                }
            }
        }
    }
    warnings
}

fn cells(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), row.selector("spec.podSelector"), row.age()]
}

#[cfg(test)]
mod tests;
