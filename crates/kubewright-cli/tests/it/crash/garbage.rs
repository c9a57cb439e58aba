//! Kills the server while it deletes dependents or the content of a namespace: the next start finishes the deletion.

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::TryStreamExt as _;
use futures_util::stream::{self, StreamExt as _};
use http::{Method, Request};
use kube::Client;
use kube::core::WatchEvent;
use serde_json::{Value, json};

use super::server::{Server, send};
use super::writer::{PATH, revision};
use super::{DEADLINE, folder};

/// So many that the deletion is not done when its first events arrive.
const DEPENDENTS: usize = 400;
/// A deletion can still be done before the kill; then the test starts again.
const ATTEMPTS: usize = 10;

/// A deletion that the server is killed in.
#[derive(Debug, Clone, Copy)]
enum Deletion {
    Owner(&'static str),
    Namespace,
}

impl Deletion {
    /// The ConfigMaps that are deleted.
    fn maps(self) -> &'static str {
        match self {
            Self::Owner(_) => PATH,
            Self::Namespace => "/api/v1/namespaces/crowded/configmaps",
        }
    }

    /// The object that is deleted.
    fn target(self) -> String {
        match self {
            Self::Owner(_) => format!("{PATH}/owner"),
            Self::Namespace => "/api/v1/namespaces/crowded".to_owned(),
        }
    }

    /// The request that starts the deletion.
    fn request(self) -> String {
        match self {
            Self::Owner(policy) => format!("{}?propagationPolicy={policy}", self.target()),
            Self::Namespace => self.target(),
        }
    }

    /// Creates the target and the dependents.
    async fn create(self, client: &Client) -> Result<()> {
        let owners = if let Self::Owner(_) = self {
            let owner = send(client, Method::POST, PATH, &json!({"metadata": {"name": "owner"}})).await?;
            let uid = &owner["metadata"]["uid"];
            json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "blockOwnerDeletion": true}])
        } else {
            let namespace = json!({"metadata": {"name": "crowded"}});
            send(client, Method::POST, "/api/v1/namespaces", &namespace).await?;
            json!([])
        };
        let create = |at| {
            let metadata = json!({"name": format!("dependent-{at}"), "ownerReferences": owners});
            let map = json!({"metadata": metadata});
            async move { send(client, Method::POST, self.maps(), &map).await }
        };
        let created: Vec<Value> =
            stream::iter((0..DEPENDENTS).map(create)).buffer_unordered(16).try_collect().await?;
        ensure!(created.len() == DEPENDENTS);
        Ok(())
    }

    /// The number of dependents.
    async fn dependents(self, client: &Client) -> Result<usize> {
        let list = send(client, Method::GET, self.maps(), &Value::Null).await?;
        Ok(list["items"].as_array().context("no items")?.iter().filter(|item| is_dependent(item)).count())
    }

    /// Starts the deletion, and kills the server when a dependent is deleted.
    async fn interrupt(self, server: Server) -> Result<()> {
        let client = server.client();
        let list = send(&client, Method::GET, self.maps(), &Value::Null).await?;
        let path = format!("{}?watch=true&resourceVersion={}", self.maps(), revision(&list)?);
        let watch = client.request_events::<Value>(Request::get(path).body(Vec::new())?).await?;
        let mut watch = Box::pin(watch);
        let request = tokio::spawn({
            let (client, path) = (client.clone(), self.request());
            async move { send(&client, Method::DELETE, &path, &Value::Null).await }
        });
        loop {
            match watch.next().await.context("the watch has ended")?? {
                WatchEvent::Deleted(object) if is_dependent(&object) => break,
                WatchEvent::Error(status) => bail!("{status:?}"),
                _ => {}
            }
        }
        server.kill()?;
        // The response may have been sent.
        let _ = request.await?;
        Ok(())
    }
}

fn is_dependent(object: &Value) -> bool {
    object["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("dependent-"))
}

/// Interrupts a deletion so that some dependents are left.
async fn interrupted(deletion: Deletion) -> Result<tempfile::TempDir> {
    for _ in 0..ATTEMPTS {
        let dir = folder();
        let server = Server::start(dir.path()).await?;
        deletion.create(&server.client()).await?;
        deletion.interrupt(server).await?;
        let left = left(deletion, dir.path()).await?;
        ensure!(left < DEPENDENTS, "no dependent was deleted");
        if left > 0 {
            return Ok(dir);
        }
    }
    bail!("the deletion was done before the kill, {ATTEMPTS} times")
}

/// The number of dependents in the data directory.
async fn left(deletion: Deletion, dir: &Path) -> Result<usize> {
    let server = Server::start_without_controllers(dir).await?;
    let left = deletion.dependents(&server.client()).await?;
    server.kill()?;
    Ok(left)
}

async fn is_finished_at_the_next_start(deletion: Deletion) -> Result<()> {
    let test = async {
        let dir = interrupted(deletion).await?;
        let server = Server::start(dir.path()).await?;
        let client = server.client();
        assert_eq!(deletion.dependents(&client).await?, 0, "{deletion:?}");
        match send(&client, Method::GET, &deletion.target(), &Value::Null).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            answer => bail!("{deletion:?}: the target is left: {answer:?}"),
        }
        server.kill()
    };
    tokio::time::timeout(DEADLINE, test).await?
}

#[tokio::test]
async fn an_interrupted_background_deletion_is_finished_at_the_next_start() -> Result<()> {
    is_finished_at_the_next_start(Deletion::Owner("Background")).await
}

#[tokio::test]
async fn an_interrupted_foreground_deletion_is_finished_at_the_next_start() -> Result<()> {
    is_finished_at_the_next_start(Deletion::Owner("Foreground")).await
}

#[tokio::test]
async fn an_interrupted_deletion_of_a_namespace_is_finished_at_the_next_start() -> Result<()> {
    is_finished_at_the_next_start(Deletion::Namespace).await
}
