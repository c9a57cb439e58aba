//! CronJob of the kubebuilder book, with an embedded JobTemplateSpec.

use k8s_openapi::api::batch::v1::JobTemplateSpec;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use kubewright_manifests::crd::{self, Options};
use kubewright_manifests::{schema, yaml};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{judged, same, text};

/// CronJobSpec defines the desired state of CronJob
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "batch.tutorial.kubebuilder.io",
    version = "v1",
    kind = "CronJob",
    namespaced,
    status = "CronJobStatus",
    doc = "CronJob is the Schema for the cronjobs API"
)]
#[serde(rename_all = "camelCase")]
pub(super) struct CronJobSpec {
    /// schedule in Cron format, see https://en.wikipedia.org/wiki/Cron.
    #[schemars(length(min = 1))]
    schedule: String,
    /// startingDeadlineSeconds defines in seconds for starting the job if it misses scheduled
    /// time for any reason. Missed jobs executions will be counted as failed ones.
    #[schemars(range(min = 0))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    starting_deadline_seconds: Option<i64>,
    /// concurrencyPolicy specifies how to treat concurrent executions of a Job.
    #[serde(default)]
    concurrency_policy: ConcurrencyPolicy,
    /// suspend tells the controller to suspend subsequent executions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    suspend: Option<bool>,
    /// jobTemplate defines the job that will be created when executing a CronJob.
    job_template: JobTemplateSpec,
    /// successfulJobsHistoryLimit defines the number of successful finished jobs to retain.
    #[schemars(transform = schema::minimum(0))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    successful_jobs_history_limit: Option<i32>,
    /// failedJobsHistoryLimit defines the number of failed finished jobs to retain.
    #[schemars(transform = schema::minimum(0))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed_jobs_history_limit: Option<i32>,
}

/// ConcurrencyPolicy describes how the job will be handled.
#[derive(schemars::JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default)]
pub(super) enum ConcurrencyPolicy {
    /// Allows CronJobs to run concurrently.
    #[default]
    Allow,
    /// Forbids concurrent runs.
    Forbid,
    /// Cancels the running job, and replaces it.
    Replace,
}

/// CronJobStatus defines the observed state of CronJob.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct CronJobStatus {
    /// active defines a list of pointers to currently running jobs.
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    #[schemars(length(min = 1, max = 10))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    active: Option<Vec<ObjectReference>>,
    /// lastScheduleTime defines when was the last time the job was successfully scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_schedule_time: Option<Time>,
    /// conditions represent the current state of the CronJob resource.
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    conditions: Option<Vec<Condition>>,
}

#[test]
fn cronjob_equals_the_output_of_controller_gen() {
    let mut described = crd::of::<CronJob>();
    crd::limit_descriptions(&mut described.definition, 0);
    same("cronjob_without_descriptions", &text(&described));
}

#[test]
fn descriptions_make_up_most_of_a_crd() {
    let mut described = crd::of::<CronJob>();
    let size = |definition: &Value| (yaml::document(definition).len(), definition.to_string().len());
    let mut sizes = vec![("whole", size(&described.definition))];
    for (most, name) in [(200, "200 bytes each"), (0, "none")] {
        crd::limit_descriptions(&mut described.definition, most);
        assert_eq!(judged(&described.definition), [""; 0]);
        sizes.push((name, size(&described.definition)));
    }
    let sizes: Vec<String> =
        sizes.iter().map(|(name, (yaml, json))| format!("{name}: {yaml} of YAML, {json} of JSON")).collect();
    insta::assert_snapshot!(sizes.join("\n"), @"
    whole: 542132 of YAML, 321878 of JSON
    200 bytes each: 436057 of YAML, 222335 of JSON
    none: 226746 of YAML, 65760 of JSON
    ");
}

#[test]
fn a_truncated_description_ends_with_a_sentence() {
    let mut described = crd::of::<CronJob>();
    crd::limit_descriptions(&mut described.definition, 120);
    let at = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/startingDeadlineSeconds/description";
    assert_eq!(
        described.definition.pointer(at).unwrap(),
        "startingDeadlineSeconds defines in seconds for starting the job if it misses scheduled\ntime for any reason."
    );
}

#[test]
fn embedded_types_keep_their_list_types_and_keys() {
    let described = crd::of::<CronJob>();
    let spec = "/properties/spec/properties/jobTemplate/properties/spec/properties/template/properties/spec";
    let pod = super::schema(&described).pointer(spec).unwrap();
    let containers = &pod["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-list-type"], "map");
    assert_eq!(containers["x-kubernetes-list-map-keys"], json!(["name"]));
    let ports = &containers["items"]["properties"]["ports"];
    assert_eq!(ports["x-kubernetes-list-map-keys"], json!(["containerPort", "protocol"]));
    assert_eq!(ports["items"]["properties"]["protocol"]["default"], "TCP");
    assert_eq!(pod["properties"]["nodeSelector"]["x-kubernetes-map-type"], "atomic");
}

#[test]
fn embedded_metadata_is_generated_on_request() {
    let described = crd::with::<CronJob>(Options { embedded_object_meta: true });
    let metadata = "/properties/spec/properties/jobTemplate/properties/metadata";
    let metadata = super::schema(&described).pointer(metadata).unwrap();
    let names: Vec<&String> = metadata["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["annotations", "finalizers", "labels", "name", "namespace"]);
    assert_eq!(judged(&described.definition), [""; 0]);
}
