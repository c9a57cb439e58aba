//! CSIStorageCapacity.

use serde_json::Value;

use crate::kinds::KindRules;
use crate::registry::RegistryRules;
use crate::validation::label_selector;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::quantity::Quantity;

pub(crate) const RULES: KindRules = KindRules {
    kind: "CSIStorageCapacity",
    validate,
    validate_update,
    registry: RegistryRules::CONDITIONAL_UPDATE,
    ..super::GROUP
};

fn validate(object: &Value) -> ErrorList {
    let mut errors = label_selector::validate(object.at("nodeTopology"), &Path::new("nodeTopology"));
    let class = object.str_at("storageClassName");
    errors.extend(meta::invalid(&Path::new("storageClassName"), class, names::dns1123_subdomain(class)));
    if let Ok(amount) = Quantity::from_json(object.at("capacity"))
        && amount.sign() < 0
    {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(&Path::new("capacity"), amount.to_string(), detail));
    }
    errors
}

fn validate_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = validate(new);
    let topology = Path::new("nodeTopology");
    errors.extend(label_selector::immutable(new.at("nodeTopology"), old.at("nodeTopology"), &topology));
    let class = Path::new("storageClassName");
    errors.extend(meta::immutable(new.at("storageClassName"), old.at("storageClassName"), &class));
    errors
}
