//! Browser tests of builds, failures, logs, admission reviews, causes and the graph.

use serde_json::{Value, json};

use super::driver::{Browser, browse};
use super::world::{World, now};

fn started(id: &str, causes: &Value) -> Value {
    json!({
        "type": "started", "at": now(), "id": id, "controller": "view", "kind": "ConfigMap", "namespace": "default",
        "name": "pages", "attempt": 0, "waited_ms": 1.0, "causes": causes,
    })
}

fn ended(id: &str, outcome: &str, after: Option<f64>, error: Option<&str>) -> Value {
    json!({ "type": "ended", "at": now(), "id": id, "ms": 2.5, "outcome": outcome, "after_s": after, "error": error })
}

const STATUS: &str = "[...document.querySelectorAll('#rows .row')].find((row) => row.querySelector('.named').textContent === 'pages')?.querySelector('.state').textContent";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn builds_show_progress_the_first_error_and_restarts() {
    let world = World::start().await;
    let feed = world.page.feed();
    browse(1280, 800, async |browser: &Browser| {
        browser.open(&world.page.url()).await;
        let build = "document.querySelector('#build .say').textContent";
        let banner = "document.querySelector('#banner')";
        browser.until("document.querySelector('#cluster .say').textContent === 'Connected'").await;
        assert_eq!(browser.eval("document.querySelector('#build').checkVisibility()").await, false);
        feed.compiling(false);
        feed.progress(142, 201, "kube-core");
        browser.until(&format!("{build} === 'Compiling 142/201'")).await;
        assert_eq!(
            browser
                .eval("[document.querySelector('#progress').value, document.querySelector('#progress').max]")
                .await,
            json!([142, 201])
        );
        feed.failed("error[E0308]: mismatched types\n  --> src/main.rs:4:5", "waiting for changes");
        browser.until(&format!("{build} === 'Build failed' && !{banner}.hidden")).await;
        let text = browser.eval(&format!("{banner}.textContent")).await;
        let text = text.as_str().unwrap_or_default();
        for part in
            ["The build failed", "waiting for changes", "error[E0308]: mismatched types", "src/main.rs:4:5"]
        {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert_eq!(browser.eval(&format!("{banner}.getAttribute('role')")).await, "alert");
        browser.click("#banner-close").await;
        browser.until(&format!("{banner}.hidden")).await;
        feed.compiling(false);
        feed.deploying();
        browser.until(&format!("{build} === 'Deploying'")).await;
        feed.running(true, "started in 1 s");
        browser.until(&format!("/^Started \\d+s ago$/.test({build})")).await;
        feed.running(true, "restarted in 1 s");
        browser.until(&format!("/^Restarted \\d+s ago$/.test({build})")).await;
        feed.exited("the operator exited (exit status: 101): panicked at src/main.rs:4:5");
        browser
            .until(&format!("{build} === 'Operator exited' && {banner}.textContent.includes('panicked at')"))
            .await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_reconcile_is_red_in_the_header_and_on_the_object() {
    let world = World::start().await;
    world.config_map("pages", &json!({})).await;
    let mut journal = world.journal().await;
    journal.hello("view-operator", &["view"]).await;
    browse(1280, 800, async |browser: &Browser| {
        browser.open(&world.page.url()).await;
        let cause = json!([{ "why": "created", "kind": "ConfigMap", "namespace": "default", "name": "pages" }]);
        journal.write(&started("one", &cause)).await;
        journal.write(&ended("one", "error", Some(300.0), Some("the image is missing"))).await;
        browser.until(&format!("/^Failing, retry in \\d+s$/.test({STATUS})")).await;
        browser.until("/^view-operator: 1 failing, retry in \\d+s$/.test(document.querySelector('#operator .say').textContent)").await;
        assert_eq!(browser.eval("document.querySelector('#operator').dataset.level").await, "bad");
        let title = browser.eval("document.querySelector('#operator').title").await;
        assert!(title.as_str().is_some_and(|title| title.contains("the image is missing")), "{title}");
        assert_eq!(
            browser.eval("document.querySelector('#reconcile-list .state .say').textContent").await,
            "error, retry 5m"
        );
        browser.click("#rows .row").await;
        browser.until("document.querySelector('#object-failure').textContent === 'the image is missing'").await;
        browser.press(&["Escape"]).await;

        journal.write(&started("two", &json!([{ "why": "retried" }]))).await;
        journal.write(&ended("two", "done", None, None)).await;
        browser.until(&format!("{STATUS} !== undefined && !{STATUS}.includes('Failing')")).await;
        browser.until("document.querySelector('#operator .say').textContent === 'view-operator'").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_of_deleted_objects_end_with_the_operator() {
    let world = World::start().await;
    world.config_map("pages", &json!({})).await;
    let mut journal = world.journal().await;
    journal.hello("view-operator", &["view"]).await;
    browse(1280, 800, async |browser: &Browser| {
        browser.open(&world.page.url()).await;
        let operator = "document.querySelector('#operator .say').textContent";
        journal.write(&started("one", &json!([{ "why": "initial" }]))).await;
        journal.write(&ended("one", "error", Some(300.0), Some("the image is missing"))).await;
        browser.until(&format!("{operator}.startsWith('view-operator: 1 failing')")).await;
        drop(journal);
        browser.until(&format!("{operator} === 'view-operator stopped'")).await;
        let mut journal = world.journal().await;
        journal.hello("view-operator", &["view"]).await;
        // The object exists, so the new process has not reconciled it yet.
        browser.until(&format!("{operator}.startsWith('view-operator: 1 failing')")).await;
        world.delete("/api/v1/namespaces/default/configmaps/pages").await;
        browser.until(&format!("{operator} === 'view-operator'")).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_lines_are_shown_with_their_reconcile_and_filtered_by_object() {
    let world = World::start().await;
    world.config_map("pages", &json!({})).await;
    let mut journal = world.journal().await;
    journal.hello("view-operator", &["view"]).await;
    let feed = world.page.feed();
    browse(1280, 800, async |browser: &Browser| {
        browser.open(&world.page.url()).await;
        journal.write(&started("6f2d", &json!([{ "why": "initial", "kind": "ConfigMap", "namespace": "default", "name": "pages" }]))).await;
        feed.log("12:00:00.123 INFO  Starting manager");
        feed.log("12:00:00.124 WARN  Page is empty size=0 controller=view controller_kind=ConfigMap object=default/pages reconcile_id=6f2d");
        journal.write(&ended("6f2d", "done", None, None)).await;
        let lines = |list: &str| format!("[...document.querySelectorAll('{list} .line .message')].map((line) => line.textContent)");
        browser.click("#more-logs").await;
        browser.until(&format!("{}.length === 2", lines("#log-list"))).await;
        assert_eq!(
            browser.eval(&lines("#log-list")).await,
            json!(["ConfigMappages Page is empty size=0", "Starting manager"])
        );
        browser.press(&["2", "Enter"]).await;
        browser.until("document.querySelector('#reconcile-list .log-line .message')?.textContent === 'Page is empty size=0'").await;
        browser.click("#rows .row").await;
        browser.click("#part-logs").await;
        browser.until(&format!("{}.length === 1", lines("#object-logs"))).await;
        // A line leads to its reconcile.
        browser.click("#object-logs .line").await;
        browser.until("document.querySelector('#object-reconciles .requests, #object-reconciles .none')").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admission_reviews_show_verdict_patch_and_warnings() {
    let world = World::start().await;
    world.config_map("pages", &json!({})).await;
    let mut journal = world.journal().await;
    journal.hello("view-operator", &["view"]).await;
    browse(1280, 800, async |browser: &Browser| {
        browser.open(&world.page.url()).await;
        let review = |webhook: &str, allowed: bool| {
            json!({
                "type": "admission", "at": now(), "webhook": webhook, "path": "/", "operation": "UPDATE", "kind": "ConfigMap",
                "namespace": "default", "name": "pages", "user": "alice", "allowed": allowed, "ms": 0.5,
            })
        };
        let mut patched = review("mpages.kb.io", true);
        patched["patch"] = json!([{ "op": "replace", "path": "/data/size", "value": "large", "before": "small" }]);
        patched["warnings"] = json!(["sizes will be removed"]);
        journal.write(&patched).await;
        let mut denied = review("vpages.kb.io", false);
        denied["code"] = json!(422);
        denied["message"] = json!("data.size: Invalid value: \"large\"");
        journal.write(&denied).await;
        journal
            .write(&json!({
                "type": "conversion", "at": now(), "kind": "ConfigMap", "from": ["example.com/v1"], "to": "example.com/v2",
                "objects": 1, "names": ["default/pages"], "ms": 0.1,
            }))
            .await;
        browser.click("#more-reviews").await;
        let shown = "[...document.querySelectorAll('#review-list .line')].map((line) => ['.named', '.action', '.webhook', '.took', '.state'].map((part) => line.querySelector(part).textContent).join('|'))";
        browser.until(&format!("{shown}.length === 3")).await;
        assert_eq!(
            browser.eval(shown).await,
            json!([
                "pages|v1 → v2|conversion|0.1 ms|converted",
                "pages|update|vpages.kb.io|0.5 ms|denied 422",
                "pages|update|mpages.kb.io|0.5 ms|patched"
            ])
        );
        assert_eq!(browser.eval("document.querySelector('#review-list .error').textContent").await, "data.size: Invalid value: \"large\"");
        assert_eq!(browser.eval("document.querySelector('#review-list .warned').textContent").await, "Warning: sizes will be removed");
        browser.press(&["4", "Down", "Down", "Enter"]).await;
        browser.until("document.querySelector('#review-list .patch')").await;
        let diff = "[...document.querySelectorAll('#review-list .patch .code')].map((line) => line.dataset.mark + line.querySelector('.content').textContent)";
        assert_eq!(browser.eval(diff).await, json!(["-1data.size: small", "1data.size: large"]));
        browser.click("#rows .row").await;
        browser.until("document.querySelector('#part-reviews b').textContent === '3'").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reconcile_leads_back_to_its_first_cause() {
    let world = World::start().await;
    let map = world.config_map("pages", &json!({ "size": "small" })).await;
    let mut journal = world.journal().await;
    journal.hello("view-operator", &["view"]).await;
    browse(1280, 800, async |browser: &Browser| {
        browser.open(&world.page.url()).await;
        browser.until(&format!("{STATUS} !== undefined")).await;
        let changed = world.merge("/api/v1/namespaces/default/configmaps/pages?fieldManager=view-operator", &json!({ "data": { "size": "large" } })).await;
        let version = &changed["metadata"]["resourceVersion"];
        assert_ne!(version, &map["metadata"]["resourceVersion"]);
        let initial = json!([{ "why": "created", "kind": "ConfigMap", "namespace": "default", "name": "pages" }]);
        journal.write(&started("one", &initial)).await;
        journal
            .write(&json!({
                "type": "request", "at": now(), "id": "one", "method": "PATCH", "status": 200, "ms": 0.5,
                "path": "/api/v1/namespaces/default/configmaps/pages", "resource_version": version,
            }))
            .await;
        journal.write(&ended("one", "done", None, None)).await;
        let cause = json!([{
            "why": "modified", "kind": "ConfigMap", "namespace": "default", "name": "pages", "changed": ["data.size"],
            "more": 0, "resource_version": version,
        }]);
        journal.write(&started("two", &cause)).await;
        journal.write(&ended("two", "done", None, None)).await;
        browser.until("document.querySelectorAll('#reconcile-list > li').length === 2").await;
        // The page sees the write through its own watch, possibly later.
        browser.click("#rows .row").await;
        browser.until("document.querySelector('#overview-writes')?.textContent.includes('data.size')").await;
        browser.press(&["Escape"]).await;
        browser.click("#reconcile-list li[data-id$=':two'] .line").await;
        browser.until("document.querySelectorAll('#reconcile-list .chain li').length === 3").await;
        let steps = browser.eval("[...document.querySelectorAll('.chain li')].map((step) => step.dataset.step)").await;
        assert_eq!(steps, json!(["write", "reconcile", "write"]));
        let first = browser.eval("document.querySelector('.chain li').textContent").await;
        assert!(first.as_str().is_some_and(|text| text.contains("changed ConfigMap default/pages: data.size")), "{first}");
        let last = browser.eval("document.querySelector('.chain .first').textContent").await;
        assert!(last.as_str().is_some_and(|text| text.ends_with("first cause") && text.contains("created")), "{last}");
        // The link shows the earlier reconcile.
        browser.click(".chain [data-step=reconcile] .link").await;
        browser.until("document.activeElement.closest('li')?.dataset.id.endsWith(':one')").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_graph_shows_owners_and_references() {
    let world = World::start().await;
    let owner = world.config_map("owner", &json!({})).await;
    world.config_map("other", &json!({})).await;
    let reference =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"] });
    let pod = json!({
        "metadata": { "name": "web", "ownerReferences": [reference] },
        "spec": {
            "containers": [{ "name": "web", "image": "nginx" }],
            "volumes": [{ "name": "v", "configMap": { "name": "other" } }],
        },
    });
    world.create("/api/v1/namespaces/default/pods", &pod).await;
    browse(1280, 800, async |browser: &Browser| {
        browser.open(&world.page.url()).await;
        browser.until("document.querySelectorAll('#rows .row').length === 3").await;
        browser.press(&["1", "Down", "Enter"]).await;
        browser.until("document.querySelector('#object-title').textContent.endsWith('owner')").await;
        browser.press(&["g"]).await;
        let nodes = "[...document.querySelectorAll('.graph .node')].map((node) => node.title).sort().join()";
        browser.until(&format!("{nodes} === 'ConfigMap other,ConfigMap owner,Pod web'")).await;
        assert_eq!(browser.eval("document.querySelectorAll('.graph .owner').length").await, 1);
        assert_eq!(browser.eval("document.querySelectorAll('.graph .reference').length").await, 1);
        let label = browser.eval("document.querySelector('.graph .node[title=\"Pod web\"]').ariaLabel").await;
        assert!(label.as_str().is_some_and(|label| label.ends_with("owned by ConfigMap owner")), "{label}");
        browser.click(".graph .node[title='Pod web']").await;
        browser.until("document.querySelector('#object-title').textContent.endsWith('web')").await;
    })
    .await;
}
