//! CustomResourceDefinition: only the name rule.

use crate::kinds::KindRules;
use crate::registry::RegistryRules;
use kubewright_apimachinery::meta::NameRule;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    group: "apiextensions.k8s.io",
    kind: "CustomResourceDefinition",
    name: |object| NameRule::Definition {
        required: format!("{}.{}", object.str_at("spec.names.plural"), object.str_at("spec.group")),
    },
    registry: RegistryRules { own_preconditions: true, ..RegistryRules::CONDITIONAL_UPDATE },
    ..KindRules::DEFAULT
};
