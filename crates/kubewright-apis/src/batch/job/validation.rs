//! Validation of Job and of the job template of CronJob.

mod indexes;
mod policies;
mod printed;
pub(super) mod status;

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::core::pod::validation as pods;
use crate::validation::workload::NOT_MATCHED;
use crate::validation::{label_selector, not_negative};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::selector::LabelSelector;

const MAX_INDEXED_PARALLELISM: i64 = 100_000;
const MAX_FAILED_INDEXES: i64 = 100_000;
/// Above this number of completions, Jobs with `backoffLimitPerIndex` have lower limits.
const MANY_COMPLETIONS: i64 = 100_000;
const LIMIT_FOR_MANY: i64 = 10_000;
const MAX_MANAGED_BY: usize = 63;

pub(super) fn create(object: &Value) -> ErrorList {
    whole(object, true)
}

pub(super) fn update(new: &Value, old: &Value) -> ErrorList {
    // Old Jobs only have the labels without prefix and keep them.
    let labels = old.map_at("spec.template.metadata.labels");
    let prefixed = [JOB_NAME, CONTROLLER_UID].into_iter().all(|label| labels.contains_key(label));
    let mut errors = whole(new, prefixed);
    let path = Path::new("spec");
    errors.extend(spec_and_selector(new.at("spec"), &path));
    errors.extend(changes(new, old, &path));
    errors
}

/// Validates the spec of a Job except its selector, which the template of a CronJob does not have.
pub(in crate::batch) fn spec(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for name in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        errors.extend(not_negative(spec, name, path));
    }
    if spec.has("maxFailedIndexes") && !spec.has("backoffLimitPerIndex") {
        let detail = "when maxFailedIndexes is specified";
        errors.push(FieldError::required(&path.child("backoffLimitPerIndex"), detail));
    }
    if spec.has("managedBy") {
        errors.extend(managed_by(spec.str_at("managedBy"), &path.child("managedBy")));
    }
    errors.extend(completion_mode(spec, path));
    errors.extend(policies::pod_failure(spec, path));
    errors.extend(policies::success(spec, path));
    errors.extend(policies::pod_replacement(spec, path));
    errors.extend(pods::pod_template(spec.at("template"), &path.child("template")));
    errors.extend(restart_policy(spec, &path.child("template").child("spec").child("restartPolicy")));
    errors
}

const JOB_NAME: &str = "batch.kubernetes.io/job-name";
const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";

fn whole(object: &Value, prefixed: bool) -> ErrorList {
    let mut errors = generated_selector(object, prefixed);
    let spec = object.at("spec");
    errors.extend(spec_and_selector(spec, &Path::new("spec")));
    let completions = spec.int_at("completions").unwrap_or_default();
    if is_indexed(spec) && completions > 0 {
        let name = object.str_at("metadata.name");
        // The hostname of the last pod. An invalid one is rejected early.
        let hostname = format!("{name}-{}", completions - 1);
        if !names::dns1123_label(&hostname).is_empty() {
            let detail = format!("will not able to create pod with invalid DNS label: {hostname}");
            errors.push(FieldError::invalid(&Path::new("metadata").child("name"), name, detail));
        }
    }
    errors
}

/// Validates that selector and labels are the generated ones, unless `manualSelector` is set.
fn generated_selector(object: &Value, prefixed: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    let selector = object.at("spec.selector");
    if object.bool_at("spec.manualSelector") || selector.is_null() {
        return errors;
    }
    let (name, uid) = (object.str_at("metadata.name"), object.str_at("metadata.uid"));
    if uid.is_empty() {
        errors.push(FieldError::required(&Path::new("metadata").child("uid"), ""));
    }
    let mut expected = vec![("controller-uid", uid), ("job-name", name)];
    if prefixed {
        expected.extend([(CONTROLLER_UID, uid), (JOB_NAME, name)]);
    }
    let path = Path::new("spec").child("template").child("metadata").child("labels");
    let labels = object.at("spec.template.metadata.labels");
    for (key, value) in &expected {
        let detail = format!("must be '{value}'");
        match labels.get(key) {
            None => errors.push(FieldError::required(&path.key(key), detail)),
            Some(actual) if actual != value => {
                errors.push(FieldError::invalid(&path.key(key), labels.clone(), detail));
            }
            Some(_) => {}
        }
    }
    let expected: Map<String, Value> = expected.iter().map(|(k, v)| ((*k).to_owned(), (*v).into())).collect();
    if LabelSelector::from_object(selector).is_ok_and(|selector| !selector.matches(&expected)) {
        let at = Path::new("spec").child("selector");
        let printed = label_selector::printed(selector);
        errors.push(FieldError::invalid_printed(&at, printed, "`selector` not auto-generated"));
    }
    errors
}

fn spec_and_selector(job: &Value, path: &Path) -> ErrorList {
    let mut errors = spec(job, path);
    let selector = job.at("selector");
    if selector.is_null() {
        errors.push(FieldError::required(&path.child("selector"), ""));
    } else {
        errors.extend(label_selector::validate(selector, &path.child("selector")));
    }
    let labels = job.at("template.metadata.labels");
    if LabelSelector::from_object(selector).is_ok_and(|selector| !selector.matches(labels)) {
        let at = path.child("template").child("metadata").child("labels");
        errors.push(FieldError::invalid(&at, labels.clone(), NOT_MATCHED));
    }
    errors
}

fn managed_by(manager: &str, path: &Path) -> ErrorList {
    if manager.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors: ErrorList = names::domain_prefixed_path(manager)
        .into_iter()
        .map(|(part, message)| FieldError::invalid(path, part, message))
        .collect();
    if manager.len() > MAX_MANAGED_BY {
        errors.push(FieldError::too_long(path, MAX_MANAGED_BY));
    }
    errors
}

fn completion_mode(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let invalid =
        |name: &str, detail: &str| FieldError::invalid(&path.child(name), spec.at(name).clone(), detail);
    match spec.str_at("completionMode") {
        "Indexed" => errors.extend(indexed(spec, path)),
        "" | "NonIndexed" => {
            for name in ["backoffLimitPerIndex", "maxFailedIndexes"] {
                if spec.has(name) {
                    errors.push(invalid(name, "requires indexed completion mode"));
                }
            }
        }
        other => {
            let at = path.child("completionMode");
            errors.push(FieldError::not_supported(&at, other, &["NonIndexed", "Indexed"]));
        }
    }
    errors
}

fn indexed(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let at_most = |name: &str, limit: i64, rest: &str| {
        spec.int_at(name).filter(|value| *value > limit).map(|value| {
            FieldError::invalid(
                &path.child(name),
                value,
                format!("must be less than or equal to {limit}{rest}"),
            )
        })
    };
    let completions = spec.int_at("completions");
    if completions.is_none() {
        errors.push(FieldError::required(&path.child("completions"), "when completion mode is Indexed"));
    }
    errors.extend(at_most("parallelism", MAX_INDEXED_PARALLELISM, " when completion mode is Indexed"));
    if let (Some(completions), Some(failed)) = (completions, spec.int_at("maxFailedIndexes"))
        && failed > completions
    {
        let detail = "must be less than or equal to completions";
        errors.push(FieldError::invalid(&path.child("maxFailedIndexes"), failed, detail));
    }
    errors.extend(at_most("maxFailedIndexes", MAX_FAILED_INDEXES, ""));
    if completions.is_some_and(|count| count > MANY_COMPLETIONS) && spec.has("backoffLimitPerIndex") {
        if !spec.has("maxFailedIndexes") {
            let detail = format!("must be specified when completions is above {MANY_COMPLETIONS}");
            errors.push(FieldError::required(&path.child("maxFailedIndexes"), detail));
        }
        let rest =
            format!(" when completions are above {MANY_COMPLETIONS} and used with backoff limit per index");
        errors.extend(at_most("parallelism", LIMIT_FOR_MANY, &rest));
        errors.extend(at_most("maxFailedIndexes", LIMIT_FOR_MANY, &rest));
    }
    errors
}

fn restart_policy(spec: &Value, path: &Path) -> Option<FieldError> {
    match spec.str_at("template.spec.restartPolicy") {
        // `Always` is the default of pods, not a choice of the user.
        "" | "Always" => Some(FieldError::required(path, r#"valid values: "OnFailure", "Never""#)),
        "OnFailure" if spec.has("podFailurePolicy") => {
            let detail = r#"only "Never" is supported when podFailurePolicy is specified"#;
            Some(FieldError::invalid(path, "OnFailure", detail))
        }
        "OnFailure" | "Never" => None,
        other => Some(FieldError::not_supported(path, other, &["OnFailure", "Never"])),
    }
}

/// Validates immutable fields and fields that only change together.
fn changes(new: &Value, old: &Value, path: &Path) -> ErrorList {
    let (spec, before) = (new.at("spec"), old.at("spec"));
    let mut errors = ErrorList::new();
    let immutable = |name: &str| meta::immutable(spec.at(name), before.at(name), &path.child(name));
    let immutable_printed = |name: &str, print: fn(&Value) -> String| {
        (spec.at(name) != before.at(name)).then(|| {
            FieldError::invalid_printed(&path.child(name), print(spec.at(name)), "field is immutable")
        })
    };
    if !is_indexed(spec) {
        errors.extend(immutable("completions"));
    } else if spec.has("completions")
        && spec.at("completions") != before.at("completions")
        && spec.at("completions") != spec.at("parallelism")
    {
        let detail = format!("can only be modified in tandem with {}", path.child("parallelism"));
        errors.push(FieldError::invalid(&path.child("completions"), spec.at("completions").clone(), detail));
    }
    errors.extend(label_selector::immutable(
        spec.at("selector"),
        before.at("selector"),
        &path.child("selector"),
    ));
    errors.extend(template_change(new, old, &path.child("template")));
    errors.extend(immutable("completionMode"));
    errors.extend(immutable_printed("podFailurePolicy", printed::pod_failure_policy));
    errors.extend(immutable("backoffLimitPerIndex"));
    errors.extend(immutable("managedBy"));
    errors.extend(immutable_printed("successPolicy", printed::success_policy));
    errors
}

/// Rejects changes of the template. A suspended Job may change scheduling directives and resources, as queue
/// controllers do when they admit it.
fn template_change(new: &Value, old: &Value, path: &Path) -> Option<FieldError> {
    let (template, before) = (new.at("spec.template"), old.at("spec.template"));
    if !may_be_rescheduled(old) {
        return (template != before).then(|| {
            FieldError::invalid_printed(path, printed::pod_template(template), "field is immutable")
        });
    }
    let mut allowed = before.at("spec").clone();
    let spec = template.at("spec");
    for name in ["nodeSelector", "tolerations", "schedulingGates"] {
        take_over(&mut allowed, spec, name);
    }
    take_over(&mut allowed, spec, "affinity.nodeAffinity");
    if !spec.has("affinity") && allowed.map_at("affinity").is_empty() {
        allowed.remove_at("affinity");
    }
    for list in ["containers", "initContainers"] {
        // The first container with a name takes precedence.
        let by_name: HashMap<&Value, &Value> =
            spec.list_at(list).iter().rev().map(|container| (container.at("name"), container)).collect();
        for container in allowed.list_mut(list).into_iter().flatten() {
            if let Some(same) = by_name.get(container.at("name")) {
                take_over(container, same, "resources");
            }
        }
    }
    (*spec != allowed).then(|| {
        FieldError::invalid_printed(&path.child("spec"), printed::pod_spec(spec), "field is immutable")
    })
}

fn take_over(to: &mut Value, from: &Value, path: &str) {
    if from.has(path) {
        to.set_at(path, from.at(path).clone());
    } else {
        to.remove_at(path);
    }
}

/// Whether a Job is suspended and has no pods, because it never started or all pods are deleted.
fn may_be_rescheduled(job: &Value) -> bool {
    let stopped =
        |condition: &Value| condition.str_at("type") == "Suspended" && condition.str_at("status") == "True";
    job.bool_at("spec.suspend")
        && job.int_at("status.active").unwrap_or_default() == 0
        && (!job.has("status.startTime") || job.list_at("status.conditions").iter().any(stopped))
}

pub(super) fn is_indexed(spec: &Value) -> bool {
    spec.str_at("completionMode") == "Indexed"
}
