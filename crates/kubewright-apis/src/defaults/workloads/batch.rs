//! Defaults of Job and CronJob.

use serde_json::Value;

use super::{default_template, default_text};
use kubewright_apimachinery::object::Fields as _;

/// The backoff limit of a Job with `backoffLimitPerIndex`.
const NO_BACKOFF_LIMIT: i32 = i32::MAX;

pub(super) fn job(object: &mut Value) {
    default_template(object, "spec.template");
    // Without both the Job runs once. With only parallelism it is a work queue and has no completions.
    if !object.has("spec.completions") && !object.has("spec.parallelism") {
        object.set_at("spec.completions", 1);
    }
    object.default_at("spec.parallelism", 1);
    let by_index = object.has("spec.backoffLimitPerIndex");
    object.default_at("spec.backoffLimit", if by_index { NO_BACKOFF_LIMIT } else { 6 });
    let labels = object.at("spec.template.metadata.labels");
    if labels.is_object() && object.map_at("metadata.labels").is_empty() {
        let labels = labels.clone();
        object.set_at("metadata.labels", labels);
    }
    object.default_at("spec.completionMode", "NonIndexed");
    object.default_at("spec.suspend", false);
    let replace = if object.has("spec.podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    object.default_at("spec.podReplacementPolicy", replace);
    object.default_at("spec.manualSelector", false);
    pod_failure_policy(object, "spec.podFailurePolicy");
}

pub(super) fn cron_job(object: &mut Value) {
    default_text(object, "spec.concurrencyPolicy", "Allow");
    object.default_at("spec.suspend", false);
    object.default_at("spec.successfulJobsHistoryLimit", 3);
    object.default_at("spec.failedJobsHistoryLimit", 1);
    default_template(object, "spec.jobTemplate.spec.template");
    // The Job gets its other defaults when it is created.
    pod_failure_policy(object, "spec.jobTemplate.spec.podFailurePolicy");
}

fn pod_failure_policy(object: &mut Value, path: &str) {
    let Some(policy) = object.at_mut(path) else { return };
    for rule in policy.list_mut("rules").into_iter().flatten() {
        for pattern in rule.list_mut("onPodConditions").into_iter().flatten() {
            default_text(pattern, "status", "True");
        }
    }
}
