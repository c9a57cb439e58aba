//! Tests of environments.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::CustomResource;
use kubewright_envtest::{Environment, Logs, Mode, eventually, objects};
use kubewright_runtime::{Key, ListOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

fn embedded() -> kubewright_envtest::Builder {
    Environment::builder().mode(Mode::Embedded)
}

const DEFINITION: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: books.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: books, singular: book, kind: Book}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
";

#[tokio::test]
async fn crds_and_fixtures_of_directories_are_installed_at_the_start() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (crds, fixtures) = (folder.path().join("crds"), folder.path().join("fixtures"));
    std::fs::create_dir_all(&crds)?;
    std::fs::create_dir_all(&fixtures)?;
    std::fs::write(crds.join("books.yaml"), DEFINITION)?;
    std::fs::write(fixtures.join("a.yaml"), "{apiVersion: example.com/v1, kind: Book, metadata: {name: a}}")?;
    std::fs::write(fixtures.join("notes.txt"), "not YAML: [")?;
    let env = embedded().crds_from(&crds).fixtures(&fixtures).start().await?;
    let gvk = kubewright_runtime::Gvk::new("example.com", "v1", "Book");
    let book = env.runtime_client().get_dynamic(&gvk, &Key::namespaced("default", "a")).await?;
    assert_eq!(book.metadata.name.as_deref(), Some("a"));
    Ok(())
}

mod v1 {
    use super::*;

    #[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(group = "example.com", version = "v1", kind = "Shelf", plural = "shelves", storage = false)]
    pub(super) struct ShelfSpec {
        pub(super) boards: i32,
    }
}

mod v2 {
    use super::*;

    #[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(group = "example.com", version = "v2", kind = "Shelf", plural = "shelves")]
    pub(super) struct ShelfSpec {
        pub(super) boards: i32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wood: Option<String>,
    }
}

#[tokio::test]
async fn types_of_several_versions_are_merged_into_one_crd() -> Result<()> {
    let env = embedded().crd::<v1::Shelf>().crd::<v2::Shelf>().start().await?;
    let key = Key::cluster("a");
    env.apply_yaml(
        "default",
        "{apiVersion: example.com/v1, kind: Shelf, metadata: {name: a}, spec: {boards: 3}}",
    )
    .await?;
    assert_eq!(env.runtime_client().get::<v2::Shelf>(&key).await?.spec.boards, 3);

    let Err(error) = embedded().crd::<v1::Shelf>().start().await else {
        panic!("a kind without a storage version was installed")
    };
    assert!(error.to_string().contains("Shelf has no storage version"), "{error}");
    Ok(())
}

#[tokio::test]
async fn an_error_names_what_cannot_be_installed() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("map.yaml");
    std::fs::write(&file, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")?;
    let Err(error) = embedded().crds_from(&file).start().await else { panic!("a ConfigMap was installed") };
    assert!(error.to_string().contains("map.yaml is not a CustomResourceDefinition"), "{error}");
    let Err(error) = embedded().fixtures(folder.path().join("missing")).start().await else {
        panic!("started")
    };
    assert!(error.to_string().contains("failed to read"), "{error}");
    Ok(())
}

#[tokio::test]
async fn environments_are_isolated() -> Result<()> {
    let (one, other) = (embedded().start().await?, embedded().start().await?);
    let map = objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: only-here}}")?.remove(0);
    one.apply(map).await?;
    let key = Key::namespaced("default", "only-here");
    assert!(one.runtime_client().get_opt::<ConfigMap>(&key).await?.is_some());
    assert!(other.runtime_client().get_opt::<ConfigMap>(&key).await?.is_none());
    assert_ne!(one.namespace().await?, one.namespace().await?);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_environment() -> Result<()> {
    let mut seen = Vec::new();
    for _ in 0..2 {
        let env = embedded().seed(7).start().await?;
        let namespace = env.namespace().await?;
        let object = env.runtime_client().get::<Namespace>(&Key::cluster(&namespace)).await?;
        seen.push((object.metadata.uid.clone(), object.metadata.creation_timestamp.clone().map(|it| it.0)));
    }
    assert_eq!(seen[0], seen[1]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_timeout_takes_no_real_time_on_a_paused_clock() -> Result<()> {
    let env = embedded().start().await?;
    let started = tokio::time::Instant::now();
    let namespaces = env.runtime_client().list::<Namespace>(&ListOptions::all()).await?.len();
    let never = eventually(Duration::from_mins(1), async || {
        let now = env
            .runtime_client()
            .list::<Namespace>(&ListOptions::all())
            .await
            .map_err(|error| error.to_string())?
            .len();
        if now == namespaces { Err(format!("still {now} namespaces")) } else { Ok(()) }
    })
    .await;
    assert!(never.unwrap_err().to_string().contains("still"));
    assert!(started.elapsed() >= Duration::from_mins(1));
    Ok(())
}

#[tokio::test]
async fn a_listening_environment_has_a_kubeconfig_until_it_is_dropped() -> Result<()> {
    let env = embedded().https().start().await?;
    let file = env.kubeconfig().expect("it listens");
    let url = env.url().expect("it listens");
    assert!(url.starts_with("https://127.0.0.1:") && std::fs::read_to_string(&file)?.contains(&url), "{url}");
    let config = kube::config::Kubeconfig::read_from(&file)?;
    let config =
        kube::Config::from_custom_kubeconfig(config, &kube::config::KubeConfigOptions::default()).await?;
    let client = kubewright_runtime::Client::new(kube::Client::try_from(config)?);
    assert!(client.get_opt::<Namespace>(&Key::cluster("default")).await?.is_some());
    drop(env);
    assert!(!file.exists());
    let silent = embedded().start().await?;
    assert!(silent.kubeconfig().is_none() && silent.url().is_none());
    Ok(())
}

#[tokio::test]
async fn two_hundred_environments_can_run_concurrently() -> Result<()> {
    let mut all = Vec::new();
    for number in 0..200 {
        let env = embedded().start().await?;
        let yaml = format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: number}}, data: {{n: '{number}'}}}}"
        );
        env.apply_yaml("default", &yaml).await?;
        all.push(env);
    }
    for (number, env) in all.iter().enumerate() {
        let map = env.runtime_client().get::<ConfigMap>(&Key::namespaced("default", "number")).await?;
        assert_eq!(map.data, Some(BTreeMap::from([("n".to_owned(), number.to_string())])));
    }
    Ok(())
}

#[tokio::test]
async fn logs_can_be_captured() {
    let logs = Logs::capture();
    tracing::warn!(color = "red", "a light");
    assert_eq!(logs.lines_with("a light").len(), 1);
    assert!(logs.lines_with("green").is_empty());
}
