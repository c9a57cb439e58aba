//! End-to-end tests of the operator binary: `make test-e2e`.
//!
//! By default the tests start an embedded cluster, and the operator as its ServiceAccount with the roles of config/rbac.
//! With USE_EXISTING_CLUSTER=true they use the current kubeconfig context, where the operator must be deployed already
//! (`make deploy IMG=...`).

use std::process::{Child, Command};
use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kubewright::Key;
use kubewright_envtest::{Environment, Mode, eventually};

const LIMIT: Duration = Duration::from_mins(2);
const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'nginx:latest'}]}
";

#[tokio::test(flavor = "multi_thread")]
async fn the_pod_ips_of_a_deployment_are_collected() -> Result<()> {
    let env = Environment::builder().https().with_cluster().start().await?;
    let namespace = env.namespace().await?;
    let _operator = match Mode::from_env()? {
        Mode::Existing => None,
        _ => Some(Operator::start(&env, &namespace).await?),
    };
    env.apply_yaml(&namespace, WEB).await?;
    eventually(LIMIT, async || {
        let map = env.runtime_client().get::<ConfigMap>(&Key::namespaced(&namespace, "web-pod-ips")).await?;
        ensure!(map.data.as_ref().is_some_and(|data| data.len() == 2), "{:?}", map.data);
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
        let child = Command::new(env!("CARGO_BIN_EXE_collector"))
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(["--health-probe-bind-address=0", "--metrics-bind-address=0"])
            .spawn()?;
        Ok(Self(child))
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
