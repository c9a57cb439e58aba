//! Browser tests of the lists: keys, order, bounds, and kubectl command lines to copy.

use std::time::Duration;

use serde_json::{Value, json};

use super::driver::{Browser, browse};
use super::story;
use super::world::{Journal, World, ago, now};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_list_can_be_used_with_the_keyboard() {
    let world = World::with_cluster().await;
    world.define("MarkdownView").await;
    let mut journal = world.journal().await;
    browse(1400, 900, async |browser: &Browser| {
        browser.open(&world.page.url()).await;
        story::play(&world, &mut journal).await;
        browser.until("document.querySelectorAll('#log-list .line').length === 3").await;
        browser.until("document.querySelectorAll('#review-list .line').length === 4").await;
        browser.until("document.querySelectorAll('#event-list .line').length > 1").await;
        // A key goes to the entry of the list that was focused last.
        let focused = |list: &str| format!("document.activeElement.matches('#{list} .line')");
        let entry = |list: &str, at: usize| {
            format!("document.activeElement === document.querySelectorAll('#{list} .line')[{at}]")
        };

        browser.press(&["3"]).await;
        browser.until(&focused("event-list")).await;
        browser.press(&["2"]).await;
        browser.until(&focused("reconcile-list")).await;
        browser.press(&["Home"]).await;
        browser.until(&entry("reconcile-list", 0)).await;
        browser.press(&["Down", "Down", "Up"]).await;
        browser.until(&entry("reconcile-list", 1)).await;

        // A review opens and closes with Enter.
        browser.press(&["4"]).await;
        browser.until(&focused("review-list")).await;
        assert_eq!(browser.eval("document.querySelector('#more-reviews').ariaSelected").await, "true");
        browser.press(&["End"]).await;
        browser.until(&entry("review-list", 3)).await;
        browser.press(&["Enter"]).await;
        browser.until("document.querySelector('#review-list .patch')").await;
        assert_eq!(browser.eval("document.activeElement.ariaExpanded").await, "true");
        browser.press(&["Enter"]).await;
        browser.until("!document.querySelector('#review-list .patch')").await;

        // A log line leads to its reconcile.
        browser.press(&["5"]).await;
        browser.until(&focused("log-list")).await;
        assert_eq!(browser.eval("document.querySelector('#more-logs').ariaSelected").await, "true");
        browser.press(&["Home", "Down"]).await;
        browser.until(&entry("log-list", 1)).await;
        browser.press(&["Enter"]).await;
        browser
            .until("document.activeElement.closest('#reconcile-list li')?.dataset.id.endsWith(':r0')")
            .await;
        assert_eq!(browser.eval("document.activeElement.ariaExpanded").await, "true");

        // The tabs are one tab stop with arrow keys.
        browser.eval("document.querySelector('#more-logs').focus()").await;
        for tab in ["events", "reviews", "logs"] {
            browser.press(&["Right"]).await;
            browser.until(&format!("document.activeElement.id === 'more-{tab}'")).await;
            browser.until(&format!("document.querySelector('#{tab}').checkVisibility()")).await;
        }
        let stops = "[...document.querySelectorAll('#more [role=tab]')].map((tab) => tab.tabIndex)";
        assert_eq!(browser.eval(stops).await, json!([-1, -1, 0]));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_one_second_keep_the_order_of_their_resource_versions() {
    const EVENTS: &str = "/api/v1/namespaces/default/events";
    let world = World::start().await;
    let map = world.config_map("pages", &json!({})).await;
    let about = json!({ "kind": "ConfigMap", "namespace": "default", "name": "pages", "uid": map["metadata"]["uid"] });
    let second = ago(Duration::from_secs(30))[..19].to_owned();
    // Names and fractions of a second are in another order than the writes.
    for (name, fraction) in
        [("delta", Some(900_000)), ("alpha", None), ("echo", Some(100_000)), ("bravo", None)]
    {
        let mut event = json!({
            "metadata": { "name": name }, "type": "Normal", "reason": "Noted", "message": name, "involvedObject": about,
        });
        match fraction {
            Some(fraction) => {
                event["eventTime"] = json!(format!("{second}.{fraction:06}Z"));
                event["action"] = json!("Note");
                event["reportingComponent"] = json!("example.com/tests");
                event["reportingInstance"] = json!("tests-1");
            }
            None => event["lastTimestamp"] = json!(format!("{second}Z")),
        }
        world.create(EVENTS, &event).await;
    }
    browse(1400, 900, async |browser: &Browser| {
        browser.open(&world.page.url()).await;
        let shown =
            "[...document.querySelectorAll('#event-list .message')].map((message) => message.textContent).join()";
        browser.until(&format!("{shown} === 'bravo,echo,alpha,delta'")).await;
        // The same after a reload, which lists them.
        browser.open(&world.page.url()).await;
        browser.until(&format!("{shown} === 'bravo,echo,alpha,delta'")).await;
        world.merge(&format!("{EVENTS}/alpha"), &json!({ "count": 2 })).await;
        browser.until(&format!("{shown} === 'alpha,bravo,echo,delta'")).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_command_lines_can_be_copied() {
    let world = World::start().await;
    world.define("View").await;
    let view = json!({ "apiVersion": "example.com/v1", "kind": "View", "metadata": { "name": "sample" } });
    world.create("/apis/example.com/v1/namespaces/default/views", &view).await;
    let pod = json!({ "metadata": { "name": "web" }, "spec": { "containers": [{ "name": "web", "image": "nginx" }] } });
    world.create("/api/v1/namespaces/default/pods", &pod).await;
    world.page.feed().kubectl("kubectl --kubeconfig dev.yaml");
    browse(1400, 900, async |browser: &Browser| {
        // Tests may not read the clipboard. The write fails on request.
        let recorded = "window.copied = [];
            navigator.clipboard.writeText = async (text) => {
                if (window.denied) throw new Error('denied');
                window.copied.push(text);
            };";
        browser.before_load(recorded).await;
        browser.open(&world.page.url()).await;
        let lines = "[...document.querySelectorAll('#overview-kubectl code')].map((line) => line.textContent)";
        let row = |name: &str| {
            format!("[...document.querySelectorAll('#rows .row')].find((row) => row.querySelector('.named').textContent === '{name}')")
        };
        browser.until(&format!("{} && {}", row("sample"), row("web"))).await;
        browser.eval(&format!("{}.click()", row("sample"))).await;
        let expected = |kind: &str, name: &str, verbs: &[&str]| -> Vec<String> {
            let of = |verb: &&str| match *verb {
                "get" => format!("kubectl --kubeconfig dev.yaml get {kind} {name} -n default -o yaml"),
                "logs" => format!("kubectl --kubeconfig dev.yaml logs {name} -n default"),
                verb => format!("kubectl --kubeconfig dev.yaml {verb} {kind} {name} -n default"),
            };
            verbs.iter().map(of).collect()
        };
        let of_view = expected("view.example.com", "sample", &["get", "describe", "edit", "delete"]);
        browser.until(&format!("{lines}.length === 4")).await;
        assert_eq!(browser.eval(lines).await, json!(of_view));

        // The buttons in the header copy the same lines.
        let buttons = "[...document.querySelectorAll('#object-commands .copy')]";
        assert_eq!(
            browser.eval(&format!("{buttons}.map((button) => button.textContent)")).await,
            json!(["get", "describe", "edit", "delete"])
        );
        browser.eval(&format!("{buttons}.forEach((button) => button.click())")).await;
        browser.until("window.copied.length === 4").await;
        assert_eq!(browser.eval("window.copied").await, json!(of_view));
        browser.until(&format!("{buttons}.every((button) => button.textContent === 'Copied')")).await;
        browser.until(&format!("{buttons}[0].textContent === 'get'")).await;
        browser.eval("window.denied = true").await;
        browser.click("#object-commands .copy").await;
        browser.until(&format!("{buttons}[0].textContent === 'Not allowed'")).await;

        browser.eval(&format!("{}.click()", row("web"))).await;
        browser.until(&format!("{lines}.length === 5")).await;
        let of_pod = expected("pod", "web", &["get", "describe", "edit", "logs", "delete"]);
        assert_eq!(browser.eval(lines).await, json!(of_pod));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_lists_render_only_visible_entries() {
    const MANY: usize = 2_000;
    let world = World::start().await;
    let mut journal = world.journal().await;
    journal.hello("view-operator", &["view"]).await;
    for number in 0..MANY {
        reconcile(&mut journal, number).await;
    }
    browse(1400, 900, async |browser: &Browser| {
        browser.open(&world.page.url()).await;
        browser.until(&format!("document.querySelector('#reconciles-count').textContent === '{MANY}'")).await;
        let entries = "[...document.querySelectorAll('#reconcile-list > li')]";
        assert_eq!(browser.eval(&format!("{entries}.length")).await, 200);
        // The browser skips layout and paint of the others.
        let rendered = format!(
            "{entries}.filter((entry) => entry.firstChild.checkVisibility({{ contentVisibilityAuto: true }})).length"
        );
        let rendered = browser.eval(&rendered).await;
        assert!(rendered.as_u64().is_some_and(|rendered| rendered < 100), "{rendered} entries are rendered");
        browser.click("#reconcile-list .older").await;
        browser.until(&format!("{entries}.length === 400")).await;
        // A change updates its entry only.
        browser.eval(&format!("{entries}.forEach((entry) => {{ entry.firstChild.firstChild.seen = true; }})")).await;
        reconcile(&mut journal, MANY).await;
        browser.until(&format!("{entries}[0].dataset.id.endsWith(':{MANY}')")).await;
        browser.until(&format!("{entries}.filter((entry) => entry.firstChild.firstChild.seen).length === 399")).await;
    })
    .await;
}

async fn reconcile(journal: &mut Journal, number: usize) {
    let cause = json!([{ "why": "created", "kind": "ConfigMap", "namespace": "default", "name": "pages" }]);
    let records: [Value; 2] = [
        json!({
            "type": "started", "at": now(), "id": number.to_string(), "controller": "view", "kind": "ConfigMap",
            "namespace": "default", "name": format!("map-{number:05}"), "attempt": 0, "waited_ms": 1.0, "causes": cause,
        }),
        json!({ "type": "ended", "at": now(), "id": number.to_string(), "ms": 2.5, "outcome": "done" }),
    ];
    for record in records {
        journal.write(&record).await;
    }
}
