//! Webhooks on an existing cluster.
//!
//! The cluster is an embedded server on a thread of its own, so that it answers while an environment is dropped on the
//! test's only thread. It calls the webhooks over TLS.

mod conversions;
mod operator;

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kubewright_envtest::{Builder, Environment, Logs, Mode, Running, eventually};
use kubewright_runtime::webhook::{AdmissionRequest, Conversion, Defaulter, Rejection};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::webhooks::{OneReplica, Rules, api, page, v1, v2};

const CRD: &str = "pages.webhooks.example.com";
const SOON: Duration = Duration::from_secs(30);

/// An existing cluster. It ends when this is dropped.
struct Cluster {
    kubeconfig: PathBuf,
    /// Stops the thread when it is dropped.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Cluster {
    fn start() -> Result<Self> {
        let (started, kubeconfig) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let env = Environment::builder().mode(Mode::Embedded).https().start().await?;
                started.send(env.kubeconfig().context("the cluster does not listen")?)?;
                let _: Result<(), _> = stopped.await;
                Ok(())
            })
        });
        Ok(Self { kubeconfig: kubeconfig.recv()?, stop: Some(stop), thread: Some(thread) })
    }

    fn builder(&self) -> Builder {
        builder(&self.kubeconfig)
    }

    async fn environment(&self) -> Result<Environment> {
        Ok(self.builder().webhook_host("127.0.0.1").start().await?)
    }
}

/// An environment on a cluster that cannot call it.
fn builder(kubeconfig: impl Into<PathBuf>) -> Builder {
    let builder = Environment::builder().mode(Mode::Existing).kubeconfig(kubeconfig);
    builder.webhook_host("").crd::<v1::Page>().crd::<v2::Page>()
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop.take();
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.unwrap().unwrap().unwrap();
        }
    }
}

/// Runs a manager with a defaulting, a validating and a conversion webhook.
async fn run(env: &Environment, defaulter: impl Defaulter<Object = v1::Page>) -> Result<Running> {
    let manager = env.manager("pages")?;
    manager.defaulter(defaulter)?;
    manager.validator(Rules)?;
    manager.conversion(Conversion::hub::<v1::Page>().spoke::<v2::Page>())?;
    let mut running = env.run(manager);
    running.ready().await?;
    Ok(running)
}

/// The webhook configurations of the cluster.
async fn configurations(env: &Environment) -> Result<Vec<String>> {
    let all = ListParams::default();
    let mutating = Api::<MutatingWebhookConfiguration>::all(env.client()).list_metadata(&all).await?;
    let validating = Api::<ValidatingWebhookConfiguration>::all(env.client()).list_metadata(&all).await?;
    let names = mutating.items.into_iter().filter_map(|it| it.metadata.name);
    Ok(names.chain(validating.items.into_iter().filter_map(|it| it.metadata.name)).collect())
}

/// What a session may change in the CRD.
async fn crd(env: &Environment) -> Result<Value> {
    let crd = Api::<CustomResourceDefinition>::all(env.client()).get(CRD).await?;
    let metadata = crd.metadata;
    Ok(json!({ "spec": crd.spec, "labels": metadata.labels, "annotations": metadata.annotations }))
}

fn conversion_url(crd: &Value) -> &str {
    crd.pointer("/spec/conversion/webhook/clientConfig/url").and_then(Value::as_str).unwrap_or_default()
}

/// Creates a page without replicas, and returns its replicas.
async fn created(env: &Environment, namespace: &str, name: &str) -> Result<Value> {
    let page = page("v1", name, &json!({ "title": "A" }));
    let created = api(env, namespace, "v1").create(&PostParams::default(), &page).await?;
    Ok(created.data["spec"]["replicas"].clone())
}

#[tokio::test]
async fn webhooks_are_called_over_tls_and_removed_with_the_environment() -> Result<()> {
    let cluster = Cluster::start()?;
    let observer = cluster.builder().start().await?;
    let before = crd(&observer).await?;

    let env = cluster.environment().await?;
    let namespace = env.namespace().await?;
    let running = run(&env, OneReplica).await?;
    assert_eq!(created(&env, &namespace, "a").await?, 1);
    let wrong = page("v1", "b", &json!({ "title": "", "replicas": 10 }));
    let refused = api(&env, &namespace, "v1").create(&PostParams::default(), &wrong).await.unwrap_err();
    let refused = refused.to_string();
    assert!(refused.contains("spec.replicas: Invalid value: 10: must be between 1 and 5"), "{refused}");
    let read = eventually(SOON, async || api(&env, &namespace, "v2").get("a").await).await?;
    assert_eq!(read.data["spec"], json!({ "heading": "A", "replicas": 1 }));
    assert!(conversion_url(&crd(&observer).await?).starts_with("https://127.0.0.1:"));
    let names = configurations(&observer).await?;
    assert!(names.len() == 2 && names.iter().all(|name| name.starts_with("pages-")), "{names:?}");

    running.stop().await?;
    drop(env);
    assert_eq!(configurations(&observer).await?, [""; 0]);
    assert_eq!(crd(&observer).await?, before);
    Ok(())
}

/// The variable with the kubeconfig of a process that is killed.
const KILLED: &str = "EXISTING_KILLED";
/// The test that a process runs until it is killed.
const KILLED_TEST: &str = "existing::the_next_start_removes_what_a_killed_process_left";
/// What this process prints when its webhooks are installed.
const INSTALLED: &str = "webhooks are installed";

/// Runs the environment of a test in a process, and kills it.
fn killed(cluster: &Cluster, test: &str) -> Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([test, "--exact", "--nocapture"]).env(KILLED, &cluster.kubeconfig);
    let mut process = command.stdout(Stdio::piped()).spawn()?;
    let output = BufReader::new(process.stdout.take().context("no output")?);
    let is_installed = output.lines().any(|line| line.is_ok_and(|line| line.contains(INSTALLED)));
    process.kill()?;
    process.wait()?;
    ensure!(is_installed, "the process ended before its webhooks were installed");
    Ok(())
}

#[tokio::test]
async fn the_next_start_removes_what_a_killed_process_left() -> Result<()> {
    if let Some(kubeconfig) = std::env::var_os(KILLED) {
        let env = builder(kubeconfig).webhook_host("127.0.0.1").start().await?;
        let _running = run(&env, OneReplica).await?;
        println!("{INSTALLED}");
        return std::future::pending().await;
    }
    let cluster = Cluster::start()?;
    let observer = cluster.builder().start().await?;
    let before = crd(&observer).await?;
    killed(&cluster, KILLED_TEST)?;
    assert_eq!(configurations(&observer).await?.len(), 2);
    assert_ne!(conversion_url(&crd(&observer).await?), "");
    // Its webhooks apply to namespaces of its session only.
    assert_eq!(created(&observer, "default", "a").await?, Value::Null);
    assert_eq!(created(&observer, &observer.namespace().await?, "a").await?, Value::Null);

    the_next_start_cleans_up(&cluster, &observer, &before).await
}

/// Starts another environment, which removes the webhooks of a killed process and restores the CRD.
async fn the_next_start_cleans_up(cluster: &Cluster, observer: &Environment, before: &Value) -> Result<()> {
    let next = cluster.environment().await?;
    assert_eq!(configurations(observer).await?, [""; 0]);
    assert_eq!(crd(observer).await?, *before);
    drop(next);
    Ok(())
}

#[tokio::test]
async fn webhooks_of_other_machines_stay() -> Result<()> {
    let cluster = Cluster::start()?;
    let observer = cluster.builder().start().await?;
    killed(&cluster, KILLED_TEST)?;
    let api = Api::<ValidatingWebhookConfiguration>::all(observer.client());
    let found = api.list(&ListParams::default()).await?.items.remove(0).metadata.name.unwrap_or_default();
    let elsewhere = json!({ "metadata": { "annotations": { "kubewright.dev/envtest-host": "elsewhere" } } });
    api.patch(&found, &PatchParams::default(), &Patch::Merge(elsewhere)).await?;

    cluster.environment().await?;
    assert_eq!(configurations(&observer).await?, [found]);
    Ok(())
}

/// Sets a number of replicas that is not the default of [`OneReplica`].
struct FourReplicas;

impl Defaulter for FourReplicas {
    type Object = v1::Page;

    async fn default(&self, page: &mut v1::Page, _: &AdmissionRequest) -> Result<(), Rejection> {
        page.spec.replicas.get_or_insert(4);
        Ok(())
    }
}

#[tokio::test]
async fn environments_at_the_same_time_do_not_call_each_others_webhooks() -> Result<()> {
    let cluster = Cluster::start()?;
    let observer = cluster.builder().start().await?;
    let before = crd(&observer).await?;
    let (one, four) = (cluster.environment().await?, cluster.environment().await?);
    let of_one = run(&one, OneReplica).await?;
    let first_url = conversion_url(&crd(&observer).await?).to_owned();
    let of_four = run(&four, FourReplicas).await?;
    let namespaces = (one.namespace().await?, four.namespace().await?);
    assert_eq!(created(&one, &namespaces.0, "a").await?, 1);
    assert_eq!(created(&four, &namespaces.1, "a").await?, 4);
    assert_eq!(created(&one, "default", "a").await?, Value::Null);

    // A third environment leaves those that are in use.
    drop(cluster.environment().await?);
    assert_eq!(configurations(&observer).await?.len(), 4);
    assert_ne!(conversion_url(&crd(&observer).await?), first_url);

    // The first environment converts again.
    of_four.stop().await?;
    drop(four);
    assert_eq!(configurations(&observer).await?.len(), 2);
    assert_eq!(conversion_url(&crd(&observer).await?), first_url);
    assert_eq!(created(&one, &namespaces.0, "b").await?, 1);
    assert_eq!(api(&one, &namespaces.0, "v2").get("b").await?.data["spec"]["heading"], "A");
    of_one.stop().await?;
    drop(one);
    assert_eq!(crd(&observer).await?, before);
    Ok(())
}

#[tokio::test]
async fn fixtures_go_through_the_webhooks() -> Result<()> {
    let cluster = Cluster::start()?;
    let env = cluster.environment().await?;
    let _running = run(&env, OneReplica).await?;
    let folder = tempfile::tempdir()?;
    std::fs::create_dir(folder.path().join("default"))?;
    let mut fixture = json!({
        "apiVersion": "webhooks.example.com/v1", "kind": "Page",
        "metadata": { "name": "a" }, "spec": { "title": "A" },
    });
    std::fs::write(folder.path().join("default/a.yaml"), fixture.to_string())?;
    fixture["spec"]["replicas"] = 1.into();
    std::fs::write(folder.path().join("default/a.expected.yaml"), fixture.to_string())?;
    Ok(env.fixtures(folder.path()).await?)
}

/// The error of a manager, with its causes.
fn chain(error: &anyhow::Error) -> String {
    format!("{error:#}")
}

#[tokio::test]
async fn webhooks_that_the_cluster_cannot_reach_are_removed_again() -> Result<()> {
    let cluster = Cluster::start()?;
    let observer = cluster.builder().start().await?;
    let before = crd(&observer).await?;
    // An address of this machine that the server does not listen on: for loopback it uses 127.0.0.1.
    let env = cluster.builder().webhook_host("127.0.0.2").start().await?;
    let started = Instant::now();
    let Err(error) = run(&env, OneReplica).await else { panic!("the webhooks were installed") };
    ensure!(started.elapsed() < SOON, "it took {:?}", started.elapsed());
    let error = chain(&error);
    for part in [
        "the cluster cannot reach the webhooks of this process at https://127.0.0.2:",
        "connection refused); they were removed again. Set KUBEWRIGHT_WEBHOOK_HOST to",
    ] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(configurations(&observer).await?, [""; 0]);
    assert_eq!(crd(&observer).await?, before);
    Ok(())
}

#[tokio::test]
async fn webhooks_on_an_existing_cluster_need_a_host() -> Result<()> {
    let cluster = Cluster::start()?;
    let env = cluster.builder().start().await?;
    let Err(error) = run(&env, OneReplica).await else { panic!("the webhooks were installed") };
    insta::assert_snapshot!(chain(&error), @"before_run hook failed: an existing cluster cannot call the webhooks of this process without its address; set KUBEWRIGHT_WEBHOOK_HOST to a name or address at which the cluster reaches this machine, or unset USE_EXISTING_CLUSTER");
    // A manager without webhooks needs none.
    let mut running = env.run(env.manager("plain")?);
    running.ready().await?;
    running.stop().await?;
    let Err(error) = cluster.builder().webhook_host("https://127.0.0.1").start().await else {
        panic!("a URL is not a host")
    };
    assert!(error.to_string().starts_with("invalid webhook host"), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_cluster_that_is_gone_does_not_block_the_end_of_the_environment() -> Result<()> {
    let cluster = Cluster::start()?;
    let env = cluster.environment().await?;
    let running = run(&env, OneReplica).await?;
    drop(cluster);
    let logs = Logs::capture();
    let started = Instant::now();
    drop((running, env));
    ensure!(started.elapsed() < SOON, "it took {:?}", started.elapsed());
    let logged = logs.lines_with("Failed to remove the webhooks of a test from the cluster");
    let command = "kubectl delete mutatingwebhookconfigurations,validatingwebhookconfigurations -l kubewright.dev/envtest=";
    assert!(logged.len() == 1 && logged[0].contains(command), "{}", logs.text());

    Ok(())
}
