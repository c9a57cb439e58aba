//! CSIDriver. Its generation is absent until the first change.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::kinds::KindRules;
use crate::registry::RegistryRules;
use crate::strategy::count_change;
use crate::table::row::{NONE, Row, UNSET, joined, joined_list, non_empty};
use crate::validation::{one_of, strings};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta::{self, Check};
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "CSIDriver",
    defaults,
    prepare_update: |new, old| count_change(new, old, "spec"),
    update_checks: &[Check::Update],
    validate,
    validate_update,
    cells,
    registry: RegistryRules { returns_deleted: true, ..RegistryRules::CONDITIONAL_UPDATE },
    ..super::GROUP
};

fn defaults(object: &mut Value) {
    object.default_at("spec.attachRequired", true);
    for name in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
        object.default_at(&format!("spec.{name}"), false);
    }
    object.default_at("spec.fsGroupPolicy", "ReadWriteOnceWithFSType");
    if object.list_at("spec.volumeLifecycleModes").is_empty() {
        object.set_at("spec.volumeLifecycleModes", json!(["Persistent"]));
    }
}

fn validate(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = object.at("spec");
    let path = Path::new("spec");
    let policies = ["File", "None", "ReadWriteOnceWithFSType"];
    if let Some(policy) = spec.at("fsGroupPolicy").as_str() {
        errors.extend(one_of(policy, &policies, &path.child("fsGroupPolicy")));
    }
    errors.extend(token_requests(spec.list_at("tokenRequests"), &path.child("tokenRequests")));
    for mode in strings(spec, "volumeLifecycleModes") {
        errors.extend(one_of(mode, &["Persistent", "Ephemeral"], &path.child("volumeLifecycleModes")));
    }
    if let Some(period @ ..10) = spec.int_at("nodeAllocatableUpdatePeriodSeconds") {
        let path = path.child("nodeAllocatableUpdatePeriodSeconds");
        errors.push(FieldError::invalid(&path, period, "must be greater than or equal to 10 seconds"));
    }
    errors
}

fn validate_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = validate(new);
    let path = Path::new("spec");
    // Upstream's message has a typo in the first name.
    for (name, shown) in
        [("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")]
    {
        errors.extend(meta::immutable(new.at("spec").at(name), old.at("spec").at(name), &path.child(shown)));
    }
    errors
}

fn token_requests(requests: &[Value], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (i, request) in requests.iter().enumerate() {
        let path = path.index(i);
        let audience = request.str_at("audience");
        if !seen.insert(audience) {
            errors.push(FieldError::duplicate(&path.child("audience"), audience));
            continue;
        }
        let Some(seconds) = request.int_at("expirationSeconds") else { continue };
        let path = path.child("expirationSeconds");
        if seconds < 600 {
            errors.push(FieldError::invalid(
                &path,
                seconds,
                "may not specify a duration less than 10 minutes",
            ));
        }
        if seconds > 1 << 32 {
            errors.push(FieldError::invalid(
                &path,
                seconds,
                "may not specify a duration larger than 2^32 seconds",
            ));
        }
    }
    errors
}

fn cells(row: &Row<'_>) -> Vec<Value> {
    let requests = row.object.at("spec.tokenRequests").as_array();
    let audiences = requests.map(|requests| joined(requests.iter().map(|r| r.str_at("audience")), ","));
    vec![
        row.name(),
        row.object.at("spec.attachRequired").as_bool().unwrap_or(true).into(),
        row.flag("spec.podInfoOnMount"),
        row.flag("spec.storageCapacity"),
        audiences.as_deref().unwrap_or(UNSET).into(),
        row.flag("spec.requiresRepublish"),
        non_empty(&joined_list(row.list("spec.volumeLifecycleModes"), ","), NONE).into(),
        row.age(),
    ]
}
