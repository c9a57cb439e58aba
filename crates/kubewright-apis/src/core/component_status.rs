//! ComponentStatus.

use serde_json::Value;

use crate::kinds::KindRules;
use crate::registry::RegistryRules;
use crate::table::row::{Row, condition};
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "ComponentStatus",
    cells,
    registry: RegistryRules {
        deprecation: Some("v1 ComponentStatus is deprecated in v1.19+"),
        ..RegistryRules::DEFAULT
    },
    ..super::GROUP
};

fn cells(row: &Row<'_>) -> Vec<Value> {
    let healthy = condition(row.list("conditions"), "Healthy");
    let status = match healthy.map(|healthy| healthy.str_at("status")) {
        Some("True") => "Healthy",
        Some(_) => "Unhealthy",
        None => "Unknown",
    };
    let text = |field: &str| healthy.map_or("", |healthy| healthy.str_at(field)).into();
    vec![row.name(), status.into(), text("message"), text("error")]
}
