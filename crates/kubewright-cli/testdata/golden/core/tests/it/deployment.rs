//! Tests the deployment controller.

use std::time::Duration;

use anyhow::{Result, ensure};
use kubewright_envtest::{Environment, eventually};

use shop::controllers;

const FILE: &str = "controllers/deployment.rs";
const CONTROLLER: &str = "deployment";
const LIMIT: Duration = Duration::from_secs(10);
const OBJECT: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata:
  name: example
spec:
  selector:
    matchLabels:
      app: example
  template:
    metadata:
      labels:
        app: example
    spec:
      containers:
      - image: example:v1
        name: example
"#;

#[tokio::test]
async fn an_object_is_reconciled() -> Result<()> {
    let env = Environment::start().await?;
    let namespace = env.namespace().await?;
    let manager = env.manager("shop")?;
    controllers::deployment::register(&manager)?;
    let running = env.run(manager);
    env.apply_yaml(&namespace, OBJECT).await?;

    let labels = [("controller", CONTROLLER), ("result", "success")];
    eventually(LIMIT, async || {
        let metrics = running.metrics();
        let count = metrics.value("controller_runtime_reconcile_total", &labels);
        ensure!(count >= Some(1.0), "{count:?}");
        Ok(())
    })
    .await?;
    // Remove the #[rbac] verbs that are listed here, or test what needs them.
    assert_eq!(env.unused_permissions_in(FILE), []);
    Ok(running.stop().await?)
}
