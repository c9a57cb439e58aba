//! End-to-end tests of the operator binary: `make test-e2e`.
//!
//! By default the tests start an embedded cluster, and the operator as its ServiceAccount with the roles of config/rbac.
//! With USE_EXISTING_CLUSTER=true they use the current kubeconfig context, where the operator must be deployed already
//! (`make deploy IMG=...`).

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::core::{DynamicObject, GroupVersionKind};
use kube::{Api, discovery};
use kubewright_envtest::{Environment, Mode, eventually};

const LIMIT: Duration = Duration::from_mins(2);
/// Files in config/samples, each with its expected condition.
const SAMPLES: &str = "
batch_v1_cronjob.yaml Ready
";

#[tokio::test(flavor = "multi_thread")]
async fn the_samples_become_ready() -> Result<()> {
    let mut builder = Environment::builder().https().with_cluster();
    if Path::new("config/crd/bases").is_dir() {
        builder = builder.crds_from("config/crd/bases");
    }
    let env = builder.start().await?;
    let namespace = env.namespace().await?;
    let operator = match Mode::from_env()? {
        Mode::Existing => None,
        _ => Some(Operator::start(&env, &namespace).await?),
    };
    for line in SAMPLES.lines().filter(|line| !line.is_empty()) {
        let (file, condition) = line.split_once(' ').context("file and condition")?;
        let sample = std::fs::read_to_string(Path::new("config/samples").join(file))?;
        for object in env.apply_yaml(&namespace, &sample).await? {
            becomes_ready(&env, &object, condition).await?;
        }
    }
    if let Some(mut operator) = operator {
        let exited = operator.0.try_wait()?;
        ensure!(exited.is_none(), "the operator exited: {exited:?}");
    }
    Ok(())
}

async fn becomes_ready(env: &Environment, object: &DynamicObject, condition: &str) -> Result<()> {
    let types = object.types.as_ref().context("no apiVersion")?;
    let gvk = GroupVersionKind::try_from(types)?;
    let (resource, _) = discovery::pinned_kind(&env.client(), &gvk).await?;
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(env.client(), namespace, &resource),
        None => Api::all_with(env.client(), &resource),
    };
    eventually(LIMIT, async || {
        let status = &api.get(name).await?.data["status"];
        let conditions = status["conditions"].as_array();
        let is_true = conditions.is_some_and(|conditions| {
            conditions.iter().any(|one| one["type"] == condition && one["status"] == "True")
        });
        ensure!(is_true, "{} {name}: {status}", types.kind);
        Ok(())
    })
    .await?;
    Ok(())
}

/// The operator process, killed on drop.
struct Operator(Child);

impl Operator {
    async fn start(env: &Environment, namespace: &str) -> Result<Self> {
        let kubeconfig = env.operator_kubeconfig("config/rbac", namespace).await?;
        let webhooks = env.operator_webhooks()?;
        let probes = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let child = Command::new(env!("CARGO_BIN_EXE_cronjob"))
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .arg(format!("--health-probe-bind-address={probes}"))
            .arg("--metrics-bind-address=0")
            .args(webhooks.args())
            .spawn()?;
        let mut operator = Self(child);
        operator.becomes_ready(probes).await?;
        webhooks.install("config/webhook/manifests.yaml").await?;
        Ok(operator)
    }

    /// Waits until `/readyz` succeeds. Fails at once if the operator exits.
    async fn becomes_ready(&mut self, probes: SocketAddr) -> Result<()> {
        let exited = eventually(LIMIT, async || {
            let exited = self.0.try_wait()?;
            if exited.is_none() {
                let mut connection = TcpStream::connect(probes)?;
                connection.set_read_timeout(Some(Duration::from_secs(5)))?;
                connection.write_all(b"GET /readyz HTTP/1.0\r\n\r\n")?;
                let mut response = String::new();
                connection.read_to_string(&mut response)?;
                ensure!(response.contains(" 200 "), "{response}");
            }
            anyhow::Ok(exited)
        })
        .await?;
        ensure!(exited.is_none(), "the operator exited: {exited:?}");
        Ok(())
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
