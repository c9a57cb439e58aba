//! Validation of Job status and its transitions.
//!
//! Other controllers may manage a Job (`spec.managedBy`), and clients rely on the status. Most rules only
//! apply if the related fields change, so that an already invalid status can still be updated.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{indexes, is_indexed, printed};
use crate::validation::{invalid_omitted, not_negative_all};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;

pub(in crate::batch::job) fn update(new: &Value, old: &Value) -> ErrorList {
    let path = Path::new("status");
    let change =
        Change { new: Status(new.at("status")), old: Status(old.at("status")), spec: new.at("spec"), path };
    let mut errors = not_negative_all(
        change.new.0,
        &["active", "succeeded", "failed", "ready", "terminating"],
        &change.path,
    );
    errors.extend(uncounted_pods(change.new.0, &change.path));
    errors.extend(change.conditions_and_times());
    errors.extend(change.finished());
    errors.extend(change.indexes());
    errors.extend(change.terminating());
    errors.extend(change.success_criteria());
    errors.extend(change.transitions());
    errors
}

#[derive(Clone, Copy)]
struct Status<'a>(&'a Value);

impl Status<'_> {
    fn is(self, condition: &str) -> bool {
        let conditions = self.0.list_at("conditions");
        conditions.iter().any(|c| c.str_at("type") == condition && c.str_at("status") == "True")
    }

    fn is_finished(self) -> bool {
        self.is("Complete") || self.is("Failed")
    }

    fn count(self, name: &str) -> i64 {
        self.0.int_at(name).unwrap_or_default()
    }
}

struct Change<'a> {
    new: Status<'a>,
    old: Status<'a>,
    spec: &'a Value,
    path: Path,
}

impl Change<'_> {
    fn changed(&self, name: &str) -> bool {
        self.new.0.at(name) != self.old.0.at(name)
    }

    fn condition_changed(&self, condition: &str) -> bool {
        self.new.is(condition) != self.old.is(condition)
    }

    fn invalid(&self, name: &str, detail: impl Into<String>) -> FieldError {
        FieldError::invalid(&self.path.child(name), self.new.0.at(name).clone(), detail)
    }

    fn condition_error(&self, detail: &str) -> FieldError {
        invalid_omitted(&self.path.child("conditions"), detail)
    }

    fn conditions_and_times(&self) -> ErrorList {
        let (new, path) = (self.new, &self.path);
        let mut errors = ErrorList::new();
        let complete = new.is("Complete");
        let complete_changed = self.condition_changed("Complete");
        if (complete_changed || self.condition_changed("Failed")) && complete && new.is("Failed") {
            errors.push(self.condition_error("cannot set Complete=True and Failed=true conditions"));
        }
        if (complete_changed || self.condition_changed("FailureTarget"))
            && complete
            && new.is("FailureTarget")
        {
            errors.push(self.condition_error("cannot set Complete=True and FailureTarget=true conditions"));
        }
        let completed_at = new.0.has("completionTime");
        if complete_changed || self.changed("completionTime") {
            if completed_at && !complete {
                let detail = "cannot set completionTime when there is no Complete=True condition";
                errors.push(self.invalid("completionTime", detail));
            }
            if !completed_at && complete {
                let detail = "completionTime is required for Complete jobs";
                errors.push(FieldError::required(&path.child("completionTime"), detail));
            }
        }
        if (self.changed("startTime") || self.changed("completionTime"))
            && new.0.has("startTime")
            && completed_at
            // Times are normalized, so they can be compared as strings.
            && new.0.str_at("completionTime") < new.0.str_at("startTime")
        {
            errors.push(self.invalid("completionTime", "completionTime cannot be set before startTime"));
        }
        let failure_changed = self.condition_changed("Failed") || self.condition_changed("FailureTarget");
        if failure_changed && new.is("Failed") && !new.is("FailureTarget") {
            let detail = "cannot set Failed=True condition without the FailureTarget=true condition";
            errors.push(self.condition_error(detail));
        }
        let success_changed = complete_changed || self.condition_changed("SuccessCriteriaMet");
        if success_changed && complete && !new.is("SuccessCriteriaMet") {
            let detail = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition";
            errors.push(self.condition_error(detail));
        }
        errors
    }

    fn finished(&self) -> ErrorList {
        let mut errors = ErrorList::new();
        let finished = self.new.is_finished();
        if !finished {
            return errors;
        }
        let now = !self.old.is_finished();
        if (now || self.changed("active")) && self.new.count("active") > 0 {
            errors.push(self.invalid("active", "active>0 is invalid for finished job"));
        }
        if (now || self.changed("startTime")) && !self.new.0.has("startTime") {
            let detail = "startTime is required for finished job";
            errors.push(FieldError::required(&self.path.child("startTime"), detail));
        }
        let uncounted = self.new.0.at("uncountedTerminatedPods");
        let left = !uncounted.list_at("succeeded").is_empty() || !uncounted.list_at("failed").is_empty();
        if (now || self.changed("uncountedTerminatedPods")) && left {
            errors.push(FieldError::invalid_printed(
                &self.path.child("uncountedTerminatedPods"),
                printed::uncounted_terminated_pods(uncounted),
                "uncountedTerminatedPods needs to be empty for finished job",
            ));
        }
        errors
    }

    fn indexes(&self) -> ErrorList {
        let mut errors = ErrorList::new();
        let completed = self.new.0.str_at("completedIndexes");
        let failed = self.new.0.at("failedIndexes").as_str();
        let (completed_changed, failed_changed) =
            (self.changed("completedIndexes"), self.changed("failedIndexes"));
        let completions = self.spec.int_at("completions");
        let by_index = self.spec.has("backoffLimitPerIndex");
        if let Some(completions) = completions {
            if completed_changed && let Err(error) = indexes::count(completed, completions) {
                errors.push(self.index_error("completedIndexes", completed, &error));
            }
            if failed_changed
                && by_index
                && let Some(failed) = failed
                && let Err(error) = indexes::count(failed, completions)
            {
                errors.push(self.index_error("failedIndexes", failed, &error));
            }
        }
        if completed_changed && !completed.is_empty() && !is_indexed(self.spec) {
            let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
            errors.push(self.invalid("completedIndexes", detail));
        }
        if failed_changed && failed.is_some() && !by_index {
            let detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
            errors.push(self.invalid("failedIndexes", detail));
        }
        if (failed_changed || completed_changed)
            && let (Some(completions), Some(failed)) = (completions, failed)
            && let Some(index) = indexes::overlap(completed, failed, completions)
        {
            let detail = format!("failedIndexes and completedIndexes overlap at index: {index}");
            errors.push(self.invalid("failedIndexes", detail));
        }
        errors
    }

    fn index_error(&self, name: &str, text: &str, error: &str) -> FieldError {
        FieldError::invalid(&self.path.child(name), text, format!("error parsing {name}: {error}"))
    }

    fn terminating(&self) -> ErrorList {
        let mut errors = ErrorList::new();
        let now = self.old.is_finished() != self.new.is_finished();
        if (now || self.changed("terminating")) && self.new.is_finished() && self.new.count("terminating") > 0
        {
            errors.push(self.invalid("terminating", "terminating>0 is invalid for finished job"));
        }
        if (self.changed("ready") || self.changed("active"))
            && self.new.0.has("ready")
            && self.new.count("ready") > self.new.count("active")
        {
            errors.push(self.invalid("ready", "cannot set more ready pods than active"));
        }
        errors
    }

    fn success_criteria(&self) -> ErrorList {
        let mut errors = ErrorList::new();
        let met = self.new.is("SuccessCriteriaMet");
        if met && self.new.is("Failed") {
            errors
                .push(self.condition_error("cannot set SuccessCriteriaMet=True and Failed=true conditions"));
        }
        if met && self.new.is("FailureTarget") {
            let detail = "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions";
            errors.push(self.condition_error(detail));
        }
        if self.spec.has("successPolicy") && !met && self.new.is("Complete") {
            let detail = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
            errors.push(self.condition_error(detail));
        }
        errors
    }

    fn transitions(&self) -> ErrorList {
        let (new, old) = (self.new, self.old);
        let mut errors = ErrorList::new();
        for condition in ["Failed", "Complete", "FailureTarget"] {
            if old.is(condition) && !new.is(condition) {
                let detail = format!("cannot disable the terminal {condition}=True condition");
                errors.push(self.condition_error(&detail));
            }
        }
        if new.count("failed") < old.count("failed") {
            errors.push(self.count_error("failed"));
        }
        // An elastic Job, with completions equal to parallelism, can be scaled down.
        let elastic = is_indexed(self.spec) && self.spec.at("completions") == self.spec.at("parallelism");
        if !elastic && new.count("succeeded") < old.count("succeeded") {
            errors.push(self.count_error("succeeded"));
        }
        let (completed, before) = (new.0.at("completionTime"), old.0.at("completionTime"));
        if !completed.is_null() && !before.is_null() && completed != before {
            errors.push(self.invalid("completionTime", "completionTime cannot be mutated"));
        }
        if old.0.has("startTime") && self.changed("startTime") && !self.spec.bool_at("suspend") {
            let detail = "startTime cannot be removed for unsuspended job";
            errors.push(FieldError::required(&self.path.child("startTime"), detail));
        }
        if old.is("SuccessCriteriaMet") && !new.is("SuccessCriteriaMet") {
            errors.push(self.condition_error("cannot disable the SuccessCriteriaMet=True condition"));
        }
        if old.is("Complete") && !old.is("SuccessCriteriaMet") && new.is("SuccessCriteriaMet") {
            let detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
            errors.push(self.condition_error(detail));
        }
        errors
    }

    fn count_error(&self, name: &str) -> FieldError {
        let detail = format!("cannot decrease the {name} counter");
        FieldError::invalid(&self.path.child(name), self.new.count(name), detail)
    }
}

/// Validates that each uncounted pod is listed once.
fn uncounted_pods(status: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    let pods = status.at("uncountedTerminatedPods");
    for name in ["succeeded", "failed"] {
        for (i, uid) in pods.list_at(name).iter().enumerate() {
            let at = path.child("uncountedTerminatedPods").child(name).index(i);
            let uid = uid.as_str().unwrap_or_default();
            if uid.is_empty() {
                errors.push(FieldError::invalid(&at, uid, "must not be empty"));
            } else if !seen.insert(uid) {
                errors.push(FieldError::duplicate(&at, uid));
            }
        }
    }
    errors
}
