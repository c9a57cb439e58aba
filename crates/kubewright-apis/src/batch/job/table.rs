//! The row of a Job.

use serde_json::Value;

use crate::table::row::{Row, age_of, instant, is_true};
use kubewright_apimachinery::object::Fields as _;

/// The fields that [`cells`] reads.
pub(super) const CELL_PATHS: &[&str] = &[
    "metadata.name",
    "metadata.creationTimestamp",
    "metadata.deletionTimestamp",
    "spec.completions",
    "spec.parallelism",
    "spec.selector",
    "spec.template.spec.containers.name",
    "spec.template.spec.containers.image",
    "status",
];

pub(super) fn cells(row: &Row<'_>) -> Vec<Value> {
    let [names, images] = row.containers("spec.template.spec");
    vec![
        row.name(),
        job_status(row).into(),
        completions(row).into(),
        job_duration(row).into(),
        row.age(),
        names,
        images,
        row.selector("spec.selector"),
    ]
}

fn job_status(row: &Row<'_>) -> &'static str {
    let conditions = row.list("status.conditions");
    if is_true(conditions, "Complete") {
        "Complete"
    } else if is_true(conditions, "Failed") {
        "Failed"
    } else if row.is_deleted() {
        "Terminating"
    } else if is_true(conditions, "Suspended") {
        "Suspended"
    } else if is_true(conditions, "FailureTarget") {
        "FailureTarget"
    } else {
        "Running"
    }
}

fn completions(row: &Row<'_>) -> String {
    let succeeded = row.int("status.succeeded");
    match (row.object.int_at("spec.completions"), row.int("spec.parallelism")) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        _ => format!("{succeeded}/1"),
    }
}

fn job_duration(row: &Row<'_>) -> String {
    match (instant(row.str("status.startTime")), instant(row.str("status.completionTime"))) {
        (None, _) => String::new(),
        (Some(start), end) => age_of(start, end.unwrap_or(row.now)),
    }
}
