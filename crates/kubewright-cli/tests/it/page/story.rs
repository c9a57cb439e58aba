//! A realistic page: an operator that reconciles a sample, with causes and calls.

use std::time::Duration;

use serde_json::{Value, json};

use super::driver::{Browser, browse};
use super::world::{Journal, World, ago, now};

const VIEWS: &str = "/apis/example.com/v1/namespaces/default/markdownviews";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn panels_keep_their_place_while_content_arrives() {
    let world = World::with_cluster().await;
    world.define("MarkdownView").await;
    let mut journal = world.journal().await;
    browse(1440, 900, async |browser: &Browser| {
        browser.prefer("light").await;
        browser.open(&world.page.url()).await;
        browser.until("document.querySelector('#cluster .say').textContent === 'Connected'").await;
        let places = "[...document.querySelectorAll('.top, .panel')].map((panel) => JSON.stringify(panel.getBoundingClientRect()))";
        let before = browser.eval(places).await;
        play(&world, &mut journal).await;
        browser.until("[...document.querySelectorAll('#rows .badge')].filter((badge) => badge.title === 'Pod').length === 2").await;
        browser.until("[...document.querySelectorAll('#rows .say')].filter((word) => word.textContent === 'Running').length === 2").await;
        browser.until("document.querySelectorAll('#reconcile-list li').length === 7").await;
        assert_eq!(browser.eval(places).await, before, "nothing moves when content arrives");
        browser.eval("document.querySelectorAll('#reconcile-list .line')[3].click()").await;
        browser.until("document.querySelectorAll('.requests tbody tr').length === 4").await;
        assert_eq!(browser.eval(places).await, before);
        // Ages update, and highlights end.
        browser.until("parseInt(document.querySelector('#rows .age').textContent) >= 3").await;
        browser.until("document.getAnimations().length === 0").await;

        let view = "[...document.querySelectorAll('#rows .row')].find((row) => row.querySelector('.badge').title === 'MarkdownView')";
        browser.eval(&format!("{view}.click()")).await;
        browser.until("document.querySelectorAll('#object-yaml [data-mark]').length > 0").await;
        // The browser resolves the positions again.
        browser.until("document.querySelector('#overview-change [data-mark]')").await;
    })
    .await;
}

/// Creates a sample, its children and its status.
pub(super) async fn play(world: &World, journal: &mut Journal) {
    journal.hello("markdown-view", &["markdownview"]).await;
    let spec = json!({ "markdowns": { "SUMMARY.md": "- [Page 1](page1.md)", "page1.md": "# Hello" }, "replicas": 2, "viewerImage": "peaceiris/mdbook:latest" });
    let sample = json!({
        "apiVersion": "example.com/v1", "kind": "MarkdownView", "metadata": { "name": "markdownview-sample" }, "spec": spec,
    });
    let view = world.create(VIEWS, &sample).await;
    let owner = json!({
        "apiVersion": "example.com/v1", "kind": "MarkdownView", "name": "markdownview-sample", "uid": view["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    });
    let metadata = |name: &str| json!({ "name": name, "ownerReferences": [owner], "labels": { "app.kubernetes.io/name": "mdbook" } });
    let labels = json!({ "app.kubernetes.io/instance": "markdownview-sample" });
    let map = json!({ "metadata": metadata("markdowns-markdownview-sample"), "data": spec["markdowns"] });
    world.create("/api/v1/namespaces/default/configmaps", &map).await;
    let pod = json!({
        "metadata": { "labels": labels },
        "spec": { "containers": [{ "name": "mdbook", "image": "peaceiris/mdbook:latest" }] },
    });
    let deployment = json!({
        "metadata": metadata("viewer-markdownview-sample"),
        "spec": { "replicas": 2, "selector": { "matchLabels": labels }, "template": pod },
    });
    world.create("/apis/apps/v1/namespaces/default/deployments", &deployment).await;
    let service = json!({ "metadata": metadata("viewer-markdownview-sample"), "spec": { "selector": labels, "ports": [{ "port": 80 }] } });
    world.create("/api/v1/namespaces/default/services", &service).await;

    let modified = |field: &str| json!([{ "why": "modified", "kind": "Deployment", "namespace": "default", "name": "viewer-markdownview-sample", "changed": [field], "more": 0 }]);
    let steps = [
        (
            41_000,
            json!([{ "why": "created", "kind": "MarkdownView", "namespace": "default", "name": "markdownview-sample" }]),
            18.4,
            "error",
            Some("Service viewer-markdownview-sample: the server has asked for the client to slow down"),
        ),
        (39_500, json!([{ "why": "retried" }]), 12.7, "done", None),
        (
            38_900,
            json!([{ "why": "created", "kind": "Deployment", "namespace": "default", "name": "viewer-markdownview-sample" }, { "why": "created", "kind": "ConfigMap", "namespace": "default", "name": "markdowns-markdownview-sample" }]),
            6.2,
            "done",
            None,
        ),
        (36_000, modified("status.updatedReplicas"), 7.9, "done", None),
        (21_000, modified("status.readyReplicas"), 6.6, "done", None),
        (20_400, modified("status.conditions"), 3.1, "done", None),
        (
            6_000,
            json!([{ "why": "modified", "kind": "MarkdownView", "namespace": "default", "name": "markdownview-sample", "changed": ["spec.replicas"], "more": 0 }]),
            9.3,
            "requeue",
            None,
        ),
    ];
    for (number, (before, causes, ms, outcome, error)) in steps.into_iter().enumerate() {
        reconcile(journal, number, before, &causes, ms, (outcome, error)).await;
        let depth = [3, 2, 4, 1, 0, 1, 0][number];
        let at = ago(Duration::from_millis(before));
        journal.write(&json!({ "type": "queue", "at": at, "controller": "markdownview", "depth": depth, "active": 1 })).await;
    }
    journal
        .write(
            &json!({ "type": "queue", "at": now(), "controller": "markdownview", "depth": 0, "active": 0 }),
        )
        .await;

    reviews(journal).await;
    logs(world);

    let condition = |name: &str, status: &str, reason: &str| json!({ "type": name, "status": status, "reason": reason, "message": "", "lastTransitionTime": format!("{}Z", &now()[..19]) });
    let status = |available: &str, reason: &str| json!({ "status": { "conditions": [condition("Available", available, reason), condition("Degraded", "False", "OK")] } });
    world.merge(&format!("{VIEWS}/markdownview-sample/status"), &status("False", "Unavailable")).await;
    world.merge(&format!("{VIEWS}/markdownview-sample/status"), &status("True", "OK")).await;
    let events = "/api/v1/namespaces/default/events";
    for (name, sort, reason, message, before) in [
        (
            "sample.1",
            "Warning",
            "Throttled",
            "Service viewer-markdownview-sample: the server has asked for the client to slow down",
            41,
        ),
        ("sample.2", "Normal", "Updated", "MarkdownView(default:markdownview-sample) updated: Healthy", 20),
    ] {
        let event = json!({
            "metadata": { "name": name }, "type": sort, "reason": reason, "message": message, "count": 1,
            "lastTimestamp": format!("{}Z", &ago(Duration::from_secs(before))[..19]), "source": { "component": "markdown-view" },
            "involvedObject": { "kind": "MarkdownView", "namespace": "default", "name": "markdownview-sample", "uid": view["metadata"]["uid"] },
        });
        world.create(events, &event).await;
    }
}

/// Admission reviews with a patch, a denial and a warning, and a conversion.
async fn reviews(journal: &mut Journal) {
    let review = |webhook: &str, operation: &str, more: &Value| {
        let mut review = json!({
            "type": "admission", "at": now(), "webhook": webhook, "path": "/", "operation": operation,
            "kind": "MarkdownView", "namespace": "default", "name": "markdownview-sample", "user": "kubernetes-admin",
            "allowed": true, "ms": 0.5,
        });
        for (field, value) in more.as_object().into_iter().flatten() {
            review[field] = value.clone();
        }
        review
    };
    let patch = json!([{ "op": "replace", "path": "/spec/viewerImage", "value": "peaceiris/mdbook:latest", "before": "" }]);
    let denial = "MarkdownView.example.com \"markdownview-sample\" is invalid: spec.replicas: Invalid value: 10: must be between 1 and 5";
    for record in [
        review(
            "mmarkdownview-v1.kb.io",
            "CREATE",
            &json!({ "patch": patch, "warnings": ["viewerImage was empty; the default image changes with every release"] }),
        ),
        review(
            "vmarkdownview-v1.kb.io",
            "UPDATE",
            &json!({ "allowed": false, "code": 422, "message": denial }),
        ),
        review("vmarkdownview-v1.kb.io", "UPDATE", &json!({ "subresource": "status", "dry_run": true })),
        json!({
            "type": "conversion", "at": now(), "kind": "MarkdownView", "from": ["example.com/v1"], "to": "example.com/v2",
            "objects": 1, "names": ["default/markdownview-sample"], "ms": 0.1,
        }),
    ] {
        journal.write(&record).await;
    }
}

/// Log lines of the manager and of reconciles.
fn logs(world: &World) {
    let feed = world.page.feed();
    let of = |reconcile: &str| {
        format!(
            "controller=markdownview controller_kind=MarkdownView object=default/markdownview-sample reconcile_id={reconcile}"
        )
    };
    feed.log("12:00:00.123 INFO  Starting manager");
    feed.log(&format!(
        "12:00:00.124 ERROR Reconcile failed error=\"Service viewer-markdownview-sample: the server has asked for the client to slow down\" {}",
        of("r0")
    ));
    feed.log(&format!("12:00:00.125 WARN  Applied with a conflict kind=Deployment {}", of("r3")));
}

async fn reconcile(
    journal: &mut Journal,
    number: usize,
    before: u64,
    causes: &Value,
    ms: f64,
    (outcome, error): (&str, Option<&str>),
) {
    let at = |after: u64| ago(Duration::from_millis(before - after));
    let id = format!("r{number}");
    journal
        .write(&json!({
            "type": "started", "at": at(0), "id": id, "controller": "markdownview", "kind": "MarkdownView",
            "namespace": "default", "name": "markdownview-sample", "attempt": u8::from(number == 1), "waited_ms": 0.4, "causes": causes,
        }))
        .await;
    let apply = "?fieldManager=markdown-view&force=true";
    let calls = [
        (
            "PATCH",
            format!("/api/v1/namespaces/default/configmaps/markdowns-markdownview-sample{apply}"),
            1,
            200,
        ),
        (
            "PATCH",
            format!("/apis/apps/v1/namespaces/default/deployments/viewer-markdownview-sample{apply}"),
            3,
            200,
        ),
        (
            "PATCH",
            format!("/api/v1/namespaces/default/services/viewer-markdownview-sample{apply}"),
            4,
            if error.is_some() { 429 } else { 200 },
        ),
        (
            "PATCH",
            "/apis/example.com/v1/namespaces/default/markdownviews/markdownview-sample/status".to_owned(),
            5,
            200,
        ),
    ];
    for (method, path, after, status) in calls {
        journal
            .write(&json!({ "type": "request", "at": at(after), "id": id, "method": method, "path": path, "status": status, "ms": 0.9 }))
            .await;
    }
    let after = (outcome == "requeue").then_some(60.0);
    journal
        .write(&json!({ "type": "ended", "at": at(6), "id": id, "ms": ms, "outcome": outcome, "after_s": after, "error": error }))
        .await;
}
