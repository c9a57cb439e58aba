//! End-to-end tests of the web UI with a real API server, cluster, sockets and browser.

mod activity;
mod browser;
mod chain;
// The benchmarks include this file as well.
#[path = "../../../kubewright-page/tests/it/driver.rs"]
pub(crate) mod driver;
mod keyboard;
pub(crate) mod layout;
mod readable;
mod story;
mod world;

use std::net::Ipv4Addr;
use std::time::Duration;

use http::StatusCode;
use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_apiserver::authz::Authorization;
use kubewright_apiserver::certs::Authority;
use kubewright_apiserver::serve::{Certificates, Listening, Serving};
use kubewright_apiserver::{ApiServer, Options};
use kubewright_cli::Page;
use kubewright_runtime::{Context, Manager, ManagerOptions, Outcome, Patch, Reconciler, eventually};
use serde_json::{Value, json};
use tokio::time::timeout;

use world::{Call, Stream, World};

/// Timeout, generous for slow machines.
const DEADLINE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn other_host_names_are_rejected() {
    let world = World::start().await;
    for host in ["evil.example", "evil.example:80", "127.0.0.1.evil.example"] {
        for path in ["/", "/events", "/object?id=x"] {
            let answer = Call::get(path).host(host).send(&world.page).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{host} {path}");
            assert!(answer.text.starts_with("this page is local only"), "{}", answer.text);
        }
    }
    assert_eq!(Call::get("/").host("localhost:1").send(&world.page).await.status, StatusCode::OK);
}

#[tokio::test]
async fn the_page_is_read_only_and_sets_security_headers() {
    let world = World::start().await;
    let refused = Call::get("/object?id=x").method("POST").send(&world.page).await;
    assert_eq!(refused.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(refused.headers["allow"], "GET");
    for path in ["/", "/page.js", "/nothing"] {
        let answer = Call::get(path).send(&world.page).await;
        let policy = answer.headers["content-security-policy"].to_str().expect("it is text");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{path}: {policy}");
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
        assert!(!answer.headers.contains_key("access-control-allow-origin"));
    }
    let html = Call::get("/").send(&world.page).await.text;
    assert!(!html.contains("http://") && !html.contains("https://"), "it asks no other host");
}

#[tokio::test]
async fn a_reconnecting_browser_gets_only_what_it_missed() {
    let world = World::start().await;
    world.config_map("first", &json!({})).await;
    let mut stream = Stream::open(&world.page, None).await;
    let (id, _) = stream.until(is_settled).await;
    assert!(stream.seen().iter().any(|batch| names(batch) == ["first"]));
    drop(stream);
    world.config_map("second", &json!({})).await;
    let mut stream = Stream::open(&world.page, Some(&id)).await;
    let (_, batch) = stream.until(|batch| names(batch).contains(&"second".to_owned())).await;
    assert_eq!(batch["reset"], json!(false));
    assert_eq!(names(&batch), ["second"]);
    let mut stream = Stream::open(&world.page, Some("another-5")).await;
    let (_, batch) = stream.next().await;
    assert_eq!(batch["reset"], json!(true), "an id of another run means nothing");
}

#[tokio::test]
async fn kinds_appear_and_disappear_with_their_crd() {
    let world = World::start().await;
    let mut stream = Stream::open(&world.page, None).await;
    let definition = world.define("View").await;
    world
        .create(
            "/apis/example.com/v1/namespaces/default/views",
            &json!({
                "apiVersion": "example.com/v1", "kind": "View", "metadata": { "name": "sample" },
            }),
        )
        .await;
    let (_, batch) = stream.until(|batch| names(batch).contains(&"sample".to_owned())).await;
    let view = object(&batch, "sample").expect("it is there");
    assert_eq!((&view["custom"], &view["kind"]), (&json!(true), &json!("View")));
    world.delete(&definition).await;
    stream
        .until(|batch| {
            batch["gone"].as_array().is_some_and(|gone| gone.contains(&json!(["object", view["id"]])))
        })
        .await;
}

#[tokio::test]
async fn forbidden_kinds_are_skipped() {
    let server = ApiServer::new(Options { authorization: Authorization::Rbac, ..Options::default() });
    let admin = kube::Client::new(server.clone(), "default");
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({
        "metadata": { "name": "reader" },
        "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"] }],
    });
    world::create(&admin, &format!("{rbac}/clusterroles"), &role).await;
    let binding = json!({
        "metadata": { "name": "reader" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader" },
        "subjects": [{ "kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "bob" }],
    });
    world::create(&admin, &format!("{rbac}/clusterrolebindings"), &binding).await;
    world::create(
        &admin,
        "/api/v1/namespaces/default/configmaps",
        &json!({ "metadata": { "name": "mine" } }),
    )
    .await;

    let listening = Listening::open(server, 0).await.expect("a port is free");
    let bob = listening.authority().client("bob", &[]).expect("a certificate");
    let page = Page::start(world::connect(&listening.url(), listening.authority(), &bob).await, 0)
        .await
        .expect("a port is free");
    let mut stream = Stream::open(&page, None).await;
    stream.until(is_settled).await;
    let all = stream.seen();
    assert!(all.iter().any(|batch| names(batch).contains(&"mine".to_owned())));
    let last = all.iter().rev().find_map(status).expect("a status");
    let forbidden = last["forbidden"].as_array().expect("a list");
    assert!(forbidden.contains(&json!("secrets.")) && !forbidden.contains(&json!("configmaps.")), "{last}");
    assert_eq!(last["lost"], Value::Null);
    page.stop().await;
    listening.close().await;
}

#[tokio::test]
async fn an_unreachable_cluster_is_reported_and_retried() {
    let authority = Authority::new().expect("an authority");
    let (admin, own) = (
        authority.client("admin", &["system:masters"]).expect("a certificate"),
        authority.server(&[Ipv4Addr::LOCALHOST.into()]).expect("a certificate"),
    );
    let certificates = Certificates {
        server: own.cert_pem.into_bytes(),
        key: own.key_pem.into_bytes(),
        clients: Some(authority.pem().as_bytes().to_vec()),
    };
    let server = ApiServer::new(Options::default());
    let any = (Ipv4Addr::LOCALHOST, 0).into();
    let serving = Serving::open_at(server.clone(), any, &certificates).await.expect("a port is free");
    let address = serving.address();
    let client = world::connect(&format!("https://{address}"), &authority, &admin).await;
    serving.close().await;

    let page = Page::start(client, 0).await.expect("the page starts all the same");
    let mut stream = Stream::open(&page, None).await;
    stream.until(|batch| status(batch).is_some_and(|status| status["lost"].is_string())).await;
    let serving = Serving::open_at(server, address, &certificates).await.expect("the port is free again");
    let back = |batch: &Value| {
        status(batch).is_some_and(|status| status["lost"].is_null() && status["discovered"] == json!(true))
    };
    stream.until(back).await;
    serving.close().await;
    stream.until(|batch| status(batch).is_some_and(|status| status["lost"].is_string())).await;
}

#[tokio::test]
async fn a_journal_without_hello_is_rejected() {
    let world = World::start().await;
    let mut stream = Stream::open(&world.page, None).await;
    let started = json!({
        "type": "started", "at": "2026-01-01T00:00:00Z", "id": "forged", "controller": "c", "kind": "K", "name": "n",
    });
    let mut forger = world.journal().await;
    forger.raw("POST / HTTP/1.1\r\n").await;
    forger.write(&started).await;
    forger.until_closed().await;
    let mut journal = world.journal().await;
    journal.hello("operator", &["c"]).await;
    journal.raw("this is not JSON\n").await;
    journal.write(&json!({ "type": "something new", "at": "2026-01-01T00:00:00Z" })).await;
    journal.write(&json!({ "id": "real", "controller": "c", "type": "started", "at": "2026-01-01T00:00:00Z", "kind": "K", "name": "n" })).await;
    stream.until(|batch| !entries(batch, "reconcile").is_empty()).await;
    let ids: Vec<Value> = stream
        .seen()
        .iter()
        .flat_map(|batch| entries(batch, "reconcile"))
        .map(|entry| entry["id"].clone())
        .collect();
    assert!(
        !ids.is_empty() && ids.iter().all(|id| id.as_str().is_some_and(|id| id.ends_with(":real"))),
        "{ids:?}"
    );
}

/// Labels ConfigMaps.
struct Labeller;

impl Reconciler for Labeller {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, cx: &Context) -> kubewright_runtime::Result<Outcome> {
        let label = json!({ "metadata": { "labels": { "seen": "yes" } } });
        cx.client().patch(map, &Patch::merge(label)).await?;
        Ok(Outcome::done())
    }
}

#[tokio::test]
async fn the_journal_of_a_manager_is_shown_with_causes_and_calls() {
    let world = World::start().await;
    let mut stream = Stream::open(&world.page, None).await;
    let options = ManagerOptions {
        journal: Some(world.page.journal_address()),
        journal_token: Some(world.page.journal_token().to_owned()),
        ..ManagerOptions::new("labeller").namespaces(["default"])
    };
    let manager = Manager::new(world.client.clone(), options).expect("a manager");
    manager.controller(Labeller).register().expect("one controller");
    let running = tokio::spawn(manager.run_until(std::future::pending()));
    stream.until(|batch| !entries(batch, "operator").is_empty()).await;
    // With a field manager, as kubectl creates it.
    let path = "/api/v1/namespaces/default/configmaps?fieldManager=kubectl-create";
    world.create(path, &json!({ "metadata": { "name": "first" }, "data": { "key": "value" } })).await;

    let is_relabelled = |entry: &Value| {
        let caused = entry["causes"].as_array().into_iter().flatten();
        caused
            .clone()
            .any(|cause| cause["why"] == "modified" && cause["changed"] == json!(["metadata.labels"]))
            && entry["outcome"] == "done"
    };
    let (_, batch) = stream.until(|batch| entries(batch, "reconcile").iter().any(is_relabelled)).await;
    let entry = entries(&batch, "reconcile").into_iter().find(is_relabelled).expect("it was found");
    assert_eq!((&entry["kind"], &entry["name"]), (&json!("ConfigMap"), &json!("first")), "{entry:#}");
    let calls = entry["calls"].as_array().expect("a list");
    assert_eq!(
        (calls.len(), &calls[0]["method"], &calls[0]["status"]),
        (1, &json!("PATCH"), &json!(200)),
        "{entry:#}"
    );

    // The page may observe the writes later than the operator.
    let path = format!("/why?id={}", entry["id"].as_str().expect("an ID"));
    let explained = eventually(DEADLINE, async || {
        let why: Value = serde_json::from_str(&Call::get(&path).send(&world.page).await.text).expect("JSON");
        let steps: Vec<String> = why["chains"][0]
            .as_array()
            .into_iter()
            .flatten()
            .map(|step| format!("{} {} {}", step["step"], step["verb"], step["manager"]))
            .collect();
        let is_whole = steps.len() == 3 && steps[0] == r#""write" "modified" "labeller""#;
        if is_whole && steps[1].starts_with("\"reconcile\"") { Ok(steps) } else { Err(format!("{why:#}")) }
    });
    let steps = explained.await.expect("the chain goes back to the creation");
    assert_eq!(steps[2], r#""write" "created" "kubectl-create""#);
    running.abort();
}

#[tokio::test]
async fn a_journal_without_the_token_is_rejected() {
    let world = World::start().await;
    let mut stream = Stream::open(&world.page, None).await;
    let mut other = world.journal().await;
    other.token = "guessed".to_owned();
    other.hello("intruder", &["c"]).await;
    other.until_closed().await;
    let (_, batch) = stream
        .until(|batch| status(batch).is_some_and(|status| status["rejected"] == json!(["intruder"])))
        .await;
    assert!(entries(&batch, "operator").is_empty());
    let mut own = world.journal().await;
    own.hello("operator", &["c"]).await;
    stream.until(|batch| entries(batch, "operator").iter().any(|entry| entry["name"] == "operator")).await;
    assert!(
        stream.seen().iter().flat_map(|batch| entries(batch, "operator")).all(|it| it["name"] != "intruder")
    );
}

#[tokio::test]
async fn a_stopped_page_closes_its_connections() {
    let world = World::start().await;
    let (page, journal) = (world.page.address(), world.page.journal_address());
    let mut stream = Stream::open(&world.page, None).await;
    stream.next().await;
    world.page.stop().await;
    timeout(DEADLINE, stream.until_closed()).await.expect("the stream ends");
    for address in [page, journal] {
        assert!(tokio::net::TcpStream::connect(address).await.is_err(), "{address} is closed");
    }
}

#[tokio::test]
async fn a_taken_port_is_an_error_with_a_hint() {
    let world = World::start().await;
    let port = world.page.address().port();
    let Err(error) = Page::start(world.client.clone(), port).await else { panic!("the port is taken") };
    assert_eq!(error.to_string(), format!("cannot serve the web UI on 127.0.0.1:{port}"));
}

fn entries(batch: &Value, topic: &str) -> Vec<Value> {
    let put = batch["put"].as_array().into_iter().flatten();
    put.filter(|put| put[0] == topic).map(|put| put[1].clone()).collect()
}

fn status(batch: &Value) -> Option<Value> {
    entries(batch, "status").pop()
}

/// Whether the initial state is complete.
fn is_settled(batch: &Value) -> bool {
    status(batch).is_some_and(|status| status["discovered"] == json!(true) && status["listing"] == json!(0))
}

fn object(batch: &Value, name: &str) -> Option<Value> {
    entries(batch, "object").into_iter().find(|object| object["name"] == name)
}

/// The objects that are not system objects.
fn names(batch: &Value) -> Vec<String> {
    let shown = entries(batch, "object").into_iter().filter(|object| object["system"] == json!(false));
    shown.filter_map(|object| object["name"].as_str().map(str::to_owned)).collect()
}
