//! Test fixture: an environment with a running cluster.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use kubewright_cluster::Options;
use kubewright_envtest::{Effect, Environment, RecordedRequest, Running, eventually};
use kubewright_runtime::{Client, Key, ListOptions, ManagerOptions};
use serde_json::{Value, json};

/// Timeout of waits. The clock is paused, so it costs no real time.
pub(crate) const LIMIT: Duration = Duration::from_mins(2);

/// A control plane and its cluster.
pub(crate) struct World {
    pub(crate) env: Environment,
    pub(crate) namespace: String,
    _running: Running,
}

impl World {
    pub(crate) async fn start(options: Options) -> Result<Self> {
        let env = Environment::builder().seed(1).as_admin().start().await?;
        let namespace = env.namespace().await?;
        let options_of_manager = ManagerOptions { ..ManagerOptions::new("kube-controller-manager") };
        let manager = env.manager_with(options_of_manager)?;
        kubewright_cluster::register(&manager, &options)?;
        let running = env.run(manager);
        let world = Self { env, namespace, _running: running };
        world.ready_nodes(options.nodes.names.len()).await?;
        Ok(world)
    }

    /// Waits until this many nodes are schedulable; otherwise the first ones would get all pods.
    async fn ready_nodes(&self, count: usize) -> Result<()> {
        let ready = async || {
            let nodes = self.client().list::<Node>(&ListOptions::all()).await?;
            let ready =
                nodes.iter().filter(|node| node.spec.as_ref().is_none_or(|spec| spec.taints.is_none()));
            let ready = ready.count();
            ensure!(ready == count, "{ready} of {count} nodes are ready");
            Ok(())
        };
        Ok(eventually(LIMIT, ready).await?)
    }

    /// From now on, one write in five fails; the seed selects which.
    pub(crate) fn disturb(&self, seed: u64) {
        let effects = [Effect::internal_error(), Effect::LoseResponse, Effect::conflict(), Effect::Refuse];
        for (seed, effect) in (seed..).zip(effects) {
            self.env.faults().sometimes(seed, 20, effect, RecordedRequest::is_write);
        }
    }

    pub(crate) fn client(&self) -> &Client {
        self.env.runtime_client()
    }

    pub(crate) fn key(&self, name: &str) -> Key {
        Key::namespaced(&self.namespace, name)
    }

    pub(crate) async fn apply(&self, object: Value) -> Result<()> {
        self.env.apply_yaml(&self.namespace, &object.to_string()).await?;
        Ok(())
    }

    pub(crate) async fn pods(&self) -> Result<Vec<Pod>> {
        let pods = self.client().list::<Pod>(&ListOptions::namespace(&self.namespace)).await?;
        Ok(pods.iter().map(|pod| (**pod).clone()).collect())
    }

    /// Waits until this many pods exist and all are ready.
    pub(crate) async fn ready_pods(&self, count: usize) -> Result<Vec<Pod>> {
        let ready = async || {
            let pods = self.pods().await?;
            ensure!(pods.len() == count, "{} pods", pods.len());
            ensure!(
                pods.iter().all(is_ready),
                "not all are ready: {:?}",
                pods.iter().map(shown).collect::<Vec<_>>()
            );
            Ok(pods)
        };
        Ok(eventually(LIMIT, ready).await?)
    }

    /// Waits until a Deployment is rolled out and this many pods are left.
    pub(crate) async fn rolled_out(&self, name: &str, count: usize) -> Result<Deployment> {
        let key = self.key(name);
        let done = async || {
            let deployment = self.client().get::<Deployment>(&key).await?;
            let status = deployment.status.clone().unwrap_or_default();
            let progressing = status.conditions.iter().flatten().find(|it| it.type_ == "Progressing");
            let reason = progressing.and_then(|it| it.reason.clone());
            let pods: Vec<String> = self.pods().await?.iter().map(shown).collect();
            ensure!(reason.as_deref() == Some("NewReplicaSetAvailable"), "{pods:?} {status:?}");
            ensure!(status.observed_generation == deployment.metadata.generation, "{status:?}");
            let pods = self.pods().await?;
            ensure!(
                pods.len() == count && status.updated_replicas.unwrap_or_default() == i32::try_from(count)?,
                "{status:?}"
            );
            Ok((*deployment).clone())
        };
        Ok(eventually(LIMIT, done).await?)
    }

    /// Reasons and notes of events about objects whose name starts with `about`.
    pub(crate) async fn events(&self, about: &str) -> Result<Vec<String>> {
        let events = self.env.events(&self.namespace).await?;
        let about = events.iter().filter(|event| {
            event
                .regarding
                .as_ref()
                .and_then(|it| it.name.as_ref())
                .is_some_and(|name| name.starts_with(about))
        });
        Ok(about
            .map(|it| {
                format!("{}: {}", it.reason.clone().unwrap_or_default(), it.note.clone().unwrap_or_default())
            })
            .collect())
    }
}

pub(crate) fn deployment(name: &str, replicas: i32, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "web", "image": image }] },
            },
        },
    })
}

pub(crate) fn pod(name: &str, annotations: &Value, spec: &Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": name }, "annotations": annotations },
        "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
    });
    if let (Some(into), Some(from)) = (pod["spec"].as_object_mut(), spec.as_object()) {
        into.extend(from.clone());
    }
    pod
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|it| it.type_ == "Ready" && it.status == "True")
}

/// The status that `kubectl get pods` shows.
pub(crate) fn shown(pod: &Pod) -> String {
    let status = pod.status.clone().unwrap_or_default();
    let container = status.container_statuses.iter().flatten().next();
    let state = container.and_then(|it| it.state.clone()).unwrap_or_default();
    let waiting = state.waiting.and_then(|it| it.reason);
    let ended = state.terminated.and_then(|it| it.reason);
    waiting.or(ended).or(status.phase).unwrap_or_default()
}

pub(crate) fn image(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.containers[0].image.as_deref()).unwrap_or_default()
}
