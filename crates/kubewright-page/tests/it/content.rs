//! What the page contains.

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http_body_util::Full;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kubewright_runtime::webhook::{AdmissionRequest, Defaulter, Rejection, mutate_path};
use serde_json::{Value, json};

use crate::world::{Entries, Http, World, local};

/// The path of an ID, with its colon escaped.
fn escaped(id: &Value) -> String {
    id.as_str().unwrap_or_default().replace(':', "%3A")
}

#[tokio::test]
async fn reconciles_have_cause_calls_outcome_and_retry_time() -> Result<()> {
    let world = World::start(local()?)?;
    world.config_map("good", &json!({})).await?;
    world.config_map("bad", &json!({})).await?;
    let both = |entries: &Entries| {
        entries.ended("good").any(|it| it["outcome"] == "done") && entries.ended("bad").next().is_some()
    };
    let entries = world.entries(both).await?;
    let operator = entries.of("operator").next().context("an operator")?;
    assert_eq!((&operator["name"], &operator["controllers"]), (&json!("labeller"), &json!(["configmap"])));
    let good = entries.ended("good").next().context("a reconcile")?;
    assert_eq!((&good["controller"], &good["kind"]), (&json!("configmap"), &json!("ConfigMap")));
    assert_eq!((&good["causes"][0]["why"], &good["causes"][0]["name"]), (&json!("created"), &json!("good")));
    assert_eq!(
        (&good["calls"][0]["method"], &good["calls"][0]["status"]),
        (&json!("PATCH"), &json!(200)),
        "{good}"
    );
    assert!(good["ms"].as_f64().is_some_and(|ms| ms > 0.0), "{good}");
    let bad = entries.ended("bad").next().context("a reconcile")?;
    assert_eq!((&bad["outcome"], &bad["error"]), (&json!("error"), &json!("no label for bad")));
    assert!(bad["after"].as_f64().is_some_and(|after| after > 0.0), "{bad}");
    world.end().await
}

#[tokio::test]
async fn the_chain_of_causes_ends_at_the_field_manager_that_wrote_first() -> Result<()> {
    let world = World::start(local()?)?;
    let created = world.config_map("page", &json!({ "text": "one" })).await?;
    world.entries(|entries| entries.ended("page").next().is_some()).await?;
    let maps: Api<ConfigMap> = Api::default_namespaced(world.client.clone());
    let edit = Patch::Merge(json!({ "data": { "text": "two" } }));
    let by = PatchParams { field_manager: Some("kubectl-edit".to_owned()), ..PatchParams::default() };
    maps.patch("page", &by, &edit).await?;
    let edited = |it: &&Value| {
        it["causes"][0]["changed"].as_array().is_some_and(|it| it.contains(&json!("data.text")))
    };
    let entries = world.entries(|entries| entries.ended("page").find(edited).is_some()).await?;
    let reconcile = entries.ended("page").find(edited).context("a reconcile")?;
    let http = Http::plain(world.address().await?);
    let why = http.get(&format!("/debug/page/why?id={}", escaped(&reconcile["id"])), None).await?;
    let why: Value = serde_json::from_str(&why.body)?;
    let first = &why["chains"][0][0];
    assert_eq!(
        (&first["step"], &first["manager"], &first["by"], &first["changed"]),
        (&json!("write"), &json!("kubectl-edit"), &json!("user"), &json!(["data.text"])),
        "{why}"
    );

    let id = created.metadata.uid.context("a uid")?;
    let detail = http.get(&format!("/debug/page/object?id={id}"), None).await?;
    let detail: Value = serde_json::from_str(&detail.body)?;
    let writers: Vec<&Value> =
        detail["writes"].as_array().into_iter().flatten().map(|write| &write["manager"]).collect();
    assert!(writers.contains(&&json!("kubectl-edit")) && writers.contains(&&json!("labeller")), "{detail}");
    assert_eq!((&detail["lines"], &detail["managed"]), (&json!([]), &json!("")), "no content of the object");
    world.end().await
}

struct Passwords;

impl Defaulter for Passwords {
    type Object = Secret;

    async fn default(&self, secret: &mut Secret, _: &AdmissionRequest) -> Result<(), Rejection> {
        secret.string_data.get_or_insert_default().insert("password".into(), "hunter2".into());
        Ok(())
    }
}

#[tokio::test]
async fn neither_secrets_nor_other_content_of_objects_are_shown() -> Result<()> {
    let world = World::start_with(local()?, |manager| {
        manager.cache().informer::<Secret>();
        manager.cache().informer::<ConfigMap>();
        Ok(manager.defaulter(Passwords)?)
    })?;
    let secret = json!({
        "metadata": { "name": "login", "annotations": { "note": "aHVudGVyMw==" } },
        "stringData": { "password": "hunter4" },
    });
    let secrets: Api<Secret> = Api::default_namespaced(world.client.clone());
    let secret: Secret = secrets.create(&PostParams::default(), &serde_json::from_value(secret)?).await?;
    secrets
        .patch(
            "login",
            &PatchParams::default(),
            &Patch::Merge(json!({ "stringData": { "password": "hunter5" } })),
        )
        .await?;
    let map = world.config_map("settings", &json!({ "key": "confidential" })).await?;
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "1", "operation": "CREATE", "namespace": "default", "name": "login",
            "kind": { "group": "", "version": "v1", "kind": "Secret" }, "userInfo": { "username": "alice" },
            "object": { "metadata": { "name": "login", "namespace": "default" }, "stringData": { "password": "hunter6" } },
        },
    });
    let request = http::Request::post(mutate_path::<Secret>()).header("content-type", "application/json");
    let body = Full::new(Bytes::from(review.to_string()));
    assert_eq!(world.manager.webhooks().handle(request.body(body)?).await.status(), 200);

    let entries = world
        .entries(|entries| {
            let changed = |it: &Value| it["name"] == "login" && it["kind"] == "Secret";
            entries.of("object").any(changed)
                && entries.ended("settings").next().is_some()
                && entries.of("review").next().is_some()
        })
        .await?;
    let review = entries.of("review").next().context("a review")?;
    assert_eq!(
        (&review["allowed"], &review["patch"][0]["value"], &review["patch"][0]["before"]),
        (&json!(true), &json!("(redacted)"), &Value::Null),
        "{review}"
    );
    let http = Http::plain(world.address().await?);
    let mut seen = format!("{entries:?}");
    for uid in [secret.metadata.uid, map.metadata.uid] {
        seen += &http.get(&format!("/debug/page/object?id={}", uid.context("a uid")?), None).await?.body;
    }
    for hidden in ["hunter", "aHVudGVy", "confidential"] {
        assert!(!seen.contains(hidden), "{hidden} is in {seen}");
    }
    assert!(seen.contains("login") && seen.contains("settings"));
    world.end().await
}

#[tokio::test]
async fn a_fixed_number_of_reconciles_and_lines_is_kept() -> Result<()> {
    let world = World::start(local()?)?;
    for number in 0..520 {
        world.config_map(&format!("map-{number}"), &json!({})).await?;
    }
    world.config_map("bad", &json!({})).await?;
    for number in 0..520 {
        world.page.log(&format!("line {number}"));
    }
    world.entries(|entries| entries.ended("bad").count() > 1).await?;
    // A new reader gets what is kept.
    let entries = world.entries(|_| true).await?;
    assert_eq!(entries.of("reconcile").count(), 500);
    assert_eq!(entries.of("log").count(), 500);
    assert!(entries.of("log").all(|line| line["text"] != "line 0"));
    assert!(entries.of("log").any(|line| line["text"] == "line 519"));
    world.end().await
}

#[tokio::test]
async fn objects_are_removed_when_they_are_deleted() -> Result<()> {
    let world = World::start(local()?)?;
    world.config_map("short", &json!({})).await?;
    let shown = |entries: &Entries| entries.of("object").any(|it| it["name"] == "short");
    world.entries(|entries| shown(entries) && entries.ended("short").next().is_some()).await?;
    let maps: Api<ConfigMap> = Api::default_namespaced(world.client.clone());
    maps.delete("short", &kube::api::DeleteParams::default()).await?;
    world.entries(|entries| !shown(entries)).await?;
    world.end().await
}
