//! End-to-end tests of the operator binary: `make test-e2e`.
//!
//! By default the tests start an embedded cluster, and the operator as its ServiceAccount with the roles of config/rbac.
//! With USE_EXISTING_CLUSTER=true they use the current kubeconfig context, where the operator must be deployed already
//! (`make deploy IMG=...`).

use std::process::{Child, Command};
use std::time::Duration;

use anyhow::{Result, ensure};
use kubewright::Key;
use kubewright::condition::is_true;
use kubewright_envtest::{Environment, Mode, eventually};
use sample_controller::api::v1alpha1::Bar;

const LIMIT: Duration = Duration::from_mins(2);
const SAMPLE: &str = include_str!("../../config/samples/samplecontroller_v1alpha1_bar.yaml");

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_becomes_ready() -> Result<()> {
    let env = Environment::builder().https().with_cluster().crds_from("config/crd/bases").start().await?;
    let namespace = env.namespace().await?;
    let _operator = match Mode::from_env()? {
        Mode::Existing => None,
        _ => Some(Operator::start(&env, &namespace).await?),
    };
    env.apply_yaml(&namespace, SAMPLE).await?;
    eventually(LIMIT, async || {
        let bar = env.runtime_client().get::<Bar>(&Key::namespaced(&namespace, "bar-sample")).await?;
        let status = bar.status.clone().unwrap_or_default();
        ensure!(is_true(&status.conditions, "Ready"), "{status:?}");
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
        let child = Command::new(env!("CARGO_BIN_EXE_sample-controller"))
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
