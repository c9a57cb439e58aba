//! Tests of CronJob.

use serde_json::{Value, json};

use crate::testing::{defaulted_spec, job, row, spec_errors};
use kubewright_apimachinery::object::Fields as _;

#[test]
fn a_cron_job_does_not_default_its_job_template() {
    let spec = json!({"schedule": "@daily", "jobTemplate": {"spec": {}}});
    let object = defaulted_spec("batch/v1", "CronJob", &spec);
    let mut spec = object["spec"].clone();
    let job = spec.remove_at("jobTemplate.spec").unwrap_or_default();
    assert!(!job.has("backoffLimit"));
    assert_eq!(
        spec,
        json!({
            "concurrencyPolicy": "Allow", "failedJobsHistoryLimit": 1, "jobTemplate": {"metadata": {}},
            "schedule": "@daily", "successfulJobsHistoryLimit": 3, "suspend": false,
        })
    );
}

#[test]
fn schedule_and_time_zone_of_a_cron_job_are_validated() {
    let cron_job = |others: Value| {
        let mut spec = json!({"schedule": "* * * * *", "jobTemplate": {"spec": job(&json!({}))}});
        for (name, value) in others.as_object().expect("an object") {
            spec[name] = value.clone();
        }
        spec_errors("batch/v1", "CronJob", &spec)
    };
    assert!(cron_job(json!({"timeZone": "Europe/Zurich"})).is_empty());
    assert_eq!(cron_job(json!({"schedule": ""})), ["spec.schedule: Required value"]);
    assert_eq!(
        cron_job(json!({"schedule": "TZ=UTC * * * * *"})),
        [
            "spec.schedule: Invalid value: \"TZ=UTC * * * * *\": cannot use TZ or CRON_TZ in schedule, use timeZone \
          field instead"
        ]
    );
    assert_eq!(
        cron_job(json!({"timeZone": "No/Where"})),
        ["spec.timeZone: Invalid value: \"No/Where\": unknown time zone No/Where"]
    );
    assert_eq!(
        cron_job(json!({"concurrencyPolicy": "X"})),
        [
            "spec.concurrencyPolicy: Unsupported value: \"X\": supported values: \"Allow\", \"Forbid\", \"Replace\""
        ]
    );
}

#[test]
fn cron_jobs_show_their_schedule() {
    let parts = json!({
        "spec": {"schedule": "* * * * *", "suspend": false, "timeZone": "Etc/UTC"},
        "status": {"active": [{}], "lastScheduleTime": "2024-01-01T00:59:00Z"},
    });
    assert_eq!(
        row("batch/v1", "CronJob", parts),
        json!(["o", "* * * * *", "Etc/UTC", "False", 1, "60s", "60m", "", "", "<none>"])
    );
}
