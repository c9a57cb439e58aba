//! CronJob.

mod validation;

use serde_json::Value;

use super::job;
use crate::core::pod::defaults::default_template;
use crate::defaults::default_text;
use crate::kinds::KindRules;
use crate::strategy::workload;
use crate::table::row::{NONE, Row, UNSET};
use kubewright_apimachinery::field::Path;
use kubewright_apimachinery::meta::Check;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "CronJob",
    defaults,
    warnings: |new, old| {
        workload::warnings(new, old, || {
            let path = Path::new("spec").child("jobTemplate").child("spec");
            job::spec_warnings(new.at("spec.jobTemplate.spec"), &path)
        })
    },
    update_checks: &[Check::Update],
    subresource_checks: |_| &[],
    validate: validation::create,
    validate_update: validation::update,
    cells,
    ..super::GROUP
};

fn defaults(object: &mut Value) {
    default_text(object, "spec.concurrencyPolicy", "Allow");
    object.default_at("spec.suspend", false);
    object.default_at("spec.successfulJobsHistoryLimit", 3);
    object.default_at("spec.failedJobsHistoryLimit", 1);
    default_template(object, "spec.jobTemplate.spec.template");
    // The Job gets its other defaults when it is created.
    job::pod_failure_policy(object, "spec.jobTemplate.spec.podFailurePolicy");
}

fn cells(row: &Row<'_>) -> Vec<Value> {
    let [names, images] = row.containers("spec.jobTemplate.spec.template.spec");
    let suspend = match row.object.at("spec.suspend").as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => UNSET,
    };
    let last = "status.lastScheduleTime";
    vec![
        row.name(),
        row.text("spec.schedule"),
        row.optional("spec.timeZone", NONE),
        suspend.into(),
        row.count("status.active"),
        if row.has(last) { row.since(last).into() } else { NONE.into() },
        row.age(),
        names,
        images,
        row.selector("spec.jobTemplate.spec.selector"),
    ]
}

#[cfg(test)]
mod tests;
