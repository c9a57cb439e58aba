//! CronJob, version v2 of batch.tutorial.kubebuilder.io. The schedule has a field for each of its parts.

use k8s_openapi::api::batch::v1::JobTemplateSpec;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kubewright::prelude::*;
use kubewright::schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// CronJobSpec defines the desired state of CronJob.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "batch.tutorial.kubebuilder.io",
    version = "v2",
    kind = "CronJob",
    plural = "cronjobs",
    storage = false,
    namespaced,
    status = "CronJobStatus",
    doc = "CronJob is the Schema for the cronjobs API.",
    printcolumn(name = "Suspend", type_ = "boolean", json_path = ".spec.suspend"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(name = "Last Schedule", type_ = "date", json_path = ".status.lastScheduleTime"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct CronJobSpec {
    /// Schedule in cron format, in UTC.
    pub schedule: CronSchedule,
    /// Deadline in seconds for starting a Job that missed its scheduled time. Without it, a missed Job starts at any time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub starting_deadline_seconds: Option<i64>,
    /// How to treat concurrent Jobs. Defaults to Allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_policy: Option<ConcurrencyPolicy>,
    /// Suspends later starts. Running Jobs are not affected. Defaults to false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// Template of the Jobs.
    pub job_template: JobTemplateSpec,
    /// Number of successful Jobs to keep. Defaults to 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub successful_jobs_history_limit: Option<i32>,
    /// Number of failed Jobs to keep. Defaults to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub failed_jobs_history_limit: Option<i32>,
}

/// CronSchedule defines when Jobs start. A field that is not set matches every value.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct CronSchedule {
    /// Minutes: 0-59.
    #[serde(default = "every")]
    #[schemars(transform = schema::pattern(FIELD))]
    pub minute: String,
    /// Hours: 0-23.
    #[serde(default = "every")]
    #[schemars(transform = schema::pattern(FIELD))]
    pub hour: String,
    /// Days of the month: 1-31.
    #[serde(default = "every")]
    #[schemars(transform = schema::pattern(FIELD))]
    pub day_of_month: String,
    /// Months: 1-12 or JAN-DEC.
    #[serde(default = "every")]
    #[schemars(transform = schema::pattern(FIELD))]
    pub month: String,
    /// Days of the week: 0-7 or SUN-SAT; 0 and 7 are Sunday.
    #[serde(default = "every")]
    #[schemars(transform = schema::pattern(FIELD))]
    pub day_of_week: String,
}

/// A space would be a further field in v1.
const FIELD: &str = r"^\S+$";

fn every() -> String {
    "*".to_owned()
}

/// ConcurrencyPolicy defines what happens if a Job is due while another one runs.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConcurrencyPolicy {
    /// Jobs run concurrently.
    #[default]
    Allow,
    /// The new Job waits until the running one has finished.
    Forbid,
    /// The new Job replaces the running one.
    Replace,
}

/// CronJobStatus defines the observed state of CronJob.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CronJobStatus {
    /// Running Jobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub active: Vec<ObjectReference>,
    /// Scheduled time of the latest Job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_schedule_time: Option<Time>,
    /// Conditions represent the current state of the CronJob.
    #[schemars(transform = schema::list_map(["type"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
