//! Tests of Job.

use serde_json::{Value, json};

use crate::strategy::prepare_create;
use crate::testing::{
    CREATED, JOB, defaulted_spec, job, prepared, row, spec_errors, spec_without_template, status_errors,
    template, update_errors,
};

#[test]
fn a_job_defaults_to_one_completion() {
    let job = |spec: Value| defaulted_spec("batch/v1", "Job", &spec);
    assert_eq!(
        spec_without_template(&job(json!({"template": {"spec": {"containers": []}}}))),
        json!({
            "backoffLimit": 6, "completionMode": "NonIndexed", "completions": 1, "manualSelector": false,
            "parallelism": 1, "podReplacementPolicy": "TerminatingOrFailed", "suspend": false,
        })
    );
    assert_eq!(job(json!({"parallelism": 3}))["spec"].get("completions"), None);
    assert_eq!(job(json!({"backoffLimitPerIndex": 1}))["spec"]["backoffLimit"], i32::MAX);
    let policy = json!({"rules": [{"action": "Ignore", "onPodConditions": [{"type": "T"}]}]});
    let object = job(json!({"podFailurePolicy": policy, "template": template()}));
    assert_eq!(object["spec"]["podReplacementPolicy"], "Failed");
    assert_eq!(object["spec"]["podFailurePolicy"]["rules"][0]["onPodConditions"][0]["status"], "True");
    assert_eq!(object["metadata"]["labels"], json!({"app": "a"}));
}

#[test]
fn a_job_selects_its_pods_by_uid() {
    let mut job = json!({
        "metadata": {"name": "j", "uid": "u"}, "spec": {"manualSelector": false, "template": {"spec": {}}},
    });
    prepare_create(JOB, &mut job);
    let labels = json!({
        "batch.kubernetes.io/controller-uid": "u", "batch.kubernetes.io/job-name": "j", "controller-uid": "u",
        "job-name": "j",
    });
    assert_eq!(job["spec"]["template"]["metadata"]["labels"], labels);
    assert_eq!(job["metadata"]["labels"], labels);
    assert_eq!(job["spec"]["selector"], json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}));
}

#[test]
fn labels_copied_from_the_template_get_the_generated_ones() {
    let labels = json!({"app": "a"});
    let mut job = json!({
        "metadata": {"name": "j", "uid": "u", "labels": labels}, "spec": {"template": {"metadata": {"labels": labels}}},
    });
    prepare_create(JOB, &mut job);
    assert_eq!(job["metadata"]["labels"]["job-name"], "j");
    let mut job = json!({
        "metadata": {"name": "j", "uid": "u", "labels": {"b": "c"}}, "spec": {"template": {"metadata": {"labels": labels}}},
    });
    prepare_create(JOB, &mut job);
    assert_eq!(job["metadata"]["labels"], json!({"b": "c"}));
}

#[test]
fn a_job_with_manual_selector_is_unchanged() {
    let mut job = json!({"metadata": {"name": "j", "uid": "u"}, "spec": {"manualSelector": true}});
    prepare_create(JOB, &mut job);
    assert_eq!(job["spec"], json!({"manualSelector": true}));
}

#[test]
fn a_job_must_have_the_generated_selector() {
    let job = |others: Value| spec_errors("batch/v1", "Job", &job(&others));
    assert!(job(json!({})).is_empty());
    assert_eq!(
        job(json!({"selector": {"matchLabels": {"app": "a"}}})),
        [
            "spec.selector: Invalid value: \
             {\"matchLabels\":{\"app\":\"a\",\"batch.kubernetes.io/controller-uid\":\"u\"}}: `selector` not \
             auto-generated",
            "spec.template.metadata.labels: Invalid value: \
             {\"batch.kubernetes.io/controller-uid\":\"u\",\"batch.kubernetes.io/job-name\":\"x\",\
             \"controller-uid\":\"u\",\"job-name\":\"x\"}: `selector` does not match template `labels`",
        ]
    );
    assert_eq!(
        job(json!({"manualSelector": true})),
        [
            "spec.selector: Required value",
            "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`",
        ]
    );
}

#[test]
fn backoff_limit_per_index_requires_indexed_completion_mode() {
    let job = |others: Value| spec_errors("batch/v1", "Job", &job(&others));
    assert_eq!(
        job(json!({"backoffLimitPerIndex": 1})),
        ["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"]
    );
    assert_eq!(
        job(json!({"completionMode": "X"})),
        ["spec.completionMode: Unsupported value: \"X\": supported values: \"NonIndexed\", \"Indexed\""]
    );
    assert_eq!(
        job(json!({"successPolicy": {"rules": [{"succeededCount": 1}]}})),
        [
            "spec.successPolicy: Invalid value: {\"Rules\":[{\"SucceededIndexes\":null,\"SucceededCount\":1}]}: \
          requires indexed completion mode"
        ]
    );
    let rules = json!({"rules": [{"succeededIndexes": "0-9", "succeededCount": 4}]});
    assert_eq!(
        job(json!({"completionMode": "Indexed", "completions": 3, "successPolicy": rules})),
        [
            "spec.successPolicy.rules[0].succeededIndexes: Invalid value: \"0-9\": error parsing succeededIndexes: \
             too large index: \"9\"",
            "spec.successPolicy.rules[0].succeededCount: Invalid value: 4: must be less than or equal to 3 (the \
             number of specified completions)",
            "spec.successPolicy.rules[0].succeededCount: Invalid value: 4: must be less than or equal to 0 (the \
             number of indexes in the specified succeededIndexes field)",
        ]
    );
}

#[test]
fn rules_of_a_pod_failure_policy_are_validated() {
    let rule =
        |rule: Value| spec_errors("batch/v1", "Job", &job(&json!({"podFailurePolicy": {"rules": [rule]}})));
    assert_eq!(
        rule(json!({"action": "X"})),
        [
            "spec.podFailurePolicy.rules[0].action: Unsupported value: \"X\": supported values: \"Count\", \
             \"FailIndex\", \"FailJob\", \"Ignore\"",
            "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is \
             required",
        ]
    );
    assert_eq!(
        rule(json!({"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3, 0, 3]}})),
        [
            "spec.podFailurePolicy.rules[0].onExitCodes.values[1]: Invalid value: 0: must not be 0 for the In \
             operator",
            "spec.podFailurePolicy.rules[0].onExitCodes.values[2]: Duplicate value: 3",
            "spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [3,0,3]: must be ordered",
        ]
    );
}

#[test]
fn the_template_of_a_running_job_is_immutable() {
    let old = prepared("batch/v1", "Job", &json!({"spec": job(&json!({}))}));
    let mut new = old.clone();
    new["spec"]["completions"] = 5.into();
    assert_eq!(update_errors(&new, &old), ["spec.completions: Invalid value: 5: field is immutable"]);
    let mut new = old.clone();
    new["spec"]["template"]["spec"]["nodeSelector"] = json!({"a": "b"});
    let errors = update_errors(&new, &old);
    assert_eq!(errors.len(), 1);
    assert!(errors[0].starts_with("spec.template: Invalid value: {\"labels\":{"), "{errors:?}");
    assert!(errors[0].ends_with("}}: field is immutable"), "{errors:?}");
}

#[test]
fn a_suspended_job_can_change_scheduling_directives() {
    let old = prepared("batch/v1", "Job", &json!({"spec": job(&json!({"suspend": true}))}));
    let mut new = old.clone();
    new["spec"]["template"]["spec"]["nodeSelector"] = json!({"a": "b"});
    new["spec"]["template"]["metadata"]["annotations"] = json!({"a": "b"});
    new["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    assert_eq!(update_errors(&new, &old), Vec::<String>::new());
    new["spec"]["template"]["spec"]["containers"][0]["image"] = "other".into();
    let errors = update_errors(&new, &old);
    assert_eq!(errors.len(), 1);
    assert!(errors[0].starts_with("spec.template.spec: Invalid value: {\"Volumes\":null"), "{errors:?}");
}

#[test]
fn a_complete_job_needs_a_consistent_status() {
    let mut old = prepared("batch/v1", "Job", &json!({"spec": job(&json!({}))}));
    old["status"] = json!({"active": 1, "startTime": "2024-01-01T00:00:00Z"});
    let mut new = old.clone();
    new["status"]["active"] = (-1).into();
    assert_eq!(
        status_errors(&new, &old),
        ["status.active: Invalid value: -1: must be greater than or equal to 0"]
    );
    let mut new = old.clone();
    new["status"]["conditions"] = json!([{"type": "Complete", "status": "True"}]);
    assert_eq!(
        status_errors(&new, &old),
        [
            "status.completionTime: Required value: completionTime is required for Complete jobs",
            "status.conditions: Invalid value: cannot set Complete=True condition without the \
             SuccessCriteriaMet=true condition",
            "status.active: Invalid value: 1: active>0 is invalid for finished job",
        ]
    );
}

#[test]
fn jobs_show_their_status_and_completions() {
    let job = |spec: Value, status: Value| {
        let cells = row("batch/v1", "Job", json!({"spec": spec, "status": status}));
        [1, 2, 3].map(|at| cells[at].as_str().unwrap().to_owned())
    };
    assert_eq!(job(json!({"completions": 3}), json!({})), ["Running", "0/3", ""]);
    let started = json!({"startTime": CREATED, "succeeded": 1});
    assert_eq!(job(json!({"parallelism": 2}), started.clone()), ["Running", "1/1 of 2", "60m"]);
    assert_eq!(job(json!({"parallelism": 1}), started), ["Running", "1/1", "60m"]);
    let complete = json!({
        "startTime": CREATED, "completionTime": "2024-01-01T00:00:30Z", "succeeded": 1,
        "conditions": [{"type": "Suspended", "status": "False"}, {"type": "Complete", "status": "True"}],
    });
    assert_eq!(job(json!({"completions": 1}), complete), ["Complete", "1/1", "30s"]);
}
