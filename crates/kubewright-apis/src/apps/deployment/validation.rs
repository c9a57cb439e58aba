//! Validation of Deployment.

use serde_json::Value;

use crate::apps::replica_set;
use crate::validation::workload::{collisions_decreased, not_more_than_all};
use crate::validation::{
    int_or_percent, label_selector, not_negative, not_negative_all, not_supported_printed, printed,
};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;

pub(super) fn create(object: &Value) -> ErrorList {
    spec(object.at("spec"), &Path::new("spec"))
}

pub(super) fn update(new: &Value, old: &Value) -> ErrorList {
    let path = Path::new("spec");
    let mut errors = spec(new.at("spec"), &path);
    let selector = path.child("selector");
    errors.extend(label_selector::immutable(new.at("spec.selector"), old.at("spec.selector"), &selector));
    errors
}

pub(super) fn status(new: &Value, old: &Value) -> ErrorList {
    let path = Path::new("status");
    let status = new.at("status");
    let counts = [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "collisionCount",
    ];
    let mut errors = not_negative_all(status, &counts, &path);
    let parts = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    errors.extend(not_more_than_all(status, &parts, "readyReplicas", &path));
    errors.extend(collisions_decreased(new, old));
    errors
}

fn spec(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    errors.extend(not_negative(spec, "replicas", path));
    errors.extend(replica_set::selector_and_template(spec, path));
    errors.extend(strategy(spec.at("strategy"), &path.child("strategy")));
    errors.extend(not_negative(spec, "minReadySeconds", path));
    errors.extend(not_negative(spec, "revisionHistoryLimit", path));
    if let Some(deadline) = spec.int_at("progressDeadlineSeconds") {
        errors.extend(not_negative(spec, "progressDeadlineSeconds", path));
        if deadline <= spec.int_at("minReadySeconds").unwrap_or_default() {
            let at = path.child("progressDeadlineSeconds");
            errors.push(FieldError::invalid(&at, deadline, "must be greater than minReadySeconds"));
        }
    }
    errors
}

fn strategy(strategy: &Value, path: &Path) -> ErrorList {
    let at = path.child("rollingUpdate");
    let rolling_update = strategy.at("rollingUpdate");
    match strategy.str_at("type") {
        "Recreate" if !rolling_update.is_null() => {
            vec![FieldError::forbidden(&at, "may not be specified when strategy `type` is 'Recreate'")]
        }
        "Recreate" => ErrorList::new(),
        "RollingUpdate" => rolling(rolling_update, &at),
        _ => vec![not_supported_printed(path, printed::strategy(strategy), &["Recreate", "RollingUpdate"])],
    }
}

fn rolling(update: &Value, path: &Path) -> ErrorList {
    let (unavailable, surge) = (update.at("maxUnavailable"), update.at("maxSurge"));
    let at = path.child("maxUnavailable");
    let mut errors = int_or_percent::validate(unavailable, &at);
    errors.extend(int_or_percent::validate(surge, &path.child("maxSurge")));
    if int_or_percent::amount(unavailable) == 0 && int_or_percent::amount(surge) == 0 {
        errors.push(FieldError::invalid(&at, unavailable.clone(), "may not be 0 when `maxSurge` is 0"));
    }
    errors.extend(int_or_percent::at_most_all(unavailable, &at));
    errors
}
