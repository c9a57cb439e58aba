//! Why a reconcile ran, with a real manager and the cluster's controllers.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kubewright_runtime::{Context, Manager, ManagerOptions, Outcome, Reconciler, eventually};
use serde_json::{Value, json};

use super::world::{Call, Stream, World};
use super::{DEADLINE, entries};

/// Applies a Deployment for each ConfigMap with a replica count.
struct Viewer;

impl Reconciler for Viewer {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, cx: &Context) -> kubewright_runtime::Result<Outcome> {
        let Some(replicas) = map.data.iter().flatten().find(|(key, _)| *key == "replicas") else {
            return Ok(Outcome::done());
        };
        let labels = json!({ "app": map.name_any() });
        let container = json!({ "name": "web", "image": "nginx" });
        let deployment: Deployment = serde_json::from_value(json!({
            "metadata": { "name": map.name_any() },
            "spec": {
                "replicas": replicas.1.parse::<i32>().unwrap_or(1),
                "selector": { "matchLabels": labels },
                "template": { "metadata": { "labels": labels }, "spec": { "containers": [container] } },
            },
        }))
        .expect("a Deployment");
        cx.apply_owned(deployment).await?;
        Ok(Outcome::done())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_of_a_controller_leads_back_to_the_user() {
    let world = World::with_cluster().await;
    let mut stream = Stream::open(&world.page, None).await;
    let options = ManagerOptions {
        journal: Some(world.page.journal_address()),
        journal_token: Some(world.page.journal_token().to_owned()),
        ..ManagerOptions::new("viewer").namespaces(["default"])
    };
    let manager = Manager::new(world.client.clone(), options).expect("a manager");
    manager.controller(Viewer).owns::<Deployment>().register().expect("one controller");
    let running = tokio::spawn(manager.run_until(std::future::pending()));
    stream.until(|batch| !entries(batch, "operator").is_empty()).await;
    let path = "/api/v1/namespaces/default/configmaps";
    let map = json!({ "metadata": { "name": "web" }, "data": { "replicas": "1" } });
    world.create(&format!("{path}?fieldManager=kubectl-create"), &map).await;
    leads_back_to(&world, "kubectl-create", "created").await;
    let change = json!({ "data": { "replicas": "2" } });
    world.merge(&format!("{path}/web?fieldManager=kubectl-edit"), &change).await;
    leads_back_to(&world, "kubectl-edit", "modified").await;
    running.abort();
}

/// Waits for a reconcile that a ready Pod caused, and whose chain ends at the write of a user.
async fn leads_back_to(world: &World, manager: &str, verb: &str) {
    let found = eventually(DEADLINE, async || {
        let chains = chains(world).await;
        let is_it = |chain: &Vec<Value>| {
            chain.last().is_some_and(|step| step["manager"] == manager)
                && chain.iter().any(|step| step["kind"] == "Pod")
        };
        chains.iter().find(|chain| is_it(chain)).cloned().ok_or_else(|| format!("{chains:#?}"))
    });
    let chain = found.await.expect("the chain goes back to the user");
    let shown =
        |step: &Value| format!("{} {} {} {}", step["step"], step["by"], step["kind"], step["certain"]);
    let steps: Vec<String> = chain.iter().map(shown).collect();
    // The write of the Deployment's controller is known by its resource version, and what it reacted to is likely.
    assert_eq!(steps[0], r#""write" "controller" "Deployment" true"#, "{steps:#?}");
    assert!(steps[1..].iter().any(|step| step == r#""write" "controller" "ReplicaSet" false"#), "{steps:#?}");
    let own = steps.iter().position(|step| step.starts_with(r#""reconcile""#)).expect("a reconcile");
    assert_eq!(steps[own - 1], r#""write" "operator" "Deployment" false"#, "{steps:#?}");
    let first = chain.last().expect("it is not empty");
    assert_eq!(
        (&first["by"], &first["kind"], &first["verb"]),
        (&json!("user"), &json!("ConfigMap"), &json!(verb))
    );
}

/// The chains of all reconciles. The page may observe writes later than the operator.
async fn chains(world: &World) -> Vec<Vec<Value>> {
    let mut stream = Stream::open(&world.page, None).await;
    // The full state comes in parts.
    stream.until(|batch| batch["more"] == json!(false)).await;
    let reconciles = stream.seen().iter().flat_map(|batch| entries(batch, "reconcile")).collect::<Vec<_>>();
    let ids = reconciles.iter().filter_map(|reconcile| reconcile["id"].as_str());
    let mut chains = Vec::new();
    for id in ids {
        let answer = Call::get(&format!("/why?id={id}")).send(&world.page).await;
        let why: Value = serde_json::from_str(&answer.text).expect("it is JSON");
        let found = why["chains"].as_array().into_iter().flatten().filter_map(Value::as_array);
        // Other causes of a reconcile start at writes of the operator or the user.
        let of_controller =
            |chain: &&Vec<Value>| chain.first().is_some_and(|step| step["by"] == "controller");
        chains.extend(found.filter(of_controller).cloned());
    }
    chains
}
