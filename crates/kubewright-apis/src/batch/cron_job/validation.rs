//! Validation of CronJob.

use serde_json::Value;

use crate::batch::job::validation as job;
use crate::validation::{label_selector, not_negative};
use crate::{cron, time_zone};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;

/// The controller appends 11 characters for names of Jobs, which are limited to 63.
const MAX_NAME: usize = 52;

pub(super) fn create(object: &Value) -> ErrorList {
    let mut errors = spec(object.at("spec"), None);
    let name = object.str_at("metadata.name");
    if name.len() > MAX_NAME {
        let at = Path::new("metadata").child("name");
        errors.push(FieldError::invalid(&at, name, format!("must be no more than {MAX_NAME} characters")));
    }
    errors
}

pub(super) fn update(new: &Value, old: &Value) -> ErrorList {
    spec(new.at("spec"), Some(old.at("spec")))
}

fn spec(spec: &Value, old: Option<&Value>) -> ErrorList {
    let path = Path::new("spec");
    let mut errors = ErrorList::new();
    errors.extend(format(spec, old, &path.child("schedule")));
    errors.extend(not_negative(spec, "startingDeadlineSeconds", &path));
    let time_zone = spec.at("timeZone");
    // An unchanged time zone is accepted, because the list of time zones may change.
    if old.is_none_or(|old| old.at("timeZone") != time_zone) {
        errors.extend(time_zone.as_str().into_iter().flat_map(|zone| zone_errors(zone, &path)));
    }
    let at = path.child("concurrencyPolicy");
    match spec.str_at("concurrencyPolicy") {
        "Allow" | "Forbid" | "Replace" => {}
        "" => errors.push(FieldError::required(&at, "")),
        other => errors.push(FieldError::not_supported(&at, other, &["Allow", "Forbid", "Replace"])),
    }
    errors.extend(template(spec.at("jobTemplate.spec"), &path.child("jobTemplate").child("spec")));
    errors.extend(not_negative(spec, "successfulJobsHistoryLimit", &path));
    errors.extend(not_negative(spec, "failedJobsHistoryLimit", &path));
    errors
}

fn format(spec: &Value, old: Option<&Value>, path: &Path) -> ErrorList {
    let text = spec.str_at("schedule");
    if text.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = ErrorList::new();
    if let Err(error) = cron::parse(text) {
        errors.push(FieldError::invalid(path, text, error));
    }
    if text.contains("TZ") {
        let had_zone = old.is_some_and(|old| old.str_at("schedule").contains("TZ"));
        if !had_zone {
            let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
            errors.push(FieldError::invalid(path, text, detail));
        } else if spec.has("timeZone") {
            let detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
            errors.push(FieldError::invalid(path, text, detail));
        }
    }
    errors
}

fn zone_errors(zone: &str, path: &Path) -> ErrorList {
    let at = path.child("timeZone");
    time_zone::messages(zone).into_iter().map(|message| FieldError::invalid(&at, zone, message)).collect()
}

fn template(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = job::spec(spec, path);
    // A selector could match only one of the Jobs.
    if spec.has("selector") {
        let printed = label_selector::printed(spec.at("selector"));
        let detail = "`selector` will be auto-generated";
        errors.push(FieldError::invalid_printed(&path.child("selector"), printed, detail));
    }
    if spec.bool_at("manualSelector") {
        errors.push(FieldError::not_supported(&path.child("manualSelector"), true, &["nil", "false"]));
    }
    errors
}
