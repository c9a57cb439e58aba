//! Ingress.

mod table;
mod validation;

use serde_json::{Value, json};

use crate::kinds::KindRules;
use crate::registry::RegistryRules;
use crate::strategy::{keep_status_and_count, start_generation};
use kubewright_apimachinery::field::ErrorList;
use kubewright_apimachinery::meta::Check;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "Ingress",
    prepare_create: |object| {
        object.set_at("status", json!({"loadBalancer": {}}));
        start_generation(object);
    },
    prepare_update: keep_status_and_count,
    warnings: |new, old| if old.is_none() { warnings(new) } else { Vec::new() },
    update_checks: &[Check::Update, Check::New],
    validate: validation::create,
    validate_update: |new, _| validation::spec(new),
    validate_subresource: |subresource, new, _| match subresource {
        "status" => validation::status(new),
        _ => ErrorList::new(),
    },
    cells: table::cells,
    registry: RegistryRules { etcd_name: Some("ingress"), ..RegistryRules::DEFAULT },
    ..super::GROUP
};

const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";

fn warnings(ingress: &Value) -> Vec<String> {
    if ingress.map_at("metadata.annotations").contains_key(INGRESS_CLASS)
        && !ingress.has("spec.ingressClassName")
    {
        return vec![format!(
            "annotation \"{INGRESS_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"
        )];
    }
    Vec::new()
}

#[cfg(test)]
mod tests;
