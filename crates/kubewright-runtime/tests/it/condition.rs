//! Conditions, stored in the embedded server and read back.

use jiff::Timestamp;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Client;
use kube::api::{Api, PostParams};
use kubewright_apiserver::{ApiServer, Options};
use kubewright_runtime::condition::{ConditionUpdate, is_false, set_condition};

#[tokio::test(start_paused = true)]
async fn a_condition_that_was_written_and_read_needs_no_second_write() {
    let client = Client::new(ApiServer::new(Options { seed: Some(1), ..Options::default() }), "default");
    let api: Api<PodDisruptionBudget> = Api::default_namespaced(client);
    let budget = serde_json::json!({"metadata": {"name": "web"}, "spec": {"minAvailable": 1}});
    let mut budget =
        api.create(&PostParams::default(), &serde_json::from_value(budget).unwrap()).await.unwrap();

    let now: Timestamp = "2026-01-01T00:00:00.123456789Z".parse().unwrap();
    let update = |budget: &PodDisruptionBudget| {
        ConditionUpdate::false_("DisruptionAllowed", "InsufficientPods", "0 of 1 pods run")
            .observed(budget.metadata.generation)
    };
    let wanted = update(&budget);
    let conditions = budget.status.get_or_insert_default().conditions.get_or_insert_default();
    assert!(set_condition(conditions, wanted, now));
    let written = conditions.clone();
    api.replace_status("web", &PostParams::default(), &budget).await.unwrap();

    let read = api.get("web").await.unwrap();
    let wanted = update(&read);
    let mut conditions = read.status.unwrap().conditions.unwrap();
    assert_eq!(conditions, written);
    assert!(is_false(&conditions, "DisruptionAllowed"));
    assert!(!set_condition(&mut conditions, wanted, Timestamp::MAX));
}
