//! Browser tests in headless Chromium.

use std::time::Duration;

use serde_json::{Value, json};

use super::driver::{Browser, browse};
use super::world::{World, ago, now};
use kubewright_cli::Page;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const EVENTS: &str = "/api/v1/namespaces/default/events";

fn deployment(name: &str, replicas: u32) -> Value {
    let labels = json!({ "app": name });
    let container = json!({ "name": "web", "image": "nginx" });
    json!({
        "metadata": { "name": name, "labels": labels },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [container] } },
        },
    })
}

/// The rows of the tree, as level, kind, name and status.
const ROWS: &str = "[...document.querySelectorAll('#rows .row')]
    .sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)
    .map((row) => [row.getAttribute('aria-level'), row.querySelector('.badge').title, row.querySelector('.what').firstChild.textContent,
                   row.querySelector('.state .say').textContent].join(' '))";

fn row(name: &str) -> String {
    format!(
        "[...document.querySelectorAll('#rows .row')].find((row) => row.querySelector('.what').firstChild.textContent === '{name}')"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tree_shows_objects_by_owner_with_their_readiness() {
    let world = World::with_cluster().await;
    world.create(DEPLOYMENTS, &deployment("web", 2)).await;
    browse(1400, 900, async |browser: &Browser| {
        browser.open(&world.page.url()).await;
        browser
            .until(&format!("{ROWS}.filter((row) => /^3 Pod web-.* Running$/.test(row)).length === 2"))
            .await;
        browser.until(&format!("{ROWS}[0] === '1 Deployment web 2/2 ready'")).await;
        let rows = browser.eval(ROWS).await;
        let text = |at: usize| rows[at].as_str().unwrap_or_default().to_owned();
        assert!(text(1).starts_with("2 ReplicaSet web-") && text(1).ends_with(" 2/2 ready"), "{rows}");
        assert!(text(2).starts_with("3 Pod web-") && text(3).starts_with("3 Pod web-"), "{rows}");
        assert_eq!(
            browser
                .eval("document.querySelector('#rows [aria-level=\"1\"]').getAttribute('aria-expanded')")
                .await,
            "true"
        );
        let dot = "getComputedStyle(document.querySelector('#rows .row .dot')).backgroundColor";
        assert_ne!(browser.eval(dot).await, "rgba(0, 0, 0, 0)");

        world.merge(&format!("{DEPLOYMENTS}/web"), &json!({ "spec": { "replicas": 3 } })).await;
        browser.until(&format!("{ROWS}[0] === '1 Deployment web 3/3 ready'")).await;
        world.merge(&format!("{DEPLOYMENTS}/web"), &json!({ "spec": { "paused": true } })).await;
        world.delete(&format!("{DEPLOYMENTS}/web")).await;
        browser.until(&format!("!{ROWS}.some((row) => row.includes('web'))")).await;

        let system = format!("{ROWS}.some((row) => row.includes('kube-root-ca.crt'))");
        assert_eq!(browser.eval(&system).await, false);
        browser.click("#system").await;
        browser.until("document.querySelector('#system').ariaPressed === 'true'").await;
        browser.press(&["/", "r", "o", "o", "t", "-", "c", "a"]).await;
        browser.until(&system).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_lead_to_the_same_tree_as_a_reload() {
    const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
    let world = World::start().await;
    let owned = |name: &str, owner: &Value| {
        let owner = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        });
        json!({ "metadata": { "name": name, "ownerReferences": [owner] } })
    };
    let first = world.config_map("first", &json!({})).await;
    world.config_map("third", &json!({})).await;
    browse(1400, 900, async |browser: &Browser| {
        browser.open(&world.page.url()).await;
        let shows = async |rows: &[&str]| {
            let names = format!("{ROWS}.map((row) => row.replace(' ConfigMap', '').trim())");
            browser.until(&format!("JSON.stringify({names}) === '{}'", json!(rows))).await;
        };
        shows(&["1 first", "1 third"]).await;
        let second = world.config_map("second", &json!({})).await;
        shows(&["1 first", "1 second", "1 third"]).await;
        world.create(CONFIG_MAPS, &owned("b", &first)).await;
        world.create(CONFIG_MAPS, &owned("a", &first)).await;
        shows(&["1 first", "2 a", "2 b", "1 second", "1 third"]).await;
        // Another owner.
        let moved =
            json!({ "metadata": { "ownerReferences": owned("a", &second)["metadata"]["ownerReferences"] } });
        world.merge(&format!("{CONFIG_MAPS}/a"), &moved).await;
        shows(&["1 first", "2 b", "1 second", "2 a", "1 third"]).await;
        world.delete(&format!("{CONFIG_MAPS}/third")).await;
        let last = ["1 first", "2 b", "1 second", "2 a"];
        shows(&last).await;
        // Filtered: the owner of a match stays.
        browser.press(&["/", "m", "a", "p", " ", "/", "a"]).await;
        shows(&["1 second", "2 a"]).await;
        world.create(CONFIG_MAPS, &owned("aa", &second)).await;
        shows(&["1 second", "2 a", "2 aa"]).await;
        world.delete(&format!("{CONFIG_MAPS}/aa")).await;
        shows(&["1 second", "2 a"]).await;
        browser.open(&world.page.url()).await;
        shows(&last).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_arrives_and_counts_up() {
    let world = World::start().await;
    let map = world.config_map("noted", &json!({})).await;
    browse(1400, 900, async |browser: &Browser| {
        browser.open(&world.page.url()).await;
        browser.until("document.querySelector('#cluster .say').textContent === 'Connected'").await;
        for (name, sort, reason, before) in [("first", "Normal", "Made", 30), ("second", "Warning", "Broken", 10)] {
            let event = json!({
                "metadata": { "name": name }, "type": sort, "reason": reason, "message": format!("this is the {name}"),
                "involvedObject": { "kind": "ConfigMap", "namespace": "default", "name": "noted", "uid": map["metadata"]["uid"] },
                "count": 1, "lastTimestamp": format!("{}Z", &ago(Duration::from_secs(before))[..19]),
                "source": { "component": "tests" },
            });
            world.create(EVENTS, &event).await;
        }
        let shown = "[...document.querySelectorAll('#event-list .line')].map((line) =>
            [line.querySelector('.reason').textContent, line.querySelector('.what .named').textContent,
             line.querySelector('.message').textContent, line.querySelector('.times').textContent].join('|'))";
        browser.until(&format!("{shown}.length === 2")).await;
        assert_eq!(
            browser.eval(shown).await,
            json!(["▲Warning Broken|noted|this is the second|", "·Normal Made|noted|this is the first|"])
        );
        world.merge(&format!("{EVENTS}/first"), &json!({ "count": 4, "lastTimestamp": format!("{}Z", &now()[..19]) })).await;
        browser.until(&format!("{shown}[0] === '·Normal Made|noted|this is the first|×4'")).await;
        browser.click("#event-list .line").await;
        browser.until("document.querySelector('#part-events b').textContent === '2'").await;
        browser.click("#part-events").await;
        browser.until("document.querySelectorAll('#object-events li').length === 2").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reconciles_show_cause_calls_and_outcome() {
    let world = World::start().await;
    let mut journal = world.journal().await;
    journal.hello("markdown-view", &["markdownview"]).await;
    browse(1400, 900, async |browser: &Browser| {
        browser.open(&world.page.url()).await;
        browser.until("document.querySelector('#operator .say').textContent === 'markdown-view'").await;
        let started = |id: &str, causes: Value| {
            json!({
                "type": "started", "at": now(), "id": id, "controller": "markdownview", "kind": "MarkdownView",
                "namespace": "default", "name": "sample", "attempt": 0, "waited_ms": 1.2, "causes": causes,
            })
        };
        let cause = json!([{
            "why": "modified", "kind": "Deployment", "namespace": "default", "name": "sample",
            "changed": ["status.readyReplicas"], "more": 2,
        }]);
        journal.write(&started("one", cause)).await;
        journal.write(&json!({ "type": "queue", "at": now(), "controller": "markdownview", "depth": 3, "active": 1 })).await;
        let line = "#reconcile-list li:first-child .line";
        let text = |part: &str| format!("document.querySelector('{line} {part}')?.textContent");
        browser.until(&format!("{} === 'running'", text(".state"))).await;
        assert_eq!(
            browser.eval(&text(".cause > .full")).await,
            "sample: status.readyReplicas and 2 more"
        );
        browser.until("document.querySelector('.lane .numbers').textContent === '3 queued · 1 active'").await;

        journal
            .write(&json!({
                "type": "request", "at": now(), "id": "one", "method": "PATCH", "status": 200, "ms": 0.8,
                "path": "/apis/apps/v1/namespaces/default/deployments/sample?fieldManager=view",
            }))
            .await;
        journal.write(&json!({ "type": "ended", "at": now(), "id": "one", "ms": 12.3, "outcome": "requeue", "after_s": 60.0 })).await;
        browser.until(&format!("{} === 'requeue 60s'", text(".state"))).await;
        assert_eq!(browser.eval(&text(".calls")).await, "1 call");
        assert_eq!(browser.eval(&text(".took")).await, "12 ms");
        browser.press(&["2", "Enter"]).await;
        browser.until("document.querySelector('#reconcile-list .requests')").await;
        let call = "[...document.querySelectorAll('.requests tbody td')].map((cell) => cell.textContent).slice(0, 4)";
        assert_eq!(
            browser.eval(call).await,
            json!(["PATCH", "/apis/apps/v1/namespaces/default/deployments/sample?fieldManager=view", "200", "0.8 ms"])
        );

        journal.write(&started("two", json!([{ "why": "retried" }]))).await;
        journal
            .write(&json!({ "type": "ended", "at": now(), "id": "two", "ms": 1.0, "outcome": "error", "error": "the service is not there" }))
            .await;
        browser.until(&format!("{} === 'error'", text(".state"))).await;
        let first = "document.querySelector('#reconcile-list li')";
        assert_eq!(browser.eval(&format!("{first}.querySelector('.error').textContent")).await, "the service is not there");
        assert_eq!(browser.eval(&format!("{first}.dataset.level")).await, "bad");
        browser.until("document.querySelectorAll('.timeline rect').length === 2").await;
        assert_eq!(browser.eval("document.querySelectorAll('.timeline rect.bad').length").await, 1);

        drop(journal);
        browser.until("document.querySelector('#operator .say').textContent === 'markdown-view stopped'").await;
        browser.until("document.querySelector('.lane .numbers').textContent === '0 queued · 0 active'").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_change_is_marked_and_secrets_are_redacted() {
    let world = World::start().await;
    world.config_map("page", &json!({ "title": "old title", "body": "text" })).await;
    let secret = json!({ "metadata": { "name": "key" }, "stringData": { "password": "hunter2" } });
    let secret = world.create("/api/v1/namespaces/default/secrets", &secret).await;
    browse(1400, 900, async |browser: &Browser| {
        browser.open(&world.page.url()).await;
        browser.until(&format!("{} && {}", row("page"), row("key"))).await;
        browser.eval(&format!("{}.click()", row("page"))).await;
        let lines = "[...document.querySelectorAll('#object-yaml > .yaml .code')].map((line) => (line.dataset.mark ?? '0') + line.querySelector('.content').textContent)";
        browser.until(&format!("{lines}.includes('0  title: old title')")).await;
        world.merge("/api/v1/namespaces/default/configmaps/page", &json!({ "data": { "title": "new title" } })).await;
        browser.until(&format!("{lines}.includes('1  title: new title')")).await;
        let marked = browser.eval(&format!("{lines}.filter((line) => line[0] !== '0')")).await;
        assert_eq!(marked, json!(["-1  title: old title", "1  title: new title"]));
        browser.until("/^Changed \\d+s ago: \\+1 −1$/.test(document.querySelector('#object-change').textContent)").await;
        let managed = "document.querySelector('#object-yaml details')";
        assert_eq!(browser.eval(&format!("{managed}.open")).await, false);
        assert_eq!(browser.eval(&format!("{lines}.some((line) => line.includes('managedFields'))")).await, false);

        browser.eval(&format!("{}.click()", row("key"))).await;
        browser.until(&format!("{lines}.includes('0  password: (redacted)')")).await;
        let id = secret["metadata"]["uid"].as_str().expect("it has one");
        let answer = super::Call::get(&format!("/object?id={id}")).send(&world.page).await.text;
        assert!(answer.contains("(redacted)") && !answer.contains("aHVudGVyMg"), "{answer}");

        world.delete("/api/v1/namespaces/default/secrets/key").await;
        browser.until("document.querySelector('#object-state .say').textContent === 'Deleted'").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_can_be_done_with_the_keyboard() {
    let world = World::start().await;
    let owner = world.config_map("apple", &json!({})).await;
    let reference =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "apple", "uid": owner["metadata"]["uid"] });
    let seed = json!({ "metadata": { "name": "seed", "ownerReferences": [reference] } });
    world.create("/api/v1/namespaces/default/configmaps", &seed).await;
    world.config_map("banana", &json!({})).await;
    browse(1400, 900, async |browser: &Browser| {
        browser.open(&world.page.url()).await;
        browser.until(&format!("{} && {} && {}", row("apple"), row("seed"), row("banana"))).await;
        let active = "document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))?.querySelector('.what').firstChild.textContent";
        browser.press(&["1"]).await;
        browser.until(&format!("{active} === 'apple'")).await;
        browser.press(&["Down"]).await;
        browser.until(&format!("{active} === 'seed'")).await;
        browser.press(&["Left"]).await;
        browser.until(&format!("{active} === 'apple'")).await;
        browser.press(&["Left"]).await;
        browser.until(&format!("!{}", row("seed"))).await;
        assert_eq!(browser.eval(&format!("{}.getAttribute('aria-expanded')", row("apple"))).await, "false");
        browser.press(&["Down"]).await;
        browser.until(&format!("{active} === 'banana'")).await;
        browser.press(&["Home", "Right"]).await;
        browser.until(&row("seed")).await;
        browser.press(&["Right", "Enter"]).await;
        browser.until("!document.querySelector('#object').hidden").await;
        browser.until("document.querySelector('#object-title').textContent.endsWith('seed')").await;
        assert_eq!(browser.eval("document.querySelector('#object-path .link').textContent").await, "ConfigMap apple");
        browser.press(&["Escape"]).await;
        browser.until("document.querySelector('#object').hidden").await;

        browser.press(&["/", "b", "a", "n"]).await;
        browser.until(&format!("{ROWS}.join() === '1 ConfigMap banana '")).await;
        assert_eq!(browser.eval("document.querySelector('#filter').value").await, "ban", "the slash is no part of it");
        browser.press(&["Escape"]).await;
        browser.until(&format!("{ROWS}.length === 3 && document.activeElement.id === 'tree'")).await;
        browser.press(&["?"]).await;
        browser.until("document.querySelector('#keys').open").await;
        browser.press(&["Escape"]).await;
        browser.until("!document.querySelector('#keys').open").await;

        // With Tab alone: every stop is visible, and the tree is one of them.
        let mut stops = Vec::new();
        browser.eval("document.activeElement.blur()").await;
        for _ in 0..12 {
            browser.press(&["Tab"]).await;
            stops.push(browser.eval("document.activeElement.id || document.activeElement.className").await);
        }
        for stop in ["filter", "namespace", "system", "theme", "help", "tree", "window"] {
            assert!(stops.contains(&json!(stop)), "{stop} is not among {stops:?}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_theme_follows_the_system_unless_selected() {
    let world = World::start().await;
    browse(1400, 900, async |browser: &Browser| {
        browser.prefer("light").await;
        browser.open(&world.page.url()).await;
        let brightness =
            "Math.max(...getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number))";
        browser.until("document.querySelector('#cluster .say').textContent === 'Connected'").await;
        browser.until(&format!("{brightness} > 200")).await;
        browser.prefer("dark").await;
        browser.until(&format!("{brightness} < 60")).await;
        browser.press(&["t"]).await;
        browser
            .until(&format!(
                "{brightness} > 200 && document.querySelector('#theme .say').textContent === 'Light'"
            ))
            .await;
        browser.open(&world.page.url()).await;
        browser
            .until(&format!(
                "{brightness} > 200 && document.querySelector('#theme .say').textContent === 'Light'"
            ))
            .await;
        browser.click("#theme").await;
        browser
            .until(&format!(
                "{brightness} < 60 && document.querySelector('#theme .say').textContent === 'Dark'"
            ))
            .await;
        browser.prefer("light").await;
        browser.until(&format!("{brightness} < 60")).await;
        browser.press(&["t"]).await;
        browser
            .until(&format!(
                "{brightness} > 200 && document.querySelector('#theme .say').textContent === 'Auto'"
            ))
            .await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_narrow_window_shows_one_view_at_a_time() {
    let world = World::start().await;
    world
        .config_map("a-name-that-is-longer-than-any-narrow-window-could-ever-show-in-one-line", &json!({}))
        .await;
    browse(500, 800, async |browser: &Browser| {
        browser.open(&world.page.url()).await;
        browser.until(&format!("{ROWS}.length === 1")).await;
        let shown = "['objects', 'reconciles', 'events', 'object'].filter((id) => document.getElementById(id).checkVisibility())";
        let fits = "document.documentElement.scrollWidth <= innerWidth";
        assert_eq!(browser.eval(shown).await, json!(["objects"]));
        assert_eq!(browser.eval(fits).await, true);
        for view in ["events", "reconciles", "objects"] {
            browser.click(&format!("#tab-{view}")).await;
            assert_eq!(browser.eval(shown).await, json!([view]));
            assert_eq!(browser.eval(fits).await, true, "{view}");
        }
        browser.click("#rows .row").await;
        browser.until("document.querySelector('#object-yaml .code')").await;
        assert_eq!(browser.eval(shown).await, json!(["object"]));
        assert_eq!(browser.eval(fits).await, true);
        browser.click("#object-close").await;
        assert_eq!(browser.eval(shown).await, json!(["objects"]));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_visible_rows_of_thousands_of_objects_are_drawn() {
    const MANY: usize = 10_000;
    let world = World::start().await;
    for number in 0..MANY {
        world.config_map(&format!("map-{number:05}"), &json!({ "number": number.to_string() })).await;
    }
    browse(1400, 900, async |browser: &Browser| {
        browser.open(&world.page.url()).await;
        browser.until(&format!("document.querySelector('#objects-count').textContent === '{MANY}'")).await;
        let drawn = browser.eval("document.querySelectorAll('#rows .row').length").await;
        assert!(drawn.as_u64().is_some_and(|drawn| (20..100).contains(&drawn)), "{drawn} rows are drawn");
        browser.press(&["1", "End"]).await;
        browser.until(&row("map-09999")).await;
        for number in 9_900..MANY {
            let path = format!("/api/v1/namespaces/default/configmaps/map-{number:05}");
            world.merge(&path, &json!({ "metadata": { "labels": { "changed": "yes" } } })).await;
        }
        world.delete("/api/v1/namespaces/default/configmaps/map-09999").await;
        browser.until(&format!("!{}", row("map-09999"))).await;
        let drawn = browser.eval("document.querySelectorAll('#rows .row').length").await;
        assert!(drawn.as_u64().is_some_and(|drawn| drawn < 100), "{drawn} rows are drawn");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_can_be_filtered_by_namespace() {
    let world = World::start().await;
    world.create("/api/v1/namespaces", &json!({ "metadata": { "name": "other" } })).await;
    world.config_map("mine", &json!({})).await;
    world.create("/api/v1/namespaces/other/configmaps", &json!({ "metadata": { "name": "theirs" } })).await;
    browse(1400, 900, async |browser: &Browser| {
        browser.open(&world.page.url()).await;
        let choices =
            "[...document.querySelectorAll('#namespace option')].map((option) => option.textContent).join()";
        browser.until(&format!("{choices} === 'All namespaces,default,other' && {ROWS}.length === 3")).await;
        let column = "document.querySelector('#rows .c-namespace').checkVisibility()";
        assert_eq!(browser.eval(column).await, true);
        browser.click("#namespace option[value=other]").await;
        browser.until(&format!("{ROWS}.join() === '1 ConfigMap theirs '")).await;
        assert_eq!(browser.eval(column).await, false, "one namespace needs no column");
        assert_eq!(browser.eval("document.querySelector('#objects-count').textContent").await, "1 of 3");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_connections_are_shown_and_recover() {
    // Nothing listens there.
    let nowhere = kube::Config::new("http://127.0.0.1:1".parse().expect("an address"));
    let page = Page::start(nowhere.try_into().expect("a client"), 0).await.expect("a port is free");
    let (url, port) = (page.url(), page.address().port());
    let world = World::start().await;
    world.config_map("found", &json!({})).await;
    browse(1400, 900, async |browser: &Browser| {
        browser.open(&url).await;
        let cluster = "document.querySelector('#cluster .say').textContent";
        browser.until(&format!("{cluster} === 'Disconnected'")).await;
        assert_ne!(browser.eval("document.querySelector('#notes').textContent").await, "", "it says why");
        page.stop().await;
        browser.until(&format!("{cluster} === 'kubewright dev stopped'")).await;
        let again = Page::start(world.client.clone(), port).await.expect("the port is free again");
        browser.until(&format!("{cluster} === 'Connected' && {}", row("found"))).await;
        // The browser logs failed connections itself.
        let complaints = browser.console().await;
        assert!(complaints.iter().all(|line| line.contains("net::ERR_")), "{complaints:?}");
        browser.open("about:blank").await;
        again.stop().await;
    })
    .await;
}
