//! Validation of DaemonSet.

use serde_json::Value;

use crate::core::pod::validation as pods;
use crate::validation::workload::{collisions_decreased, not_matched, runs_always};
use crate::validation::{
    int_or_percent, label_selector, not_negative, not_negative_all, not_supported_printed, printed,
};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::selector::LabelSelector;

pub(super) fn create(object: &Value) -> ErrorList {
    let path = Path::new("spec");
    let spec = object.at("spec");
    let selector = spec.at("selector");
    let at = path.child("selector");
    let template = path.child("template");
    let mut errors = label_selector::validate(selector, &at);
    if let Ok(selector) = LabelSelector::from_object(selector) {
        errors.extend(not_matched(&selector, spec.at("template"), &template));
    }
    if !selector.is_null() && label_selector::is_empty(selector) {
        let detail = "empty selector is invalid for daemonset";
        errors.push(FieldError::invalid_printed(&at, label_selector::printed(selector), detail));
    }
    errors.extend(pods::pod_template(spec.at("template"), &template));
    errors.extend(runs_always(spec.at("template"), "DaemonSet", &template));
    errors.extend(not_negative(spec, "minReadySeconds", &path));
    errors.extend(strategy(spec.at("updateStrategy"), &path.child("updateStrategy")));
    errors.extend(not_negative(spec, "revisionHistoryLimit", &path));
    errors
}

pub(super) fn update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = create(new);
    let path = Path::new("spec").child("selector");
    errors.extend(label_selector::immutable(new.at("spec.selector"), old.at("spec.selector"), &path));
    errors
}

pub(super) fn status(new: &Value, old: &Value) -> ErrorList {
    let counts = [
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ];
    let mut errors = not_negative_all(new.at("status"), &counts, &Path::new("status"));
    errors.extend(collisions_decreased(new, old));
    errors
}

fn strategy(strategy: &Value, path: &Path) -> ErrorList {
    let at = path.child("rollingUpdate");
    match strategy.str_at("type") {
        "OnDelete" => ErrorList::new(),
        "RollingUpdate" if !strategy.has("rollingUpdate") => vec![FieldError::required(&at, "")],
        "RollingUpdate" => rolling(strategy.at("rollingUpdate"), &at),
        _ => vec![not_supported_printed(path, printed::strategy(strategy), &["RollingUpdate", "OnDelete"])],
    }
}

fn rolling(update: &Value, path: &Path) -> ErrorList {
    let (unavailable, surge) = (update.at("maxUnavailable"), update.at("maxSurge"));
    let (unavailable_path, surge_path) = (path.child("maxUnavailable"), path.child("maxSurge"));
    let mut errors = int_or_percent::validate(unavailable, &unavailable_path);
    errors.extend(int_or_percent::validate(surge, &surge_path));
    errors.extend(int_or_percent::at_most_all(unavailable, &unavailable_path));
    errors.extend(int_or_percent::at_most_all(surge, &surge_path));
    match (int_or_percent::amount(unavailable), int_or_percent::amount(surge)) {
        (0, 0) => errors.push(FieldError::required(&unavailable_path, "cannot be 0 when maxSurge is 0")),
        (0, _) | (_, 0) => {}
        _ => {
            let detail = "may not be set when maxUnavailable is non-zero";
            errors.push(FieldError::invalid(&surge_path, surge.clone(), detail));
        }
    }
    errors
}
