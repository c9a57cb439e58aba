//! Validation of StatefulSet.

mod printed;

use serde_json::{Value, json};

use crate::core::persistent_volume_claim::validation::claim as validate_claim;
use crate::core::pod::validation as pods;
use crate::validation::workload::{collisions_decreased, not_matched, not_more_than_all, runs_always};
use crate::validation::{int_or_percent, label_selector, not_negative, not_negative_all};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::selector::LabelSelector;

/// Mutable fields of the spec.
const MUTABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

pub(super) fn create(object: &Value) -> ErrorList {
    spec(object.at("spec"), true, &Path::new("spec"))
}

pub(super) fn update(new: &Value, old: &Value) -> ErrorList {
    let path = Path::new("spec");
    let mut errors = spec(new.at("spec"), false, &path);
    let fixed = |object: &Value| {
        let mut spec = object.map_at("spec").clone();
        spec.retain(|name, _| !MUTABLE.contains(&name.as_str()));
        spec
    };
    if fixed(new) != fixed(old) {
        errors.push(FieldError::forbidden(
            &path,
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
             'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
             'minReadySeconds' are forbidden",
        ));
    }
    errors
}

pub(super) fn status(new: &Value, old: &Value) -> ErrorList {
    let path = Path::new("status");
    let status = new.at("status");
    let counts = [
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ];
    let mut errors = not_negative_all(status, &counts, &path);
    let parts = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
    errors.extend(not_more_than_all(status, &parts, "status.readyReplicas", &path));
    errors.extend(collisions_decreased(new, old));
    errors
}

/// Validates the spec. Service name and claims are only validated on creation, because they are immutable and
/// old objects may have invalid ones.
fn spec(spec: &Value, new: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let at = path.child("podManagementPolicy");
    match spec.str_at("podManagementPolicy") {
        "OrderedReady" | "Parallel" => {}
        "" => errors.push(FieldError::required(&at, "")),
        other => errors.push(FieldError::invalid(&at, other, "must be 'OrderedReady' or 'Parallel'")),
    }
    errors.extend(strategy(spec.at("updateStrategy"), &path.child("updateStrategy")));
    errors.extend(retention_policy(spec, path));
    if new {
        errors.extend(claims(spec.list_at("volumeClaimTemplates"), &path.child("volumeClaimTemplates")));
    }
    errors.extend(not_negative(spec, "replicas", path));
    errors.extend(not_negative(spec, "minReadySeconds", path));
    errors.extend(not_negative(spec.at("ordinals"), "start", &path.child("ordinals")));
    let service = spec.str_at("serviceName");
    if new && !service.is_empty() {
        errors.extend(meta::invalid(&path.child("serviceName"), service, names::dns1123_label(service)));
    }
    errors.extend(selector_and_template(spec, path));
    errors
}

fn strategy(strategy: &Value, path: &Path) -> ErrorList {
    let at = path.child("rollingUpdate");
    let update = strategy.at("rollingUpdate");
    match strategy.str_at("type") {
        "" => vec![FieldError::required(path, "")],
        "OnDelete" | "RollingUpdate" if update.is_null() => ErrorList::new(),
        "OnDelete" => {
            let detail = "only allowed for updateStrategy 'RollingUpdate'";
            vec![FieldError::invalid_printed(&at, printed::rolling_update(update), detail)]
        }
        "RollingUpdate" => rolling(update, &at),
        _ => {
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            vec![FieldError::invalid_printed(path, printed::strategy(strategy), detail)]
        }
    }
}

fn rolling(update: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    errors.extend(not_negative(update, "partition", path));
    let unavailable = update.at("maxUnavailable");
    if !unavailable.is_null() {
        let at = path.child("maxUnavailable");
        errors.extend(int_or_percent::validate(unavailable, &at));
        if int_or_percent::amount(unavailable) == 0 {
            errors.push(FieldError::invalid(&at, unavailable.clone(), "cannot be 0"));
        }
        errors.extend(int_or_percent::at_most_all(unavailable, &at));
    }
    errors
}

fn retention_policy(spec: &Value, path: &Path) -> ErrorList {
    let policy = spec.at("persistentVolumeClaimRetentionPolicy");
    if policy.is_null() {
        return ErrorList::new();
    }
    let path = path.child("persistentVolumeClaimRetentionPolicy");
    let supported = ["Retain", "Delete"];
    let wrong = |name: &str| {
        let value = policy.str_at(name);
        (!supported.contains(&value)).then(|| FieldError::not_supported(&path.child(name), value, &supported))
    };
    ["whenDeleted", "whenScaled"].into_iter().filter_map(wrong).collect()
}

/// Validates the specs of claim templates like those of PersistentVolumeClaims.
fn claims(claims: &[Value], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (i, claim) in claims.iter().enumerate() {
        let path = path.index(i);
        errors.extend(validate_claim(claim).into_iter().map(|error| {
            let field = path.child(&error.field).to_string();
            FieldError { field, ..error }
        }));
    }
    errors
}

fn selector_and_template(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let at = path.child("selector");
    let selector = spec.at("selector");
    if selector.is_null() {
        errors.push(FieldError::required(&at, ""));
    } else {
        errors.extend(label_selector::validate(selector, &at));
        if label_selector::is_empty(selector) {
            let detail = "empty selector is invalid for statefulset";
            errors.push(FieldError::invalid_printed(&at, label_selector::printed(selector), detail));
        }
    }
    let template = spec.at("template");
    let template_path = path.child("template");
    match LabelSelector::from_object(selector) {
        Ok(selector) => {
            errors.extend(not_matched(&selector, template, &template_path));
            let whole = with_claims(template, spec.list_at("volumeClaimTemplates"));
            errors.extend(pods::pod_template(&whole, &template_path));
        }
        Err(_) => errors.push(FieldError::invalid_printed(&at, label_selector::printed(selector), "")),
    }
    errors.extend(runs_always(template, "StatefulSet", &template_path));
    errors
}

/// The template with a volume for each claim, as in its pods. Volumes of the same name are replaced.
fn with_claims(template: &Value, claims: &[Value]) -> Value {
    let mut template = template.clone();
    if claims.is_empty() {
        return template;
    }
    let name = |claim: &Value| claim.str_at("metadata.name").to_owned();
    let mut volumes = template.list_at("spec.volumes").to_vec();
    volumes.retain(|volume| claims.iter().all(|claim| name(claim) != volume.str_at("name")));
    volumes.extend(claims.iter().map(|claim| {
        let name = name(claim);
        json!({"persistentVolumeClaim": {"claimName": name}, "name": name})
    }));
    template.set_at("spec.volumes", volumes);
    template
}
