//! The code of docs/testing.md. Every code block of the chapter is in this file or in the tutorial; the last test
//! checks that.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Service};
use kube::api::{DeleteParams, DynamicObject, ListParams, PostParams};
use kube::{Api, ResourceExt as _};
use kubewright_envtest::{
    Effect, Environment, Logs, Mode, Permissions, consistently, eventually, matches_yaml, objects,
};
use kubewright_runtime::cache::Index;
use kubewright_runtime::{Context, Gvk, Key, ListOptions, Outcome, Reconciler, Result as Reconciled};

use crate::markdown_view::{MarkdownView, Viewer};

#[tokio::test]
async fn an_object_can_be_created_and_read() -> Result<()> {
    let env = Environment::start().await?;
    let namespace = env.namespace().await?;
    let maps: Api<ConfigMap> = Api::namespaced(env.client(), &namespace);
    let map: ConfigMap = serde_json::from_str(r#"{"metadata": {"name": "a"}, "data": {"x": "1"}}"#)?;
    maps.create(&PostParams::default(), &map).await?;
    assert_eq!(maps.get("a").await?.data, map.data);
    Ok(())
}

#[tokio::test]
async fn crds_and_fixtures_are_installed_at_the_start() -> Result<()> {
    let env = Environment::builder()
        .crd::<MarkdownView>() // from a type
        .crds_from("testdata/crds") // from a file, or all YAML files of a folder
        .fixtures("testdata/fixtures") // objects, applied in the order of their files
        .start()
        .await?;

    let key = Key::namespaced("default", "faust");
    let book = env.runtime_client().get_dynamic(&Gvk::new("example.com", "v1", "Book"), &key).await?;
    matches_yaml(&*book, "{spec: {title: Faust, pages: 1}}")?; // the server has set the default
    Ok(())
}

const VIEW: &str = "{apiVersion: view.example.com/v1, kind: MarkdownView, metadata: {name: sample}, \
                    spec: {markdowns: {SUMMARY.md: '# Summary'}, replicas: 2}}";

#[tokio::test]
async fn one_reconcile_creates_all_children() -> Result<()> {
    let env = Environment::builder().crd::<MarkdownView>().start().await?;
    let (namespace, client) = (env.namespace().await?, env.runtime_client());
    env.apply_yaml(&namespace, VIEW).await?;
    let key = Key::namespaced(&namespace, "sample");
    let outcome = env.reconcile_once(&Viewer, &key).await.unwrap();
    assert_eq!(outcome, Outcome::done());
    matches_yaml(&*client.get::<Deployment>(&key).await?, "{spec: {replicas: 2}}")?;

    let manager = env.manager("by-index")?;
    let by_app = manager.cache().index::<Deployment>("app", app)?;
    let outcome = env.reconcile_once(&Apps { by_app }, &key).await.unwrap();
    assert_eq!(outcome, Outcome::requeue_after(Duration::from_secs(1)), "it sees one Deployment");

    manager.controller(Viewer).owns::<Deployment>().register()?;
    let outcome = manager.reconcile_once(&Viewer, &key).await.unwrap();
    assert_eq!(outcome, Outcome::done());
    Ok(())
}

/// The index values of a Deployment.
fn app(deployment: &Deployment) -> Vec<String> {
    deployment.metadata.name.clone().into_iter().collect()
}

/// Reads an index by its handle and by its name. The outcome is the number of Deployments, in seconds.
struct Apps {
    by_app: Index<Deployment>,
}

impl Reconciler for Apps {
    type Object = MarkdownView;

    async fn reconcile(&self, view: &MarkdownView, cx: &Context) -> Reconciled<Outcome> {
        let name = view.name_any();
        let by_handle = self.by_app.get(&name)?.len();
        let by_name = cx.client().list::<Deployment>(&ListOptions::all().field("app", &name)).await?.len();
        anyhow::ensure!(by_handle == by_name, "{by_handle} and {by_name}");
        Ok(Outcome::requeue_after(Duration::from_secs(by_handle.try_into()?)))
    }
}

#[tokio::test(start_paused = true)]
async fn events_metrics_and_logs_can_be_observed() -> Result<()> {
    let limit = Duration::from_secs(10);
    let env = Environment::builder().mode(Mode::Embedded).crd::<MarkdownView>().start().await?;
    let logs = Logs::capture(); // what is logged on this thread from here on
    let manager = env.manager("markdown-view")?;
    manager.controller(Viewer).owns::<Deployment>().register()?;
    let running = env.run(manager);
    env.apply_yaml("default", VIEW).await?;

    let event = eventually(limit, async || {
        let events = env.events("default").await?;
        events.into_iter().next().ok_or_else(|| anyhow::anyhow!("no event yet"))
    })
    .await?;
    assert_eq!(event.reason.as_deref(), Some("Available"));

    let labels = [("controller", "markdownview"), ("result", "success")];
    let reconciled = running.metrics().value("controller_runtime_reconcile_total", &labels);
    assert!(reconciled >= Some(1.0), "{}", running.metrics().text());

    assert!(!logs.lines_with("markdownview").is_empty(), "{}", logs.text());

    let unused = env.unused_permissions();
    assert!(!unused.iter().any(|it| it.to_string().contains("deployments")), "{unused:?}");
    Ok(running.stop().await?)
}

#[tokio::test]
async fn a_user_has_its_permissions_and_no_others() -> Result<()> {
    let env = Environment::start().await?;
    let reader = env.user("reader", Permissions::none().allow("get, list, watch", "", "configmaps")).await?;
    let maps: Api<ConfigMap> = Api::default_namespaced(reader);
    assert!(maps.list(&ListParams::default()).await.is_ok());
    let refused = maps.delete("a", &DeleteParams::default()).await.unwrap_err();
    assert!(refused.to_string().contains(r#"User "reader" cannot delete resource "configmaps""#));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_operator_recovers_from_a_lost_response() -> Result<()> {
    let env = Environment::builder().mode(Mode::Embedded).crd::<MarkdownView>().seed(1).start().await?;
    let client = env.runtime_client();
    let manager = env.manager("markdown-view")?;
    manager.controller(Viewer).owns::<Deployment>().owns::<Service>().register()?;
    let running = env.run(manager);

    let faults = env.faults().operator();
    faults.next(1, Effect::LoseResponse, |request| request.is_of("deployments") && request.is_write());
    env.apply_yaml("default", VIEW).await?;
    let key = Key::namespaced("default", "sample");
    let done = async || client.get::<Service>(&key).await.map(drop);
    eventually(Duration::from_mins(1), done).await?;

    let writes = faults.count(|request| request.is_of("deployments") && request.is_write());
    assert_eq!(writes, 2, "the write whose answer was lost was not tried again");
    Ok(running.stop().await?)
}

#[tokio::test(start_paused = true)]
async fn five_minutes_on_a_paused_clock_take_no_real_time() -> Result<()> {
    let env = Environment::builder().mode(Mode::Embedded).start().await?;
    let client = env.runtime_client();
    let before = client.list::<Namespace>(&ListOptions::all()).await?.len();
    let unchanged = async || {
        let now = client.list::<Namespace>(&ListOptions::all()).await?.len();
        ensure!(now == before, "{now} namespaces");
        Ok(())
    };
    consistently(Duration::from_mins(5), unchanged).await?;
    Ok(())
}

#[tokio::test]
async fn a_test_can_check_the_capabilities_of_a_control_plane() -> Result<()> {
    let env = Environment::start().await?;
    let namespace = env.namespace().await?;
    let client = env.runtime_client();
    let object: DynamicObject = objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")?.remove(0);
    env.apply(object).await?;
    client.delete(&*client.get::<Namespace>(&Key::cluster(&namespace)).await?).await?;
    if env.capabilities().namespace_deletion {
        eventually(Duration::from_secs(10), async || {
            let there = client.get_opt::<Namespace>(&Key::cluster(&namespace)).await?;
            ensure!(there.is_none(), "it is still there");
            Ok(())
        })
        .await?;
    }
    Ok(())
}

/// The code blocks of a language in a Markdown text, as lines without indentation, with the line number of each block.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<(usize, Vec<&'a str>)> {
    let (mut found, mut current) = (Vec::new(), None::<(usize, Vec<&str>)>);
    for (number, line) in text.lines().enumerate() {
        match &mut current {
            None if line == format!("```{language}") => current = Some((number + 2, Vec::new())),
            Some(_) if line == "```" => found.extend(current.take()),
            Some((_, lines)) if !line.trim().is_empty() => lines.push(line.trim()),
            _ => {}
        }
    }
    found
}

#[test]
fn every_code_block_of_the_chapter_is_in_a_test() {
    let chapter = include_str!("../../../../docs/testing.md");
    let lines =
        |text: &'static str| text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>();
    let sources = [lines(include_str!("chapter.rs")), lines(include_str!("tutorial.rs"))];
    let blocks = blocks(chapter, "rust");
    assert!(blocks.len() >= 8, "the chapter has {} blocks", blocks.len());
    for (number, block) in blocks {
        let shown = sources.iter().any(|source| source.windows(block.len()).any(|window| window == block));
        assert!(shown, "docs/testing.md:{number}: this block is missing in the tests:\n{}", block.join("\n"));
    }
}
